//! Traces that cannot be shown, or begun.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::files;
use crate::run::{UnknownKey, UnknownKeyChoice};
use adapm_core::NodeId;
use adapm_runtime::trace::{MergeError, TraceError, TraceFault};

/// An error of showing or beginning a trace. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TraceFailure {
    /// There is no such file, nor parts of it.
    #[error("{}", files::unreadable(path, None, error))]
    Unreadable { path: PathBuf, error: io::Error },
    /// A file is no trace.
    #[error(fmt = malformed)]
    Malformed { path: PathBuf, error: TraceError },
    /// The part of a node is not beside the others.
    #[error(
        "no part of {node}: copy {path} from the host of {node}, or name the parts there are one by one"
    )]
    Missing { path: PathBuf, node: NodeId },
    /// The files are not of one run.
    #[error("{0}")]
    Parts(MergeError),
    /// The stretch to show is empty; the seconds there are.
    #[error("nothing lies between --from and --until; the trace ends at {seconds:.3} s")]
    Nothing { seconds: f64 },
    /// Words that choose no key.
    #[error("{0} (--trace)")]
    Choice(UnknownKeyChoice),
    /// A key that the data does not have.
    #[error("{0} (--trace)")]
    Key(UnknownKey),
    /// No key was chosen, nor has the task typical ones.
    #[error("{0} has no keys that are traced by themselves; name some (--trace key:NUMBER,...)")]
    NoKeys(&'static str),
    /// A picture of so many rows.
    #[error("{rows} rows are too many for a picture, at most {most}; trace fewer keys")]
    Rows { rows: usize, most: usize },
    /// Something failed while drawing.
    #[error("cannot draw: {0}; show the trace without --svg")]
    Drawing(String),
}

fn malformed(path: &Path, error: &TraceError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let path = path.display();
    match error {
        TraceError::Line { line: 1, fault: TraceFault::NotATrace | TraceFault::NoText } => {
            write!(f, "{path} is not a trace; give a file written by --trace-keys")
        }
        TraceError::Line { line, fault } => write!(f, "{path}:{line}: {fault}"),
        error => write!(f, "{path}: {error}"),
    }
}
