//! Ratings as lines of fields; ids of rows and columns are numbers, or names.

use std::str;

use crate::data::error::RatingFault;
use crate::data::ratings::columns::Columns;
use crate::data::ratings::form::{Form, Separator};
use crate::data::ratings::rating::{
    Fault, Rating, RatingFormat, RatingId, Stop, Take, whole_number,
};
use crate::data::ratings::records::{Field, Lines, Record, Records, Separated, Split};

/// The form of a file without a line.
pub(super) const EMPTY: RatingFormat =
    RatingFormat::Fields { separator: Separator::Blank, names: None, has_more: false };

/// Reads a file of these lines. `line` becomes the number of the last.
pub(super) fn read(
    mut records: impl Records,
    separator: Separator,
    line: &mut u64,
    each: &mut Take<'_>,
) -> Result<RatingFormat, Stop> {
    let format = read_all(&mut records, separator, each);
    *line = records.number();
    format
}

fn read_all(
    records: &mut impl Records,
    separator: Separator,
    each: &mut Take<'_>,
) -> Result<RatingFormat, Stop> {
    if !records.next()? {
        return Ok(EMPTY);
    }
    let columns = columns_of(records.record())?;
    let format = RatingFormat::Fields {
        separator,
        names: columns.names.clone(),
        has_more: columns.all > NEEDED,
    };
    if columns.names.is_some() && !records.next()? {
        return Ok(format);
    }
    loop {
        let record = records.record();
        record.check_count(columns.all)?;
        let [row, column] = [columns.row, columns.column].map(|place| id(record.field(place)));
        let rating =
            Rating { row: row?, column: column?, value: number(record.field(columns.value))? };
        each(rating).map_err(|fault| (1, fault))?;
        if !records.next()? {
            return Ok(format);
        }
    }
}

/// Returns the columns of a file by its first line: names, if there is no number in it.
fn columns_of(first: &Record) -> Result<Columns, Stop> {
    let start = first.field(0);
    if start.bytes == b"[" || start.bytes.starts_with(b"{") || start.bytes.starts_with(b"[{") {
        return Err((start.column, RatingFault::Json).into());
    }
    if first.len() >= NEEDED && first.fields().all(|field| !is_number(field)) {
        return Columns::named(texts(first)).map_err(Stop::Columns);
    }
    let fields: Vec<&[u8]> = first.fields().map(|field| field.bytes).collect();
    Columns::unnamed(&fields).map_err(|fault| (fields_end(first, &fault), fault).into())
}

/// Returns the byte at which there are too few fields, or too many.
fn fields_end(first: &Record, fault: &RatingFault) -> u64 {
    let place = match fault {
        RatingFault::NoNames { .. } => NEEDED + 1,
        RatingFault::TimeBeforeValue => NEEDED - 1,
        _ => first.len(),
    };
    first.field(place).column
}

/// Returns the fields of a line as text.
pub(super) fn names_of(line: &[u8], form: Form) -> Option<Vec<String>> {
    of_first(line, form, texts)
}

/// Returns the number of fields of a line that is a rating without names of columns.
pub(super) fn rating_len(line: &[u8], form: Form) -> Option<usize> {
    let columns = |record: &Record| {
        let fields: Vec<&[u8]> = record.fields().map(|field| field.bytes).collect();
        let columns = Columns::unnamed(&fields).ok()?;
        is_number(record.field(columns.value)).then_some(columns.all)
    };
    of_first(line, form, columns).flatten()
}

/// Applies `of` to the fields of a line.
fn of_first<T>(line: &[u8], form: Form, of: impl Fn(&Record) -> T) -> Option<T> {
    let of =
        |records: &mut dyn Records| records.next().is_ok_and(|is| is).then(|| of(records.record()));
    match form {
        Form::MatrixMarket => None,
        Form::Separated { byte, is_quoted, .. } => {
            of(&mut Separated::new(line, byte, is_quoted, 0))
        }
        Form::Split(separator) => {
            of(&mut Split::new(Lines::new(line, 0), separator == Separator::DoubleColon))
        }
    }
}

/// Returns the fields of a line, to be shown on one.
fn texts(record: &Record) -> Vec<String> {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    record
        .fields()
        .map(|field| String::from_utf8_lossy(field.bytes).chars().map(shown).collect())
        .collect()
}

fn is_number(field: Field<'_>) -> bool {
    !matches!(number(field), Err((_, RatingFault::NotANumber | RatingFault::EmptyField)))
}

/// Parses the id in a field.
#[inline]
pub(super) fn id(field: Field<'_>) -> Result<RatingId<'_>, Fault> {
    if let Some(number) = whole_number(field.bytes) {
        return Ok(RatingId::Number(number));
    }
    if field.bytes.is_empty() {
        return Err((field.column, RatingFault::EmptyField));
    }
    let at = |place: usize| field.column + place as u64;
    let text = str::from_utf8(field.bytes).map_err(|error| {
        let place = error.valid_up_to();
        (at(place), RatingFault::NotUtf8 { byte: field.bytes[place] })
    })?;
    match field.bytes.iter().position(u8::is_ascii_control) {
        Some(place) => Err((at(place), RatingFault::ControlInId)),
        None => Ok(RatingId::Name(text)),
    }
}

/// Parses the value in a field, with a point or a comma before its fraction.
#[inline]
pub(super) fn number(field: Field<'_>) -> Result<f32, Fault> {
    let fault = |fault| (field.column, fault);
    if field.bytes.is_empty() {
        return Err(fault(RatingFault::EmptyField));
    }
    let not_a_number = || fault(RatingFault::NotANumber);
    let text = str::from_utf8(field.bytes).map_err(|_| not_a_number())?;
    let value = text.parse::<f32>().ok().or_else(|| with_comma(text)).ok_or_else(not_a_number)?;
    if value.is_finite() { Ok(value) } else { Err(fault(RatingFault::NotFinite)) }
}

/// Returns a number with a comma before its fraction.
fn with_comma(text: &str) -> Option<f32> {
    let (whole, fraction) = text.split_once(',')?;
    let are_digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if are_digits { format!("{whole}.{fraction}").parse().ok() } else { None }
}

/// Fields of a rating that are read.
const NEEDED: usize = 3;
