//! The target of a file to be written: its kind, and the system calls that write it.

use std::fmt::Debug;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::files::error::OutputError;

/// A kind of target.
#[derive(Debug)]
pub(super) enum Target {
    /// By a new file that takes the name of the old one.
    File(Place),
    /// By writing to what is there: one of the descriptors of this process, already open.
    Open(File),
    /// By writing to what is there: a pipe by name.
    Pipe,
    /// By writing to what is there: a character device.
    Device,
}

/// The place of a file, with links followed.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) path: PathBuf,
}

/// Looks at what is there, and refuses what cannot be replaced.
pub(super) fn look(path: &Path) -> Result<Target, OutputError> {
    match descriptor(path) {
        Some(1) => return owned(io::stdout().as_fd().try_clone_to_owned()),
        Some(2) => return owned(io::stderr().as_fd().try_clone_to_owned()),
        Some(_) => {
            let file = OpenOptions::new().append(true).open(path).map_err(OutputError::Refused)?;
            return Ok(Target::Open(file));
        }
        None => {}
    }
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return place(&follow(path)).map(Target::File);
        }
        Err(error) => return Err(OutputError::Refused(error)),
    };
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Err(OutputError::Folder);
    }
    if kind.is_fifo() {
        return Ok(Target::Pipe);
    }
    if kind.is_char_device() {
        return Ok(Target::Device);
    }
    if !kind.is_file() {
        return Err(OutputError::Special);
    }
    let place = place(&fs::canonicalize(path).map_err(OutputError::Refused)?)?;
    if is_mounted(&place, &metadata) {
        return Err(OutputError::Mounted);
    }
    // Who may not write to a file is not to replace it either.
    OpenOptions::new().append(true).open(&place.path).map_err(OutputError::Refused)?;
    Ok(Target::File(place))
}

/// Returns the number of the descriptor of this process that a path stands for, as `/dev/stdout` or
/// `/dev/fd/1`.
pub(super) fn descriptor(path: &Path) -> Option<u32> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let number = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        let folder = path
            .parent()
            .filter(|_| number.is_some())
            .and_then(|folder| folder.canonicalize().ok());
        let own = || fs::canonicalize("/proc/self").ok();
        if folder.is_some_and(|folder| {
            folder.ends_with("fd") && own().is_some_and(|own| folder.starts_with(own))
        }) {
            return number;
        }
        path = beside(&path, &fs::read_link(&path).ok()?);
    }
    None
}

/// Returns the file that a link names which leads nowhere yet.
fn follow(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Ok(link) = fs::read_link(&path) else { break };
        path = beside(&path, &link);
    }
    path
}

fn beside(path: &Path, link: &Path) -> PathBuf {
    path.parent().map_or_else(|| link.to_path_buf(), |folder| folder.join(link))
}

fn place(path: &Path) -> Result<Place, OutputError> {
    let name = path.file_name().ok_or(OutputError::Folder)?;
    // `file_name` takes no notice of a slash after the name.
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(OutputError::Folder);
    }
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).map_err(OutputError::Refused)?;
    Ok(Place { path: folder.join(name), folder })
}

/// Returns true if the file is a mount of its own: a rename onto it fails.
fn is_mounted(place: &Place, metadata: &Metadata) -> bool {
    let of_another_device =
        fs::metadata(&place.folder).is_ok_and(|folder| folder.dev() != metadata.dev());
    of_another_device || is_mount_root(&place.path)
}

#[cfg(target_os = "linux")]
fn is_mount_root(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    // A system that does not say so (Linux before 5.8) shows it when the name is to be changed.
    statx(CWD, path, AtFlags::empty(), StatxFlags::empty()).is_ok_and(|found| {
        (found.stx_attributes & found.stx_attributes_mask).contains(StatxAttributes::MOUNT_ROOT)
    })
}

#[cfg(not(target_os = "linux"))]
fn is_mount_root(_: &Path) -> bool {
    false
}

impl Place {
    /// Returns the permissions of the file that is there.
    pub(super) fn mode(&self) -> Option<u32> {
        Some(fs::metadata(&self.path).ok()?.permissions().mode() & 0o7777)
    }

    /// Returns true if only others may rename the file that is there, as its folder is sticky;
    /// `own` is a file of this process.
    pub(super) fn is_of_another(&self, own: &Metadata) -> bool {
        let (Ok(file), Ok(folder)) = (fs::metadata(&self.path), fs::metadata(&self.folder)) else {
            return false;
        };
        let is_sticky = folder.permissions().mode() & 0o1000 != 0;
        is_sticky && own.uid() != 0 && file.uid() != own.uid() && folder.uid() != own.uid()
    }
}

/// Opens a pipe that has a reader, or a device, to write to it; never waits.
pub(super) fn open_stream(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().write(true).custom_flags(flags).open(path)
}

fn owned(descriptor: io::Result<std::os::fd::OwnedFd>) -> Result<Target, OutputError> {
    descriptor.map(|descriptor| Target::Open(descriptor.into())).map_err(OutputError::Refused)
}

/// The calls by which a save changes something: behind a trait, so that tests can make each of them
/// fail.
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
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
                ) =>
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

/// As many as Linux follows.
const LINKS_MAX: usize = 40;
