//! How measuring ends badly.

use std::fmt;

use adapm_core::error::OpError;
use adapm_runtime::{BuildError, RunError};
use adapm_transport::net::NetError;

use crate::files;

/// Why measuring ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum BenchError {
    /// It was stopped.
    Stopped,
    /// A cluster could not be built.
    Build(BuildError),
    /// A cluster failed.
    Run(RunError),
    /// An operation failed.
    Op(OpError),
    /// There are no links of a kind.
    Net(NetError),
    /// The operating system refused a socket.
    Socket(std::io::Error),
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::Build(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Op(error) => error.fmt(f),
            Self::Net(error) => error.fmt(f),
            Self::Socket(error) => {
                write!(f, "cannot open a socket on this host to compare with: {}", files::reason(error))
            }
        }
    }
}

impl std::error::Error for BenchError {}

macro_rules! errors {
    ($($variant:ident: $source:ty),+) => {
        $(impl From<$source> for BenchError {
            fn from(error: $source) -> Self {
                Self::$variant(error)
            }
        })+
    };
}

errors!(Build: BuildError, Run: RunError, Op: OpError, Net: NetError, Socket: std::io::Error);
