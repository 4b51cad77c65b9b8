//! Errors of a corpus and the files used with it; their texts name the place and what to do.

use std::path::PathBuf;

use crate::data::DataError;

/// A corpus, vocabulary, question or vector file that cannot be used. Its text is one line: what,
/// where, what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusError {
    /// A file that cannot be read to its end, or is no text.
    #[error(transparent)]
    Text(#[from] DataError),
    /// Too few words to learn anything from.
    #[error(
        "nothing to train on: {words} word{} of {source} occur {min_count} times or more, 2 are needed; \
         give more text, or a lower minimum count",
        if *words == 1 { "" } else { "s" }
    )]
    TooFewWords {
        /// The source of the text.
        r#source: String,
        /// Words that occur often enough.
        words: usize,
        /// Times a word has to occur to count.
        min_count: u64,
    },
    /// No line has two words that occur often enough: there are no pairs to train on.
    #[error(
        "nothing to train on: no line of {source} has two words that occur {min_count} times or more; \
         write a sentence a line, or give a lower minimum count"
    )]
    NoContext {
        /// The source of the text.
        r#source: String,
        /// Times a word has to occur to count.
        min_count: u64,
    },
    /// More words than a 31-bit index can number.
    #[error("{source} has more than 2147483647 different words; raise the minimum count")]
    TooManyWords {
        /// The source of the words.
        r#source: String,
    },
    /// A line that does not have the form of the format.
    #[error("{path}:{line}:{column}: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The byte in the line, from 1.
        column: u64,
        /// The fault.
        reason: LineFault,
    },
    /// A file of vectors that contradicts its header.
    #[error("{}{}: {reason}", path.display(), of_vector(*vector))]
    Vectors {
        /// The file.
        path: PathBuf,
        /// The vector, from 1; 0 is the first line of the file.
        vector: u64,
        /// The fault.
        reason: VectorFault,
    },
}

/// A fault of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineFault {
    /// Not a word and its count.
    #[error("not a word and its count; write them with a space between")]
    NotAWordAndCount,
    /// Not a positive whole number.
    #[error("not a count; write a whole number from 1")]
    NotACount,
    /// A word that an earlier line has.
    #[error("this word has a line already; list every word once")]
    DuplicateWord,
    /// Not four words, and no heading either.
    #[error("a question has four words; write them on one line, or a heading behind a colon")]
    NotFourWords,
    /// Not two words and a number.
    #[error("not two words and a number; separate them by a tab, spaces or commas")]
    NotAPair,
    /// Not a finite number.
    #[error("not a number; write how similar the two words are")]
    NotANumber,
}

/// A fault of a file of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VectorFault {
    /// The first line is not two positive numbers.
    #[error(
        "the first line is neither `words dimension` (word2vec) nor a word and its numbers (GloVe); \
         give a file of vectors"
    )]
    Header,
    /// The file ends early.
    #[error("the file ends early; write it again")]
    Missing,
    /// Something stands where the next number should be.
    #[error("not a number; give the form, text or binary, that the file has")]
    NotANumber,
    /// A number is NaN or infinite.
    #[error("a number is NaN or infinite; train again with a lower learning rate")]
    NotFinite,
    /// A word that an earlier vector has.
    #[error("this word has a vector already; list every word once")]
    DuplicateWord,
    /// Not as many numbers as in the first line, in a file without a header.
    #[error("not as many numbers as in the first line; copy the file again")]
    OtherLength,
    /// Something follows the last vector.
    #[error(
        "more bytes than the first line says; give the form, text or binary, that the file has"
    )]
    Surplus,
}

/// Returns the part of a message that names a vector; empty for the first line of the file.
fn of_vector(vector: u64) -> String {
    if vector == 0 { String::new() } else { format!(", vector {vector}") }
}
