//! Files of ratings: a row, a column and a value per line, in the forms such data is found in.
//!
//! | form | recognised by |
//! | --- | --- |
//! | fields between tabs, `;` or `,`, quoted or not (`"a;b"`, `"a ""b"""`) | three fields between them in the first line |
//! | `u::i::r::time`, MovieLens `ratings.dat` | `::` in the first line |
//! | fields between runs of spaces and tabs: `u i r`, MovieLens `u.data` | nothing else fits |
//! | MatrixMarket coordinate, real or integer, general or symmetric | its banner |
//!
//! Lines of comments (`#`, `%`) may stand at the top. A line with such a sign that has the form of
//! a rating, with an id such as `#cats`, is no comment, unless a space follows the sign. A first
//! line of names says which column is which, in any order (`columns`); without one, the first three
//! are row, column and value, and a fourth is a time, which is not used. A value is a finite number
//! with a decimal point or, in files where commas do not separate fields, a decimal comma. An id is
//! a number or a name, any text ([`RatingId`]).
//!
//! A file is read as a stream, one line in memory at a time. The caller maps ids to indices.

use std::io::{BufRead, Cursor, Read as _};
use std::path::Path;

use crate::data::bytes;
use crate::data::error::{DataError, Malformation};

mod columns;
mod form;
mod matrix_market;
mod preamble;
mod rating;
mod records;
mod text;

use form::Form;
pub use form::Separator;
use preamble::Preamble;
pub(crate) use preamble::names_ratings;
pub(crate) use rating::Rating;
pub use rating::{RatingFormat, RatingId};
use rating::{Stop, Take};
use records::{Lines, Split};
pub(crate) use records::{Records, Separated};

/// The form that a file was read in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) format: RatingFormat,
    /// Lines of comments at the top, which are left out.
    pub(crate) comments: u64,
}

/// Passes every rating of a file to `each`, which may refuse an id; `path` is for errors. Returns
/// the form that was found.
///
/// # Errors
///
/// If the file cannot be read or is malformed, with line and column. An empty file is no error:
/// count the calls of `each`.
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

/// Like [`read`]; after an error `line` is its line.
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

#[cfg(test)]
mod tests;
