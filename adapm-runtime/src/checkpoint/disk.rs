//! The calls of the operating system of which a save is made: so that a test can stop or fail any
//! of them.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What a save asks of a file system.
pub(super) trait Disk: Send + Sync {
    /// Makes a folder; one that is there is as good.
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    /// Creates a file, empty.
    fn create(&self, path: &Path) -> io::Result<File> {
        File::create(path)
    }

    /// Writes all bytes.
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    /// Brings a file to the disk.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    /// Brings the names in a folder to the disk.
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    /// Gives a file or folder another name, in place of a file that has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    /// Removes a folder with all that is in it.
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    /// Writes a small file under another name, and gives it its own when it is whole.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let written = || {
            let mut file = self.create(&partial)?;
            self.write(&mut file, bytes)?;
            self.sync(&file)?;
            self.rename(&partial, path)
        };
        written().inspect_err(|_| {
            // It would hold room that others need.
            let _ = self.remove(&partial);
        })?;
        path.parent().map_or(Ok(()), |folder| self.sync_folder(folder))
    }
}

/// The file system.
#[derive(Debug)]
pub(super) struct Os;

impl Disk for Os {}
