//! Rows of names: first lines that name the columns, where fields end, which of them are head,
//! relation and tail; and the names met so far, each with the index of its first appearance
//! ([`Vocabulary`]).

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use memchr::{memchr, memchr2};

use crate::data::lines::lines;
use crate::data::names::Names;
use crate::data::ratings::{Records as _, Separated};
use crate::data::triples::{ColumnOrder, File, Notes};
use crate::data::{DataError, Malformation};

/// The separator of the fields of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    /// Tabs, or spaces in a line without a tab.
    Blank,
    /// This byte, as in CSV: a field in quotes may hold it.
    Byte(u8),
}

/// Takes the names of a row; the error comes with the place it was found at: head, relation or
/// tail.
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
            let column =
                |field: usize| ranges.get(field).map_or(line.len(), |(start, _)| *start) as u64 + 1;
            rows.take(&fields)
                .map_err(|(field, reason)| self.malformed(number, column(field), reason))?;
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
                Err(_) => {
                    return Err(self.malformed(records.number(), 1, Malformation::BrokenName));
                }
            }
            let record = records.record();
            let fields: Vec<&[u8]> =
                (0..record.len()).map(|index| record.untrimmed(index)).collect();
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
            && let Some(columns) = columns(fields)
        {
            let text = |field: &[u8]| String::from_utf8_lossy(field.trim_ascii()).into_owned();
            if self.notes.header.is_none() {
                let all: Vec<String> = fields.iter().map(|field| text(field)).collect();
                self.notes.header = Some(all.join(" "));
                let is_unused = |column: &usize| !columns.places.contains(column);
                self.notes.unused =
                    (0..fields.len()).filter(is_unused).map(|at| text(fields[at])).collect();
            }
            self.columns = columns;
            return Ok(());
        }
        let Columns { places, count } = self.columns;
        if fields.len() < count {
            return Err((fields.len(), too_few(fields.len(), count)));
        }
        if let Some(surplus) = (count..fields.len()).find(|at| !fields[*at].trim_ascii().is_empty())
        {
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

/// Guesses the separator from the first lines of a file.
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

/// The columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Those of head, relation and tail, from 0.
    pub(super) places: [usize; 3],
    /// Their number.
    pub(super) count: usize,
}

/// Returns the columns that a first line names; `None` if it holds a triple.
pub(super) fn columns(fields: &[&[u8]]) -> Option<Columns> {
    let names: Vec<Vec<u8>> = fields.iter().map(|field| plain(field)).collect();
    let only = |known: &[&str]| {
        let is_known = |name: &[u8]| known.iter().any(|known| known.as_bytes() == name);
        let mut found = (0..names.len()).filter(|column| is_known(&names[*column]));
        found.next().filter(|_| found.next().is_none())
    };
    let relation = only(&RELATIONS)?;
    let ends = ENDS.iter().find_map(|(heads, tails)| only(heads).zip(only(tails)));
    let (head, tail) = ends.or_else(|| {
        let all = |ends: fn(&Ends) -> &'static [&'static str]| {
            ENDS.iter().flat_map(ends).copied().collect::<Vec<_>>()
        };
        only(&all(|ends| ends.0)).zip(only(&all(|ends| ends.1)))
    })?;
    Some(Columns { places: [head, relation, tail], count: fields.len() })
}

/// Returns a name in small letters, without signs and what may follow it.
fn plain(name: &[u8]) -> Vec<u8> {
    let letters =
        name.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase);
    let name: Vec<u8> = letters.collect();
    ENDINGS.iter().find_map(|ending| name.strip_suffix(*ending)).unwrap_or(&name).to_vec()
}

/// Names of heads, and of the tails that go with them.
type Ends = (&'static [&'static str], &'static [&'static str]);

/// The names of entities or relations while files are read.
#[derive(Default)]
pub(crate) struct Vocabulary {
    names: Names,
    index: HashTable<u32>,
    /// Files choose the names, so not they decide where names collide.
    hasher: RandomState,
}

impl Vocabulary {
    /// Returns the index of a name, which is added if it is new; `None` once there are 2^32 names.
    pub(super) fn index_of(&mut self, name: &[u8]) -> Option<u32> {
        if let Some(index) = self.find(name) {
            return Some(index);
        }
        let index = u32::try_from(self.names.len()).ok()?;
        self.names.push(name);
        let Self { names, index: table, hasher } = self;
        let hash = |index: &u32| hasher.hash_one(names.bytes(*index as usize).unwrap_or_default());
        table.insert_unique(hasher.hash_one(name), index, hash);
        Some(index)
    }

    /// Returns the index of a name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<u32> {
        let is_it = |index: &u32| self.names.bytes(*index as usize) == Some(name);
        self.index.find(self.hasher.hash_one(name), is_it).copied()
    }

    /// Returns the names by index.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Returns the names by index, and nothing else.
    pub(crate) fn into_names(self) -> Names {
        self.names
    }
}

/// Lines by which the separator is chosen.
const SAMPLE_LINES: usize = 100;

/// In small letters. A `source` beside `head` and `tail` is where a fact is from.
const ENDS: [Ends; 5] = [
    (&["h", "head"], &["t", "tail"]),
    (&["s", "sub", "subj", "subject"], &["o", "ob", "obj", "object"]),
    (&["src", "source"], &["dst", "dest", "destination", "target"]),
    (&["from"], &["to"]),
    (&["start"], &["end"]),
];

/// Names of relations.
const RELATIONS: [&str; 13] = [
    "r",
    "rel",
    "relation",
    "relationship",
    "relationtype",
    "reltype",
    "p",
    "pred",
    "predicate",
    "property",
    "edge",
    "edgetype",
    "type",
];

/// Endings that may follow such a name.
const ENDINGS: [&[u8]; 4] = [b"entity", b"name", b"id", b"label"];

#[cfg(test)]
mod tests {
    use super::*;

    fn places(line: &str) -> Option<[usize; 3]> {
        let fields: Vec<&[u8]> = line.split(',').map(str::as_bytes).collect();
        columns(&fields).map(|columns| columns.places)
    }

    #[test]
    fn names_of_columns_say_which_is_which() {
        for line in
            ["head,relation,tail", "subject,predicate,object", "h,r,t", "S,P,O", "from,rel,to"]
        {
            assert_eq!(places(line), Some([0, 1, 2]), "{line}");
        }
        assert_eq!(places("Head_Entity,Tail_Entity,Relation Type"), Some([0, 2, 1]));
        assert_eq!(places("head_id,tail_id,relation_id"), Some([0, 2, 1]));
        assert_eq!(places(":START_ID,:END_ID,:TYPE"), Some([0, 2, 1]));
        assert_eq!(places("id,object,weight,subject,predicate"), Some([3, 4, 1]));
        assert_eq!(places("object,subject,predicate,source"), Some([1, 2, 0]));
        assert_eq!(places("subject,relation,tail"), Some([0, 1, 2]));
    }

    #[test]
    fn triples_are_no_names_of_columns() {
        for line in [
            "a,r,b",
            "head,head,tail",
            "Oslo,capital of,Norway",
            "head,relation",
            "subject,is,object",
        ] {
            assert_eq!(places(line), None, "{line}");
        }
    }
}
