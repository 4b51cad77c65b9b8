//! Files of triples: names (`h r t`, by tabs or spaces) or integer ids (`.del`, with lists of names beside them).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use crate::data::lines::{Field, fields, id, lines};
use crate::data::{DataError, Malformation};

/// A triple as read: indices into the names.
pub(crate) type RawTriple = [u32; 3];

/// The names of entities or relations while files are read.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary<'a> {
    pub(crate) names: Vec<&'a [u8]>,
    index: HashMap<&'a [u8], u32>,
}

impl<'a> Vocabulary<'a> {
    /// The index of a name, which is added if it is new; `None` once there are 2^32 names.
    fn index_of(&mut self, name: &'a [u8]) -> Option<u32> {
        match self.index.entry(name) {
            Entry::Occupied(entry) => Some(*entry.get()),
            Entry::Vacant(entry) => {
                let index = u32::try_from(self.names.len()).ok()?;
                self.names.push(name);
                Some(*entry.insert(index))
            }
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

/// The bytes of one file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    bytes: Vec<u8>,
}

impl File {
    /// Reads the first of `<folder>/<stem>.<ending>` that exists, `None` if none does.
    pub(crate) fn find(folder: &Folder<'_>, stem: &str, endings: &[&str]) -> Result<Option<Self>, DataError> {
        for ending in endings {
            let path = folder.path.join(stem).with_extension(ending);
            if let Some(bytes) = (folder.read)(&path)? {
                return Ok(Some(Self { path, bytes }));
            }
        }
        Ok(None)
    }

    /// Parses every line, with the error located.
    fn parse<'a, T>(
        &'a self,
        mut line: impl FnMut(&'a [u8]) -> Result<T, (u64, Malformation)>,
    ) -> Result<Vec<T>, DataError> {
        let located = |(number, bytes)| {
            let malformed = |(column, reason)| self.malformed(number, column, reason);
            line(bytes).map_err(malformed)
        };
        lines(&self.bytes).map(located).collect()
    }

    fn malformed(&self, line: u64, column: u64, reason: Malformation) -> DataError {
        DataError::Malformed { path: self.path.clone(), line, column, reason }
    }

    /// Reads `h r t` names.
    pub(crate) fn names<'a>(
        &'a self,
        entities: &mut Vocabulary<'a>,
        relations: &mut Vocabulary<'a>,
    ) -> Result<Vec<RawTriple>, DataError> {
        self.parse(|line| {
            let [head, relation, tail] = fields::<3>(line)?;
            let index = |vocabulary: &mut Vocabulary<'a>, field: Field<'a>| {
                vocabulary.index_of(field.bytes).ok_or((field.column, Malformation::IdOutOfRange))
            };
            let head = index(entities, head)?;
            Ok([head, index(relations, relation)?, index(entities, tail)?])
        })
    }

    /// Reads `h r t` ids; each has to be below its limit, if there is one.
    pub(crate) fn ids(&self, limits: [Option<u32>; 3]) -> Result<Vec<RawTriple>, DataError> {
        self.parse(|line| {
            let mut triple = [0; 3];
            for ((field, limit), cell) in fields::<3>(line)?.into_iter().zip(limits).zip(&mut triple) {
                *cell = id(field)?;
                if limit.is_some_and(|limit| *cell >= limit) {
                    return Err((field.column, Malformation::IdOutOfRange));
                }
            }
            Ok(triple)
        })
    }

    /// Reads a list of `id TAB name` in any order, which has to name every id from 0 once.
    pub(crate) fn id_names(&self) -> Result<Vec<&[u8]>, DataError> {
        let count = lines(&self.bytes).count();
        let mut names: Vec<Option<&[u8]>> = vec![None; count];
        self.parse(|line| {
            let [number, name] = fields::<2>(line)?;
            let index = id(number)?;
            let place = names.get_mut(index as usize).ok_or((number.column, Malformation::IdOutOfRange))?;
            if place.replace(name.bytes).is_some() {
                return Err((number.column, Malformation::DuplicateId));
            }
            Ok(())
        })?;
        // As many different ids below the count as there are lines: all of them.
        Ok(names.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        File { path: PathBuf::from("x.del"), bytes: bytes.to_vec() }
    }

    #[test]
    fn names_get_indices_by_first_appearance() {
        let (mut entities, mut relations) = (Vocabulary::default(), Vocabulary::default());
        let file = file(b"b r a\na r b\nb q b\n");
        let triples = file.names(&mut entities, &mut relations).expect("well formed");
        assert_eq!(triples, [[0, 0, 1], [1, 0, 0], [0, 1, 0]]);
        assert_eq!(entities.names, [b"b", b"a"]);
    }

    #[test]
    fn a_malformed_line_is_named_with_file_line_and_column() {
        let error = file(b"1\t2\t3\n\n1\t2\tx\n").ids([None; 3]).expect_err("x is no id");
        assert_eq!(error.to_string().split(": ").next(), Some("x.del:3:5"));
        let error = file(b"0 0 7\n").ids([Some(7), Some(1), Some(7)]).expect_err("too large");
        let reason = Malformation::IdOutOfRange;
        assert_eq!(error, DataError::Malformed { path: "x.del".into(), line: 1, column: 5, reason });
    }

    #[test]
    fn a_list_of_names_has_each_id_once() {
        assert_eq!(file(b"1\tb c\n0\ta\n").id_names(), Ok(vec![b"a".as_slice(), b"b c"]));
        let reason = |bytes: &[u8]| match file(bytes).id_names() {
            Err(DataError::Malformed { reason, .. }) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(reason(b"0\ta\n0\tb\n"), Malformation::DuplicateId);
        assert_eq!(reason(b"0\ta\n2\tb\n"), Malformation::IdOutOfRange);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), soup in "[0-9 \t\n\ra]{0,80}") {
            for file in [file(&bytes), file(soup.as_bytes())] {
                let _ = file.names(&mut Vocabulary::default(), &mut Vocabulary::default());
                let _ = file.ids([None, Some(3), None]);
                let _ = file.id_names();
            }
        }
    }
}
