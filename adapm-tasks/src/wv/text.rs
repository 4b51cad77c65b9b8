//! The text that is trained on: bytes of a file or of memory, cut into a share per worker.
//!
//! A word is a run of bytes without ASCII white space, of any length and in any encoding. A share
//! ends where a line ends or, if lines are long, where a word ends, so every word belongs to
//! exactly one share, whole.
//!
//! A file is read piece by piece each time it is gone through, by each worker its share: the
//! operating system keeps in memory what fits there, and a file that others make shorter is an
//! error that names it.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use memchr::memchr;

use crate::data::bytes::{self, HEAD_BYTES, Head};
use crate::data::{DataError, Looks, grammar, looks_like};
use crate::files;
use crate::wv::error::CorpusError;

/// A text, and where it came from.
pub struct Text {
    bytes: Bytes,
    /// Bytes before the text: a byte order mark.
    start: u64,
    len: u64,
    source: TextSource,
}

enum Bytes {
    /// Of as many bytes when it was opened.
    File(File),
    Held(Vec<u8>),
}

/// The source of a text.
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
        write!(f, "Text of {} bytes, {}", self.len, self.source)
    }
}

impl Text {
    /// Opens a file, which has to stay as it is while the text is in use. One compressed by gzip,
    /// known by its first bytes, is decompressed into memory, as no worker could begin in its
    /// middle, and so is a text whose lines end with `\r` alone. A byte order mark at the start is
    /// left out.
    ///
    /// # Errors
    ///
    /// A file that is missing or unreadable, is no text, or is compressed and cut short or damaged.
    pub fn open(path: &Path) -> Result<Self, CorpusError> {
        let unreadable = |error: io::Error| bytes::failure(path, &error);
        let file = files::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        // A pipe has no length, and can be read only once.
        if metadata.is_file() && metadata.len() > 0 {
            let first = first_of(&file).map_err(unreadable)?;
            let is_table = memchr(b'\t', &first).is_some() && !first.starts_with(b"\x1f\x8b");
            let is_other = |looks: &Looks| match looks {
                Looks::Ratings | Looks::Vectors => true,
                // Three words a line are sentences, unless they are columns.
                Looks::Triples => is_table,
                _ => false,
            };
            if let Some(looks) = looks_like(path).filter(is_other) {
                return Err(DataError::OtherTask { path: path.to_path_buf(), looks }.into());
            }
            if let Head::Text { mark } = bytes::head(&first, path, false)? {
                let (start, source) = (mark as u64, TextSource::File(path.to_path_buf()));
                let len = metadata.len().saturating_sub(start);
                return Ok(Self { bytes: Bytes::File(file), start, len, source });
            }
        }
        let source = bytes::Source::new(file, path)?;
        let is_compressed = source.is_compressed();
        let text = source.all(path)?;
        let of = if is_compressed { TextSource::Compressed } else { TextSource::File };
        Ok(Self::held(text, of(path.to_path_buf())))
    }

    /// Generates `sentences` sentences of a grammar with analogies; see [`Analogies::generated`].
    ///
    /// [`Analogies::generated`]: crate::wv::Analogies::generated
    #[must_use]
    pub fn generated(seed: u64, sentences: u64) -> Self {
        let mut bytes = Vec::new();
        grammar::write(seed, sentences, &mut bytes).expect("memory takes every byte");
        Self::held(bytes, TextSource::Generated { seed })
    }

    /// Returns a text that tests write down.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self::held(bytes.to_vec(), TextSource::Generated { seed: 0 })
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if there is no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the source of the text.
    #[must_use]
    pub fn source(&self) -> &TextSource {
        &self.source
    }

    /// Returns true if the text is generated, which has to be stated wherever a figure of it is
    /// printed.
    #[must_use]
    pub fn is_generated(&self) -> bool {
        matches!(self.source, TextSource::Generated { .. })
    }

    /// Returns the share `index` of `all` equal ones: shares in order are the whole text, and none
    /// ends within a word.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is shorter than it was.
    pub(crate) fn share(&self, index: usize, all: usize) -> Result<Share<'_>, DataError> {
        let cut = |index: usize| {
            // No product of two lengths of memory overflows.
            let at = (u128::from(self.len) * index as u128 / all.max(1) as u128) as u64;
            self.cut_behind(at)
        };
        Ok(Share { text: self, range: cut(index)?..cut(index + 1)? })
    }

    fn held(bytes: Vec<u8>, source: TextSource) -> Self {
        let len = bytes.len() as u64;
        Self { bytes: Bytes::Held(bytes), start: 0, len, source }
    }

    /// Returns the first place from `at` on where a line begins or, if none does for a while, that
    /// is not within a word.
    fn cut_behind(&self, at: u64) -> Result<u64, DataError> {
        let Some(mut before) = at.checked_sub(1).filter(|before| *before < self.len) else {
            return Ok(at);
        };
        let mut near = self.read(before..self.len.min(before + LINE_BYTES_MAX))?;
        if let Some(end) = memchr(b'\n', &near) {
            return Ok(before + end as u64 + 1);
        }
        // The last line may lack its end.
        while before + (near.len() as u64) < self.len {
            if let Some(end) = near.iter().position(u8::is_ascii_whitespace) {
                return Ok(before + end as u64 + 1);
            }
            before += near.len() as u64;
            near = self.read(before..self.len.min(before + LINE_BYTES_MAX))?;
            if let Some(end) = near.iter().position(u8::is_ascii_whitespace) {
                return Ok(before + end as u64 + 1);
            }
        }
        Ok(self.len)
    }

    /// Returns the bytes of a part.
    fn read(&self, range: Range<u64>) -> Result<Cow<'_, [u8]>, DataError> {
        if let Bytes::Held(bytes) = &self.bytes {
            return Ok(Cow::Borrowed(
                &bytes[index(self.start + range.start)..index(self.start + range.end)],
            ));
        }
        let mut bytes = vec![0; index(range.end - range.start)];
        self.fill(&mut bytes, range.start)?;
        Ok(Cow::Owned(bytes))
    }

    /// Reads the bytes from `at` on, as many as fit.
    fn fill(&self, mut bytes: &mut [u8], mut at: u64) -> Result<(), DataError> {
        let path = || PathBuf::from(self.source.to_string());
        while !bytes.is_empty() {
            match self.read_some(bytes, self.start + at) {
                Ok(0) => return Err(DataError::Shrunk { path: path() }),
                Ok(read) => {
                    bytes = &mut bytes[read..];
                    at += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(DataError::Unreadable { path: path(), error: error.into() });
                }
            }
        }
        Ok(())
    }

    fn read_some(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        match &self.bytes {
            Bytes::File(file) => file.read_at(bytes, at),
            Bytes::Held(held) => (&held[index(at).min(held.len())..]).read(bytes),
        }
    }
}

/// A part of a text: whole words.
#[derive(Clone, Debug)]
pub(crate) struct Share<'a> {
    text: &'a Text,
    range: Range<u64>,
}

impl<'a> Share<'a> {
    /// Its words and ends of lines.
    pub(crate) fn tokens(&self) -> Tokens<Pieces<'a>> {
        let Self { text, range } = self.clone();
        Tokens::new(Pieces { text, rest: range, bytes: Cow::Borrowed(&[]), end: 0 })
    }

    /// Takes its words one by one.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is shorter than it was.
    pub(crate) fn words(&self, mut take: impl FnMut(&[u8])) -> Result<(), DataError> {
        let mut tokens = self.tokens();
        while let Some(token) = tokens.next()? {
            if let Token::Word(word) = token {
                take(word);
            }
        }
        Ok(())
    }

    /// Its bytes.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, DataError> {
        self.text.read(self.range.clone()).map(Cow::into_owned)
    }
}

/// A share, piece by piece, each of whole words.
#[derive(Debug)]
pub(crate) struct Pieces<'a> {
    text: &'a Text,
    /// Not yet read.
    rest: Range<u64>,
    bytes: Cow<'a, [u8]>,
    /// The end of the current piece; a word that reaches past it goes on in the next one.
    end: usize,
}

impl Source for Pieces<'_> {
    fn piece(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    fn advance(&mut self) -> Result<bool, DataError> {
        if let Bytes::Held(_) = &self.text.bytes {
            let rest = std::mem::replace(&mut self.rest, 0..0);
            self.bytes = self.text.read(rest)?;
            self.end = self.bytes.len();
            return Ok(self.end > 0);
        }
        let bytes = self.bytes.to_mut();
        bytes.drain(..self.end);
        self.end = 0;
        while !self.rest.is_empty() {
            let (old, more) = (bytes.len(), (self.rest.end - self.rest.start).min(PIECE_BYTES));
            bytes.resize(old + index(more), 0);
            self.text.fill(&mut bytes[old..], self.rest.start)?;
            self.rest.start += more;
            if let Some(end) = bytes[old..].iter().rposition(u8::is_ascii_whitespace) {
                self.end = old + end + 1;
                return Ok(true);
            }
        }
        self.end = bytes.len();
        Ok(self.end > 0)
    }
}

/// Returns the first bytes of a file, as many as determine its form.
fn first_of(file: &File) -> io::Result<Vec<u8>> {
    let mut first = vec![0; HEAD_BYTES];
    let mut len = 0;
    while len < first.len() {
        match file.read_at(&mut first[len..], len as u64) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    first.truncate(len);
    Ok(first)
}

/// Returns a place in memory; what is held there has no larger ones.
fn index(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// A token of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Word(&'a [u8]),
    LineEnd,
}

/// Bytes that come in pieces of whole words.
pub(crate) trait Source {
    /// Returns the running piece.
    fn piece(&self) -> &[u8];

    /// Reads the next piece. Returns false at the end.
    fn advance(&mut self) -> Result<bool, DataError>;
}

/// The tokens of a text. `\r` is white space, so `\r\n` is one end of a line.
#[derive(Debug)]
pub(crate) struct Tokens<S> {
    source: S,
    at: usize,
}

impl<S: Source> Tokens<S> {
    pub(crate) fn new(source: S) -> Self {
        Self { source, at: 0 }
    }

    /// Returns the next token; `None` at the end.
    ///
    /// # Errors
    ///
    /// What the source says.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Token<'_>>, DataError> {
        loop {
            let Some(&byte) = self.source.piece().get(self.at) else {
                if !self.source.advance()? {
                    return Ok(None);
                }
                self.at = 0;
                continue;
            };
            if !byte.is_ascii_whitespace() {
                break;
            }
            self.at += 1;
            if byte == b'\n' {
                return Ok(Some(Token::LineEnd));
            }
        }
        let (start, piece) = (self.at, self.source.piece());
        let len = piece[start..].iter().position(u8::is_ascii_whitespace);
        self.at = len.map_or(piece.len(), |len| start + len);
        Ok(Some(Token::Word(&piece[start..self.at])))
    }
}

/// Returns the words of a text, without its lines.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// Bytes that a share may grow by for the sake of a whole line.
const LINE_BYTES_MAX: u64 = 1 << 14;
/// Read at once by each worker.
const PIECE_BYTES: u64 = 1 << 18;

#[cfg(test)]
mod tests;
