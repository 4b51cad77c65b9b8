//! Factors of a trained model in a file, and as text that people and other programs read.
//!
//! | tensor | type, shape | what |
//! | --- | --- | --- |
//! | `rows`, `columns` | F32, `[rows or columns, dim]` | factors |
//! | `rows.ids` or `rows.names`, and of columns | U64 or U8 | numbers, or lines; neither if indices are ids (generated ratings) |
//! | `rows.effects`, `columns.effects` | F64 | differences from the mean; none where they hardly differ |
//! | `mean`, `scale`, `range` | F64, `[1]`, `[1]`, `[2]` | the least and largest value of the training data is the range |
//!
//! Only factors are kept, no accumulators. The bytes do not depend on how many nodes held the
//! values.
//!
//! Older files are read, too ([`crate::run::file`]):
//!
//! ```text
//!   "adapmckp" | version u32 | task: text | dim u64 | rows u64 | columns u64
//!   | ids of rows | ids of columns | digest of the training data u64 | its least and largest value f32
//!   | mean f64 | scale f64 | effects of rows: count u64, f64 each | effects of columns: count u64, f64 each
//!   | floats u64 | values in key order f32 | checksum u64
//!   ids: form u64 | count u64 | 0: nothing, as the index is the id (generated ratings); 1: u64 each; 2: text each
//! ```
//!
//! Files of version 1 had no means; what they predict is not what this program does, so they are
//! refused.
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

use serde::{Deserialize, Serialize};

use crate::data::RatingId;
use crate::export::Table;
use crate::matrix::dot;
use crate::mf::ids::Ids;
use crate::mf::prediction::Means;
use crate::mf::ratings::Ratings;
use crate::run::consistency::Digest;
use crate::run::file::{self, CheckpointError, Fault, Reader};
use crate::run::partial::{self, Head};
use crate::run::tensors::{Draft, Parts, Tensor};
use crate::run::values::{Ahead, Values};

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
    pub(crate) values: Values,
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
        values: Values,
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

    /// Reads a file written by [`save`](Self::save), all of it.
    ///
    /// # Errors
    ///
    /// A file that is missing, foreign, truncated, damaged, of another task or of another format
    /// version.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        let opened = Self::open(path)?;
        Ok(Self { values: opened.values.clone().load()?, ..opened })
    }

    /// Opens a file: its factors stay there until they are asked for. An evaluation in several
    /// processes reads a share in each. What returns factors has none of them:
    /// [`row`](Self::row), [`column`](Self::column), and [`predict`](Self::predict), which predicts
    /// by the means then. [`Predictor`](crate::mf::Predictor) reads them.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), but for values that are not as they were written: what uses them
    /// sees that as far as its own documentation says.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let (head, values) = partial::open(path, TASK)?;
        Ok(Self { values, ..head })
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
        self.predict_by((row, column), factors)
    }

    /// Returns the same, by the factors of the row and the column.
    pub(super) fn predict_by(
        &self,
        (row, column): (Option<usize>, Option<usize>),
        factors: Option<(&[f32], &[f32])>,
    ) -> f64 {
        let product = factors.map_or(0.0, |(row, column)| f64::from(dot(row, column)));
        let effect = row.and_then(|row| self.row_effect(row)).unwrap_or(0.0)
            + column.and_then(|column| self.column_effect(column)).unwrap_or(0.0);
        self.means.mean + effect + self.scale * product
    }

    /// Parses the bytes of the file at `path`.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path) -> Result<Self, CheckpointError> {
        let (head, values) = partial::parse(bytes, path, TASK)?;
        Ok(Self { values, ..head })
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
        digest.word(self.values.digest());
        let effects = self.means.rows.iter().chain(&self.means.columns);
        let numbers = [self.means.mean, self.scale].into_iter().chain(effects.copied());
        numbers.for_each(|number| digest.word(number.to_bits()));
        digest.sum()
    }

    fn value(&self, key: usize) -> Option<&[f32]> {
        self.values.in_memory()?.get(key * self.dim..(key + 1) * self.dim)
    }

    /// Writes the bytes of the file.
    ///
    /// # Errors
    ///
    /// What `inner` refuses, and values that cannot be read.
    pub fn write_to<W: io::Write>(&self, inner: W) -> io::Result<W> {
        let Self { dim, rows, columns, trained_on, range, means, .. } = self;
        let (dim, rows, columns, trained_on) = (*dim, *rows, *columns, *trained_on);
        let draft = Draft::new(TASK, &Settings { dim, rows, columns, trained_on })?
            .numbers(EFFECTS[0], &means.rows)
            .numbers(EFFECTS[1], &means.columns)
            .numbers(MEAN, &[means.mean])
            .numbers(SCALE, &[self.scale])
            .numbers(RANGE, &[range.0.into(), range.1.into()]);
        let draft = self.column_ids.add_to_file(COLUMNS, self.row_ids.add_to_file(ROWS, draft));
        let tensors = self.tensors().ok_or(io::ErrorKind::InvalidInput)?;
        draft.write(&tensors, &self.values, inner)
    }

    /// Returns itself if its parts go together.
    fn sound(self) -> Result<Self, Fault> {
        let lens = [
            (self.rows, self.row_ids.len(), self.means.rows.len()),
            (self.columns, self.column_ids.len(), self.means.columns.len()),
        ];
        let fits = |(count, ids, effects): (u64, usize, usize)| {
            ids as u64 == count && (effects == 0 || effects as u64 == count)
        };
        let is_range =
            self.range.0 <= self.range.1 && self.range.0.is_finite() && self.range.1.is_finite();
        let effects = self.means.rows.iter().chain(&self.means.columns);
        let are_finite =
            [self.means.mean, self.scale].iter().chain(effects).all(|number| number.is_finite());
        let is_sound = self.dim > 0 && is_range && are_finite && lens.into_iter().all(fits);
        if is_sound { Ok(self) } else { Err(Fault::Corrupt) }
    }
}

/// The head of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Settings {
    dim: usize,
    rows: u64,
    columns: u64,
    trained_on: u64,
}

/// The values are left out.
impl Head for Checkpoint {
    fn of_parts(parts: &Parts<'_>) -> Result<Self, Fault> {
        let Settings { dim, rows, columns, trained_on } = parts.head()?;
        let one = |name| match *parts.numbers(name)? {
            [number] => Ok(number),
            _ => Err(Fault::Corrupt),
        };
        let [least, largest] = *parts.numbers(RANGE)? else { return Err(Fault::Corrupt) };
        let means = Means {
            mean: one(MEAN)?,
            rows: parts.numbers(EFFECTS[0])?,
            columns: parts.numbers(EFFECTS[1])?,
        };
        let checkpoint = Self {
            dim,
            rows,
            columns,
            row_ids: Ids::of_parts(parts, ROWS, rows)?,
            column_ids: Ids::of_parts(parts, COLUMNS, columns)?,
            trained_on,
            range: (least as f32, largest as f32),
            means,
            scale: one(SCALE)?,
            values: Values::default(),
        };
        checkpoint.sound()
    }

    fn of_old(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let (dim, rows, columns) = (reader.count()?, reader.count()?, reader.count()?);
        let (row_ids, column_ids) = (Ids::read(reader)?, Ids::read(reader)?);
        let trained_on = reader.count()?;
        let range = (f32::from_le_bytes(reader.array()?), f32::from_le_bytes(reader.array()?));
        let [mean, scale] = [reader.count()?, reader.count()?].map(f64::from_bits);
        let mut effects =
            |len| Ok(counts(reader, len)?.into_iter().map(f64::from_bits).collect::<Vec<f64>>());
        let means = Means { mean, rows: effects(rows)?, columns: effects(columns)? };
        let (dim, values) = (usize::try_from(dim).map_err(|_| Fault::Corrupt)?, Values::default());
        let checkpoint = Self {
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
        };
        checkpoint.sound()
    }

    fn tensors(&self) -> Option<Vec<Tensor>> {
        let of = |name, rows| Tensor::new(name, rows, self.dim);
        Some(vec![of(ROWS, self.rows), of(COLUMNS, self.columns)])
    }
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
        let mut values = Ahead::new(&self.values);
        for key in 0..self.rows() + self.columns() {
            let (kind, id, effect) = match key.checked_sub(self.rows()) {
                None => ("row", self.row_id(key), self.row_effect(key)),
                Some(column) => ("column", self.column_id(column), self.column_effect(column)),
            };
            let id = id.map(|id| id.to_string()).unwrap_or_default();
            write!(out, "{kind}\t{id}\t{}", effect.unwrap_or_default())?;
            let factors = values.get(key * self.dim..(key + 1) * self.dim)?;
            let mut numbers = factors.iter().map(|factor| root * factor);
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
        let name = |id: Option<RatingId<'_>>| -> Cow<'_, [u8]> {
            id.map_or(String::new(), |id| id.to_string()).into_bytes().into()
        };
        vec![
            self.table("rows", (0, self.rows()), move |row| name(self.row_id(row))),
            self.table("columns", (self.rows(), self.columns()), move |at| {
                name(self.column_id(at))
            }),
        ]
    }

    /// Returns the table of so many vectors from key `first` on.
    fn table<'a>(
        &'a self,
        kind: &'static str,
        (first, rows): (usize, usize),
        name: impl Fn(usize) -> Cow<'a, [u8]> + 'a,
    ) -> Table<'a> {
        let (dim, root) = (self.dim, self.scale.sqrt() as f32);
        Table::of_values(kind, [rows, dim], name, &self.values, move |values, row| {
            let factors = values.get((first + row) * dim..(first + row + 1) * dim)?;
            Ok(factors.iter().map(|factor| root * factor).collect())
        })
    }
}

/// The name of the task in its files.
const TASK: &str = "mf";
const ROWS: &str = "rows";
const COLUMNS: &str = "columns";
const EFFECTS: [&str; 2] = ["rows.effects", "columns.effects"];
const MEAN: &str = "mean";
const SCALE: &str = "scale";
const RANGE: &str = "range";

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
            values: vec![1.0, 2.0, 3.0, 4.0, 5.0, -6.0].into(),
        }
    }

    fn bytes(checkpoint: &Checkpoint) -> Vec<u8> {
        checkpoint.write_to(Vec::new()).expect("memory takes everything")
    }

    fn decode(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
        Checkpoint::of_bytes(bytes, Path::new("file"))
    }

    fn is_corrupt(checkpoint: &Checkpoint) -> bool {
        matches!(decode(&bytes(checkpoint)), Err(CheckpointError::Corrupt { .. }))
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
        assert!(is_corrupt(&wrong), "{wrong:?}");
        let wrong = Checkpoint { row_ids: Ids::Numbers(vec![7, 7]), ..checkpoint() };
        assert!(is_corrupt(&wrong), "{wrong:?}");
        let means = Means { columns: vec![1.0, 2.0], ..Means::default() };
        let wrong = Checkpoint { means, ..checkpoint() };
        assert!(is_corrupt(&wrong), "{wrong:?}");
        let wrong = Checkpoint { rows: 3, row_ids: Ids::Indices(3), ..checkpoint() };
        assert!(wrong.write_to(Vec::new()).is_err(), "it has factors of two rows");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(tail in prop::collection::vec(any::<u8>(), 0..200)) {
            let whole = bytes(&checkpoint());
            let old = include_bytes!("../../tests/cli/old/mf.adapm");
            for start in [0, 8, 10, whole.len() / 2, whole.len() - 40] {
                let _ = decode(&[&whole[..start], &tail].concat());
            }
            for start in [14, 22, 46, 62, 70, 86, 110] {
                let _ = decode(&[&old[..start], &tail].concat());
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
