//! A file under a name of its own, until it is complete and takes the name it is written for.
//!
//! ```text
//!   claim: lock folder | remove what killed runs left | create | write, sync, rename, sync folder: all of a save
//!   commit: permissions | sync | rename | sync folder
//! ```
//!
//! The lock of the folder is held for the time of the claim only. It keeps two runs that begin at once
//! from not seeing each other.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Seek as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, Gid, OFlags, Uid, fchown, flock};

use crate::files::error::OutputError;
use crate::files::target::{Place, System};

/// A file that is not complete. Removed when dropped.
#[derive(Debug)]
pub(super) struct Partial {
    system: Arc<dyn System>,
    place: Place,
    path: PathBuf,
    file: File,
    /// It has the name it was written for.
    is_committed: bool,
}

impl Partial {
    /// Creates the file for `place` that no other run has, and tries each step of a save.
    pub(super) fn claim(place: &Place, system: &Arc<dyn System>) -> Result<Self, OutputError> {
        let folder = File::open(&place.folder).map_err(OutputError::Refused)?;
        let is_locked = || system.lock(&folder).is_ok();
        // A folder that cannot be locked, or that somebody keeps locked, is done without.
        (0..FOLDER_TRIES).any(|_| {
            is_locked() || {
                system.pause(FOLDER_PAUSE);
                false
            }
        });
        if let Some(other) = clear(place) {
            return Err(OutputError::Taken(other));
        }
        let mut partial = Self::create(place, system).map_err(OutputError::Refused)?;
        partial.rehearse().map_err(OutputError::Refused)?;
        Ok(partial)
    }

    /// Creates the file.
    pub(super) fn create(place: &Place, system: &Arc<dyn System>) -> io::Result<Self> {
        // A file of others stays as closed to third parties as it is, also while it is written.
        let mode = if place.mode().is_some() { 0o600 } else { 0o666 };
        let path = unique(place);
        let file = system.create(&path, mode)?;
        partials().insert(path.clone());
        let partial =
            Self { system: Arc::clone(system), place: place.clone(), path, file, is_committed: false };
        // Without locks on this file system, nobody removes what a killed run left.
        let _ = system.lock(&partial.file);
        if place.is_of_another(&partial.file.metadata()?) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(partial)
    }

    /// What is written goes here.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Completes the file: it takes the name it was written for.
    pub(super) fn commit(mut self) -> io::Result<()> {
        if let Ok(old) = fs::metadata(&self.place.path) {
            self.system.set_mode(&self.file, old.mode() & 0o7777)?;
            // Only a privileged process can give a file to another owner; one group is as good as the other.
            let owner = (Some(Uid::from_raw(old.uid())), Some(Gid::from_raw(old.gid())));
            let _ = fchown(&self.file, owner.0, owner.1).or_else(|_| fchown(&self.file, None, owner.1));
        }
        self.system.sync(&self.file)?;
        // Another file may have this name if somebody has cleaned up.
        if fs::symlink_metadata(&self.path)?.ino() != self.file.metadata()?.ino() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.system.rename(&self.path, &self.place.path)?;
        self.is_committed = true;
        partials().remove(&self.path);
        self.system.sync_folder(&self.place.folder)
    }

    /// Does everything that a save does, under names of this file.
    fn rehearse(&mut self) -> io::Result<()> {
        self.system.write(&self.file, &[0; REHEARSAL_BYTES])?;
        self.system.sync(&self.file)?;
        let other = unique(&self.place);
        self.system.rename(&self.path, &other)?;
        partials().insert(other.clone());
        partials().remove(&std::mem::replace(&mut self.path, other));
        self.system.sync_folder(&self.place.folder)?;
        self.file.set_len(0)?;
        self.file.rewind()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_committed {
            // The next run removes it otherwise.
            let _ = self.system.remove(&self.path);
            partials().remove(&self.path);
        }
    }
}

/// Removes all files of this process that are not complete, for a process that is about to end without
/// dropping what it holds.
pub fn discard() {
    for path in std::mem::take(&mut *partials()) {
        let _ = fs::remove_file(path);
    }
}

fn partials() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PARTIALS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name for a file that is written for `place`, which no file has.
pub(super) fn unique(place: &Place) -> PathBuf {
    let mut name = stem(place).to_vec();
    name.extend_from_slice(format!(".{}-{:016x}{ENDING}", process::id(), random()).as_bytes());
    place.folder.join(OsString::from_vec(name))
}

/// A number that differs each time, in each process.
pub(super) fn random() -> u64 {
    // Its keys come from the operating system.
    RandomState::new().build_hasher().finish()
}

/// Removes what killed runs left of their work on `place`. The file of one that goes on, if there is one.
fn clear(place: &Place) -> Option<PathBuf> {
    let entries = fs::read_dir(&place.folder).into_iter().flatten().filter_map(Result::ok);
    let partial = entries.filter(|entry| is_partial(&entry.file_name(), place)).map(|entry| entry.path());
    // All of them are looked at.
    partial.filter(|path| !is_left_over(path)).last()
}

/// Removes a file if the run that wrote it is gone. Returns false if it is not.
fn is_left_over(path: &Path) -> bool {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let Ok(file) = OpenOptions::new().write(true).custom_flags(flags).open(path) else { return true };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            let _ = fs::remove_file(path);
            true
        }
        // What cannot be locked says nothing of its run, and stays.
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
}

/// Returns true if a file of this name is one that [`unique`] names.
fn is_partial(name: &OsStr, place: &Place) -> bool {
    let middle =
        || name.as_bytes().strip_prefix(stem(place))?.strip_prefix(b".")?.strip_suffix(ENDING.as_bytes());
    middle().and_then(|middle| str::from_utf8(middle).ok()?.split_once('-')).is_some_and(
        |(process, random)| {
            let is_number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
            is_number && random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit())
        },
    )
}

/// As much of a name as leaves room for the rest.
fn stem(place: &Place) -> &[u8] {
    let name = place.path.file_name().unwrap_or_default().as_bytes();
    &name[..name.len().min(STEM_BYTES)]
}

/// Files of this process that are not complete.
static PARTIALS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

const ENDING: &str = ".partial";
/// Of the 255 bytes that names have on most file systems.
const STEM_BYTES: usize = 200;
/// A block of most file systems: less may fit into what describes a file.
const REHEARSAL_BYTES: usize = 4096;
const FOLDER_TRIES: usize = 50;
const FOLDER_PAUSE: Duration = Duration::from_millis(10);
