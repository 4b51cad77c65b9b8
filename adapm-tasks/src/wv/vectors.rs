//! Vectors with their words, word2vec's two forms of a file of them, and GloVe's, which is read
//! only.
//!
//! ```text
//!   text    "words dim\n", then for each word: word, and for each number a space and its digits, "\n"
//!   binary  "words dim\n", then for each word: word, " ", dim times f32 little-endian, "\n"
//!   GloVe   as text, without the first line; a word may hold spaces, which become `_` as those of word2vec's phrases
//! ```
//!
//! Numbers of a text are as short as they can be and still read as the same bits. Words are bytes
//! without white space.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use crate::data::bytes;
use crate::data::lines::lines;
use crate::export::Table;
use crate::kge::Names;
use crate::run::config::named;
use crate::run::file::{self, CheckpointError};
use crate::run::values::{Ahead, Values};
use crate::wv::error::{CorpusError, VectorFault};

/// A vector for each word, the most frequent first.
#[derive(Clone, PartialEq)]
pub struct Vectors {
    words: Names,
    dim: usize,
    /// `[words x dim]`.
    pub(crate) values: Values,
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

named!(Format, Format::Text => "text", Format::Binary => "binary");

/// The form of a file that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VectorForm {
    /// word2vec's.
    Word2vec(Format),
    /// GloVe's, without a first line that says how many vectors there are.
    Glove,
}

impl fmt::Display for VectorForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word2vec(format) => write!(f, "word2vec's {format} form"),
            Self::Glove => f.write_str("GloVe's form"),
        }
    }
}

impl Vectors {
    /// Puts words and `[words x dim]` values together; `None` if their numbers do not fit.
    #[must_use]
    pub fn new(words: Names, dim: usize, values: Vec<f32>) -> Option<Self> {
        Self::of(words, dim, values.into())
    }

    /// Returns the same as [`new`](Self::new) of values that may be in a file.
    pub(crate) fn of(words: Names, dim: usize, values: Values) -> Option<Self> {
        let fits = dim > 0 && words.len().checked_mul(dim) == Some(values.len());
        fits.then_some(Self { words, dim, values })
    }

    /// Returns the words.
    #[must_use]
    pub fn words(&self) -> &Names {
        &self.words
    }

    /// Returns the length of a vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns all vectors, `[words x dim]`; none of those that are in a file.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        self.values.in_memory().unwrap_or_default()
    }

    /// Returns the vector of a word by its number, or `None` beyond the last, or in a file.
    #[must_use]
    pub fn vector(&self, number: usize) -> Option<&[f32]> {
        self.values().chunks_exact(self.dim).nth(number)
    }

    /// Writes a file that word2vec's tools and gensim read. An older file of that name stays as it
    /// is until the new one is complete.
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
    /// What `writer` refuses, and values that cannot be read.
    pub fn write_to(&self, mut writer: impl Write, format: Format) -> io::Result<()> {
        writeln!(writer, "{} {}", self.words.len(), self.dim)?;
        let mut values = Ahead::new(&self.values);
        for number in 0..self.words.len() {
            let vector = values.get(number * self.dim..(number + 1) * self.dim)?;
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

    /// Returns the vectors of `words`.
    #[must_use]
    pub fn tables(&self) -> Vec<Table<'_>> {
        let name = |word| Cow::from(self.words.bytes(word).unwrap_or_default());
        let row = |values: &mut Ahead, word: usize| {
            values.get(word * self.dim..(word + 1) * self.dim).map(<[f32]>::to_vec)
        };
        let size = [self.words.len(), self.dim];
        vec![Table::of_values("words", size, name, &self.values, row)]
    }

    /// Reads a file of either program. In the binary form the end of a line after a vector may be
    /// missing, as gensim writes.
    ///
    /// # Errors
    ///
    /// A file that is missing, unreadable, or contradicts its header.
    pub fn load(path: &Path, format: Format) -> Result<Self, CorpusError> {
        let bytes = bytes::read_binary(path)?;
        Self::of_bytes(&bytes, path, format)
    }

    /// Reads a file in the form that it is in, word2vec's or GloVe's, compressed by gzip or not.
    ///
    /// # Errors
    ///
    /// A file that is missing, unreadable, or contradicts its header.
    pub fn open(path: &Path) -> Result<(Self, VectorForm), CorpusError> {
        Self::of_any(&bytes::read_binary(path)?, path)
    }

    /// Parses the bytes of the file at `path`, in the form that they are in.
    pub(crate) fn of_any(bytes: &[u8], path: &Path) -> Result<(Self, VectorForm), CorpusError> {
        let form = detect(bytes);
        let vectors = match form {
            VectorForm::Word2vec(format) => read(bytes, format),
            VectorForm::Glove => read_glove(bytes),
        };
        let fault =
            |(vector, reason)| CorpusError::Vectors { path: path.to_path_buf(), vector, reason };
        Ok((vectors.map_err(fault)?, form))
    }

    /// Parses the bytes of the file at `path`.
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path, format: Format) -> Result<Self, CorpusError> {
        let fault =
            |(vector, reason)| CorpusError::Vectors { path: path.to_path_buf(), vector, reason };
        read(bytes, format).map_err(fault)
    }
}

/// The vector a fault is in, from 1, and the fault.
type Fault = (u64, VectorFault);

/// Returns the number of vectors and the numbers in each, as the first line says, and the bytes
/// after it.
fn head(bytes: &[u8]) -> Option<(usize, usize, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let mut fields = bytes[..end].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let (count, dim, None) = (fields.next()?, fields.next()?, fields.next()) else { return None };
    let number = |digits| number::<usize>(digits).filter(|number| *number > 0);
    Some((number(count)?, number(dim)?, &bytes[end + 1..]))
}

/// Returns the form of a file: binary only if its first vector is there and is no text; GloVe's if
/// the first line is a vector.
fn detect(bytes: &[u8]) -> VectorForm {
    let Some((_, dim, mut rest)) = head(bytes) else {
        let is_glove = lines(bytes).next().is_some_and(|(_, line)| glove_dim(line).is_some());
        return if is_glove { VectorForm::Glove } else { VectorForm::Word2vec(Format::Text) };
    };
    let is_text = field(&mut rest).is_none()
        || (0..dim).all(|_| field(&mut rest).is_some_and(|digits| number::<f32>(digits).is_some()));
    VectorForm::Word2vec(if is_text { Format::Text } else { Format::Binary })
}

/// Numbers of the vector that a line of GloVe's form begins with a word before; `None` if it has
/// another form.
fn glove_dim(line: &[u8]) -> Option<usize> {
    let mut fields =
        line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).skip(1).peekable();
    fields.peek()?;
    let dim = fields.try_fold(0, |dim, field| number::<f32>(field).map(|_| dim + 1))?;
    // Two numbers may be a header that is cut short.
    (dim > 1).then_some(dim)
}

fn read_glove(bytes: &[u8]) -> Result<Vectors, Fault> {
    let (mut words, mut values, mut seen) = (Names::default(), Vec::<f32>::new(), HashSet::new());
    let mut dim = 0;
    for (vector, line) in lines(bytes) {
        if dim == 0 {
            dim = glove_dim(line).ok_or((0, VectorFault::Header))?;
        }
        let start = values.len();
        values.resize(start + dim, 0.0);
        let mut rest = line.trim_ascii();
        for value in values[start..].iter_mut().rev() {
            let at = rest
                .iter()
                .rposition(u8::is_ascii_whitespace)
                .ok_or((vector, VectorFault::OtherLength))?;
            *value = number(&rest[at + 1..]).ok_or((vector, VectorFault::NotANumber))?;
            if !value.is_finite() {
                return Err((vector, VectorFault::NotFinite));
            }
            rest = rest[..at].trim_ascii_end();
        }
        if !seen.insert(rest) {
            return Err((vector, VectorFault::DuplicateWord));
        }
        let word: Vec<u8> =
            rest.iter().map(|byte| if byte.is_ascii_whitespace() { b'_' } else { *byte }).collect();
        words.push(&word);
    }
    Ok(Vectors { words, dim, values: values.into() })
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
    Ok(Vectors { words, dim, values: values.into() })
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
