//! The file layer: every file that a run reads or writes is opened here.
//!
//! | what | how |
//! | --- | --- |
//! | an input | [`read`] and [`open`] note its device and inode; [`input`] checks whether a file is one |
//! | an output | [`Output::prepare`] before the work, [`Output::save`] after it |
//! | a file, or none yet | written under another name in its folder, synced, renamed, the folder synced |
//! | a link to a file | the same with the file that the link leads to |
//! | a pipe, a character device, `/dev/stdout` | opened at the start, written to in the end |
//! | what cannot be replaced (a mount of its own, no right to the folder) | refused at the start |
//! | a log | [`LineFile`]: lines that are there at once, in place of an older log |
//! | a folder that one process uses | the lock (`flock`) of a file in it |
//! | a secret | [`create_private`]: a new file of mode 600 |
//! | a disk that is full in the end | tried again, then written elsewhere by [`Output::rescue`] |
//! | checkpoints, in a folder that one run holds | `adapm_runtime::checkpoint` |
//!
//! A file that is written has a unique name, `NAME.PID-RANDOM.partial`, is created with `O_EXCL`,
//! and is locked (`flock`) from [`Output::prepare`] on. So the next run tells the file of a run
//! that was killed, which it removes, from that of a run that goes on, which it leaves alone: it is
//! refused, as one of the two models would be lost.
//!
//! Not here: formats, which are the tasks'; which flag an output belongs to, which the command
//! knows.

use std::io::ErrorKind;
use std::path::Path;

use adapm_transport::error::SystemError;

mod error;
pub(crate) mod floor;
mod input;
mod lines;
#[cfg(feature = "cli")]
mod lock;
mod output;
mod target;
#[cfg(test)]
mod tests;

pub use error::OutputError;
pub use input::{FileId, create_private, input, is_shared, is_stdout, open, read};
pub use lines::LineFile;
#[cfg(feature = "cli")]
pub(crate) use lock::Lock;
pub(crate) use output::{NEVER, is_partial};
pub use output::{Output, OutputWriter, discard};

/// Returns the operating system's words for an error, without its number:
/// `no such file or directory`.
#[must_use]
pub fn reason(error: &std::io::Error) -> String {
    // An error that is not the system's carries a text of its own.
    let text = match error.get_ref() {
        Some(own) => own.to_string(),
        None => return SystemError::from(error).reason(),
    };
    lowered(&text)
}

/// Returns one line on why `path` cannot be read, and what to do. `flag` is the flag that names it,
/// if that is known.
#[must_use]
pub fn unreadable(path: &Path, flag: Option<&str>, error: impl Into<SystemError>) -> String {
    let error = error.into();
    let name = match flag {
        Some(flag) => format!("{} ({flag})", path.display()),
        None => path.display().to_string(),
    };
    let advice = match error.kind() {
        ErrorKind::IsADirectory => return format!("{name} is a directory; give a file"),
        ErrorKind::NotADirectory if path.is_file() => {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            return format!("{name} is a file; give the folder that holds {file}");
        }
        ErrorKind::NotADirectory => Some("what it lies in is a file; check the path"),
        ErrorKind::NotFound => return format!("cannot read {name}: no such file; check the path"),
        ErrorKind::PermissionDenied => Some("check its permissions"),
        _ => error.advice(),
    };
    let reason = error.reason();
    match advice {
        Some(advice) => format!("cannot read {name}: {reason}; {advice}"),
        None => format!("cannot read {name}: {reason}"),
    }
}

fn lowered(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
