//! Why a run cannot have its checkpoints in a folder, or cannot go on there.

use std::io::ErrorKind;
use std::path::PathBuf;

use adapm_runtime::checkpoint::CheckpointError;

/// A run that cannot have its checkpoints there, or cannot go on. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// A checkpoint cannot be written or read.
    #[error("{0}")]
    Checkpoint(#[from] CheckpointError),
    /// This process does not see the folder of node 0.
    #[error("{}: this is not the folder that node 0 writes to, on host {}; give a folder that all hosts share, or --out-local", .0.display(), .1)]
    NotShared(PathBuf, String),
    /// Hosts have a folder each, and other processes than these have written there.
    #[error("{}: hosts have a folder each there (--out-local), so the same processes go on: it is of {there}, this one has {here}; start it as it was", path.display())]
    OtherSeats {
        /// The folder.
        path: PathBuf,
        /// Processes, workers and hosts of the run there.
        there: String,
        /// Those of this one.
        here: String,
    },
    /// Hosts have a folder each, and some lacks the files of its processes.
    #[error("{}: hosts have a folder each there (--out-local), and of {name} files are missing: {missing}; start each node where its files are", path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
        /// The checkpoint.
        name: String,
        /// Nodes without their files, with their hosts.
        missing: String,
    },
    /// The files of a checkpoint together do not have all rows.
    #[error("{}: the files of all hosts have {found} of {rows} rows of table {table}; go on from another checkpoint of the folder", path.display())]
    Rows {
        /// The folder of the checkpoint.
        path: PathBuf,
        /// The table.
        table: String,
        /// Rows that are there, and of how many.
        found: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// The parameters of the best epoch, to which a checkpoint refers, do not have all rows.
    #[error("{}: the parameters of the best epoch lack row {row} of table {table}; go on from another checkpoint of the run", path.display())]
    BestLacks {
        /// The folder of these parameters.
        path: PathBuf,
        /// The table.
        table: String,
        /// The first row that is missing.
        row: u64,
    },
    /// There is no checkpoint.
    #[error("{}: there is no checkpoint to go on from; start the run with --out", .0.display())]
    None(PathBuf),
    /// The run there is one of something else.
    #[error("{}: the run there has {what} {there}, this one {here}; give what it had, or begin a run of its own with --out", path.display())]
    Other {
        /// The folder.
        path: PathBuf,
        /// What differs: the name of a flag, `task` or `data`.
        what: String,
        /// What the run there has.
        there: String,
        /// What was given.
        here: String,
    },
    /// The record cannot be read.
    #[error("{}: its record of the run is of another version of adapm; use the one that wrote it", .0.display())]
    Version(PathBuf),
}

impl ResumeError {
    /// Returns true if the same may do later: another process holds the folder, or a disk has
    /// failed. What is not there, or not allowed, stays so.
    pub(crate) fn may_pass(&self) -> bool {
        let Self::Checkpoint(error) = self else { return false };
        let stays = |kind| {
            matches!(
                kind,
                ErrorKind::NotFound
                    | ErrorKind::PermissionDenied
                    | ErrorKind::NotADirectory
                    | ErrorKind::IsADirectory
                    | ErrorKind::ReadOnlyFilesystem
            )
        };
        error.is_taken() || error.kind().is_some_and(|kind| !stays(kind))
    }
}
