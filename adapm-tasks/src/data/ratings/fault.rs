//! What can be wrong with a line of ratings.

use crate::data::Malformation;

/// What is wrong with a line of ratings. Its text says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RatingFault {
    /// Fewer fields than a rating has in this file.
    #[error("a rating has {expected} fields in this file, this line has {found}; complete it")]
    TooFewFields {
        /// Fields of the line.
        found: usize,
        /// Fields of a rating.
        expected: usize,
    },
    /// More fields than a rating has in this file: the first of them begins here.
    #[error("a rating has {expected} fields in this file, another begins here; remove it")]
    TooManyFields {
        /// Fields of a rating.
        expected: usize,
    },
    /// More fields than rows, columns, values and times, without names in the first line.
    #[error(
        "{found} fields, and no line of names says which are row, column and value; put one first, such \
         as user,item,rating and a name for each other field"
    )]
    NoNames {
        /// Fields of the line.
        found: usize,
    },
    /// The file is JSON.
    #[error("this is JSON; write a table of user, item and rating, such as CSV")]
    Json,
    /// Without names in the first line, the third field is a time and the fourth is not.
    #[error("a time where the value is expected; put a line of names first, such as user,item,time,rating")]
    TimeBeforeValue,
    /// A field is empty.
    #[error("this field is empty; fill it in, or remove the line")]
    EmptyField,
    /// An id holds a tab, a line end or another control character.
    #[error(
        "an id with a tab, a line end or another control character; remove it, or close the quote \
         before it"
    )]
    ControlInId,
    /// An id has a byte that is part of no character of UTF-8.
    #[error("{}", Malformation::NotUtf8 { byte: *byte })]
    NotUtf8 {
        /// The byte.
        byte: u8,
    },
    /// A quote is not closed in its line.
    #[error("a line of this rating ends within quotes; close the quote, or double it")]
    OpenQuote,
    /// An id is negative.
    #[error("this id is negative; number rows and columns from 1")]
    NegativeId,
    /// An id is not a decimal number.
    #[error("not a decimal id; number rows and columns from 1")]
    NotAnId,
    /// An id is above the largest that is supported.
    #[error("this id is 2^64 or more; use smaller numbers")]
    IdTooLarge,
    /// A value is not a number.
    #[error("not a number; give a decimal value")]
    NotANumber,
    /// A value is NaN or infinite, or too large for the arithmetic.
    #[error("not a finite number; remove the rating or give it a value")]
    NotFinite,
    /// A line has no end within reason.
    #[error("a line without end, or a quote that is not closed; give a rating per line")]
    LineTooLong,
    /// More comments before the first rating than are looked through.
    #[error("16 MiB of comments and no rating; remove them")]
    EndlessComments,
    /// More than 2^32 - 1 different rows or columns.
    #[error("more than 2^32 - 1 rows or columns; give fewer")]
    TooManyIds,
    /// The banner of a MatrixMarket file names a kind of matrix that is no set of ratings.
    #[error("no matrix of ratings; give one that is coordinate, real or integer, general or symmetric")]
    UnsupportedMatrix,
    /// The line of sizes of a MatrixMarket file is missing or malformed.
    #[error("no sizes; give rows, columns and entries in this line")]
    NoSizes,
    /// More entries than the matrix has places.
    #[error("more entries than rows x columns; correct the sizes")]
    TooManyForSizes,
    /// An id is 0 or above the size that the header declares.
    #[error("outside of the matrix, whose header declares 1 to {size}; correct one of them")]
    OutsideOfMatrix {
        /// The size.
        size: u64,
    },
    /// The file ends before as many entries as its header declares.
    #[error("the file ends after {found} of {declared} entries declared; get all of it")]
    FewerEntries {
        /// Entries declared.
        declared: u64,
        /// Entries found.
        found: u64,
    },
    /// Here begins an entry beyond those that the header declares.
    #[error("more than the {declared} entries declared; correct the header")]
    MoreEntries {
        /// Entries declared.
        declared: u64,
    },
}
