//! Factors of a trained model in a file.
//!
//! ```text
//!   "adapmckp" | version u32 | task: text | dim u64 | rows u64 | columns u64
//!   | ids of rows | ids of columns | digest of the training data u64 | its least and largest value f32 | floats u64 | values in key order f32 | checksum u64
//!   ids: form u64 | count u64 | 0: nothing, as the index is the id (generated ratings); 1: u64 each; 2: text each
//! ```
//!
//! Only factors are kept, no accumulators: rows first, then
//! columns. The bytes do not depend on how many nodes held the values.

use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

use crate::data::RatingId;
use crate::mf::ids::Ids;
use crate::mf::ratings::Ratings;
use crate::run::digest::Digest;
use crate::run::file::{self, CheckpointError, Fault, Reader, Writer};

/// Factors of a trained model, rows first, then columns, with what is needed to use them.
#[derive(Clone, PartialEq)]
pub struct Checkpoint {
    pub(super) dim: usize,
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) row_ids: Ids,
    pub(super) column_ids: Ids,
    /// Digest of the training data.
    pub(super) trained_on: u64,
    /// Least and largest value of the training data.
    pub(super) range: (f32, f32),
    pub(crate) values: Arc<Vec<f32>>,
}

impl fmt::Debug for Checkpoint {
    /// Sizes instead of millions of numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checkpoint of {} factors, {} rows, {} columns", self.dim, self.rows, self.columns)
    }
}

impl Checkpoint {
    /// The factors of these ratings, in key order.
    pub(crate) fn of(ratings: &Ratings, dim: usize, values: Arc<Vec<f32>>) -> Self {
        Self {
            dim,
            rows: ratings.rows.into(),
            columns: ratings.columns.into(),
            row_ids: ratings.row_ids.clone(),
            column_ids: ratings.column_ids.clone(),
            trained_on: ratings.train_digest(),
            range: ratings.range,
            values,
        }
    }

    /// Reads a file written by [`save`](Self::save).
    ///
    /// # Errors
    ///
    /// A file that is missing, foreign, truncated, damaged, of another task or of another format version.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        Self::of_bytes(&file::read(path)?, path)
    }

    /// Writes the factors in key order; the same bytes for any number of nodes. An older file of that name stays as it is
    /// until the new one is complete.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        file::save(path, |file| self.write_to(file).map(drop))
    }

    /// Number of factors of a row or column.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns as usize
    }

    /// The id of a row in the data; `None` beyond the last.
    #[must_use]
    pub fn row_id(&self, row: usize) -> Option<RatingId<'_>> {
        self.row_ids.get(row)
    }

    /// The id of a column in the data; `None` beyond the last.
    #[must_use]
    pub fn column_id(&self, column: usize) -> Option<RatingId<'_>> {
        self.column_ids.get(column)
    }

    /// The factors of a row, `None` beyond the last.
    #[must_use]
    pub fn row(&self, row: usize) -> Option<&[f32]> {
        if (row as u64) < self.rows { self.value(row) } else { None }
    }

    /// The factors of a column, `None` beyond the last.
    #[must_use]
    pub fn column(&self, column: usize) -> Option<&[f32]> {
        if (column as u64) < self.columns { self.value(self.rows as usize + column) } else { None }
    }

    /// What the bytes of the file at `path` say.
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path) -> Result<Self, CheckpointError> {
        decode(bytes).map_err(|fault| fault.at(path))
    }

    /// Checks that the factors are of the rows and columns of these ratings.
    pub(crate) fn check_data(&self, ratings: &Ratings) -> Result<(), CheckpointError> {
        let (rows, columns) = (u64::from(ratings.rows), u64::from(ratings.columns));
        let are_equal = (self.rows, self.columns) == (rows, columns)
            && (&self.row_ids, &self.column_ids) == (&ratings.row_ids, &ratings.column_ids);
        if are_equal {
            return Ok(());
        }
        Err(CheckpointError::OtherRatings { checkpoint: (self.rows, self.columns), ratings: (rows, columns) })
    }

    /// A number that differs between factors that differ.
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        digest.values(&self.values);
        digest.sum()
    }

    fn value(&self, key: usize) -> Option<&[f32]> {
        self.values.chunks_exact(self.dim).nth(key)
    }

    /// Writes the bytes of the file.
    ///
    /// # Errors
    ///
    /// What `inner` refuses.
    pub fn write_to<W: io::Write>(&self, inner: W) -> io::Result<W> {
        let mut writer = Writer::new(TASK, inner)?;
        writer.count(self.dim as u64)?;
        writer.count(self.rows)?;
        writer.count(self.columns)?;
        self.row_ids.write(&mut writer)?;
        self.column_ids.write(&mut writer)?;
        writer.count(self.trained_on)?;
        [self.range.0, self.range.1].iter().try_for_each(|bound| writer.bytes(&bound.to_le_bytes()))?;
        writer.values(&self.values)
    }
}

fn decode(bytes: &[u8]) -> Result<Checkpoint, Fault> {
    let mut reader = Reader::new(TASK, bytes)?;
    let (dim, rows, columns) = (reader.count()?, reader.count()?, reader.count()?);
    let mut ids = |len: u64| {
        let ids = Ids::read(&mut reader)?;
        if ids.len() as u64 == len { Ok(ids) } else { Err(Fault::Corrupt) }
    };
    let (row_ids, column_ids) = (ids(rows)?, ids(columns)?);
    let trained_on = reader.count()?;
    let range = (f32::from_le_bytes(reader.array()?), f32::from_le_bytes(reader.array()?));
    if range.0.is_nan() || range.1.is_nan() || range.0 > range.1 {
        return Err(Fault::Corrupt);
    }
    let values = reader.values()?;
    let floats = rows.checked_add(columns).and_then(|keys| keys.checked_mul(dim));
    if dim == 0 || floats != Some(values.len() as u64) {
        return Err(Fault::Corrupt);
    }
    let (dim, values) = (dim as usize, Arc::new(values));
    Ok(Checkpoint { dim, rows, columns, row_ids, column_ids, trained_on, range, values })
}

/// The name of the task in its files.
const TASK: &[u8] = b"mf";

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kge::Names;

    pub(in crate::mf) fn checkpoint() -> Checkpoint {
        Checkpoint {
            dim: 2,
            rows: 2,
            columns: 1,
            row_ids: Ids::Numbers(vec![7, u64::MAX]),
            column_ids: Ids::Numbers(vec![3]),
            trained_on: 17,
            range: (1.0, 5.0),
            values: Arc::new(vec![1.0, 2.0, 3.0, 4.0, 5.0, -6.0]),
        }
    }

    fn bytes(checkpoint: &Checkpoint) -> Vec<u8> {
        checkpoint.write_to(Vec::new()).expect("memory takes everything")
    }

    #[test]
    fn what_is_written_is_read() {
        let checkpoint = checkpoint();
        assert_eq!(decode(&bytes(&checkpoint)), Ok(checkpoint.clone()));
        assert_eq!((checkpoint.row(1), checkpoint.row(2)), (Some([3.0, 4.0].as_slice()), None));
        assert_eq!((checkpoint.column(0), checkpoint.column(1)), (Some([5.0, -6.0].as_slice()), None));
        let mut names = Names::default();
        [b"a b".as_slice(), "caf\u{e9}".as_bytes()].into_iter().for_each(|name| names.push(name));
        let named = Checkpoint { row_ids: Ids::Names(names), column_ids: Ids::Indices(1), ..checkpoint };
        assert_eq!(decode(&bytes(&named)), Ok(named));
    }

    #[test]
    fn damage_is_noticed_wherever_it_is() {
        let bytes = bytes(&checkpoint());
        for len in 0..bytes.len() {
            assert!(decode(&bytes[..len]).is_err(), "cut at {len}");
            let mut changed = bytes.clone();
            changed[len] ^= 4;
            assert!(decode(&changed).is_err(), "changed at {len}");
        }
        let wrong = Checkpoint { row_ids: Ids::Numbers(vec![1]), ..checkpoint() };
        assert_eq!(decode(&self::bytes(&wrong)), Err(Fault::Corrupt));
        let wrong = Checkpoint { row_ids: Ids::Numbers(vec![7, 7]), ..checkpoint() };
        assert_eq!(decode(&self::bytes(&wrong)), Err(Fault::Corrupt));
        let wrong = Checkpoint { rows: 3, row_ids: Ids::Indices(3), ..checkpoint() };
        assert_eq!(decode(&self::bytes(&wrong)), Err(Fault::Corrupt));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(tail in prop::collection::vec(any::<u8>(), 0..200)) {
            let head = bytes(&checkpoint());
            for start in [0, 14, 22, 46] {
                let _ = decode(&[&head[..start], &tail].concat());
            }
        }
    }
}
