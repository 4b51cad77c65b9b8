//! Files of ratings: a row, a column and a value per line, in the forms such data is found in.
//!
//! | form | recognised by |
//! | --- | --- |
//! | fields between tabs, `;` or `,`, quoted or not (`"a;b"`, `"a ""b"""`) | three fields between them in the first line |
//! | `u::i::r::time`, MovieLens `ratings.dat` | `::` in the first line |
//! | fields between runs of spaces and tabs: `u i r`, MovieLens `u.data` | nothing else fits |
//! | MatrixMarket coordinate, real or integer, general or symmetric | its banner |
//!
//! Lines of comments (`#`, `%`) may stand at the top; one that is a rating as the others are, with
//! an id such as `#cats`, is no comment, unless a space follows the sign. A first line of names
//! says which column is which, in any order (`columns`); without one, the first three are row,
//! column and value, and a fourth is a time, which is not used. A value is a finite number with a
//! point or, where a comma separates nothing, with a comma. An id is a number or a name, any text
//! ([`RatingId`]).
//!
//! A file is read as a stream, one line in memory at a time. Whoever reads maps ids to indices.

use std::io::{self, BufRead, Cursor, Read as _};
use std::path::Path;

use crate::data::bytes::{self, HEAD_BYTES};
use crate::data::{DataError, Malformation};

mod columns;
mod matrix_market;
mod preamble;
mod records;
mod text;

pub use crate::data::error::RatingFault;
pub use columns::UnknownColumns;
pub use preamble::Separator;
pub(crate) use preamble::names_ratings;
use preamble::{Form, Lines, Preamble};
use records::Split;
pub(crate) use records::{Records, Separated};
pub use text::RatingId;

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

/// What a file was read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) format: RatingFormat,
    /// Lines of comments at the top, which are left out.
    pub(crate) comments: u64,
}

/// Where in a line something is wrong: the byte, from 1, and what.
pub(crate) type Fault = (u64, RatingFault);

/// Takes a rating, or refuses it.
type Take<'a> = dyn FnMut(Rating<'_>) -> Result<(), RatingFault> + 'a;

/// Passes every rating of a file to `each`, which may refuse an id; `path` is for errors. Gives
/// what was found.
///
/// # Errors
///
/// What cannot be read or is malformed, with line and column. An empty file is none: see how many
/// came.
pub(crate) fn read<R: BufRead>(
    source: R,
    path: &Path,
    each: &mut Take<'_>,
) -> Result<Found, DataError> {
    let mut line = 1;
    read_form(source, &mut line, each).map_err(|stop| {
        let path = path.to_path_buf();
        match stop {
            Stop::Io(error) => bytes::failure(&path, &error),
            Stop::Columns(columns) => DataError::UnknownColumns { path, line, columns },
            Stop::Fault((column, fault)) => {
                DataError::Malformed { path, line, column, reason: Malformation::Rating(fault) }
            }
        }
    })
}

/// [`read`]; `line` is the line of an error.
fn read_form<R: BufRead>(
    mut source: R,
    line: &mut u64,
    each: &mut Take<'_>,
) -> Result<Found, Stop> {
    let mut head = Vec::new();
    let Some(preamble) = Preamble::read(&mut source, &mut head, line)? else {
        return Ok(Found { format: text::EMPTY, comments: 0 });
    };
    let Preamble { skipped, lines, comments, form } = preamble;
    let source = Cursor::new(&head[skipped..]).chain(source);
    let split = |source, is_by_colons| Split::new(Lines::new(source, lines), is_by_colons);
    let format = match form {
        Form::MatrixMarket => {
            let mut records = split(source, false);
            let format = matrix_market::read(&mut records, each);
            *line = records.number();
            format
        }
        Form::Split(separator) => {
            text::read(split(source, separator == Separator::DoubleColon), separator, line, each)
        }
        Form::Separated { separator, byte, is_quoted } => {
            text::read(Separated::new(source, byte, is_quoted, lines), separator, line, each)
        }
    }?;
    Ok(Found { format, comments })
}

/// Why reading stops.
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

/// Bytes of a line; what is longer is no line of ratings, and is not gathered in memory.
const LINE_BYTES_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests;
