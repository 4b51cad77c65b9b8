//! How measuring ends badly.

use adapm_core::error::OpError;
use adapm_runtime::{BuildError, RunError};
use adapm_transport::net::NetError;

use crate::files;

/// Why measuring ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// It was stopped.
    #[error("stopped")]
    Stopped,
    /// A cluster could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A cluster failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An operation failed.
    #[error(transparent)]
    Op(#[from] OpError),
    /// There are no links of a kind.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The operating system refused a socket.
    #[error("cannot open a socket on this host to compare with: {}", files::reason(.0))]
    Socket(#[from] std::io::Error),
}
