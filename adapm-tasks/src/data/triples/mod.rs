//! Files of triples: names or integer ids, three to a line.
//!
//! | form | recognised by |
//! | --- | --- |
//! | names between tabs, or between spaces where a line has no tab | nothing else fits |
//! | names between commas or semicolons, in quotes or not (CSV) | the lines have three such fields |
//! | integer ids (`.del`, as LibKGE writes them), with lists `id name` beside them | the ending |
//! | OpenKE's ids (`train2id.txt`), `h t r` after a line with their number | asked for, see [`ColumnOrder`] |
//!
//! The columns are `h r t`, or as asked for, or as a first line of names says
//! (`head,relation,tail`), which is skipped; columns that it names beside the three are not used.
//! Blanks at the ends of a name do not belong to it.

use std::path::{Path, PathBuf};

use crate::data::lines::{Field, fields, id, lines};
use crate::data::{DataError, Malformation, bytes};
use crate::run::config::named;

mod rows;

pub(crate) use rows::Vocabulary;

/// A triple as read: indices into the names, of head, relation and tail.
pub(crate) type RawTriple = [u32; 3];

/// The order of the columns of files whose first line does not name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnOrder {
    /// Head, relation, tail.
    #[default]
    Hrt,
    /// Head, tail, relation, as OpenKE and its kin have them.
    Htr,
}

named!(ColumnOrder, ColumnOrder::Hrt => "hrt", ColumnOrder::Htr => "htr");

impl ColumnOrder {
    /// Returns the columns of head, relation and tail.
    fn places(self) -> [usize; 3] {
        match self {
            Self::Hrt => [0, 1, 2],
            Self::Htr => [0, 2, 1],
        }
    }
}

/// A folder of files, on disk or not.
pub(crate) struct Folder<'a> {
    pub(crate) path: &'a Path,
    /// The bytes of a file, `None` if it does not exist.
    pub(crate) read: &'a ReadFile<'a>,
}

/// Reads a file.
type ReadFile<'a> = dyn Fn(&Path) -> Result<Option<Vec<u8>>, DataError> + 'a;

/// Findings of reading files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Names with blanks at an end.
    pub(crate) trimmed: u64,
    /// The first line of names that was skipped.
    pub(crate) header: Option<String>,
    /// Columns that it names beside the three.
    pub(crate) unused: Vec<String>,
}

/// The bytes of one file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    bytes: Vec<u8>,
}

impl File {
    /// Reads the file at `path`, `None` if there is none.
    pub(crate) fn at(folder: &Folder<'_>, path: PathBuf) -> Result<Option<Self>, DataError> {
        Ok((folder.read)(&path)?.map(|mut bytes| {
            bytes.drain(..bytes.len() - bytes::without_mark(&bytes).len());
            Self { path, bytes }
        }))
    }

    /// Reads the first of `<folder>/<stem>.<ending>` that exists, compressed (`.gz`) or not; `None`
    /// if none does.
    pub(crate) fn find(
        folder: &Folder<'_>,
        stems: &[&str],
        endings: &[&str],
    ) -> Result<Option<Self>, DataError> {
        let named = |stem: &str| {
            let all =
                endings.iter().flat_map(|ending| [(*ending).to_owned(), format!("{ending}.gz")]);
            all.map(|ending| folder.path.join(format!("{stem}.{ending}"))).collect::<Vec<_>>()
        };
        for path in stems.iter().flat_map(|stem| named(stem)) {
            if let Some(file) = Self::at(folder, path)? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Reads names.
    pub(crate) fn names(
        &self,
        order: ColumnOrder,
        [entities, relations]: [&mut Vocabulary; 2],
        notes: &mut Notes,
    ) -> Result<Vec<RawTriple>, DataError> {
        let mut triples = Vec::new();
        self.rows(order, notes, &mut |[head, relation, tail]| {
            let too_many = |place| (place, Malformation::IdOutOfRange);
            let head = entities.index_of(head).ok_or_else(|| too_many(0))?;
            let relation = relations.index_of(relation).ok_or_else(|| too_many(1))?;
            triples.push([head, relation, entities.index_of(tail).ok_or_else(|| too_many(2))?]);
            Ok(())
        })?;
        Ok(triples)
    }

    /// Reads ids; each has to be below its limit, if there is one.
    pub(crate) fn ids(
        &self,
        order: ColumnOrder,
        limits: [Option<u32>; 3],
    ) -> Result<Vec<RawTriple>, DataError> {
        self.parse(&self.bytes, 0, |line| id_triple(line, order, limits))
    }

    /// Reads OpenKE's ids: their number, then as many triples in the order `h t r`.
    pub(crate) fn counted_ids(
        &self,
        limits: [Option<u32>; 3],
    ) -> Result<Vec<RawTriple>, DataError> {
        let (skipped, count, rest) = self.count()?;
        let triples =
            self.parse(rest, skipped, |line| id_triple(line, ColumnOrder::Htr, limits))?;
        self.check_count(count, triples.len())?;
        Ok(triples)
    }

    /// Reads a list of `id name` in any order, which has to name every id from 0 once.
    pub(crate) fn id_names(&self) -> Result<Vec<&[u8]>, DataError> {
        self.listed(&self.bytes, 0, |[id, name]| (id, name))
    }

    /// Reads OpenKE's list of `name id`, after a line with their number.
    pub(crate) fn counted_names(&self) -> Result<Vec<&[u8]>, DataError> {
        let (skipped, count, rest) = self.count()?;
        let names = self.listed(rest, skipped, |[name, id]| (id, name))?;
        self.check_count(count, names.len())?;
        Ok(names)
    }

    fn listed<'a>(
        &self,
        bytes: &'a [u8],
        skipped: u64,
        order: impl Fn([Field<'a>; 2]) -> (Field<'a>, Field<'a>),
    ) -> Result<Vec<&'a [u8]>, DataError> {
        let count = lines(bytes).count();
        let mut names: Vec<Option<&[u8]>> = vec![None; count];
        self.parse(bytes, skipped, |line| {
            let (number, name) = order(fields::<2>(line)?);
            let index = id(number)?;
            let place =
                names.get_mut(index as usize).ok_or((number.column, Malformation::IdOutOfRange))?;
            if place.replace(name.bytes.trim_ascii()).is_some() {
                return Err((number.column, Malformation::DuplicateId));
            }
            Ok(())
        })?;
        // As many different ids below the count as there are lines: all of them.
        Ok(names.into_iter().flatten().collect())
    }

    /// Returns the number in the first line, how many lines it takes up, and what follows it.
    fn count(&self) -> Result<(u64, u64, &[u8]), DataError> {
        let Some((number, line)) = lines(&self.bytes).next() else { return Ok((0, 0, &[])) };
        let text = str::from_utf8(line.trim_ascii()).ok();
        let count = text.and_then(|text| text.parse().ok());
        let count = count.ok_or_else(|| self.malformed(number, 1, Malformation::NotACount))?;
        let behind = line.as_ptr() as usize + line.len() - self.bytes.as_ptr() as usize;
        let end = memchr::memchr(b'\n', &self.bytes[behind..])
            .map_or(self.bytes.len(), |at| behind + at + 1);
        Ok((number, count, &self.bytes[end..]))
    }

    fn check_count(&self, said: u64, found: usize) -> Result<(), DataError> {
        if said == found as u64 {
            return Ok(());
        }
        Err(self.malformed(1, 1, Malformation::OtherCount { said, found: found as u64 }))
    }

    /// Parses every line of `bytes`, with the error located; `skipped` lines are before them.
    fn parse<'a, T>(
        &self,
        bytes: &'a [u8],
        skipped: u64,
        mut line: impl FnMut(&'a [u8]) -> Result<T, (u64, Malformation)>,
    ) -> Result<Vec<T>, DataError> {
        let located = |(number, bytes)| {
            let malformed = |(column, reason)| self.malformed(skipped + number, column, reason);
            line(bytes).map_err(malformed)
        };
        lines(bytes).map(located).collect()
    }

    fn malformed(&self, line: u64, column: u64, reason: Malformation) -> DataError {
        DataError::Malformed { path: self.path.clone(), line, column, reason }
    }
}

fn id_triple(
    line: &[u8],
    order: ColumnOrder,
    limits: [Option<u32>; 3],
) -> Result<RawTriple, (u64, Malformation)> {
    let found = fields::<3>(line)?;
    let mut triple = [0; 3];
    for ((place, limit), cell) in order.places().into_iter().zip(limits).zip(&mut triple) {
        *cell = id(found[place])?;
        if limit.is_some_and(|limit| *cell >= limit) {
            return Err((found[place].column, Malformation::IdOutOfRange));
        }
    }
    Ok(triple)
}

#[cfg(test)]
mod tests;
