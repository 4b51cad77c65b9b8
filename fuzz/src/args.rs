//! What the launcher wants of the command line, which is not fuzzed.

use adapm_transport::net::Kind;

/// Ways to carry frames.
pub(crate) fn transports() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter()
}
