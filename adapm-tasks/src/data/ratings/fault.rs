//! What can be wrong with a line of ratings.

use std::fmt;

use crate::data::Malformation;

/// What is wrong with a line of ratings. Its text says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RatingFault {
    /// Fewer fields than a rating has in this file.
    TooFewFields {
        /// Fields of the line.
        found: usize,
        /// Fields of a rating.
        expected: usize,
    },
    /// More fields than a rating has in this file: the first of them begins here.
    TooManyFields {
        /// Fields of a rating.
        expected: usize,
    },
    /// More fields than rows, columns, values and times, without names in the first line.
    NoNames {
        /// Fields of the line.
        found: usize,
    },
    /// The file is JSON.
    Json,
    /// Without names in the first line, the third field is a time and the fourth is not.
    TimeBeforeValue,
    /// A field is empty.
    EmptyField,
    /// An id holds a tab, a line end or another control character.
    ControlInId,
    /// An id has a byte that is part of no character of UTF-8.
    NotUtf8 {
        /// The byte.
        byte: u8,
    },
    /// A quote is not closed in its line.
    OpenQuote,
    /// An id is negative.
    NegativeId,
    /// An id is not a decimal number.
    NotAnId,
    /// An id is above the largest that is supported.
    IdTooLarge,
    /// A value is not a number.
    NotANumber,
    /// A value is NaN or infinite, or too large for the arithmetic.
    NotFinite,
    /// A line has no end within reason.
    LineTooLong,
    /// More comments before the first rating than are looked through.
    EndlessComments,
    /// More than 2^32 - 1 different rows or columns.
    TooManyIds,
    /// The banner of a MatrixMarket file names a kind of matrix that is no set of ratings.
    UnsupportedMatrix,
    /// The line of sizes of a MatrixMarket file is missing or malformed.
    NoSizes,
    /// More entries than the matrix has places.
    TooManyForSizes,
    /// An id is 0 or above the size that the header declares.
    OutsideOfMatrix {
        /// The size.
        size: u64,
    },
    /// The file ends before as many entries as its header declares.
    FewerEntries {
        /// Entries declared.
        declared: u64,
        /// Entries found.
        found: u64,
    },
    /// Here begins an entry beyond those that the header declares.
    MoreEntries {
        /// Entries declared.
        declared: u64,
    },
}

impl fmt::Display for RatingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooFewFields { found, expected } => {
                write!(f, "a rating has {expected} fields in this file, this line has {found}; complete it")
            }
            Self::TooManyFields { expected } => {
                write!(f, "a rating has {expected} fields in this file, another begins here; remove it")
            }
            Self::NoNames { found } => {
                write!(f, "{found} fields, and no line of names says which are row, column and value; ")?;
                f.write_str("put one first, such as user,item,rating and a name for each other field")
            }
            Self::Json => f.write_str("this is JSON; write a table of user, item and rating, such as CSV"),
            Self::TimeBeforeValue => {
                f.write_str("a time where the value is expected; put a line of names first, such as ")?;
                f.write_str("user,item,time,rating")
            }
            Self::EmptyField => f.write_str("this field is empty; fill it in, or remove the line"),
            Self::ControlInId => {
                f.write_str("an id with a tab, a line end or another control character; remove it, ")?;
                f.write_str("or close the quote before it")
            }
            Self::NotUtf8 { byte } => Malformation::NotUtf8 { byte }.fmt(f),
            Self::OpenQuote => {
                f.write_str("a line of this rating ends within quotes; close the quote, or double it")
            }
            Self::NegativeId => f.write_str("this id is negative; number rows and columns from 1"),
            Self::NotAnId => f.write_str("not a decimal id; number rows and columns from 1"),
            Self::IdTooLarge => f.write_str("this id is 2^64 or more; use smaller numbers"),
            Self::NotANumber => f.write_str("not a number; give a decimal value"),
            Self::NotFinite => f.write_str("not a finite number; remove the rating or give it a value"),
            Self::LineTooLong => {
                f.write_str("a line without end, or a quote that is not closed; give a rating per line")
            }
            Self::EndlessComments => f.write_str("16 MiB of comments and no rating; remove them"),
            Self::TooManyIds => f.write_str("more than 2^32 - 1 rows or columns; give fewer"),
            Self::UnsupportedMatrix => {
                f.write_str("no matrix of ratings; give one that is coordinate, real or integer, ")?;
                f.write_str("general or symmetric")
            }
            Self::NoSizes => f.write_str("no sizes; give rows, columns and entries in this line"),
            Self::TooManyForSizes => f.write_str("more entries than rows x columns; correct the sizes"),
            Self::OutsideOfMatrix { size } => {
                write!(f, "outside of the matrix, whose header declares 1 to {size}; correct one of them")
            }
            Self::FewerEntries { declared, found } => {
                write!(f, "the file ends after {found} of {declared} entries declared; get all of it")
            }
            Self::MoreEntries { declared } => {
                write!(f, "more than the {declared} entries declared; correct the header")
            }
        }
    }
}
