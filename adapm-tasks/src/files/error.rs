//! Errors of writing a file: at the start, before hours of work, or in the end.

use std::io;
use std::path::PathBuf;

use super::reason;

/// A file that cannot be written. Its text is what is wrong and what to do, without the file's
/// name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The operating system refused.
    #[error("{}", refused(.0))]
    Refused(#[source] io::Error),
    /// It is a folder.
    #[error("it is a folder; give a file")]
    Folder,
    /// It is a disk or a socket.
    #[error("it is neither a file nor a pipe; give a file")]
    Special,
    /// The file is mounted by itself, so that no other can take its name.
    #[error(
        "it is mounted by itself and cannot be replaced; mount its folder, or give another file"
    )]
    Mounted,
    /// The pipe has no reader.
    #[error("nobody reads this pipe; start its reader first")]
    NoReader,
    /// Another run is going to write the same file.
    #[error("another run is going to write it ({} is its file); wait for it, or give another file", .0.display())]
    Taken(PathBuf),
    /// There is too little room.
    #[error("it needs {}, {} are free in {}; free some, or give a file elsewhere", bytes(*needed), bytes(*free), folder.display())]
    NoSpace {
        /// The folder.
        folder: PathBuf,
        /// Bytes of the file.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The operating system refused in the end, several times.
    #[error("{}", reason(.0))]
    Failed(#[source] io::Error),
}

impl OutputError {
    /// Returns the kind of the operating system's error.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Refused(error) | Self::Failed(error) => error.kind(),
            Self::Folder => io::ErrorKind::IsADirectory,
            Self::Special => io::ErrorKind::InvalidInput,
            Self::Mounted | Self::Taken(_) => io::ErrorKind::ResourceBusy,
            Self::NoReader => io::ErrorKind::BrokenPipe,
            Self::NoSpace { .. } => io::ErrorKind::StorageFull,
        }
    }
}

/// Returns the words for a refusal of the operating system, and what to do.
fn refused(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "there is no such folder; give a file in a folder you may write".to_owned()
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("{}; free some, or give a file elsewhere", reason(error))
        }
        _ => format!("{}; give a file in a folder you may write", reason(error)),
    }
}

/// `12.3 MB`.
fn bytes(count: u64) -> String {
    match count {
        0..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}
