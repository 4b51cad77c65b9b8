//! What can be wrong with a line of ratings.

use std::fmt;

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
    /// A field is empty.
    EmptyField,
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
            Self::EmptyField => f.write_str("this field is empty; put a number there"),
            Self::NegativeId => f.write_str("this id is negative; number rows and columns from 0"),
            Self::NotAnId => f.write_str("not a decimal id; number rows and columns from 0"),
            Self::IdTooLarge => f.write_str("this id is 2^64 or more; use smaller numbers"),
            Self::NotANumber => f.write_str("not a number; give a decimal value"),
            Self::NotFinite => f.write_str("not a finite number; remove the rating or give it a value"),
            Self::LineTooLong => f.write_str("a line without end; give a text file with a rating per line"),
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
