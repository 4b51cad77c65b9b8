//! Ratings as a MatrixMarket file: a banner, comments, a line of sizes, an entry per line with ids from 1.
//!
//! A symmetric matrix lists one of each pair of mirrored entries: both count. A pattern has no values and is refused, as
//! are complex, skew-symmetric and Hermitian matrices and arrays without ids.

use std::io::BufRead;

use super::text::{Field, Separator, UNTIMED, check_count, id, number, split};
use super::{Fault, Lines, Rating, RatingFault, RatingFormat, Stop};

/// Whether a line is the first of such a file, well formed or not.
pub(super) fn is_banner(line: &[u8]) -> bool {
    line.get(..BANNER.len()).is_some_and(|start| start.eq_ignore_ascii_case(BANNER))
}

/// What the header declares.
struct Header {
    rows: u64,
    columns: u64,
    entries: u64,
    is_symmetric: bool,
}

/// Reads a file whose banner is the current line.
pub(super) fn read<R: BufRead>(
    lines: &mut Lines<R>,
    each: &mut dyn FnMut(Rating) -> Result<(), RatingFault>,
) -> Result<RatingFormat, Stop> {
    let is_symmetric = is_symmetric(&lines.line)?;
    let Header { rows, columns, entries, is_symmetric } = sizes(lines, is_symmetric)?;
    let mut found = 0;
    while next(lines)?.is_some() {
        if found == entries {
            return Err((1, RatingFault::MoreEntries { declared: entries }).into());
        }
        found += 1;
        let [row, column, value] = three(&lines.line)?;
        let (row, column) = (inside(row, rows)?, inside(column, columns)?);
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

fn is_symmetric(banner: &[u8]) -> Result<bool, Fault> {
    let (words, count) = split::<5>(banner, Separator::Blank)?;
    check_count(banner, &words, count, 5)?;
    let refuse_unless = |word: &Field<'_>, known: &[&str]| {
        let is_known = known.iter().any(|known| word.bytes.eq_ignore_ascii_case(known.as_bytes()));
        if is_known { Ok(()) } else { Err((word.column, RatingFault::UnsupportedMatrix)) }
    };
    let [_, object, format, field, symmetry] = &words;
    refuse_unless(object, &["matrix"])?;
    refuse_unless(format, &["coordinate"])?;
    refuse_unless(field, &["real", "double", "integer"])?;
    refuse_unless(symmetry, &["general", "symmetric"])?;
    Ok(symmetry.bytes.eq_ignore_ascii_case(b"symmetric"))
}

fn sizes<R: BufRead>(lines: &mut Lines<R>, is_symmetric: bool) -> Result<Header, Stop> {
    if next(lines)?.is_none() {
        return Err((1, RatingFault::NoSizes).into());
    }
    let fields = three(&lines.line).map_err(|(column, _)| (column, RatingFault::NoSizes))?;
    let [rows, columns, entries] = fields;
    let header = Header { rows: id(rows)?, columns: id(columns)?, entries: id(entries)?, is_symmetric };
    if u128::from(header.entries) > u128::from(header.rows) * u128::from(header.columns) {
        return Err((entries.column, RatingFault::TooManyForSizes).into());
    }
    if is_symmetric && header.rows != header.columns {
        return Err((columns.column, RatingFault::UnsupportedMatrix).into());
    }
    Ok(header)
}

/// Goes to the next line that is no comment.
fn next<R: BufRead>(lines: &mut Lines<R>) -> Result<Option<()>, Stop> {
    while lines.next()?.is_some() {
        if lines.line.first() != Some(&b'%') {
            return Ok(Some(()));
        }
    }
    Ok(None)
}

fn three(line: &[u8]) -> Result<[Field<'_>; UNTIMED], Fault> {
    let (fields, count) = split::<{ UNTIMED + 1 }>(line, Separator::Blank)?;
    check_count(line, &fields, count, UNTIMED)?;
    let [first, second, third, _] = fields;
    Ok([first, second, third])
}

fn inside(field: Field<'_>, size: u64) -> Result<u64, Fault> {
    let id = id(field)?;
    if (1..=size).contains(&id) { Ok(id) } else { Err((field.column, RatingFault::OutsideOfMatrix { size })) }
}

const BANNER: &[u8] = b"%%MatrixMarket";
