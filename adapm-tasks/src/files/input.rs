//! Files that are read, and the record that they were; and files that no other user may read.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::files::target::{Os, System};

/// The identity of a file, whatever path leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the identity of the file at `path`, with links followed; `None` if there is none, or
    /// if nothing is lost by writing to it, as to a character device.
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

/// Returns the path by which this process has read the file that is at `path`, if it has.
#[must_use]
pub fn input(path: &Path) -> Option<PathBuf> {
    let id = FileId::at(path)?;
    let input = inputs().get(&id).cloned()?;
    // The number of a file that is gone may have gone to another one.
    (FileId::at(&input) == Some(id)).then_some(input)
}

/// Returns true if each byte of `path` can be read by one process alone: it is a pipe, or a file
/// that this process has open, as `/dev/stdin`, which is another file in another process.
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

/// Makes a file of mode 600 that holds `text`, synced. A file that is there already stays as it is.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if something is at `path`; else what the system refuses, and
/// then no file is left.
pub fn create_private(path: &Path, text: &str) -> io::Result<()> {
    create(&Os, path, text)
}

fn create(system: &dyn System, path: &Path, text: &str) -> io::Result<()> {
    let file = system.create(path, 0o600)?;
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match system.write(&file, rest)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => rest = &rest[written..],
            }
        }
        system.sync(&file)?;
        system.sync_folder(folder)
    };
    // Half a secret is none.
    write().inspect_err(|_| drop(system.remove(path)))
}

/// The inputs so far. Global to the process: a reader that had to be handed a list could be called
/// without one.
static INPUTS: Mutex<BTreeMap<FileId, PathBuf>> = Mutex::new(BTreeMap::new());

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// Syncs files with one outcome and folders with another.
    #[derive(Debug)]
    struct Syncing(Option<io::ErrorKind>, Option<io::ErrorKind>);

    impl System for Syncing {
        fn sync(&self, file: &File) -> io::Result<()> {
            let outcome = if file.metadata()?.is_dir() { self.1 } else { self.0 };
            outcome.map_or(Ok(()), |kind| Err(kind.into()))
        }
    }

    #[test]
    fn a_secret_that_may_not_last_is_removed_and_one_where_folders_are_not_synced_is_kept() {
        use io::ErrorKind::{StorageFull, Unsupported};
        for (index, (system, is_kept)) in [
            (Syncing(None, None), true),
            (Syncing(None, Some(Unsupported)), true),
            (Syncing(Some(StorageFull), None), false),
            (Syncing(None, Some(StorageFull)), false),
        ]
        .into_iter()
        .enumerate()
        {
            let path =
                std::env::temp_dir().join(format!("adapm-private-{}-{index}", std::process::id()));
            assert_eq!(create(&system, &path, "a secret").is_ok(), is_kept, "{system:?}");
            assert_eq!(
                fs::read_to_string(&path).ok().as_deref(),
                is_kept.then_some("a secret"),
                "{system:?}"
            );
            let _ = fs::remove_file(&path);
        }
    }
}
