//! Kinds of data, by what lines look like.

use std::fmt;

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Looks {
    /// A row, a column and a number a line.
    Ratings,
    /// Three names, or ids, a line.
    Triples,
    /// Words.
    Text,
    /// A word and many numbers a line.
    Vectors,
}

impl Looks {
    /// Returns the task that this is data of.
    #[must_use]
    pub fn task(self) -> &'static str {
        match self {
            Self::Ratings => "mf",
            Self::Triples => "kge",
            Self::Text | Self::Vectors => "wv",
        }
    }
}

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ratings => "ratings (a row, a column and a number a line)",
            Self::Triples => "triples (head, relation and tail a line)",
            Self::Text => "text (words)",
            Self::Vectors => "word vectors (a word and its numbers a line)",
        })
    }
}
