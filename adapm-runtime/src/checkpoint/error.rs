//! What is wrong with a checkpoint, in one line: what, where, what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use adapm_transport::error::SystemError;

/// A checkpoint that cannot be written or read. Its text is one line: what, where, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointError {
    path: PathBuf,
    fault: Fault,
}

/// What is wrong with a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The operating system refuses a call.
    Refused(SystemError),
    /// This part of it is not as it was written.
    Damaged(String),
    Length {
        found: u64,
        expected: u64,
    },
    Version {
        found: u32,
        read: u32,
    },
    /// It is of something else.
    Other(String),
    /// No report of a part has come.
    Missing {
        part: usize,
        parts: usize,
    },
    /// The file of a part is in another folder.
    Apart {
        part: usize,
        parts: usize,
    },
    /// A part could not be written elsewhere.
    Elsewhere(String),
    /// Another process writes there.
    Taken,
    /// A table has more rows than a file can have of it.
    Rows {
        table: String,
        rows: u64,
    },
}

impl Fault {
    pub(super) fn of(error: &io::Error) -> Self {
        Self::Refused(error.into())
    }
}

impl CheckpointError {
    pub(super) fn new(path: &Path, fault: Fault) -> Self {
        Self { path: path.to_path_buf(), fault }
    }

    /// Returns the error of a refusal of the operating system at `path`.
    #[must_use]
    pub fn of(path: &Path, error: &io::Error) -> Self {
        Self::new(path, Fault::of(error))
    }

    pub(super) fn refused(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::of(path, &error)
    }

    /// Returns the file or folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if another process holds the folder.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.fault == Fault::Taken
    }

    /// Returns the kind of the operating system's refusal, if it is one.
    #[must_use]
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match &self.fault {
            Fault::Refused(error) => Some(error.kind()),
            _ => None,
        }
    }
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.fault {
            Fault::Refused(error) => write!(f, "{path}: {}; check it", error.reason()),
            Fault::Damaged(what) => {
                write!(f, "{path} is damaged: {what}; use another checkpoint of the folder")
            }
            Fault::Length { found, expected } => write!(
                f,
                "{path} is damaged: it has {found} bytes instead of {expected}; use another checkpoint of the folder"
            ),
            Fault::Version { found, read } => write!(
                f,
                "{path} is of version {found}, this program reads version {read}; use the program that wrote it"
            ),
            Fault::Other(what) => write!(f, "{path} is of something else: {what}"),
            Fault::Missing { part, parts } => write!(
                f,
                "{path}: part {part} of {parts} was not written in time; see what its node says"
            ),
            Fault::Apart { part, parts } => write!(
                f,
                "{path}: the file of part {part} of {parts} is in the folder of another host; only the processes that wrote it go on from it, each where it was"
            ),
            Fault::Elsewhere(reason) => f.write_str(reason),
            Fault::Rows { table, rows } => write!(
                f,
                "{path}: table {table} has {rows} rows, a checkpoint can have {} of a table; train without checkpoints",
                u32::MAX
            ),
            Fault::Taken => write!(
                f,
                "{path}: another run has its checkpoints there; wait until it ends, or give another folder"
            ),
        }
    }
}

impl std::error::Error for CheckpointError {}
