//! The folder of checkpoints as one run's: nobody else writes there as long as it is held.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Checkpoint;
use super::disk::{Disk, Os};
use super::error::{CheckpointError, Fault};
use super::manifest::{self, LATEST};
use super::writer::{Unfinished, retain};

/// A folder of checkpoints that is held for one run, by the process of part 0; given back when
/// dropped, or when the process ends in whatever way.
#[derive(Debug)]
pub struct Owner {
    /// `None` on a file system without locks.
    _lock: Option<File>,
    sign: String,
}

impl Owner {
    /// Makes the folder, takes it, and removes what is not complete and what comes after the
    /// checkpoint to go on from, which is the latest one then; all if there is none. Leaves a sign
    /// there, by which others see that theirs is the same folder.
    ///
    /// # Errors
    /// A folder that another process holds; refusals of the operating system.
    pub fn take(folder: &Path, goes_on_from: Option<&Checkpoint>) -> Result<Self, CheckpointError> {
        let (disk, refused) = (&Os, CheckpointError::refused(folder));
        disk.make_folder(folder).map_err(&refused)?;
        let lock = disk.create(&folder.join(LOCK)).map_err(&refused)?;
        let lock = match lock.try_lock() {
            Ok(()) => Some(lock),
            Err(TryLockError::WouldBlock) => {
                return Err(CheckpointError::new(folder, Fault::Taken));
            }
            Err(TryLockError::Error(_)) => None,
        };
        let latest = folder.join(LATEST);
        match goes_on_from {
            Some(found) => disk.replace(&latest, manifest::latest(found.name()).as_bytes()),
            None if latest.exists() => disk.remove(&latest),
            None => Ok(()),
        }
        .map_err(&refused)?;
        // Earlier ones stay, for the day when this one turns out to be damaged; the next that is
        // written removes what is too much.
        let is_earlier =
            |found: &Checkpoint| goes_on_from.is_some_and(|from| found.name() < from.name());
        let complete = Checkpoint::list(folder).map_err(&refused)?;
        let complete = complete.iter().filter_map(|path| Checkpoint::open(path).ok());
        let kept: Vec<Checkpoint> =
            complete.filter(is_earlier).chain(goes_on_from.cloned()).collect();
        retain(disk, folder, &kept, Unfinished::All).map_err(&refused)?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let sign = format!("{} {}\n", std::process::id(), time.as_nanos());
        disk.replace(&folder.join(SIGN), sign.as_bytes()).map_err(refused)?;
        Ok(Self { _lock: lock, sign })
    }

    /// Returns the sign that was left, which differs from run to run.
    #[must_use]
    pub fn sign(&self) -> &str {
        &self.sign
    }

    /// Returns true if a folder is the one in which `sign` was left, as this process sees it.
    #[must_use]
    pub fn is_at(folder: &Path, sign: &str) -> bool {
        fs::read_to_string(folder.join(SIGN)).is_ok_and(|found| found == sign)
    }
}

const LOCK: &str = "lock";
const SIGN: &str = "owner";
