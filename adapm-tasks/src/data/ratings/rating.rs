//! Ratings as they are read, their ids, the form of their file, and why reading one stops.

use std::io::Write as _;
use std::{fmt, io};

use crate::data::error::{RatingFault, UnknownColumns};
use crate::data::ratings::form::Separator;

/// A value with the ids of its row and column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rating<'a> {
    pub(crate) row: RatingId<'a>,
    pub(crate) column: RatingId<'a>,
    pub(crate) value: f32,
}

/// The form of a file of ratings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RatingFormat {
    /// A line of fields for each rating.
    Fields {
        /// Between the fields.
        separator: Separator,
        /// Names of row, column and value; `None` if they are the first three fields.
        names: Option<[String; 3]>,
        /// There are other fields, which are not used.
        has_more: bool,
    },
    /// MatrixMarket coordinate format, ids from 1.
    MatrixMarket {
        /// An entry stands for its mirror, too.
        is_symmetric: bool,
    },
}

impl std::fmt::Display for RatingFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fields { separator, names: None, has_more } => {
                write!(f, "u i r{} by {separator}", if *has_more { " time" } else { "" })
            }
            Self::Fields { separator, names: Some([row, column, value]), .. } => {
                write!(f, "{row}, {column}, {value} by {separator}")
            }
            Self::MatrixMarket { is_symmetric: false } => f.write_str("MatrixMarket"),
            Self::MatrixMarket { is_symmetric: true } => f.write_str("MatrixMarket, symmetric"),
        }
    }
}

/// A fault of a line: the byte, from 1, and what is wrong.
pub(crate) type Fault = (u64, RatingFault);

/// Takes a rating, or refuses it.
pub(crate) type Take<'a> = dyn FnMut(Rating<'_>) -> Result<(), RatingFault> + 'a;

/// The reason why reading stops.
pub(crate) enum Stop {
    Io(io::Error),
    /// The names in the line that was read last do not say which column is which.
    Columns(UnknownColumns),
    /// In the line that was read last.
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The id of a row or column in a file of ratings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RatingId<'a> {
    /// A decimal number up to 2^64 - 1, written without sign and leading zeros.
    Number(u64),
    /// Anything else, as it is written.
    Name(&'a str),
}

impl fmt::Display for RatingId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl<'a> RatingId<'a> {
    /// Returns the id that is written so.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        whole_number(text.as_bytes()).map_or(Self::Name(text), Self::Number)
    }

    /// Passes the bytes that it is written by.
    pub(crate) fn with_name<T>(self, take: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Name(name) => take(name.as_bytes()),
            Self::Number(number) => {
                let mut digits = [0; DIGITS_MAX];
                let mut rest = digits.as_mut_slice();
                write!(rest, "{number}").expect("no number of 64 bits has more digits");
                let len = DIGITS_MAX - rest.len();
                take(&digits[..len])
            }
        }
    }
}

/// Returns the number that is written so, if there is no other way to write it.
pub(super) fn whole_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > DIGITS_MAX || (text[0] == b'0' && text.len() > 1) {
        return None;
    }
    let digit = |number: u64, byte: &u8| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    };
    text.iter().try_fold(0, digit)
}

/// Bytes of a line; what is longer is no line of ratings, and is not gathered in memory.
pub(super) const LINE_BYTES_MAX: usize = 1 << 16;

/// Of 2^64 - 1.
const DIGITS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_as_a_number_is_one_and_all_else_is_kept() {
        for (text, expected) in [("0", 0), ("7", 7), ("18446744073709551615", u64::MAX)] {
            assert_eq!(RatingId::of(text), RatingId::Number(expected));
        }
        for text in
            ["", "00", "007", "-1", "+1", "1.0", "18446744073709551616", "034545104X", "a b"]
        {
            assert_eq!(RatingId::of(text), RatingId::Name(text));
        }
        for text in ["0", "10", "18446744073709551615", "x", ""] {
            let id = RatingId::of(text);
            assert_eq!(id.with_name(<[u8]>::to_vec), text.as_bytes());
            assert_eq!(id.to_string(), text);
        }
    }
}
