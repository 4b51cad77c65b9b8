//! The calls by which a save changes something, so that tests can make each of them fail.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// The operating system, as far as files are written.
pub(super) trait System: Debug + Send + Sync {
    /// Creates a file that was not there, with these permissions as far as the process allows them.
    fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
    }

    /// Locks a file against other processes that ask for the lock.
    fn lock(&self, file: &File) -> io::Result<()> {
        Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
    }

    /// Writes some of `bytes`.
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    /// Gives a file these permissions.
    fn set_mode(&self, file: &File, mode: u32) -> io::Result<()> {
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// Waits until a file, or a folder, is on the disk.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    /// Waits until the names in a folder are on the disk, where there is such a call.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match File::open(folder).and_then(|folder| self.sync(&folder)) {
            // Some file systems have none, and nothing that it could do.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
            {
                Ok(())
            }
            result => result,
        }
    }

    /// Gives a file another name, which another file may have had.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    /// Waits before another attempt.
    fn pause(&self, time: Duration) {
        thread::sleep(time);
    }
}

/// The operating system as it is.
#[derive(Debug)]
pub(super) struct Os;

impl System for Os {}
