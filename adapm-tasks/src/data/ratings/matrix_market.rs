//! Ratings as a MatrixMarket file: a banner, comments, a line of sizes, an entry per line with ids
//! from 1.
//!
//! A symmetric matrix lists one of each pair of mirrored entries: both count. A pattern has no
//! values and is refused, as are complex, skew-symmetric and Hermitian matrices and arrays without
//! ids.

use std::io::BufRead;

use crate::data::error::RatingFault;
use crate::data::ratings::rating::{Fault, Rating, RatingFormat, RatingId, Stop, Take};
use crate::data::ratings::records::{Field, Record, Records as _, Split};
use crate::data::ratings::text::number;

/// Returns true if a line is the first of such a file, well formed or not.
pub(super) fn is_banner(line: &[u8]) -> bool {
    line.get(..BANNER.len()).is_some_and(|start| start.eq_ignore_ascii_case(BANNER))
}

/// The declarations of the header.
struct Header {
    rows: u64,
    columns: u64,
    entries: u64,
    is_symmetric: bool,
}

/// Reads a file whose banner is the next line.
pub(super) fn read<R: BufRead>(
    lines: &mut Split<R>,
    each: &mut Take<'_>,
) -> Result<RatingFormat, Stop> {
    lines.next()?;
    let is_symmetric = is_symmetric(lines.record())?;
    let Header { rows, columns, entries, is_symmetric } = sizes(lines, is_symmetric)?;
    let mut found = 0;
    while next(lines)? {
        if found == entries {
            return Err((1, RatingFault::MoreEntries { declared: entries }).into());
        }
        found += 1;
        let [row, column, value] = three(lines.record())?;
        let [row, column] = [inside(row, rows)?, inside(column, columns)?].map(RatingId::Number);
        let rating = Rating { row, column, value: number(value)? };
        let refused = |fault| (1, fault);
        each(rating).map_err(refused)?;
        if is_symmetric && row != column {
            each(Rating { row: column, column: row, ..rating }).map_err(refused)?;
        }
    }
    if found < entries {
        return Err((1, RatingFault::FewerEntries { declared: entries, found }).into());
    }
    Ok(RatingFormat::MatrixMarket { is_symmetric })
}

fn is_symmetric(banner: &Record) -> Result<bool, Fault> {
    banner.check_count(5)?;
    let [object, format, field, symmetry] = [1, 2, 3, 4].map(|place| banner.field(place));
    let refuse_unless = |word: Field<'_>, known: &[&str]| {
        let is_known = known.iter().any(|known| word.bytes.eq_ignore_ascii_case(known.as_bytes()));
        if is_known { Ok(()) } else { Err((word.column, RatingFault::UnsupportedMatrix)) }
    };
    refuse_unless(object, &["matrix"])?;
    refuse_unless(format, &["coordinate"])?;
    refuse_unless(field, &["real", "double", "integer"])?;
    refuse_unless(symmetry, &["general", "symmetric"])?;
    Ok(symmetry.bytes.eq_ignore_ascii_case(b"symmetric"))
}

fn sizes<R: BufRead>(lines: &mut Split<R>, is_symmetric: bool) -> Result<Header, Stop> {
    if !next(lines)? {
        return Err((1, RatingFault::NoSizes).into());
    }
    let fields = three(lines.record()).map_err(|(column, _)| (column, RatingFault::NoSizes))?;
    let [rows, columns, entries] = fields;
    let header =
        Header { rows: id(rows)?, columns: id(columns)?, entries: id(entries)?, is_symmetric };
    if u128::from(header.entries) > u128::from(header.rows) * u128::from(header.columns) {
        return Err((entries.column, RatingFault::TooManyForSizes).into());
    }
    if is_symmetric && header.rows != header.columns {
        return Err((columns.column, RatingFault::UnsupportedMatrix).into());
    }
    Ok(header)
}

/// Goes to the next line that is no comment. Returns false at the end.
fn next<R: BufRead>(lines: &mut Split<R>) -> Result<bool, Stop> {
    while lines.next()? {
        if !lines.record().field(0).bytes.starts_with(b"%") {
            return Ok(true);
        }
    }
    Ok(false)
}

fn three(record: &Record) -> Result<[Field<'_>; 3], Fault> {
    record.check_count(3)?;
    Ok([0, 1, 2].map(|place| record.field(place)))
}

fn inside(field: Field<'_>, size: u64) -> Result<u64, Fault> {
    let id = id(field)?;
    if (1..=size).contains(&id) {
        Ok(id)
    } else {
        Err((field.column, RatingFault::OutsideOfMatrix { size }))
    }
}

/// Parses a decimal number.
fn id(field: Field<'_>) -> Result<u64, Fault> {
    let fault = |fault| Err((field.column, fault));
    if field.bytes.iter().all(u8::is_ascii_digit) {
        let digit =
            |id: Option<u64>, byte: &u8| id?.checked_mul(10)?.checked_add(u64::from(byte - b'0'));
        return field.bytes.iter().fold(Some(0), digit).map_or(fault(RatingFault::IdTooLarge), Ok);
    }
    match field.bytes {
        [b'-', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => {
            fault(RatingFault::NegativeId)
        }
        _ => fault(RatingFault::NotAnId),
    }
}

const BANNER: &[u8] = b"%%MatrixMarket";
