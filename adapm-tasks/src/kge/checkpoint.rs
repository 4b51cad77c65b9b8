//! Parameters of a trained model in a file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::kge::config::ModelKind;
use crate::kge::graph::Names;

/// Parameters of a trained model, in key order, with what is needed to use them.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    pub(crate) model: ModelKind,
    pub(crate) dim: usize,
    pub(crate) reciprocal: bool,
    pub(crate) entities: Names,
    pub(crate) relations: Names,
    pub(crate) values: Vec<f32>,
}

/// A checkpoint file that cannot be written, read or used. Its text is one line: what, where, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The operating system refused.
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        kind: io::ErrorKind,
    },
}

impl std::error::Error for CheckpointError {}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, kind } => write!(f, "{}: {kind}; check path and permissions", path.display()),
        }
    }
}

impl Checkpoint {
    /// Reads a file written by [`save`](Self::save).
    ///
    /// # Errors
    ///
    /// A file that is missing, truncated, corrupt, or of another format version.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        Err(CheckpointError::Io { path: path.to_path_buf(), kind: io::ErrorKind::Unsupported })
    }

    /// Writes the parameters in key order; the same bytes for any number of nodes.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        Err(CheckpointError::Io { path: path.to_path_buf(), kind: io::ErrorKind::Unsupported })
    }

    /// The score function.
    #[must_use]
    pub fn model(&self) -> ModelKind {
        self.model
    }

    /// Length of an entity's vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }
}
