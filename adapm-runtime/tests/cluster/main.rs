//! Clusters in one process, seen through the public interface: how they are built and joined, what
//! they refuse, what they do when a node lies or is lost.
//!
//! One program, as each would compile the whole runtime for itself.

mod apart;
mod bad_input;
mod bounds;
#[path = "../support/channels.rs"]
mod channels;
mod decorated;
#[path = "../support/executor.rs"]
mod executor;
mod held;
mod kinds;
mod liars;
mod peer_lost;
mod populate;
mod two_clusters;
mod workers;
