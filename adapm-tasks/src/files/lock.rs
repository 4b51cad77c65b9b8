//! A file whose lock one process at a time has.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// The lock of a file, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the file at `path`, which is made if there is none; `None` if another
    /// process has it. Where the file system has no locks, all get one.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
                Err(error)
            }
            _ => Ok(Some(Self { _file: file })),
        }
    }
}
