//! Pipes and devices: written to where they are, without waiting for a reader that never comes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::files::error::OutputError;
use crate::files::target::{System, open_stream};

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
        Self { system: Arc::clone(system), file, piece: if is_file { usize::MAX } else { PIPE_BYTES } }
    }

    /// Opens a pipe by name, for whose reader it waits a few seconds: both may have been started together.
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

    /// The same stream once more.
    pub(super) fn again(&self) -> io::Result<Self> {
        Ok(Self { system: Arc::clone(&self.system), file: self.file.try_clone()?, piece: self.piece })
    }

    /// Writes some of `bytes`. Waits for the reader; once the run is to stop, for a few seconds only.
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
            // What has no reader any more is told by the write.
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// What a pipe with room for any byte takes without waiting.
const PIPE_BYTES: usize = 4096;
const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Two seconds.
const STOP_POLLS: u32 = 20;
const READER_PAUSE: Duration = Duration::from_millis(20);
/// Five seconds.
const READER_TRIES: u32 = 250;
