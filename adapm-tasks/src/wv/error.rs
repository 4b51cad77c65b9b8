//! What can be wrong with a corpus and the files beside it: where, and what to do.

use std::fmt;
use std::path::PathBuf;

use crate::data::DataError;

/// A corpus, vocabulary, question or vector file that cannot be used. Its text is one line: what, where, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CorpusError {
    /// A file that cannot be read, or not to its end, or is no text.
    Text(DataError),
    /// Too few words to learn anything from.
    TooFewWords {
        /// Where the text came from.
        source: String,
        /// Words that occur often enough.
        words: usize,
        /// Times a word has to occur to count.
        min_count: u64,
    },
    /// No word has another one beside it.
    NoContext {
        /// Where the text came from.
        source: String,
        /// Times a word has to occur to count.
        min_count: u64,
    },
    /// More words than have numbers.
    TooManyWords {
        /// Where the words came from.
        source: String,
    },
    /// A line that does not have the form of the format.
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The byte in the line, from 1.
        column: u64,
        /// What is wrong there.
        reason: LineFault,
    },
    /// A file of vectors that contradicts its header.
    Vectors {
        /// The file.
        path: PathBuf,
        /// The vector, from 1; 0 is the first line of the file.
        vector: u64,
        /// What is wrong there.
        reason: VectorFault,
    },
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineFault {
    /// Not a word and how often it occurs.
    NotAWordAndCount,
    /// Not a positive whole number.
    NotACount,
    /// A word that an earlier line has.
    DuplicateWord,
    /// Not four words, and no heading either.
    NotFourWords,
    /// Not two words and a number.
    NotAPair,
    /// Not a finite number.
    NotANumber,
}

/// What is wrong with a file of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VectorFault {
    /// The first line is not two positive numbers.
    Header,
    /// The file ends early.
    Missing,
    /// Something stands where the next number should be.
    NotANumber,
    /// A number is NaN or infinite.
    NotFinite,
    /// A word that an earlier vector has.
    DuplicateWord,
    /// Not as many numbers as in the first line, where no header says how many.
    OtherLength,
    /// Something follows the last vector.
    Surplus,
}

impl std::error::Error for CorpusError {}

impl From<DataError> for CorpusError {
    fn from(error: DataError) -> Self {
        Self::Text(error)
    }
}

impl fmt::Display for CorpusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(error) => error.fmt(f),
            Self::TooFewWords { source, words, min_count } => {
                let plural = if *words == 1 { "" } else { "s" };
                write!(
                    f,
                    "nothing to train on: {words} word{plural} of {source} occur {min_count} times or more, "
                )?;
                f.write_str("2 are needed; give more text, or a lower minimum count")
            }
            Self::NoContext { source, min_count } => {
                write!(
                    f,
                    "nothing to train on: no line of {source} has two words that occur {min_count} times or "
                )?;
                f.write_str("more; write a sentence a line, or give a lower minimum count")
            }
            Self::TooManyWords { source } => {
                write!(f, "{source} has more than 2147483647 different words; raise the minimum count")
            }
            Self::Malformed { path, line, column, reason } => {
                write!(f, "{}:{line}:{column}: {reason}", path.display())
            }
            Self::Vectors { path, vector: 0, reason } => write!(f, "{}: {reason}", path.display()),
            Self::Vectors { path, vector, reason } => {
                write!(f, "{}, vector {vector}: {reason}", path.display())
            }
        }
    }
}

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAWordAndCount => "not a word and its count; write them with a space between",
            Self::NotACount => "not a count; write a whole number from 1",
            Self::DuplicateWord => "this word has a line already; list every word once",
            Self::NotFourWords => {
                "a question has four words; write them on one line, or a heading behind a colon"
            }
            Self::NotAPair => "not two words and a number; separate them by a tab, spaces or commas",
            Self::NotANumber => "not a number; write how similar the two words are",
        })
    }
}

impl fmt::Display for VectorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => {
                "the first line is neither `words dimension` (word2vec) nor a word and its numbers (GloVe); give a file of vectors"
            }
            Self::Missing => "the file ends early; write it again",
            Self::NotANumber => "not a number; give the form, text or binary, that the file has",
            Self::NotFinite => "a number is NaN or infinite; train again with a lower learning rate",
            Self::DuplicateWord => "this word has a vector already; list every word once",
            Self::OtherLength => "not as many numbers as in the first line; copy the file again",
            Self::Surplus => {
                "more bytes than the first line says; give the form, text or binary, that the file has"
            }
        })
    }
}
