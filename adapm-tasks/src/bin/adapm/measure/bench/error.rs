//! How measuring a program that is started for it ends badly.

use std::process::ExitStatus;
use std::{fmt, io};

use adapm_tasks::files;

use crate::launch::error::temporary;

/// Why a program that was started told nothing.
#[derive(Debug)]
pub(crate) enum ChildError {
    /// It could not be started.
    Start { program: String, error: io::Error },
    /// There is no place for what it writes.
    Folder(io::Error),
    /// It failed; how, and the last line that it wrote to stderr.
    Failed { command: String, status: ExitStatus, said: String },
    /// What it printed or wrote is not what it should.
    Output { command: String },
}

impl ChildError {
    pub(super) fn start(program: &str, error: io::Error) -> Self {
        Self::Start { program: program.to_owned(), error }
    }
}

impl fmt::Display for ChildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { program, error } => write!(f, "cannot start {program}: {}", files::reason(error)),
            Self::Folder(error) => {
                write!(f, "cannot create a folder in {}: {}", temporary(), files::reason(error))
            }
            Self::Failed { command, status, said } => {
                write!(f, "{command} ended with {status}: {}", said.trim_start_matches("error: "))
            }
            Self::Output { command } => {
                write!(f, "{command} reported no metrics; run it by hand to see")
            }
        }
    }
}
