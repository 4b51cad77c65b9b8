//! Word vectors in a file, both of each word, with the counts.
//!
//! | tensor | type, shape | what |
//! | --- | --- | --- |
//! | `inputs`, `outputs` | F32, `[words, dim]` | both vectors of each word; the inputs are those that are used |
//! | `words.names`, `words.counts` | U8 and U64 | lines; how often each occurs |
//!
//! Older files are read, too ([`crate::run::file`]):
//!
//! ```text
//!   head | dim u64 | words: count u64, each its count u64 and its bytes | floats u64 | values in key order f32 | checksum u64
//! ```
//!
//! Not here: the forms that other programs read ([`Vectors`]).

use std::path::Path;
use std::{fmt, io};

use serde::{Deserialize, Serialize};

use crate::kge::Names;
use crate::run::file::{self, CheckpointError, Fault, Reader};
use crate::run::partial::{self, Head};
use crate::run::tensors::{Draft, Parts, Tensor};
use crate::run::values::Values;
use crate::wv::corpus::Vocabulary;
use crate::wv::vectors::Vectors;

/// Trained vectors, input and output ones.
#[derive(Clone, PartialEq)]
pub struct Checkpoint {
    pub(crate) dim: usize,
    pub(crate) words: Names,
    pub(crate) counts: Vec<u64>,
    /// `[2 x words x dim]`: input vectors, then output vectors.
    pub(crate) values: Values,
}

impl fmt::Debug for Checkpoint {
    /// Sizes instead of millions of numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checkpoint of {} words, dimension {}", self.words.len(), self.dim)
    }
}

impl Checkpoint {
    pub(crate) fn new(vocabulary: &Vocabulary, dim: usize, values: Values) -> Self {
        Self {
            dim,
            words: vocabulary.words().clone(),
            counts: vocabulary.counts().to_vec(),
            values,
        }
    }

    /// Reads a file written by [`save`](Self::save), all of it.
    ///
    /// # Errors
    ///
    /// A file that is missing, foreign, of another task, truncated, damaged, or of another format
    /// version.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        let opened = Self::open(path)?;
        Ok(Self { values: opened.values.clone().load()?, ..opened })
    }

    /// Opens a file: its values stay there until they are asked for. An evaluation in several
    /// processes reads a share in each.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), but for values that are not as they were written: what uses them
    /// sees that as far as its own documentation says.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let (head, values) = partial::open(path, TASK)?;
        Ok(Self { values, ..head })
    }

    /// Writes a file; the same bytes for any number of nodes. An older file of that name stays as
    /// it is until the new one is complete.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        file::save(path, |file| self.write_to(file).map(drop))
    }

    /// Returns the length of a vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns the words, the most frequent first.
    #[must_use]
    pub fn words(&self) -> &Names {
        &self.words
    }

    /// Returns the input vectors, which are those that are used.
    #[must_use]
    pub fn vectors(&self) -> Vectors {
        let inputs = self.values.first(self.words.len() * self.dim);
        Vectors::of(self.words.clone(), self.dim, inputs).expect("there is a vector for each word")
    }

    /// Parses the bytes of the file at `path`.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path) -> Result<Self, CheckpointError> {
        let (head, values) = partial::parse(bytes, path, TASK)?;
        Ok(Self { values, ..head })
    }

    /// Writes the bytes of the file.
    ///
    /// # Errors
    ///
    /// What `inner` refuses, and values that cannot be read.
    pub fn write_to<W: io::Write>(&self, inner: W) -> io::Result<W> {
        let draft = Draft::new(TASK, &Settings { dim: self.dim })?
            .names(WORDS, &self.words)
            .words(COUNTS, &self.counts);
        let tensors = self.tensors().ok_or(io::ErrorKind::InvalidInput)?;
        draft.write(&tensors, &self.values, inner)
    }
}

/// The head of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Settings {
    dim: usize,
}

impl Settings {
    /// Returns the model of these words, without values.
    fn of(self, words: Names, counts: Vec<u64>) -> Result<Checkpoint, Fault> {
        let (dim, values) = (self.dim, Values::default());
        let fits = dim > 0 && counts.len() == words.len();
        if fits { Ok(Checkpoint { dim, words, counts, values }) } else { Err(Fault::Corrupt) }
    }
}

/// The values are left out.
impl Head for Checkpoint {
    fn of_parts(parts: &Parts<'_>) -> Result<Self, Fault> {
        let (words, counts) = (parts.names(WORDS)?, parts.words(COUNTS)?);
        parts.head::<Settings>()?.of(words.ok_or(Fault::Corrupt)?, counts.ok_or(Fault::Corrupt)?)
    }

    fn of_old(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let dim = usize::try_from(reader.count()?).map_err(|_| Fault::Corrupt)?;
        let (mut words, mut counts) = (Names::default(), Vec::new());
        // No memory is set aside for what the count claims.
        for _ in 0..reader.count()? {
            counts.push(reader.count()?);
            words.push(reader.name()?);
        }
        Settings { dim }.of(words, counts)
    }

    fn tensors(&self) -> Option<Vec<Tensor>> {
        let words = self.words.len() as u64;
        Some(["inputs", "outputs"].map(|name| Tensor::new(name, words, self.dim)).to_vec())
    }
}

const TASK: &str = "wv";
const WORDS: &str = "words";
const COUNTS: &str = "words.counts";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wv::Text;

    fn checkpoint() -> Checkpoint {
        let vocabulary = Vocabulary::count(&Text::of_bytes(b"a b a \xff"), 1, 1).unwrap();
        let values: Vec<f32> = (0..12).map(|i| i as f32 - 3.5).collect();
        Checkpoint::new(&vocabulary, 2, values.into())
    }

    fn decode(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
        Checkpoint::of_bytes(bytes, Path::new("file"))
    }

    #[test]
    fn what_is_saved_is_loaded_and_input_vectors_are_the_first() {
        let path = std::env::temp_dir().join(format!("adapm-wv-checkpoint-{}", std::process::id()));
        checkpoint().save(&path).unwrap();
        let loaded = Checkpoint::load(&path).unwrap();
        assert_eq!(loaded, checkpoint());
        assert_eq!(loaded.vectors().values().len(), 6);
        assert_eq!(loaded.vectors().values(), checkpoint().vectors().values());
        assert_eq!(Checkpoint::open(&path), Ok(checkpoint()));
        assert_eq!(loaded.vectors().words().bytes(0), Some(b"a".as_slice()));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn bytes_that_are_missing_or_changed_are_noticed() {
        let whole = checkpoint().write_to(Vec::new()).unwrap();
        assert_eq!(decode(&whole), Ok(checkpoint()));
        for len in 0..whole.len() {
            assert!(decode(&whole[..len]).is_err(), "{len}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            assert!(decode(&changed).is_err(), "{at}");
        }
    }
}
