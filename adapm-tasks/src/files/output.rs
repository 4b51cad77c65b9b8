//! A file that is going to be written: prepared before the work, saved behind it.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::files::error::OutputError;
use crate::files::input::FileId;
use crate::files::partial::{Partial, random};
use crate::files::stream::Stream;
use crate::files::target::{self, Os, Place, System, Target};

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

/// What a file holds is written by this, perhaps several times.
type WriteAll<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

impl Output {
    /// Looks at what is at `path`, decides how it can be written, and tries each step of it. Waits a few
    /// seconds for the reader of a pipe, unless `stop` is raised.
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
                let claimed = Partial::claim(&place, &system).map_err(|error| told(error, &place, 0))?;
                Way::Replace { partial: Some(claimed), place }
            }
            Target::Open(file) => Way::Stream(Stream::new(file, &system)),
            Target::Pipe => Way::Stream(Stream::pipe(path, &system, stop)?),
            Target::Device => Way::Stream(Stream::device(path, &system)?),
        };
        Ok(Self { path: path.to_path_buf(), way, system })
    }

    /// Writes the file by `write`, which is called again if an attempt fails. An older file stays as it is
    /// until the new one is complete, and stays if all attempts fail.
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

    /// Writes by `write` to a new file in `folder`, or in that of the file if none is given, whose name ends
    /// with `word` and a number. Gives the new file's path.
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

    /// The path as it was given.
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
            (Way::Stream(_), Ok(_)) => FileId::at(&self.path).is_some_and(|id| FileId::at(path) == Some(id)),
            _ => false,
        }
    }
}

/// Writes a new file for `place`, and again if that fails: others may free space, or the disk may recover.
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

/// Says of a full disk how full it is.
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

/// Nobody asks a library to stop.
pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// Between attempts. Together less than the time after which a node counts as lost.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];
const BUFFER_BYTES: usize = 1 << 18;
/// Of a name, in names that say more.
const NAME_CHARS: usize = 60;
