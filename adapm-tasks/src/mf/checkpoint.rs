//! Factors of a trained model in a file, and as text that people and other programs read.
//!
//! ```text
//!   "adapmckp" | version u32 | task: text | dim u64 | rows u64 | columns u64
//!   | ids of rows | ids of columns | digest of the training data u64 | its least and largest value f32
//!   | mean f64 | scale f64 | effects of rows: count u64, f64 each | effects of columns: count u64, f64 each
//!   | floats u64 | values in key order f32 | checksum u64
//!   ids: form u64 | count u64 | 0: nothing, as the index is the id (generated ratings); 1: u64 each; 2: text each
//! ```
//!
//! No effects are written where rows or columns have none. Only factors are kept, no accumulators:
//! rows first, then columns. The bytes do not depend on how many nodes held the values. Files of
//! version 1 had no means; what they predict is not what this program does, so they are refused.
//!
//! As text:
//!
//! ```text
//!   mean    tab mean
//!   row     tab id tab effect tab number tab number ...     dim numbers
//!   column  tab id tab effect tab number tab number ...
//! ```
//!
//! The prediction for a row and a column is `mean + effect of the row + effect of the column + sum
//! of the products of their numbers`; of one that is not known nothing is added.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::data::RatingId;
use crate::export::Table;
use crate::matrix::dot;
use crate::mf::ids::Ids;
use crate::mf::prediction::Means;
use crate::mf::ratings::Ratings;
use crate::run::consistency::Digest;
use crate::run::file::{self, CheckpointError, Fault, Reader, Writer};
use crate::run::partial::{self, Values};

/// A trained model: the means, the factors, rows first, then columns, and what is needed to
/// use them. The prediction for a row and a column is `mean + effect of the row + effect of
/// the column + scale * (product of their factors)`.
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
    pub(super) means: Means,
    /// The factor on products; 0: the means are predicted.
    pub(super) scale: f64,
    pub(crate) values: Arc<Vec<f32>>,
}

impl fmt::Debug for Checkpoint {
    /// Sizes instead of millions of numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Checkpoint of {} factors, {} rows, {} columns",
            self.dim, self.rows, self.columns
        )
    }
}

impl Checkpoint {
    /// Returns the model of these ratings: means and scale, and factors in key order.
    pub(crate) fn of(
        ratings: &Ratings,
        dim: usize,
        (means, scale): (&Means, f64),
        values: Arc<Vec<f32>>,
    ) -> Self {
        Self {
            dim,
            rows: ratings.rows.into(),
            columns: ratings.columns.into(),
            row_ids: ratings.row_ids.clone(),
            column_ids: ratings.column_ids.clone(),
            trained_on: ratings.train_digest(),
            range: ratings.range,
            means: means.clone(),
            scale,
            values,
        }
    }

    /// Reads a file written by [`save`](Self::save).
    ///
    /// # Errors
    ///
    /// A file that is missing, foreign, truncated, damaged, of another task or of another format
    /// version.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        Self::of_bytes(&file::read(path)?, path)
    }

    /// Writes the factors in key order; the same bytes for any number of nodes. An older file of
    /// that name stays as it is until the new one is complete.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        file::save(path, |file| self.write_to(file).map(drop))
    }

    /// Returns the number of factors of a row or column.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns as usize
    }

    /// Returns the id of a row in the data; `None` beyond the last.
    #[must_use]
    pub fn row_id(&self, row: usize) -> Option<RatingId<'_>> {
        self.row_ids.get(row)
    }

    /// Returns the id of a column in the data; `None` beyond the last.
    #[must_use]
    pub fn column_id(&self, column: usize) -> Option<RatingId<'_>> {
        self.column_ids.get(column)
    }

    /// Returns the factors of a row, `None` beyond the last.
    #[must_use]
    pub fn row(&self, row: usize) -> Option<&[f32]> {
        if (row as u64) < self.rows { self.value(row) } else { None }
    }

    /// Returns the factors of a column, `None` beyond the last.
    #[must_use]
    pub fn column(&self, column: usize) -> Option<&[f32]> {
        if (column as u64) < self.columns { self.value(self.rows as usize + column) } else { None }
    }

    /// Returns the mean of what was trained on.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.means.mean
    }

    /// Returns the difference of a row from the mean; 0 if rows hardly differ, `None` beyond the
    /// last.
    #[must_use]
    pub fn row_effect(&self, row: usize) -> Option<f64> {
        (row < self.rows()).then(|| self.means.rows.get(row).copied().unwrap_or(0.0))
    }

    /// Returns the difference of a column from the mean; 0 if columns hardly differ, `None` beyond
    /// the last.
    #[must_use]
    pub fn column_effect(&self, column: usize) -> Option<f64> {
        (column < self.columns()).then(|| self.means.columns.get(column).copied().unwrap_or(0.0))
    }

    /// Returns the factor on products of factors; 0 if the means are predicted.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Returns the prediction for a row and a column by their indices; `None`, or one beyond the
    /// last: a row or column that is not known.
    #[must_use]
    pub fn predict(&self, row: Option<usize>, column: Option<usize>) -> f64 {
        let factors =
            row.and_then(|row| self.row(row)).zip(column.and_then(|column| self.column(column)));
        let product = factors.map_or(0.0, |(row, column)| f64::from(dot(row, column)));
        let effect = row.and_then(|row| self.row_effect(row)).unwrap_or(0.0)
            + column.and_then(|column| self.column_effect(column)).unwrap_or(0.0);
        self.means.mean + effect + self.scale * product
    }

    /// Parses the bytes of the file at `path`.
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path) -> Result<Self, CheckpointError> {
        decode(bytes).map_err(|fault| fault.at(path))
    }

    /// Checks that the factors are of the rows and columns of these ratings. Generated ratings have
    /// no ids, so they also have to be those that were trained on; ratings from a file may be
    /// others, to predict.
    pub(crate) fn check_data(&self, ratings: &Ratings) -> Result<(), CheckpointError> {
        let (rows, columns) = (u64::from(ratings.rows), u64::from(ratings.columns));
        let are_equal = (self.rows, self.columns) == (rows, columns)
            && (&self.row_ids, &self.column_ids) == (&ratings.row_ids, &ratings.column_ids);
        if !are_equal {
            let checkpoint = (self.rows, self.columns);
            return Err(CheckpointError::OtherRatings { checkpoint, ratings: (rows, columns) });
        }
        if ratings.is_generated() && ratings.train_digest() != self.trained_on {
            return Err(CheckpointError::OtherTraining { of: "ratings" });
        }
        Ok(())
    }

    /// Returns a number that differs between factors that differ.
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        digest.values(&self.values);
        let effects = self.means.rows.iter().chain(&self.means.columns);
        let numbers = [self.means.mean, self.scale].into_iter().chain(effects.copied());
        numbers.for_each(|number| digest.word(number.to_bits()));
        digest.sum()
    }

    /// Reads the head of a file, and opens its values.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), but for values that are not as they were written.
    pub(super) fn open(path: &Path) -> Result<(Self, Values), CheckpointError> {
        let (head, values) = partial::open(path, TASK, head)?;
        let fits = head.floats() == Some(values.len());
        if fits { Ok((head, values)) } else { Err(Fault::Corrupt.at(path)) }
    }

    /// Returns the number of values, which may be elsewhere; `None` if they cannot be counted.
    fn floats(&self) -> Option<u64> {
        self.rows.checked_add(self.columns)?.checked_mul(self.dim as u64)
    }

    fn value(&self, key: usize) -> Option<&[f32]> {
        self.values.get(key * self.dim..(key + 1) * self.dim)
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
        [self.range.0, self.range.1]
            .iter()
            .try_for_each(|bound| writer.bytes(&bound.to_le_bytes()))?;
        let Means { mean, rows, columns } = &self.means;
        [*mean, self.scale].iter().try_for_each(|number| writer.count(number.to_bits()))?;
        for effects in [rows, columns] {
            writer.count(effects.len() as u64)?;
            effects.iter().try_for_each(|effect| writer.count(effect.to_bits()))?;
        }
        writer.values(&self.values)
    }
}

fn decode(bytes: &[u8]) -> Result<Checkpoint, Fault> {
    let mut reader = Reader::new(TASK, bytes)?;
    let head = head(&mut reader)?;
    let values = Arc::new(reader.values()?);
    let floats = head.floats();
    let fits = floats == Some(values.len() as u64);
    if fits { Ok(Checkpoint { values, ..head }) } else { Err(Fault::Corrupt) }
}

/// Reads all before the values, which are left out.
fn head(reader: &mut Reader<'_>) -> Result<Checkpoint, Fault> {
    let (dim, rows, columns) = (reader.count()?, reader.count()?, reader.count()?);
    let mut ids = |len: u64| {
        let ids = Ids::read(reader)?;
        if ids.len() as u64 == len { Ok(ids) } else { Err(Fault::Corrupt) }
    };
    let (row_ids, column_ids) = (ids(rows)?, ids(columns)?);
    let trained_on = reader.count()?;
    let range = (f32::from_le_bytes(reader.array()?), f32::from_le_bytes(reader.array()?));
    if range.0.is_nan() || range.1.is_nan() || range.0 > range.1 {
        return Err(Fault::Corrupt);
    }
    let [mean, scale] = [reader.count()?, reader.count()?].map(f64::from_bits);
    let mut effects =
        |len| Ok(counts(reader, len)?.into_iter().map(f64::from_bits).collect::<Vec<f64>>());
    let means = Means { mean, rows: effects(rows)?, columns: effects(columns)? };
    if dim == 0 {
        return Err(Fault::Corrupt);
    }
    let (dim, values) = (usize::try_from(dim).map_err(|_| Fault::Corrupt)?, Arc::default());
    Ok(Checkpoint {
        dim,
        rows,
        columns,
        row_ids,
        column_ids,
        trained_on,
        range,
        means,
        scale,
        values,
    })
}

/// Returns a number for each of `len` rows or columns, or none at all.
fn counts(reader: &mut Reader<'_>, len: u64) -> Result<Vec<u64>, Fault> {
    let count = reader.count()?;
    if count != 0 && count != len {
        return Err(Fault::Corrupt);
    }
    // Grows with the bytes that are there, not by the count, which may be wrong.
    (0..count).map(|_| reader.count()).collect()
}

impl Checkpoint {
    /// Writes the model as lines of fields between tabs: the mean; then `row` or `column`, its id
    /// in the data, its effect, its numbers, which are its factors times the root of the
    /// [scale](Self::scale); all as short as they can be and still read as the same bits. An older
    /// file of that name stays as it is until the new one is complete.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn export(&self, path: &Path) -> Result<(), CheckpointError> {
        file::save(path, |file| self.export_to(file))
    }

    /// Writes what [`export`](Self::export) does.
    ///
    /// # Errors
    ///
    /// What `out` refuses.
    pub fn export_to(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        writeln!(out, "mean\t{}", self.mean())?;
        let root = self.scale.sqrt() as f32;
        for key in 0..self.rows() + self.columns() {
            let (kind, id, effect, factors) = match key.checked_sub(self.rows()) {
                None => ("row", self.row_id(key), self.row_effect(key), self.row(key)),
                Some(column) => {
                    let (id, effect) = (self.column_id(column), self.column_effect(column));
                    ("column", id, effect, self.column(column))
                }
            };
            let id = id.map(|id| id.to_string()).unwrap_or_default();
            write!(out, "{kind}\t{id}\t{}", effect.unwrap_or_default())?;
            let mut numbers = factors.unwrap_or_default().iter().map(|factor| root * factor);
            numbers.try_for_each(|number| write!(out, "\t{number}"))?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Returns the vectors of `rows` and of `columns`: their factors times the root of the
    /// [scale](Self::scale), as [`export`](Self::export) writes them. The mean and the effects are
    /// not in them.
    #[must_use]
    pub fn tables(&self) -> Vec<Table<'_>> {
        let root = self.scale.sqrt() as f32;
        let scaled = move |factors: Option<&[f32]>| {
            let factors = factors.unwrap_or_default().iter();
            factors.map(|factor| root * factor).collect::<Vec<f32>>().into()
        };
        let name = |id: Option<RatingId<'_>>| -> Cow<'_, [u8]> {
            id.map_or(String::new(), |id| id.to_string()).into_bytes().into()
        };
        let (rows, columns) = ([self.rows(), self.dim], [self.columns(), self.dim]);
        vec![
            Table::new(
                "rows",
                rows,
                move |row| name(self.row_id(row)),
                move |row| scaled(self.row(row)),
            ),
            Table::new(
                "columns",
                columns,
                move |at| name(self.column_id(at)),
                move |at| scaled(self.column(at)),
            ),
        ]
    }
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
            means: Means { mean: 3.5, rows: vec![0.25, -0.5], columns: Vec::new() },
            scale: 0.25,
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
        assert_eq!(
            (checkpoint.column(0), checkpoint.column(1)),
            (Some([5.0, -6.0].as_slice()), None)
        );
        assert_eq!(
            checkpoint.predict(Some(1), Some(0)),
            3.5 - 0.5 + 0.25 * (3.0 * 5.0 - 4.0 * 6.0)
        );
        assert_eq!(
            [checkpoint.predict(Some(0), None), checkpoint.predict(None, Some(0))],
            [3.75, 3.5]
        );
        let mut names = Names::default();
        [b"a b".as_slice(), "caf\u{e9}".as_bytes()].into_iter().for_each(|name| names.push(name));
        let named =
            Checkpoint { row_ids: Ids::Names(names), column_ids: Ids::Indices(1), ..checkpoint };
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
        let means = Means { columns: vec![1.0, 2.0], ..Means::default() };
        let wrong = Checkpoint { means, ..checkpoint() };
        assert_eq!(decode(&self::bytes(&wrong)), Err(Fault::Corrupt));
        let wrong = Checkpoint { rows: 3, row_ids: Ids::Indices(3), ..checkpoint() };
        assert_eq!(decode(&self::bytes(&wrong)), Err(Fault::Corrupt));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(tail in prop::collection::vec(any::<u8>(), 0..200)) {
            let head = bytes(&checkpoint());
            for start in [0, 14, 22, 46, 62, 70, 86, 110] {
                let _ = decode(&[&head[..start], &tail].concat());
            }
        }
    }

    #[test]
    fn every_vector_has_a_line_with_its_id() {
        let mut out = Vec::new();
        checkpoint().export_to(&mut out).expect("memory takes every byte");
        let expected = "mean\t3.5\nrow\t7\t0.25\t0.5\t1\nrow\t18446744073709551615\t-0.5\t1.5\t2\ncolumn\t3\t0\t2.5\t-3\n";
        assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
    }
}
