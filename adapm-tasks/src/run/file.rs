//! Files of our own form: partitions, and models that were saved before they were safetensors
//! ([`crate::run::tensors`]), which are only read.
//!
//! ```text
//!   "adapmckp" | version u32 | task: text | what the task writes | floats u64 | values in key order f32 | checksum u64
//! ```
//!
//! All numbers are little-endian; a text is its length `u32` and its bytes; the checksum is that of
//! all bytes before. The bytes do not depend on how many nodes held the values.

use std::io;
use std::path::{Path, PathBuf};

use adapm_transport::error::SystemError;

use crate::data::{DataError, bytes};
use crate::files::{self, Output, OutputError};

/// A checkpoint file that cannot be written, read or used. Its text is one line: what, where, what
/// to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The operating system refused.
    #[error("{}", files::unreadable(path, None, *error))]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: SystemError,
    },
    /// The file cannot be written.
    #[error("cannot write {path}: {reason}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        kind: io::ErrorKind,
        /// The same for people, and what to do.
        reason: String,
    },
    /// The file is none of ours.
    #[error("{path} is no checkpoint of adapm; give a file written by --save")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file has another format version.
    #[error("{path} has format version {found}, this program reads {read}; save it again")]
    Version {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version that this program reads.
        read: u32,
    },
    /// The file is of another task.
    #[error("{path} is a checkpoint of task {task}; give one of the task asked for")]
    OtherTask {
        /// The file.
        path: PathBuf,
        /// Name of the task it is of.
        task: String,
    },
    /// The file ends early.
    #[error("{path} ends early; save it again")]
    Truncated {
        /// The file.
        path: PathBuf,
    },
    /// The bytes of the file contradict each other or their checksum.
    #[error("{path} is damaged; save it again")]
    Corrupt {
        /// The file.
        path: PathBuf,
    },
    /// The parameters belong to other entities or relations than those of the graph.
    #[error(
        "the checkpoint is of other data ({} entities, {} relations) than the graph ({}, {}); give the \
         data it was trained on",
        checkpoint.0, checkpoint.1, graph.0, graph.1
    )]
    OtherData {
        /// Entities and relations of the checkpoint.
        checkpoint: (usize, usize),
        /// Entities and relations of the graph.
        graph: (usize, usize),
    },
    /// The parameters were trained on other facts or ratings, of the same names.
    #[error(
        "the checkpoint was trained on other {of} than these; give the data it was trained on, with the \
         same --data-seed and other flags of the data"
    )]
    OtherTraining {
        /// The kind of training data: `triples` or `ratings`.
        of: &'static str,
    },
    /// The factors belong to other rows or columns than those of the ratings.
    #[error(
        "the checkpoint is of other data ({} rows, {} columns) than the ratings ({}, {}); give the data \
         it was trained on",
        checkpoint.0, checkpoint.1, ratings.0, ratings.1
    )]
    OtherRatings {
        /// Rows and columns of the checkpoint.
        checkpoint: (u64, u64),
        /// Rows and columns of the ratings.
        ratings: (u64, u64),
    },
}

impl From<CheckpointError> for io::Error {
    /// For who writes what is read from a file.
    fn from(error: CheckpointError) -> Self {
        Self::other(error)
    }
}

/// Returns the bytes of the file at `path`, decompressed if it is gzip.
///
/// # Errors
///
/// What the operating system refuses; gzip that ends early or is damaged.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CheckpointError> {
    bytes::read_binary(path).map_err(|error| match error {
        DataError::Unreadable { path, error } => CheckpointError::Io { path, error },
        DataError::CutShort { path } => CheckpointError::Truncated { path },
        _ => CheckpointError::Corrupt { path: path.to_path_buf() },
    })
}

/// Writes a file by `write`, which may be called several times. An older file of that name stays as
/// it is until the new one is complete.
///
/// # Errors
///
/// What the operating system refuses.
pub(crate) fn save(
    path: &Path,
    write: impl Fn(&mut dyn io::Write) -> io::Result<()>,
) -> Result<(), CheckpointError> {
    let unwritable = |error: OutputError| {
        let (path, kind) = (path.to_path_buf(), error.kind());
        CheckpointError::Unwritable { path, kind, reason: error.to_string() }
    };
    let mut output = Output::prepare(path, &files::NEVER).map_err(unwritable)?;
    output.save(&write, &files::NEVER).map_err(unwritable)
}

/// A fault of the bytes of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is none of ours.
    Foreign,
    /// It has this format version, where another one is read.
    Version { found: u32, read: u32 },
    /// It is of the task of this name.
    Task(String),
    /// It ends early.
    Truncated,
    /// Its bytes contradict each other.
    Corrupt,
}

impl Fault {
    /// Returns that of a file of another task, unless that is no name.
    pub(crate) fn of_task(found: &[u8]) -> Self {
        let is_name = found.len() <= TASK_LEN_MAX && found.iter().all(u8::is_ascii_lowercase);
        let name = is_name.then(|| String::from_utf8_lossy(found).into_owned());
        name.map_or(Self::Corrupt, Self::Task)
    }

    /// Returns the error of the file at `path`.
    pub(crate) fn at(self, path: &Path) -> CheckpointError {
        let path = path.to_path_buf();
        match self {
            Self::Foreign => CheckpointError::Foreign { path },
            Self::Version { found, read } => CheckpointError::Version { path, found, read },
            Self::Task(task) => CheckpointError::OtherTask { path, task },
            Self::Truncated => CheckpointError::Truncated { path },
            Self::Corrupt => CheckpointError::Corrupt { path },
        }
    }
}

/// Returns the task of a file of a model that begins with these bytes.
///
/// # Errors
///
/// Bytes of something else, or too few.
pub(crate) fn task_of(bytes: &[u8]) -> Result<String, Fault> {
    // No task has this name, so the reader says which one it has found.
    match Reader::new(b"", bytes) {
        Err(Fault::Task(task)) => Ok(task),
        Err(fault) => Err(fault),
        Ok(_) => Err(Fault::Corrupt),
    }
}

/// Takes apart what a file holds.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    /// The bytes left.
    bytes: &'a [u8],
    whole: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Takes apart a file of `task`.
    ///
    /// # Errors
    ///
    /// Bytes of something else, or of another format version.
    pub(crate) fn new(task: &[u8], whole: &'a [u8]) -> Result<Self, Fault> {
        Self::of_kind((&MAGIC, version_of(task)), task, whole)
    }

    /// Takes apart a file of `task` that begins with these bytes and this version.
    ///
    /// # Errors
    ///
    /// Bytes of something else, or of another format version.
    pub(crate) fn of_kind(
        (magic, read): (&[u8], u32),
        task: &[u8],
        whole: &'a [u8],
    ) -> Result<Self, Fault> {
        let mut reader = Self { bytes: whole, whole };
        if reader.take(magic.len()).map_err(|_| Fault::Foreign)? != magic {
            return Err(Fault::Foreign);
        }
        let version = u32::from_le_bytes(reader.array()?);
        let found = reader.text()?;
        if found == task {
            return if version == read {
                Ok(reader)
            } else {
                Err(Fault::Version { found: version, read })
            };
        }
        Err(Fault::of_task(found))
    }

    /// Takes the values, which are the last of what a task has written, and the checksum after
    /// them.
    ///
    /// # Errors
    ///
    /// Bytes that are missing, left over, or not as they were written.
    pub(crate) fn values(mut self) -> Result<Vec<f32>, Fault> {
        let floats = usize::try_from(self.count()?).map_err(|_| Fault::Corrupt)?;
        let bytes = self.take(floats.checked_mul(4).ok_or(Fault::Corrupt)?)?;
        self.finish()?;
        Ok(bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect())
    }

    /// Takes the checksum, which is the end of the file.
    ///
    /// # Errors
    ///
    /// Bytes that are missing, left over, or not as they were written.
    pub(crate) fn finish(mut self) -> Result<(), Fault> {
        let summed = self.whole.len() - self.bytes.len();
        let sum = self.count()?;
        let is_whole = self.bytes.is_empty() && Checksum::of(&self.whole[..summed]) == sum;
        if is_whole { Ok(()) } else { Err(Fault::Corrupt) }
    }

    /// Takes a list of `len` numbers of 16 bits.
    pub(crate) fn shorts(&mut self, len: u64) -> Result<Vec<u16>, Fault> {
        let len = usize::try_from(len).ok().and_then(|len| len.checked_mul(2));
        let bytes = self.take(len.ok_or(Fault::Truncated)?)?;
        Ok(bytes.as_chunks().0.iter().map(|short| u16::from_le_bytes(*short)).collect())
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or(Fault::Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// Returns the next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Fault::Truncated)?;
        self.bytes = rest;
        Ok(*taken)
    }

    /// Returns a number of 64 bits.
    pub(crate) fn count(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    /// Returns the number of bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Returns a name, which no line end is in.
    pub(crate) fn name(&mut self) -> Result<&'a [u8], Fault> {
        self.text()
            .and_then(|name| if name.contains(&b'\n') { Err(Fault::Corrupt) } else { Ok(name) })
    }

    /// Returns a text.
    pub(crate) fn text(&mut self) -> Result<&'a [u8], Fault> {
        let len = u32::from_le_bytes(self.array()?);
        self.take(len as usize)
    }
}

/// Writes what a [`Reader`] reads.
#[derive(Debug)]
pub(crate) struct Writer<W> {
    inner: W,
    sum: Checksum,
}

impl<W: io::Write> Writer<W> {
    /// Begins a file of a model of `task`.
    #[cfg(test)]
    pub(crate) fn new(task: &[u8], inner: W) -> io::Result<Self> {
        Self::of_kind((&MAGIC, version_of(task)), task, inner)
    }

    /// Begins a file of `task` with these bytes and this version.
    pub(crate) fn of_kind(
        (magic, version): (&[u8], u32),
        task: &[u8],
        inner: W,
    ) -> io::Result<Self> {
        let mut writer = Self { inner, sum: Checksum::default() };
        writer.bytes(magic)?;
        writer.bytes(&version.to_le_bytes())?;
        writer.text(task)?;
        Ok(writer)
    }

    /// Appends bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.add(bytes);
        self.inner.write_all(bytes)
    }

    /// Appends a number of 64 bits.
    pub(crate) fn count(&mut self, count: u64) -> io::Result<()> {
        self.bytes(&count.to_le_bytes())
    }

    /// Appends a text of less than 4 GiB.
    pub(crate) fn text(&mut self, text: &[u8]) -> io::Result<()> {
        let len =
            u32::try_from(text.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.bytes(&len.to_le_bytes())?;
        self.bytes(text)
    }

    /// Ends the file with the values and the checksum.
    #[cfg(test)]
    pub(crate) fn values(mut self, values: &[f32]) -> io::Result<W> {
        self.count(values.len() as u64)?;
        for values in values.chunks(1 << 12) {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.bytes(&bytes)?;
        }
        self.finish()
    }

    /// Appends numbers of 16 bits.
    pub(crate) fn shorts(&mut self, shorts: &[u16]) -> io::Result<()> {
        for shorts in shorts.chunks(1 << 12) {
            let bytes: Vec<u8> = shorts.iter().flat_map(|short| short.to_le_bytes()).collect();
            self.bytes(&bytes)?;
        }
        Ok(())
    }

    /// Ends the file with the checksum.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.count(self.sum.sum())?;
        Ok(self.inner)
    }
}

/// FNV-1a over all bytes: finds damage, not malice.
#[derive(Clone, Debug)]
pub(crate) struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    fn of(bytes: &[u8]) -> u64 {
        let mut sum = Self::default();
        sum.add(bytes);
        sum.0
    }

    /// Returns the sum of all bytes that were added.
    pub(crate) fn sum(&self) -> u64 {
        self.0
    }

    /// Adds the next bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0 = bytes
            .iter()
            .fold(self.0, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

/// Returns the version of the files of a task.
fn version_of(task: &[u8]) -> u32 {
    match task {
        // Since version 2 a factorization has means, and a graph's model tells what it was trained
        // on.
        b"mf" | b"kge" => 2,
        _ => 1,
    }
}

/// The first bytes of a file.
pub(crate) const MAGIC: [u8; 8] = *b"adapmckp";
/// Bytes of the name of a task.
const TASK_LEN_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(task: &[u8]) -> Vec<u8> {
        let writer = Writer::new(task, Vec::new());
        let file = writer
            .and_then(|mut writer| writer.text(b"name").and_then(|()| writer.values(&[0.5, -2.0])));
        file.expect("memory takes all bytes")
    }

    fn read(bytes: &[u8]) -> Result<Vec<f32>, Fault> {
        let mut reader = Reader::new(b"count", bytes)?;
        if reader.text()? == b"name" { reader.values() } else { Err(Fault::Corrupt) }
    }

    #[test]
    fn what_is_written_is_read_and_damage_anywhere_is_seen() {
        let file = written(b"count");
        assert_eq!(read(&file), Ok(vec![0.5, -2.0]));
        for at in 0..file.len() {
            assert!(read(&file[..at]).is_err(), "cut at {at}");
            let mut changed = file.clone();
            changed[at] ^= 1;
            assert!(read(&changed).is_err(), "changed at {at}");
        }
        assert_eq!(read(&[file, vec![0]].concat()), Err(Fault::Corrupt));
    }

    #[test]
    fn a_file_of_another_task_is_said_to_be_one() {
        assert_eq!(read(&written(b"sum")), Err(Fault::Task("sum".to_owned())));
        let text = Fault::Task("sum".to_owned()).at(Path::new("file")).to_string();
        assert_eq!(text, "file is a checkpoint of task sum; give one of the task asked for");
        // What is no name is not repeated.
        for other in ["s\n", "a name that is longer than that of any task"] {
            assert_eq!(read(&written(other.as_bytes())), Err(Fault::Corrupt), "{other:?}");
        }
    }
}
