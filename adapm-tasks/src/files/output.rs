//! A file that is going to be written: prepared before the work, saved after it.
//!
//! It is a pipe or a device, written to where it is without waiting for a reader that never comes
//! ([`Stream`]), or a file under a name of its own until it is complete and takes the name it is
//! written for ([`Partial`]).
//!
//! ```text
//!   claim: lock folder | remove what killed runs left | create | write, sync, rename, sync folder: all of a save
//!   commit: permissions | sync | rename | sync folder
//! ```
//!
//! The lock of the folder is held for the time of the claim only. It keeps two runs that begin at
//! once from not seeing each other.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, BufWriter, Seek as _, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, Gid, OFlags, Uid, fchown, flock};
use rustix::io::Errno;

use crate::files::error::OutputError;
use crate::files::input::FileId;
use crate::files::target::{self, Os, Place, System, Target, open_stream};

/// A file that is going to be written. Nothing is left of it if it is dropped instead.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    way: Way,
    system: Arc<dyn System>,
}

#[derive(Debug)]
enum Way {
    /// A new file takes the place of the old one.
    Replace {
        place: Place,
        partial: Option<Partial>,
    },
    Stream(Stream),
}

/// Writes the content of a file, perhaps several times.
type WriteAll<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

impl Output {
    /// Looks at what is at `path`, decides how it can be written, and tries each step of it. Waits
    /// a few seconds for the reader of a pipe, unless `stop` is raised.
    ///
    /// # Errors
    ///
    /// What cannot be written, or is being written by another run.
    pub fn prepare(path: &Path, stop: &AtomicBool) -> Result<Self, OutputError> {
        Self::prepare_by(path, stop, Arc::new(Os))
    }

    pub(super) fn prepare_by(
        path: &Path,
        stop: &AtomicBool,
        system: Arc<dyn System>,
    ) -> Result<Self, OutputError> {
        let way = match target::look(path)? {
            Target::File(place) => {
                let claimed =
                    Partial::claim(&place, &system).map_err(|error| told(error, &place, 0))?;
                Way::Replace { partial: Some(claimed), place }
            }
            Target::Open(file) => Way::Stream(Stream::new(file, &system)),
            Target::Pipe => Way::Stream(Stream::pipe(path, &system, stop)?),
            Target::Device => Way::Stream(Stream::device(path, &system)?),
        };
        Ok(Self { path: path.to_path_buf(), way, system })
    }

    /// Writes the file by `write`, which is called again if an attempt fails. An older file stays
    /// as it is until the new one is complete, and stays if all attempts fail.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn save(&mut self, write: WriteAll<'_>, stop: &AtomicBool) -> Result<(), OutputError> {
        match &mut self.way {
            Way::Stream(stream) => {
                let mut buffered = BufWriter::new(StreamWriter { stream, stop });
                write(&mut buffered).and_then(|()| buffered.flush()).map_err(OutputError::Failed)
            }
            Way::Replace { place, partial } => replace(place, partial.take(), write, &self.system),
        }
    }

    /// Writes by `write` to a new file in `folder`, or in that of the file if none is given, whose
    /// name ends with `word` and a number. Gives the new file's path.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn rescue(
        &self,
        folder: Option<&Path>,
        word: &str,
        write: WriteAll<'_>,
    ) -> Result<PathBuf, OutputError> {
        let folder = match (&self.way, folder) {
            (_, Some(folder)) => folder.canonicalize().map_err(OutputError::Failed)?,
            (Way::Replace { place, .. }, None) => place.folder.clone(),
            (Way::Stream(_), None) => return Err(OutputError::Special),
        };
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().take(NAME_CHARS).collect();
        let path = folder.join(format!("{name}.{word}-{:08x}", random() >> 32));
        replace(&Place { folder, path: path.clone() }, None, write, &self.system)?;
        Ok(path)
    }

    /// Checks that `needed` bytes are free where the file will be.
    ///
    /// # Errors
    ///
    /// If they are not.
    pub fn check_space(&self, needed: u64) -> Result<(), OutputError> {
        let Way::Replace { place, .. } = &self.way else { return Ok(()) };
        match free(&place.folder) {
            Some(free) if free < needed => {
                Err(OutputError::NoSpace { folder: place.folder.clone(), needed, free })
            }
            _ => Ok(()),
        }
    }

    /// Begins to write by and by; [`commit`](Self::commit) ends it.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn writer(&self) -> io::Result<OutputWriter> {
        let stream = match &self.way {
            Way::Replace { partial: Some(partial), .. } => {
                Stream::new(partial.file().try_clone()?, &self.system)
            }
            Way::Replace { partial: None, .. } => return Err(io::ErrorKind::NotFound.into()),
            Way::Stream(stream) => stream.again()?,
        };
        Ok(OutputWriter(stream))
    }

    /// Makes what a [`writer`](Self::writer) has written the file.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn commit(mut self) -> Result<(), OutputError> {
        match &mut self.way {
            Way::Replace { partial, .. } => {
                partial.take().map_or(Ok(()), Partial::commit).map_err(OutputError::Failed)
            }
            Way::Stream(_) => Ok(()),
        }
    }

    /// Returns the path as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if there is a file that is going to be replaced.
    #[must_use]
    pub fn replaces(&self) -> bool {
        matches!(&self.way, Way::Replace { place, .. } if place.path.exists())
    }

    /// Returns true if `path` leads to the same file.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        match (&self.way, target::look(path)) {
            (Way::Replace { place, .. }, Ok(Target::File(other))) => place.path == other.path,
            (Way::Stream(_), Ok(_)) => {
                FileId::at(&self.path).is_some_and(|id| FileId::at(path) == Some(id))
            }
            _ => false,
        }
    }
}

/// Writes a new file for `place`, and again if that fails: others may free space, or the disk may
/// recover.
fn replace(
    place: &Place,
    mut claimed: Option<Partial>,
    write: WriteAll<'_>,
    system: &Arc<dyn System>,
) -> Result<(), OutputError> {
    let mut attempt = || -> io::Result<()> {
        let partial = claimed.take().map_or_else(|| Partial::create(place, system), Ok)?;
        let mut buffered =
            BufWriter::with_capacity(BUFFER_BYTES, PartialWriter { partial: &partial, system });
        write(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        partial.commit()
    };
    let mut result = attempt();
    for pause in PAUSES {
        if result.is_ok() {
            break;
        }
        system.pause(pause);
        result = attempt();
    }
    result.map_err(|error| {
        let mut counted = Counted(0);
        // Nothing refuses these bytes.
        let _ = write(&mut counted);
        told(OutputError::Failed(error), place, counted.0)
    })
}

/// Adds to the error of a full disk how full it is.
fn told(error: OutputError, place: &Place, needed: u64) -> OutputError {
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    match free(&place.folder) {
        Some(free) if is_full && free < needed.max(1) => {
            OutputError::NoSpace { folder: place.folder.clone(), needed, free }
        }
        _ => error,
    }
}

/// Bytes that this process may still write to the disk of a folder.
fn free(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    found.f_bavail.checked_mul(found.f_frsize)
}

/// Takes what is written by and by.
#[derive(Debug)]
pub struct OutputWriter(Stream);

impl Write for OutputWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes, &NEVER)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct StreamWriter<'a> {
    stream: &'a Stream,
    stop: &'a AtomicBool,
}

impl Write for StreamWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes, self.stop)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct PartialWriter<'a> {
    partial: &'a Partial,
    system: &'a Arc<dyn System>,
}

impl Write for PartialWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.system.write(self.partial.file(), bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

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
        // Goes on without the lock if the folder cannot be locked, or another process keeps it
        // locked.
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
        let partial = Self {
            system: Arc::clone(system),
            place: place.clone(),
            path,
            file,
            is_committed: false,
        };
        // Without locks on this file system, no run removes what a killed run left.
        let _ = system.lock(&partial.file);
        if place.is_of_another(&partial.file.metadata()?) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(partial)
    }

    /// Returns the file to write to.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Completes the file: it takes the name it was written for.
    pub(super) fn commit(mut self) -> io::Result<()> {
        if let Ok(old) = fs::metadata(&self.place.path) {
            self.system.set_mode(&self.file, old.mode() & 0o7777)?;
            // Only a privileged process can give a file to another owner; one group is as good as
            // the other.
            let owner = (Some(Uid::from_raw(old.uid())), Some(Gid::from_raw(old.gid())));
            let _ =
                fchown(&self.file, owner.0, owner.1).or_else(|_| fchown(&self.file, None, owner.1));
        }
        self.system.sync(&self.file)?;
        // Another file may have this name if a user has removed this one.
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

/// Removes all files of this process that are not complete, for a process that is about to end
/// without dropping what it holds.
pub fn discard() {
    for path in std::mem::take(&mut *partials()) {
        let _ = fs::remove_file(path);
    }
}

fn partials() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PARTIALS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a name for a file that is written for `place`, which no file has.
pub(super) fn unique(place: &Place) -> PathBuf {
    let mut name = stem(place).to_vec();
    name.extend_from_slice(format!(".{}-{:016x}{ENDING}", process::id(), random()).as_bytes());
    place.folder.join(OsString::from_vec(name))
}

/// Returns a number that differs each time, in each process.
pub(super) fn random() -> u64 {
    // Its keys come from the operating system.
    RandomState::new().build_hasher().finish()
}

/// Removes what killed runs left of their work on `place`. The file of one that goes on, if there
/// is one.
fn clear(place: &Place) -> Option<PathBuf> {
    let entries = fs::read_dir(&place.folder).into_iter().flatten().filter_map(Result::ok);
    let partial = entries
        .filter(|entry| is_partial(&entry.file_name(), stem(place)))
        .map(|entry| entry.path());
    // All of them are looked at.
    partial.filter(|path| !is_left_over(path)).last()
}

/// Removes a file if the run that wrote it is gone. Returns false if it is not.
fn is_left_over(path: &Path) -> bool {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let Ok(file) = OpenOptions::new().write(true).custom_flags(flags).open(path) else {
        return true;
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            let _ = fs::remove_file(path);
            true
        }
        // What cannot be locked says nothing of its run, and stays.
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
}

/// Returns true if a file of this name is one that is written, or was, for one whose name is, or
/// begins with, `stem`: as [`unique`] names it.
pub(crate) fn is_partial(name: &OsStr, stem: &[u8]) -> bool {
    let middle =
        || name.as_bytes().strip_prefix(stem)?.strip_prefix(b".")?.strip_suffix(ENDING.as_bytes());
    middle().and_then(|middle| str::from_utf8(middle).ok()?.split_once('-')).is_some_and(
        |(process, random)| {
            let is_number =
                !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
            is_number && random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit())
        },
    )
}

/// As much of a name as leaves room for the rest.
fn stem(place: &Place) -> &[u8] {
    let name = place.path.file_name().unwrap_or_default().as_bytes();
    &name[..name.len().min(STEM_BYTES)]
}

/// Something that is written to, and never replaced.
#[derive(Debug)]
pub(super) struct Stream {
    system: Arc<dyn System>,
    file: File,
    /// Bytes that it takes at once without waiting, once it takes any.
    piece: usize,
}

impl Stream {
    pub(super) fn new(file: File, system: &Arc<dyn System>) -> Self {
        let is_file = file.metadata().is_ok_and(|metadata| {
            let kind = metadata.file_type();
            kind.is_file() || kind.is_char_device()
        });
        Self {
            system: Arc::clone(system),
            file,
            piece: if is_file { usize::MAX } else { PIPE_BYTES },
        }
    }

    /// Opens a pipe by name, for whose reader it waits a few seconds: both may have been started
    /// together.
    pub(super) fn pipe(
        path: &Path,
        system: &Arc<dyn System>,
        stop: &AtomicBool,
    ) -> Result<Self, OutputError> {
        for _ in 0..READER_TRIES {
            match open_stream(path) {
                Ok(file) => return Ok(Self::new(file, system)),
                Err(error) if error.raw_os_error() != Some(Errno::NXIO.raw_os_error()) => {
                    return Err(OutputError::Refused(error));
                }
                Err(_) if stop.load(Ordering::Relaxed) => break,
                Err(_) => system.pause(READER_PAUSE),
            }
        }
        Err(OutputError::NoReader)
    }

    /// Opens a device.
    pub(super) fn device(path: &Path, system: &Arc<dyn System>) -> Result<Self, OutputError> {
        open_stream(path).map(|file| Self::new(file, system)).map_err(OutputError::Refused)
    }

    /// Returns the same stream once more.
    pub(super) fn again(&self) -> io::Result<Self> {
        Ok(Self {
            system: Arc::clone(&self.system),
            file: self.file.try_clone()?,
            piece: self.piece,
        })
    }

    /// Writes some of `bytes`. Waits for the reader; once the run is to stop, for a few seconds
    /// only.
    pub(super) fn write(&self, bytes: &[u8], stop: &AtomicBool) -> io::Result<usize> {
        let mut patience = STOP_POLLS;
        loop {
            if self.is_ready()? {
                match self.system.write(&self.file, &bytes[..bytes.len().min(self.piece)]) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => return result,
                }
            }
            if stop.load(Ordering::Relaxed) {
                patience = patience.checked_sub(1).ok_or(io::ErrorKind::TimedOut)?;
            }
        }
    }

    fn is_ready(&self) -> io::Result<bool> {
        let mut polled = [PollFd::new(&self.file, PollFlags::OUT)];
        match poll(&mut polled, Some(&POLL)) {
            // If the reader has left, the write reports it.
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// A flag that is never raised: libraries are not asked to stop.
pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// Pauses between attempts; together less than the time after which a node counts as lost.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];
const BUFFER_BYTES: usize = 1 << 18;
/// Most characters of the file's name that a longer name begins with.
const NAME_CHARS: usize = 60;

/// Files of this process that are not complete.
static PARTIALS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

const ENDING: &str = ".partial";
/// Of the 255 bytes that names have on most file systems.
const STEM_BYTES: usize = 200;
/// A block of most file systems: less may fit into what describes a file.
const REHEARSAL_BYTES: usize = 4096;
const FOLDER_TRIES: usize = 50;
const FOLDER_PAUSE: Duration = Duration::from_millis(10);

/// Bytes that a pipe with any room takes without waiting.
const PIPE_BYTES: usize = 4096;
const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Two seconds.
const STOP_POLLS: u32 = 20;
const READER_PAUSE: Duration = Duration::from_millis(20);
/// Five seconds.
const READER_TRIES: u32 = 250;
