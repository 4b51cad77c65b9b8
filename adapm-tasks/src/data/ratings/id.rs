//! Ids of rows and columns: numbers, or names.

use std::fmt;
use std::io::Write as _;

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
    /// The id that is written so.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        number(text.as_bytes()).map_or(Self::Name(text), Self::Number)
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

/// The number that is written so, if there is no other way to write it.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > DIGITS_MAX || (text[0] == b'0' && text.len() > 1) {
        return None;
    }
    let digit = |number: u64, byte: &u8| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    };
    text.iter().try_fold(0, digit)
}

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
        for text in ["", "00", "007", "-1", "+1", "1.0", "18446744073709551616", "034545104X", "a b"] {
            assert_eq!(RatingId::of(text), RatingId::Name(text));
        }
        for text in ["0", "10", "18446744073709551615", "x", ""] {
            let id = RatingId::of(text);
            assert_eq!(id.with_name(<[u8]>::to_vec), text.as_bytes());
            assert_eq!(id.to_string(), text);
        }
    }
}
