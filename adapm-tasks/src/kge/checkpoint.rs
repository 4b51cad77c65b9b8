//! Parameters of a trained model in a file.
//!
//! ```text
//!   "adapmckp" | version u32 | task, model: text | dim u64 | inverse relations u8 | layout digest u64
//!   | entities: count u64, names | relations: count u64, names | floats u64 | values in key order f32 | checksum u64
//! ```
//!
//! All numbers are little-endian; a text or name is its length `u32` and its bytes; the checksum is that of all bytes
//! before. Only parameters are kept, no accumulators. The bytes do not depend on how many nodes held the values.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adapm_core::Key;

use crate::kge::config::ModelKind;
use crate::kge::graph::{Graph, Names};
use crate::kge::model::Model;
use crate::kge::parameters::Shape;

/// Parameters of a trained model, in key order, with what is needed to use them.
#[derive(Clone, PartialEq)]
pub struct Checkpoint {
    pub(crate) model: ModelKind,
    pub(crate) dim: usize,
    pub(crate) reciprocal: bool,
    pub(crate) entities: Names,
    pub(crate) relations: Names,
    pub(crate) values: Arc<Vec<f32>>,
}

impl fmt::Debug for Checkpoint {
    /// Sizes instead of millions of numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, dim, reciprocal, entities, relations, values } = self;
        write!(f, "Checkpoint of {model} {dim} (inverse relations: {reciprocal}), ")?;
        write!(f, "{} entities, {} relations, {} floats", entities.len(), relations.len(), values.len())
    }
}

/// A checkpoint file that cannot be written, read or used. Its text is one line: what, where, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The operating system refused.
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        kind: io::ErrorKind,
    },
    /// The file is none of ours.
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file has another format version.
    Version {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
    },
    /// The file ends early.
    Truncated {
        /// The file.
        path: PathBuf,
    },
    /// The bytes of the file contradict each other or their checksum.
    Corrupt {
        /// The file.
        path: PathBuf,
    },
    /// The parameters belong to other entities or relations than those of the graph.
    OtherData {
        /// Entities and relations of the checkpoint.
        checkpoint: (usize, usize),
        /// Entities and relations of the graph.
        graph: (usize, usize),
    },
}

impl std::error::Error for CheckpointError {}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, kind } => write!(f, "{}: {kind}; check path and permissions", path.display()),
            Self::Foreign { path } => {
                write!(f, "{} is no checkpoint of adapm; give a file written by --save", path.display())
            }
            Self::Version { path, found } => {
                let path = path.display();
                write!(f, "{path} has format version {found}, this program reads {VERSION}; save it again")
            }
            Self::Truncated { path } => write!(f, "{} ends early; save it again", path.display()),
            Self::Corrupt { path } => write!(f, "{} is damaged; save it again", path.display()),
            Self::OtherData { checkpoint, graph } => {
                write!(
                    f,
                    "the checkpoint is of other data ({} entities, {} relations)",
                    checkpoint.0, checkpoint.1
                )?;
                write!(f, " than the graph ({}, {}); give the data it was trained on", graph.0, graph.1)
            }
        }
    }
}

impl Checkpoint {
    /// Reads a file written by [`save`](Self::save).
    ///
    /// # Errors
    ///
    /// A file that is missing, foreign, truncated, damaged, or of another format version.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        Self::of_bytes(&fs::read(path).map_err(|error| io_error(path, &error))?, path)
    }

    /// What the bytes of the file at `path` say.
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path) -> Result<Self, CheckpointError> {
        decode(bytes).map_err(|fault| {
            let path = path.to_path_buf();
            match fault {
                Fault::Foreign => CheckpointError::Foreign { path },
                Fault::Version(found) => CheckpointError::Version { path, found },
                Fault::Truncated => CheckpointError::Truncated { path },
                Fault::Corrupt => CheckpointError::Corrupt { path },
            }
        })
    }

    /// Writes the parameters in key order; the same bytes for any number of nodes. An older file of that name stays as it
    /// is until the new one is complete.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        // A pipe or device is written to, not replaced.
        let is_special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let mut partial = path.as_os_str().to_os_string();
        partial.push(".partial");
        let target = if is_special { path } else { Path::new(&partial) };
        let written =
            self.write(target).and_then(|()| if is_special { Ok(()) } else { fs::rename(target, path) });
        written.map_err(|error| {
            if !is_special {
                // The error that counts is the first one.
                let _ = fs::remove_file(target);
            }
            io_error(path, &error)
        })
    }

    /// The score function.
    #[must_use]
    pub fn model(&self) -> ModelKind {
        self.model
    }

    /// Length of an entity's vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Tells whether every relation has an inverse with parameters of its own.
    #[must_use]
    pub fn is_reciprocal(&self) -> bool {
        self.reciprocal
    }

    /// Checks that the parameters are of the graph's entities and relations.
    pub(crate) fn check_data(&self, graph: &Graph) -> Result<(), CheckpointError> {
        if self.entities == graph.entities && self.relations == graph.relations {
            return Ok(());
        }
        Err(CheckpointError::OtherData {
            checkpoint: (self.entities.len(), self.relations.len()),
            graph: (graph.entities.len(), graph.relations.len()),
        })
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        self.write_to(BufWriter::new(File::create(path)?))?.into_inner()?.sync_all()
    }

    /// Writes the bytes of the file.
    pub(crate) fn write_to<W: io::Write>(&self, inner: W) -> io::Result<W> {
        let mut writer = Summing { inner, sum: Checksum::default() };
        writer.put(MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        writer.text(TASK)?;
        writer.text(self.model.name().as_bytes())?;
        writer.put(&(self.dim as u64).to_le_bytes())?;
        writer.put(&[u8::from(self.reciprocal)])?;
        writer.put(&self.digest().to_le_bytes())?;
        for names in [&self.entities, &self.relations] {
            writer.put(&(names.len() as u64).to_le_bytes())?;
            for index in 0..names.len() {
                writer.text(names.bytes(index).unwrap_or_default())?;
            }
        }
        writer.put(&(self.values.len() as u64).to_le_bytes())?;
        for values in self.values.chunks(1 << 12) {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            writer.put(&bytes)?;
        }
        let sum = writer.sum.0;
        writer.put(&sum.to_le_bytes())?;
        Ok(writer.inner)
    }

    fn shape(&self) -> Option<Shape> {
        let relations = self.relations.len() as u64;
        let model = Model { kind: self.model, dim: self.dim };
        // What a file claims may be too large to multiply.
        self.dim.checked_mul(self.dim)?;
        Some(Shape {
            entities: self.entities.len() as u64,
            relations: if self.reciprocal { 2 * relations } else { relations },
            entity_len: self.dim,
            relation_len: model.relation_len(),
        })
    }

    /// The digest of the layout of the parameters; 0 for what cannot be laid out.
    fn digest(&self) -> u64 {
        let layout = self.shape().and_then(|shape| shape.layout().ok());
        layout.map_or(0, |layout| layout.digest::<f32>())
    }
}

/// What can be wrong with the bytes of a file.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    Foreign,
    Version(u32),
    Truncated,
    Corrupt,
}

fn decode(bytes: &[u8]) -> Result<Checkpoint, Fault> {
    let mut reader = Reader { bytes };
    if reader.take(MAGIC.len()).map_err(|_| Fault::Foreign)? != MAGIC {
        return Err(Fault::Foreign);
    }
    let version = u32::from_le_bytes(reader.array()?);
    if version != VERSION {
        return Err(Fault::Version(version));
    }
    let is_task = reader.text()? == TASK;
    let model = std::str::from_utf8(reader.text()?).ok().and_then(|name| name.parse().ok());
    let dim = usize::try_from(reader.count()?).map_err(|_| Fault::Corrupt)?;
    let reciprocal = match reader.array()? {
        [0] => false,
        [1] => true,
        [_] => return Err(Fault::Corrupt),
    };
    let digest = reader.count()?;
    let (entities, relations) = (reader.names()?, reader.names()?);
    let floats = usize::try_from(reader.count()?).map_err(|_| Fault::Corrupt)?;
    let values = reader.take(floats.checked_mul(4).ok_or(Fault::Corrupt)?)?;
    let values = Arc::new(values.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect());
    let summed = bytes.len() - reader.bytes.len();
    let sum = reader.count()?;
    let (Some(model), true, true) = (model, is_task, reader.bytes.is_empty()) else {
        return Err(Fault::Corrupt);
    };
    let checkpoint = Checkpoint { model, dim, reciprocal, entities, relations, values };
    // An unpadded sum of products below 2^64 each: the layout's check comes first.
    let expected = (checkpoint.digest() == digest && digest != 0).then(|| checkpoint.shape()).flatten();
    let expected = expected.map(|shape| shape.offset(Key(shape.keys())));
    let is_whole = expected == Some(floats) && Checksum::of(&bytes[..summed]) == sum;
    if is_whole { Ok(checkpoint) } else { Err(Fault::Corrupt) }
}

/// Takes apart what a file holds.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or(Fault::Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Fault::Truncated)?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn count(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Result<&'a [u8], Fault> {
        let len = u32::from_le_bytes(self.array()?);
        self.take(len as usize)
    }

    fn names(&mut self) -> Result<Names, Fault> {
        let mut names = Names::default();
        // No memory is set aside for what the count claims.
        for _ in 0..self.count()? {
            names.push(self.text()?);
        }
        Ok(names)
    }
}

/// Writes and sums up.
struct Summing<W> {
    inner: W,
    sum: Checksum,
}

impl<W: io::Write> Summing<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.add(bytes);
        self.inner.write_all(bytes)
    }

    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        let len = u32::try_from(text.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.put(&len.to_le_bytes())?;
        self.put(text)
    }
}

/// FNV-1a over all bytes: finds damage, not malice.
struct Checksum(u64);

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

    fn add(&mut self, bytes: &[u8]) {
        self.0 =
            bytes.iter().fold(self.0, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

fn io_error(path: &Path, error: &io::Error) -> CheckpointError {
    CheckpointError::Io { path: path.to_path_buf(), kind: error.kind() }
}

const MAGIC: &[u8] = b"adapmckp";
const VERSION: u32 = 1;
const TASK: &[u8] = b"kge";
