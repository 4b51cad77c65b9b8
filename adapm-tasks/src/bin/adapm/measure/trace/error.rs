//! Traces that cannot be shown, or begun.

use std::fmt;
use std::io;
use std::path::PathBuf;

use adapm_core::NodeId;
use adapm_runtime::trace::{MergeError, TraceError, TraceFault};
use adapm_tasks::files;
use adapm_tasks::run::{UnknownKey, UnknownKeyChoice};
use adapm_transport::error::SystemError;

/// Why a trace cannot be shown, or begun. Its text is one line.
#[derive(Debug)]
pub(crate) enum TraceFailure {
    /// There is no such file, nor parts of it.
    Unreadable { path: PathBuf, error: io::Error },
    /// A file is no trace.
    Malformed { path: PathBuf, error: TraceError },
    /// The part of a node is not beside the others.
    Missing { path: PathBuf, node: NodeId },
    /// The files are not of one run.
    Parts(MergeError),
    /// The stretch to show is empty; the seconds there are.
    Nothing { seconds: f64 },
    /// Words that choose no key.
    Choice(UnknownKeyChoice),
    /// A key that the data does not have.
    Key(UnknownKey),
    /// A picture of so many rows.
    Rows { rows: usize, most: usize },
    /// Something failed while drawing.
    Drawing(String),
}

impl fmt::Display for TraceFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => {
                f.write_str(&files::unreadable(path, None, SystemError::from(error)))
            }
            Self::Malformed {
                path,
                error: TraceError::Line { line: 1, fault: TraceFault::NotATrace | TraceFault::NoText },
            } => {
                write!(f, "{} is not a trace; give a file written by --trace-keys", path.display())
            }
            Self::Malformed { path, error: TraceError::Line { line, fault } } => {
                write!(f, "{}:{line}: {fault}", path.display())
            }
            Self::Malformed { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Missing { path, node } => {
                write!(f, "no part of {node}: copy {} from the host of {node}", path.display())?;
                f.write_str(", or name the parts there are one by one")
            }
            Self::Parts(error) => error.fmt(f),
            Self::Nothing { seconds } => {
                write!(f, "nothing lies between --from and --until; the trace ends at {seconds:.3} s")
            }
            Self::Choice(error) => write!(f, "{error} (--trace)"),
            Self::Key(error) => write!(f, "{error} (--trace)"),
            Self::Rows { rows, most } => {
                write!(f, "{rows} rows are too many for a picture, at most {most}; trace fewer keys")
            }
            Self::Drawing(reason) => write!(f, "cannot draw: {reason}; show the trace without --svg"),
        }
    }
}
