//! Ratings as lines of fields: `u i r`, with a time or without.

use std::fmt;
use std::io::BufRead;
use std::str;

use memchr::{memchr, memmem};

use super::{Fault, Lines, Rating, RatingFault, RatingFormat, Stop};

/// What stands between the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Separator {
    /// Spaces or tabs, any number of them.
    Blank,
    /// A comma, with or without blanks around it.
    Comma,
    /// `::`, as in MovieLens.
    DoubleColon,
}

impl fmt::Display for Separator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blank => "blanks",
            Self::Comma => "commas",
            Self::DoubleColon => "::",
        })
    }
}

/// The form of a file without a line.
pub(super) const EMPTY: RatingFormat =
    RatingFormat::Fields { separator: Separator::Blank, is_timed: false, has_names: false };

/// A field, and the byte of the line at which it starts, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) column: u64,
}

/// Reads a file whose first line is the current one.
pub(super) fn read<R: BufRead>(
    lines: &mut Lines<R>,
    each: &mut dyn FnMut(Rating) -> Result<(), RatingFault>,
) -> Result<RatingFormat, Stop> {
    let separator = separator_of(&lines.line);
    let has_names = names_fields(&lines.line, separator);
    if has_names && lines.next()?.is_none() {
        return Ok(EMPTY);
    }
    let fields = split::<TIMED>(&lines.line, separator)?.1.clamp(UNTIMED, TIMED);
    loop {
        let line = &lines.line;
        let (found, count) = split::<TIMED>(line, separator)?;
        check_count(line, &found, count, fields)?;
        let [row, column, value, _] = found;
        let rating = Rating { row: id(row)?, column: id(column)?, value: number(value)? };
        each(rating).map_err(|fault| (1, fault))?;
        if lines.next()?.is_none() {
            return Ok(RatingFormat::Fields { separator, is_timed: fields == TIMED, has_names });
        }
    }
}

fn separator_of(line: &[u8]) -> Separator {
    if memmem::find(line, b"::").is_some() {
        Separator::DoubleColon
    } else if memchr(b',', line).is_some() {
        Separator::Comma
    } else {
        Separator::Blank
    }
}

/// Whether the first line holds names: none of its first three fields looks like a number.
fn names_fields(line: &[u8], separator: Separator) -> bool {
    let is_name = |field: &Field<'_>| {
        field.bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'"')
    };
    matches!(split::<TIMED>(line, separator), Ok((found, count))
        if count >= UNTIMED && found[..UNTIMED].iter().all(is_name))
}

/// The fields of a line, at most `N` of them, and how many there are, counted up to `N + 1`.
pub(super) fn split<const N: usize>(
    line: &[u8],
    separator: Separator,
) -> Result<([Field<'_>; N], usize), Fault> {
    let (mut found, mut count, mut start) = ([Field::default(); N], 0, 0);
    loop {
        let rest = &line[start..];
        let (len, behind) = match separator {
            Separator::Blank => {
                let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                start += blanks;
                let len = rest[blanks..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
                if len == 0 {
                    return Ok((found, count));
                }
                (len, (start + len < line.len()).then_some(start + len))
            }
            Separator::Comma => {
                let end = memchr(b',', rest);
                (end.unwrap_or(rest.len()), end.map(|end| start + end + 1))
            }
            Separator::DoubleColon => {
                let end = memmem::find(rest, b"::");
                (end.unwrap_or(rest.len()), end.map(|end| start + end + 2))
            }
        };
        let bytes = &line[start..start + len];
        let trimmed = bytes.trim_ascii();
        let column = (start + (bytes.len() - bytes.trim_ascii_start().len()) + 1) as u64;
        if trimmed.is_empty() {
            return Err((column, RatingFault::EmptyField));
        }
        count += 1;
        let Some(place) = found.get_mut(count - 1) else { return Ok((found, count)) };
        *place = Field { bytes: trimmed, column };
        let Some(behind) = behind else { return Ok((found, count)) };
        start = behind;
    }
}

/// Checks that a line has as many fields as it should.
pub(super) fn check_count(
    line: &[u8],
    found: &[Field<'_>],
    count: usize,
    expected: usize,
) -> Result<(), Fault> {
    if count < expected {
        return Err((line.len() as u64 + 1, RatingFault::TooFewFields { found: count, expected }));
    }
    if count > expected {
        // Where the surplus begins is known if the splitter has kept it; else it is behind all it kept.
        let behind = || found.last().map_or(1, |last| last.column + last.bytes.len() as u64);
        let column = found.get(expected).map_or_else(behind, |field| field.column);
        return Err((column, RatingFault::TooManyFields { expected }));
    }
    Ok(())
}

/// Parses the id in a field.
pub(super) fn id(field: Field<'_>) -> Result<u64, Fault> {
    let fault = |fault| Err((field.column, fault));
    if field.bytes.iter().all(u8::is_ascii_digit) {
        let digit = |id: Option<u64>, byte: &u8| id?.checked_mul(10)?.checked_add(u64::from(byte - b'0'));
        return field.bytes.iter().fold(Some(0), digit).map_or(fault(RatingFault::IdTooLarge), Ok);
    }
    match field.bytes {
        [b'-', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => fault(RatingFault::NegativeId),
        _ => fault(RatingFault::NotAnId),
    }
}

/// Parses the value in a field.
pub(super) fn number(field: Field<'_>) -> Result<f32, Fault> {
    let text = str::from_utf8(field.bytes).map_err(|_| (field.column, RatingFault::NotANumber))?;
    match text.parse::<f32>() {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err((field.column, RatingFault::NotFinite)),
        Err(_) => Err((field.column, RatingFault::NotANumber)),
    }
}

/// Fields of a rating without its time, and with it.
pub(super) const UNTIMED: usize = 3;
const TIMED: usize = 4;
