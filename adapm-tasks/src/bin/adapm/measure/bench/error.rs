//! How measuring a program that is started for it ends badly.

use std::io;
use std::process::ExitStatus;

use adapm_tasks::files;

use crate::launch::error::temporary;

/// Why a program that was started told nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    /// It could not be started.
    #[error("cannot start {program}: {}", files::reason(error))]
    Start { program: String, error: io::Error },
    /// There is no place for what it writes.
    #[error("cannot create a folder in {}: {}", temporary(), files::reason(.0))]
    Folder(io::Error),
    /// It failed; how, and the last line that it wrote to stderr.
    #[error("{command} ended with {status}: {}", said.trim_start_matches("error: "))]
    Failed { command: String, status: ExitStatus, said: String },
    /// What it printed or wrote is not what it should.
    #[error("{command} reported no metrics; run it by hand to see")]
    Output { command: String },
}

impl ChildError {
    pub(super) fn start(program: &str, error: io::Error) -> Self {
        Self::Start { program: program.to_owned(), error }
    }
}
