//! The text that is trained on: bytes of a mapped or decompressed file, cut into a share per worker.
//!
//! A word is a run of bytes without ASCII white space, of any length and in any encoding. A share ends where a line ends or,
//! if lines are long, where a word ends, so every word belongs to exactly one share, whole.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use memchr::memchr;
use memmap2::Mmap;

use crate::data::grammar;
use crate::files;
use crate::map::map;
use crate::wv::error::CorpusError;

/// A text, and where it came from.
pub struct Text {
    bytes: Bytes,
    source: TextSource,
}

enum Bytes {
    Mapped(Mmap),
    Held(Vec<u8>),
}

/// Where a text came from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextSource {
    /// A file.
    File(PathBuf),
    /// A file compressed by gzip.
    Compressed(PathBuf),
    /// Sentences from the seeded generator.
    Generated {
        /// The generator's seed.
        seed: u64,
    },
}

impl fmt::Display for TextSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Compressed(path) => write!(f, "{} (gzip)", path.display()),
            Self::Generated { seed } => write!(f, "generated sentences (seed {seed})"),
        }
    }
}

impl fmt::Debug for Text {
    /// The size instead of the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text of {} bytes, {}", self.bytes().len(), self.source)
    }
}

impl Text {
    /// Opens a file. One that is not compressed is mapped: it has to stay as it is while the text is in use, and one that is
    /// made shorter meanwhile ends the process. One compressed by gzip, known by its first bytes, is decompressed into
    /// memory, as no worker could begin in its middle. A byte order mark at the start is left out.
    ///
    /// # Errors
    ///
    /// A file that is missing or unreadable, or compressed and cut short or damaged.
    pub fn open(path: &Path) -> Result<Self, CorpusError> {
        let (mut bytes, is_compressed) = open(path).map_err(|error| CorpusError::io(path, &error))?;
        if is_compressed {
            let mut text = Vec::new();
            MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text).map_err(|error| {
                let path = path.to_path_buf();
                match error.kind() {
                    io::ErrorKind::UnexpectedEof => CorpusError::CutShort { path },
                    _ => CorpusError::Damaged { path },
                }
            })?;
            bytes = Bytes::Held(text);
        }
        let path = path.to_path_buf();
        let source = if is_compressed { TextSource::Compressed(path) } else { TextSource::File(path) };
        Ok(Self { bytes, source })
    }

    /// Generates `sentences` sentences of a grammar with analogies; see [`Analogies::planted`].
    ///
    /// [`Analogies::planted`]: crate::wv::Analogies::planted
    #[must_use]
    pub fn generated(seed: u64, sentences: u64) -> Self {
        let mut bytes = Vec::new();
        grammar::write(seed, sentences, &mut bytes).expect("memory takes every byte");
        Self { bytes: Bytes::Held(bytes), source: TextSource::Generated { seed } }
    }

    /// A text that tests write down.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self { bytes: Bytes::Held(bytes.to_vec()), source: TextSource::Generated { seed: 0 } }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let bytes = self.bytes.as_slice();
        bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
    }

    /// Where it came from.
    #[must_use]
    pub fn source(&self) -> &TextSource {
        &self.source
    }

    /// Tells whether the text is generated, which has to be said wherever a figure of it is printed.
    #[must_use]
    pub fn is_generated(&self) -> bool {
        matches!(self.source, TextSource::Generated { .. })
    }

    /// Share `index` of `all` equal ones: shares in order are the whole text, and none ends within a word.
    pub(crate) fn share(&self, index: usize, all: usize) -> &[u8] {
        let bytes = self.bytes();
        &bytes[shares(bytes, index, all)]
    }
}

fn open(path: &Path) -> io::Result<(Bytes, bool)> {
    let mut file = files::open(path)?;
    let metadata = file.metadata()?;
    // A pipe has no length, and nothing of no length can be mapped.
    let is_mappable = metadata.is_file() && metadata.len() > 0;
    let bytes = if is_mappable {
        Bytes::Mapped(map(&file)?)
    } else {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Bytes::Held(bytes)
    };
    let is_compressed = bytes.as_slice().starts_with(b"\x1f\x8b");
    Ok((bytes, is_compressed))
}

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Held(bytes) => bytes,
        }
    }
}

fn shares(text: &[u8], index: usize, all: usize) -> Range<usize> {
    let cut = |index: usize| {
        // No product of two lengths of memory overflows.
        let at = (text.len() as u128 * index as u128 / all.max(1) as u128) as usize;
        cut_behind(text, at)
    };
    cut(index)..cut(index + 1)
}

/// The first place from `at` on where a line begins or, if none does for a while, that is not within a word.
fn cut_behind(text: &[u8], at: usize) -> usize {
    let Some(before) = at.checked_sub(1).filter(|before| *before < text.len()) else { return at };
    let near = &text[before..text.len().min(before + LINE_BYTES_MAX)];
    if let Some(end) = memchr(b'\n', near) {
        return before + end + 1;
    }
    // The last line may lack its end.
    if before + near.len() == text.len() {
        return text.len();
    }
    let end = text[before..].iter().position(u8::is_ascii_whitespace);
    end.map_or(text.len(), |end| before + end + 1)
}

/// Bytes that a share may grow by for the sake of a whole line.
const LINE_BYTES_MAX: usize = 1 << 14;

#[cfg(test)]
mod tests;
