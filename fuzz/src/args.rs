//! What the launcher wants of the command line, which is not fuzzed.

use adapm_transport::net::Kind;

/// Ways to carry frames.
pub(crate) fn transports() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter()
}

/// What is said of seconds that cannot be.
pub(crate) const SECONDS_WANTED: &str = "give seconds, from 0.001 to 86400";
