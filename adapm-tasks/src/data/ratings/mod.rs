//! Files of ratings: a row, a column and a value per line, in the forms such data is found in.
//!
//! | form | recognised by |
//! | --- | --- |
//! | `u i r`, separated by spaces or tabs; MovieLens `u.data` has the time as a fourth field | nothing else fits |
//! | `u,i,r` with a time or without, below a line of names or not: MovieLens `ratings.csv` | a comma in the first line |
//! | `u::i::r::time`, MovieLens `ratings.dat` | `::` in the first line |
//! | MatrixMarket coordinate, real or integer, general or symmetric | its banner |
//!
//! A file is read as a stream, one line in memory at a time. Ids are decimal numbers up to 2^64 - 1, as they come: whoever
//! reads maps them. Values are finite.

use std::io::{self, BufRead, Read as _};
use std::path::Path;

use crate::data::{DataError, Malformation, bytes};

mod fault;
mod matrix_market;
mod text;

pub use fault::RatingFault;
pub use text::Separator;

/// A value with the ids of its row and column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rating {
    pub(crate) row: u64,
    pub(crate) column: u64,
    pub(crate) value: f32,
}

/// The form of a file of ratings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RatingFormat {
    /// A line of fields for each rating.
    Fields {
        /// Between the fields.
        separator: Separator,
        /// There is a fourth field, a time, which is not used.
        is_timed: bool,
        /// The first line names the fields.
        has_names: bool,
    },
    /// MatrixMarket coordinate format, ids from 1.
    MatrixMarket {
        /// An entry stands for its mirror, too.
        is_symmetric: bool,
    },
}

impl std::fmt::Display for RatingFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Fields { separator, is_timed, has_names } => {
                write!(f, "u i r{} by {separator}", if is_timed { " time" } else { "" })?;
                f.write_str(if has_names { " below names" } else { "" })
            }
            Self::MatrixMarket { is_symmetric: false } => f.write_str("MatrixMarket"),
            Self::MatrixMarket { is_symmetric: true } => f.write_str("MatrixMarket, symmetric"),
        }
    }
}

/// Where in a line something is wrong: the byte, from 1, and what.
type Fault = (u64, RatingFault);

/// Passes every rating of a file to `each`, which may refuse an id; `path` is for errors. Gives the form found.
///
/// # Errors
///
/// What cannot be read or is malformed, with line and column. An empty file is none: see how many came.
pub(crate) fn read<R: BufRead>(
    source: R,
    path: &Path,
    each: &mut dyn FnMut(Rating) -> Result<(), RatingFault>,
) -> Result<RatingFormat, DataError> {
    let mut lines = Lines { source, line: Vec::new(), number: 0 };
    let format = match lines.next() {
        Err(error) => Err(error),
        Ok(None) => Ok(text::EMPTY),
        Ok(Some(())) if matrix_market::is_banner(&lines.line) => matrix_market::read(&mut lines, each),
        Ok(Some(())) => text::read(&mut lines, each),
    };
    format.map_err(|error| match error {
        Stop::Io(error) => bytes::failure(path, &error),
        Stop::Fault((column, fault)) => DataError::Malformed {
            path: path.to_path_buf(),
            line: lines.number,
            column,
            reason: Malformation::Rating(fault),
        },
    })
}

/// Why reading stops.
enum Stop {
    Io(io::Error),
    /// In the line that was read last.
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The lines that are not blank, one at a time.
struct Lines<R> {
    source: R,
    /// The current line without its end (`\n` or `\r\n`) and byte order mark.
    line: Vec<u8>,
    /// Its number, from 1.
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Goes to the next line that is not blank, `None` at the end.
    fn next(&mut self) -> Result<Option<()>, Stop> {
        loop {
            self.line.clear();
            let mut bounded = (&mut self.source).take(LINE_BYTES_MAX);
            let read = bounded.read_until(b'\n', &mut self.line).map_err(Stop::Io)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
                if self.line.last() == Some(&b'\r') {
                    self.line.pop();
                }
            } else if read as u64 == LINE_BYTES_MAX {
                return Err((LINE_BYTES_MAX, RatingFault::LineTooLong).into());
            }
            if self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
                self.line.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(()));
            }
        }
    }
}

/// Bytes of a line; what is longer is no line of ratings, and is not gathered in memory.
const LINE_BYTES_MAX: u64 = 1 << 16;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests;
