//! The folder of checkpoints as one run's: nobody else writes there as long as it is held; and
//! whose folders are the same one.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::Checkpoint;
use super::disk::{Disk, Os};
use super::error::{CheckpointError, Fault};
use super::manifest::{self, LATEST};
use super::writer::{Unfinished, kind, retain};

/// A folder of checkpoints that is held for one run, by the first of the parts that see it; given
/// back when dropped, or when the process ends in whatever way.
#[derive(Debug)]
pub struct Owner {
    folder: PathBuf,
    /// `None` on a file system without locks.
    _lock: Option<File>,
}

impl Owner {
    /// Makes the folder and takes it; what is there stays.
    ///
    /// # Errors
    /// A folder that another process holds; refusals of the operating system.
    pub fn take(folder: &Path) -> Result<Self, CheckpointError> {
        let refused = CheckpointError::refused(folder);
        Os.make_folder(folder).map_err(&refused)?;
        let lock = Os.create(&folder.join(LOCK)).map_err(refused)?;
        let lock = match lock.try_lock() {
            Ok(()) => Some(lock),
            Err(TryLockError::WouldBlock) => {
                return Err(CheckpointError::new(folder, Fault::Taken));
            }
            Err(TryLockError::Error(_)) => None,
        };
        Ok(Self { folder: folder.to_path_buf(), _lock: lock })
    }

    /// Removes what is not complete and what comes after the checkpoint to go on from, which is the
    /// latest one then; all if there is none.
    ///
    /// # Errors
    /// Refusals of the operating system.
    pub fn begin(&self, goes_on_from: Option<&Checkpoint>) -> Result<(), CheckpointError> {
        let folder = self.folder.as_path();
        let (disk, refused) = (&Os, CheckpointError::refused(folder));
        let latest = folder.join(LATEST);
        match goes_on_from {
            Some(found) => disk.replace(&latest, manifest::latest(found.name()).as_bytes()),
            None if latest.exists() => disk.remove(&latest),
            None => Ok(()),
        }
        .map_err(&refused)?;
        // Earlier ones stay, for the day when this one turns out to be damaged; the next that is
        // written removes what is too much. Those that none of them needs were written after it.
        let is_earlier = |found: &Checkpoint| {
            let is_of_kind = |from: &Checkpoint| kind(found.name()) == kind(from.name());
            goes_on_from.is_some_and(|from| is_of_kind(from) && found.name() < from.name())
        };
        let complete = Checkpoint::list(folder).map_err(&refused)?;
        let complete = complete.iter().filter_map(|path| Checkpoint::open(path).ok());
        let kept: Vec<Checkpoint> =
            complete.filter(is_earlier).chain(goes_on_from.cloned()).collect();
        retain(disk, folder, &kept, Unfinished::All).map_err(&refused)?;
        remove_signs(folder).map_err(refused)
    }
}

/// A sign that a part leaves in its folder for a while: whoever finds it there has the same folder.
#[derive(Debug)]
pub struct Sign {
    path: PathBuf,
}

impl Sign {
    /// Leaves the sign of a part in a folder; makes the folder if `makes`. `None`: there is none.
    ///
    /// # Errors
    /// Refusals of the operating system.
    pub fn leave(folder: &Path, part: usize, makes: bool) -> Result<Option<Self>, CheckpointError> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        // A name that nobody has looked for, so that no file system remembers that it is not there.
        let path = folder.join(format!("{SIGN}-{part:03}-{}-{time}", std::process::id()));
        let made = if makes { Os.make_folder(folder) } else { Ok(()) };
        match made.and_then(|()| Os.create(&path)) {
            Ok(_) => Ok(Some(Self { path })),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !makes => Ok(None),
            Err(error) => Err(CheckpointError::of(folder, &error)),
        }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Returns true if the sign of this name is in a folder.
    #[must_use]
    pub fn is_in(folder: &Path, name: &str) -> bool {
        folder.join(name).exists()
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        // One that stays says nothing: it is of another time.
        let _ = Os.remove(&self.path);
    }
}

/// Removes the signs that processes have left which were killed.
fn remove_signs(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(SIGN) && path.is_file() {
            let _ = Os.remove(&path);
        }
    }
    Ok(())
}

const LOCK: &str = "lock";
const SIGN: &str = "seat";
