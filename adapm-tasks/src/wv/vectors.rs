//! Vectors with their words, and word2vec's two forms of a file of them.
//!
//! ```text
//!   text    "words dim\n", then for each word: word, and for each number a space and its digits, "\n"
//!   binary  "words dim\n", then for each word: word, " ", dim times f32 little-endian, "\n"
//! ```
//!
//! Numbers of a text are as short as they can be and still read as the same bits. Words are bytes without white space.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use crate::data::bytes;
use crate::kge::Names;
use crate::run::file::{self, CheckpointError};
use crate::run::named::named;
use crate::wv::error::{CorpusError, VectorFault};

/// A vector for each word, the most frequent first.
#[derive(Clone, PartialEq)]
pub struct Vectors {
    words: Names,
    dim: usize,
    /// `[words x dim]`.
    pub(crate) values: Arc<Vec<f32>>,
}

impl fmt::Debug for Vectors {
    /// Sizes instead of millions of numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vectors of {} words, dimension {}", self.words.len(), self.dim)
    }
}

/// A form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Numbers as digits.
    Text,
    /// Numbers as four bytes.
    Binary,
}

named!(Format, "text binary", Format::Text => "text", Format::Binary => "binary");

impl Vectors {
    /// Puts words and `[words x dim]` values together; `None` if their numbers do not fit.
    #[must_use]
    pub fn new(words: Names, dim: usize, values: Vec<f32>) -> Option<Self> {
        let fits = dim > 0 && words.len().checked_mul(dim) == Some(values.len());
        fits.then(|| Self { words, dim, values: Arc::new(values) })
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> &Names {
        &self.words
    }

    /// Length of a vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// All vectors, `[words x dim]`.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The vector of a word by its number, or `None` beyond the last.
    #[must_use]
    pub fn vector(&self, number: usize) -> Option<&[f32]> {
        self.values.chunks_exact(self.dim).nth(number)
    }

    /// Writes a file that word2vec's tools and gensim read. An older file of that name stays as it is until the new one is
    /// complete.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn save(&self, path: &Path, format: Format) -> Result<(), CheckpointError> {
        file::save(path, |file| self.write_to(file, format))
    }

    /// Writes what [`save`](Self::save) does.
    ///
    /// # Errors
    ///
    /// What `writer` refuses.
    pub fn write_to(&self, mut writer: impl Write, format: Format) -> io::Result<()> {
        writeln!(writer, "{} {}", self.words.len(), self.dim)?;
        for (number, vector) in self.values.chunks_exact(self.dim).enumerate() {
            writer.write_all(self.words.bytes(number).unwrap_or_default())?;
            match format {
                Format::Text => vector.iter().try_for_each(|value| write!(writer, " {value}"))?,
                Format::Binary => {
                    writer.write_all(b" ")?;
                    vector.iter().try_for_each(|value| writer.write_all(&value.to_le_bytes()))?;
                }
            }
            writer.write_all(b"\n")?;
        }
        writer.flush()
    }

    /// Reads a file of either program. In the binary form the end of a line behind a vector may be missing, as gensim writes.
    ///
    /// # Errors
    ///
    /// A file that is missing, unreadable, or contradicts its header.
    pub fn load(path: &Path, format: Format) -> Result<Self, CorpusError> {
        let bytes = bytes::read_binary(path)?;
        Self::of_bytes(&bytes, path, format)
    }

    /// Reads a file in the form that it is in: as [`Text`](Format::Text) if the first vector reads so.
    ///
    /// # Errors
    ///
    /// A file that is missing, unreadable, or contradicts its header.
    pub fn open(path: &Path) -> Result<(Self, Format), CorpusError> {
        let bytes = bytes::read_binary(path)?;
        let format = detect(&bytes);
        Ok((Self::of_bytes(&bytes, path, format)?, format))
    }

    /// What the bytes of the file at `path` say.
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path, format: Format) -> Result<Self, CorpusError> {
        let fault = |(vector, reason)| CorpusError::Vectors { path: path.to_path_buf(), vector, reason };
        read(bytes, format).map_err(fault)
    }
}

/// The vector a fault is in, from 1, and the fault.
type Fault = (u64, VectorFault);

/// Vectors, and numbers of each, that the first line says, and what is behind it.
fn head(bytes: &[u8]) -> Option<(usize, usize, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let mut fields = bytes[..end].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let mut number = || number::<usize>(fields.next()?).filter(|number| *number > 0);
    let (count, dim) = number().zip(number())?;
    Some((count, dim, &bytes[end + 1..]))
}

/// The form of a file: binary only if its first vector is there and is no text.
fn detect(bytes: &[u8]) -> Format {
    let is_text = |(_, dim, mut rest)| {
        field(&mut rest).is_none()
            || (0..dim).all(|_| field(&mut rest).is_some_and(|digits| number::<f32>(digits).is_some()))
    };
    if head(bytes).is_none_or(is_text) { Format::Text } else { Format::Binary }
}

fn read(bytes: &[u8], format: Format) -> Result<Vectors, Fault> {
    let (count, dim, mut rest) = head(bytes).ok_or((0, VectorFault::Header))?;
    // No memory is set aside for what a header claims beyond the bytes that are there.
    if count.checked_mul(dim).is_none_or(|numbers| numbers > bytes.len()) {
        return Err((0, VectorFault::Missing));
    }
    let (mut words, mut values, mut seen) = (Names::default(), Vec::new(), HashSet::new());
    for vector in 1..=count as u64 {
        let word = field(&mut rest).ok_or((vector, VectorFault::Missing))?;
        if !seen.insert(word) {
            return Err((vector, VectorFault::DuplicateWord));
        }
        words.push(word);
        let numbers = match format {
            Format::Text => read_digits(&mut rest, dim, &mut values),
            Format::Binary => read_floats(&mut rest, dim, &mut values),
        };
        numbers.map_err(|reason| (vector, reason))?;
        if values[values.len() - dim..].iter().any(|value| !value.is_finite()) {
            return Err((vector, VectorFault::NotFinite));
        }
    }
    if !rest.iter().all(u8::is_ascii_whitespace) {
        return Err((count as u64, VectorFault::Surplus));
    }
    Ok(Vectors { words, dim, values: Arc::new(values) })
}

fn read_digits(rest: &mut &[u8], dim: usize, values: &mut Vec<f32>) -> Result<(), VectorFault> {
    for _ in 0..dim {
        let digits = field(rest).ok_or(VectorFault::Missing)?;
        values.push(number(digits).ok_or(VectorFault::NotANumber)?);
    }
    Ok(())
}

fn read_floats(rest: &mut &[u8], dim: usize, values: &mut Vec<f32>) -> Result<(), VectorFault> {
    // One space belongs to the word.
    let (floats, behind) = rest
        .get(1..)
        .and_then(|rest| rest.split_at_checked(dim * size_of::<f32>()))
        .ok_or(VectorFault::Missing)?;
    values.extend(floats.as_chunks().0.iter().map(|float| f32::from_le_bytes(*float)));
    *rest = behind;
    Ok(())
}

/// Takes the next run of bytes without white space off `rest`.
fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let len = rest[start..].iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len() - start);
    let (field, behind) = rest[start..].split_at(len);
    *rest = behind;
    Some(field)
}

fn number<N: FromStr>(digits: &[u8]) -> Option<N> {
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
