//! Files that are read, and the note that they were.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The identity of a file, whatever path leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The identity of the file at `path`, behind links; `None` if there is none, or if nothing is lost
    /// by writing to it, as to a character device.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        Self::of(&fs::metadata(path).ok()?)
    }

    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        let id = Self { device: metadata.dev(), inode: metadata.ino() };
        (!metadata.file_type().is_char_device()).then_some(id)
    }
}

/// Opens a file to read it, and notes that it is an input of this process.
///
/// # Errors
///
/// What the operating system refuses; a directory.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if let Some(id) = FileId::of(&metadata) {
        inputs().insert(id, path.to_path_buf());
    }
    Ok(file)
}

/// Reads a whole file, and notes that it is an input of this process.
///
/// # Errors
///
/// As [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The path by which this process has read the file that is at `path`, if it has.
#[must_use]
pub fn input(path: &Path) -> Option<PathBuf> {
    let id = FileId::at(path)?;
    let input = inputs().get(&id).cloned()?;
    // The number of a file that is gone may have gone to another one.
    (FileId::at(&input) == Some(id)).then_some(input)
}

/// Returns true if each byte of `path` can be read by one process alone: it is a pipe, or a file that
/// this process has open, as `/dev/stdin`, which is another file in another process.
#[must_use]
pub fn is_shared(path: &Path) -> bool {
    super::target::descriptor(path).is_some()
        || fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Returns true if `path` is stdout of this process, as `/dev/stdout`.
#[must_use]
pub fn is_stdout(path: &Path) -> bool {
    super::target::descriptor(path) == Some(1)
}

fn inputs() -> std::sync::MutexGuard<'static, BTreeMap<FileId, PathBuf>> {
    INPUTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was read so far. Of the process, as which files were read is a fact of the process: a reader
/// that had to be handed a list could be called without one.
static INPUTS: Mutex<BTreeMap<FileId, PathBuf>> = Mutex::new(BTreeMap::new());
