//! How measuring a training run ends badly.

use std::process::ExitStatus;
use std::{fmt, io};

/// Why a training run told nothing.
#[derive(Debug)]
pub(crate) enum TrainingError {
    /// It could not be started.
    Start(io::Error),
    /// It failed; how, and the last line that it wrote to stderr.
    Failed { command: String, status: ExitStatus, said: String },
    /// What it printed is not what `train --json` prints.
    Output { command: String },
}

impl fmt::Display for TrainingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => write!(f, "cannot start this program once more: {error}"),
            Self::Failed { command, status, said } => {
                write!(f, "adapm {command} ended with {status}: {}", said.trim_start_matches("error: "))
            }
            Self::Output { command } => {
                write!(f, "adapm {command} printed no figures; run it by hand to see")
            }
        }
    }
}
