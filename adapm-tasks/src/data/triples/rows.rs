//! Rows of names: where their fields end, which of them are head, relation and tail.

use memchr::{memchr, memchr2};

use super::header::{self, Columns};
use super::{ColumnOrder, File, Notes};
use crate::data::lines::lines;
use crate::data::ratings::{Records as _, Separated};
use crate::data::{DataError, Malformation};

/// What stands between the fields of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    /// Tabs, or spaces in a line without a tab.
    Blank,
    /// This byte, as in CSV: a field in quotes may hold it.
    Byte(u8),
}

/// Takes the names of a row; the error comes with the place it was found at: head, relation or tail.
type TakeRow<'a> = dyn FnMut([&[u8]; 3]) -> Result<(), (usize, Malformation)> + 'a;

impl File {
    /// Passes head, relation and tail of every row to `each`.
    pub(super) fn rows(
        &self,
        order: ColumnOrder,
        notes: &mut Notes,
        each: &mut TakeRow<'_>,
    ) -> Result<(), DataError> {
        let is_csv = self.path.to_string_lossy().to_ascii_lowercase().contains(".csv");
        let columns = Columns { places: order.places(), count: 3 };
        let mut rows = Rows { columns, is_first: true, notes, each };
        match separator(&self.bytes, is_csv) {
            Separator::Blank => self.blank_rows(&mut rows),
            Separator::Byte(byte) => self.csv_rows(byte, &mut rows),
        }
    }

    fn blank_rows(&self, rows: &mut Rows<'_, '_>) -> Result<(), DataError> {
        let (mut ranges, mut fields) = (Vec::new(), Vec::new());
        for (number, line) in lines(&self.bytes) {
            split(line, &mut ranges);
            fields.clear();
            fields.extend(ranges.iter().map(|(start, end)| &line[*start..*end]));
            let column = |field: usize| ranges.get(field).map_or(line.len(), |(start, _)| *start) as u64 + 1;
            rows.take(&fields).map_err(|(field, reason)| self.malformed(number, column(field), reason))?;
        }
        Ok(())
    }

    fn csv_rows(&self, separator: u8, rows: &mut Rows<'_, '_>) -> Result<(), DataError> {
        let mut records = Separated::new(self.bytes.as_slice(), separator, true, 0);
        loop {
            match records.next() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // Bytes in memory can be read; what has no end is a field in quotes.
                Err(_) => return Err(self.malformed(records.number(), 1, Malformation::BrokenName)),
            }
            let record = records.record();
            let fields: Vec<&[u8]> = (0..record.len()).map(|index| record.untrimmed(index)).collect();
            let is_broken = |field: &&[u8]| memchr2(b'\t', b'\n', field.trim_ascii()).is_some();
            let taken = match fields.iter().position(is_broken) {
                Some(field) => Err((field, Malformation::BrokenName)),
                None => rows.take(&fields),
            };
            taken.map_err(|(field, reason)| {
                self.malformed(records.number(), record.field(field).column, reason)
            })?;
        }
    }
}

/// The rows of a file while they are read.
struct Rows<'a, 'b> {
    columns: Columns,
    is_first: bool,
    notes: &'a mut Notes,
    each: &'a mut TakeRow<'b>,
}

impl Rows<'_, '_> {
    /// Takes the fields of a row; the error comes with the field it was found at.
    fn take(&mut self, fields: &[&[u8]]) -> Result<(), (usize, Malformation)> {
        if std::mem::take(&mut self.is_first)
            && let Some(columns) = header::columns(fields)
        {
            let text = |field: &[u8]| String::from_utf8_lossy(field.trim_ascii()).into_owned();
            if self.notes.header.is_none() {
                let all: Vec<String> = fields.iter().map(|field| text(field)).collect();
                self.notes.header = Some(all.join(" "));
                let is_unused = |column: &usize| !columns.places.contains(column);
                self.notes.unused = (0..fields.len()).filter(is_unused).map(|at| text(fields[at])).collect();
            }
            self.columns = columns;
            return Ok(());
        }
        let Columns { places, count } = self.columns;
        if fields.len() < count {
            return Err((fields.len(), too_few(fields.len(), count)));
        }
        if let Some(surplus) = (count..fields.len()).find(|at| !fields[*at].trim_ascii().is_empty()) {
            return Err((
                surplus,
                if count == 3 { Malformation::TooManyFields } else { too_few(fields.len(), count) },
            ));
        }
        let names = places.map(|place| fields[place].trim_ascii());
        if let Some(empty) = (0..3).find(|at| names[*at].is_empty()) {
            return Err((places[empty], Malformation::EmptyField));
        }
        let is_trimmed = |at: &usize| names[*at].len() < fields[places[*at]].len();
        self.notes.trimmed += (0..3).filter(is_trimmed).count() as u64;
        (self.each)(names).map_err(|(at, reason)| (places[at], reason))
    }
}

fn too_few(found: usize, expected: usize) -> Malformation {
    match expected {
        3 => Malformation::TooFewFields(found),
        _ => Malformation::OtherFields { found, expected },
    }
}

/// Splits a line at tabs if there is one, else at runs of spaces: start and end of each field.
fn split(line: &[u8], ranges: &mut Vec<(usize, usize)>) {
    ranges.clear();
    let is_tabbed = memchr(b'\t', line).is_some();
    let mut start = 0;
    while start <= line.len() {
        let end = memchr(if is_tabbed { b'\t' } else { b' ' }, &line[start..]);
        let end = end.map_or(line.len(), |at| start + at);
        if is_tabbed || end > start {
            ranges.push((start, end));
        }
        start = end + 1;
    }
}

/// What the first lines of a file are separated by.
fn separator(bytes: &[u8], is_csv: bool) -> Separator {
    let mut sample = lines(bytes).take(SAMPLE_LINES).peekable();
    if sample.peek().is_none_or(|(_, first)| memchr(b'\t', first).is_some()) {
        return Separator::Blank;
    }
    let (mut ranges, mut blank, mut end) = (Vec::new(), 0, 0);
    for (_, line) in sample {
        split(line, &mut ranges);
        blank += usize::from(ranges.len() == 3);
        end = line.as_ptr() as usize - bytes.as_ptr() as usize + line.len();
    }
    let bytes = &bytes[..end];
    let counted = |byte| (Separator::Byte(byte), csv_rows_alike(bytes, byte));
    let (blank, commas, semicolons) = ((Separator::Blank, blank), counted(b','), counted(b';'));
    let preferred = if is_csv { [commas, semicolons, blank] } else { [blank, commas, semicolons] };
    // The first of those that fit most lines; `max_by_key` takes the last.
    let best = preferred.into_iter().rev().max_by_key(|(_, count)| *count);
    best.map_or(Separator::Blank, |(separator, _)| separator)
}

/// Rows that have as many fields as the first one, if that has three or more.
fn csv_rows_alike(bytes: &[u8], separator: u8) -> usize {
    let mut records = Separated::new(bytes, separator, true, 0);
    let mut lens = Vec::new();
    while records.next().is_ok_and(|is_there| is_there) {
        lens.push(records.record().len());
    }
    let first = lens.first().copied().unwrap_or(0);
    if first < 3 { 0 } else { lens.into_iter().filter(|len| *len == first).count() }
}

/// Lines by which the separator is chosen.
const SAMPLE_LINES: usize = 100;
