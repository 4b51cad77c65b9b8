//! Ratings: the observed cells of a matrix to train on, and those to predict.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use crate::data::{RatingFormat, RatingId};
use crate::mf::cells::{Cell, Cells};
use crate::mf::ids::Ids;
use crate::mf::synthetic::{Synthetic, SyntheticConfig};
use crate::run::config::ConfigError;
use crate::run::consistency::Digest;
use crate::run::parameters::Shape;

/// The source of ratings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RatingsSource {
    /// A file for each split.
    Files {
        /// The file of the training data.
        train: PathBuf,
        /// Its form; of the other files it may be another.
        format: RatingFormat,
        /// One in ten data points of it is held out as test, as there is no file of its own.
        is_held_out: bool,
    },
    /// A file to predict with parameters that were trained on other data.
    Other {
        /// The file.
        file: PathBuf,
        /// Its form.
        format: RatingFormat,
    },
    /// The seeded generator.
    Generated(SyntheticConfig),
}

impl fmt::Display for RatingsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files { train, format, is_held_out } => {
                write!(f, "{} ({format}", train.display())?;
                f.write_str(if *is_held_out { ", one in ten held out)" } else { ")" })
            }
            Self::Other { file, format } => {
                write!(f, "{} ({format}; not the data trained on)", file.display())
            }
            Self::Generated(config) => config.fmt(f),
        }
    }
}

/// Findings of reading ratings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RatingCounts {
    /// Lines of comments before the first rating of each file, left out.
    pub comments: u64,
    /// Data points of train whose row and column occur more than once, counted beyond the first;
    /// each is trained on.
    pub repeated: u64,
    /// Data points of valid whose row and column train has, too.
    pub trained_valid: u64,
    /// Data points of test whose row and column train has, too.
    pub trained_test: u64,
    /// Data points of valid with a row or column that train does not know; the mean of what is
    /// known is predicted.
    pub unseen_valid: u64,
    /// Data points of test with a row or column that train does not know; the mean of what is known
    /// is predicted.
    pub unseen_test: u64,
}

/// Data points to predict.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Held {
    /// Those whose row and column occur in train, by column, then by row.
    pub(crate) cells: Vec<Cell>,
    /// The others.
    pub(crate) unseen: Vec<Unseen>,
}

/// A data point with a row or column that does not occur in train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unseen {
    pub(crate) row: Option<u32>,
    pub(crate) column: Option<u32>,
    pub(crate) value: f32,
}

impl Held {
    pub(crate) fn len(&self) -> usize {
        self.cells.len() + self.unseen.len()
    }
}

/// The training data: read, or generated when it is asked for.
#[derive(Clone, PartialEq)]
pub(crate) enum Train {
    Cells(Cells),
    Synthetic(Synthetic),
}

/// Ratings of `rows` x `columns`.
#[derive(Clone, PartialEq)]
pub struct Ratings {
    pub(crate) train: Train,
    pub(crate) valid: Held,
    pub(crate) test: Held,
    /// Ids of the rows by index.
    pub(crate) row_ids: Ids,
    /// Ids of the columns by index.
    pub(crate) column_ids: Ids,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    /// Mean of the training data.
    pub(crate) mean: f64,
    /// Least and largest value of the training data.
    pub(crate) range: (f32, f32),
    pub(crate) counts: RatingCounts,
    pub(crate) source: RatingsSource,
}

impl fmt::Debug for Ratings {
    /// Sizes instead of all cells.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, columns, source, .. } = self;
        let [valid, test] = [&self.valid, &self.test].map(Held::len);
        write!(
            f,
            "Ratings of {rows} x {columns}, {} / {valid} / {test}, {source}",
            self.train_len()
        )
    }
}

impl Ratings {
    /// Returns a value of so many floats for each row and column.
    pub(crate) fn shape(&self, value_len: usize) -> Shape {
        Shape::new(&[(u64::from(self.rows) + u64::from(self.columns), value_len)])
    }

    /// Generates a matrix of low rank with known noise; nothing of its training data is kept in
    /// memory.
    ///
    /// # Errors
    ///
    /// Sizes that no such matrix has.
    pub fn synthetic(config: SyntheticConfig) -> Result<Self, ConfigError> {
        let synthetic = Synthetic::new(config)?;
        let mut test = Held { cells: synthetic.test(), unseen: Vec::new() };
        sort_by_column(&mut test.cells);
        Ok(Self {
            valid: Held::default(),
            test,
            row_ids: Ids::Indices(config.rows),
            column_ids: Ids::Indices(config.columns),
            rows: config.rows,
            columns: config.columns,
            mean: 0.0,
            range: (f32::MIN, f32::MAX),
            counts: RatingCounts::default(),
            source: RatingsSource::Generated(config),
            train: Train::Synthetic(synthetic),
        })
    }

    /// Returns the number of rows that occur in train; of a generated matrix, of all rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Returns the number of columns that occur in train; of a generated matrix, of all columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns as usize
    }

    /// Returns the number of data points to train on.
    #[must_use]
    pub fn train_len(&self) -> u64 {
        match &self.train {
            Train::Cells(cells) => cells.len() as u64,
            Train::Synthetic(synthetic) => synthetic.cells(0..self.rows),
        }
    }

    /// Returns the size of the temporary file that has the training data; `None` if it is in
    /// memory.
    #[cfg(any(test, feature = "cli"))]
    pub(crate) fn spilled_bytes(&self) -> Option<u64> {
        match &self.train {
            Train::Cells(cells) if cells.are_spilled() => {
                Some(core::mem::size_of_val::<[Cell]>(cells) as u64)
            }
            _ => None,
        }
    }

    /// Returns the number of data points to select on.
    #[must_use]
    pub fn valid_len(&self) -> usize {
        self.valid.len()
    }

    /// Returns the number of data points to report on.
    #[must_use]
    pub fn test_len(&self) -> usize {
        self.test.len()
    }

    /// Returns the mean of the training data; of a generated matrix that of the model behind it, 0.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the id of a row in the files; `None` beyond the last.
    #[must_use]
    pub fn row_id(&self, row: usize) -> Option<RatingId<'_>> {
        self.row_ids.get(row)
    }

    /// Returns the id of a column in the files; `None` beyond the last.
    #[must_use]
    pub fn column_id(&self, column: usize) -> Option<RatingId<'_>> {
        self.column_ids.get(column)
    }

    /// Returns the findings of reading.
    #[must_use]
    pub fn counts(&self) -> RatingCounts {
        self.counts
    }

    /// Returns the source of the ratings.
    #[must_use]
    pub fn source(&self) -> &RatingsSource {
        &self.source
    }

    /// Returns true if the ratings are generated, which has to be stated wherever a figure of them
    /// is printed.
    #[must_use]
    pub fn is_generated(&self) -> bool {
        matches!(self.source, RatingsSource::Generated(_))
    }

    /// Returns the RMSE on test of the model behind a generated matrix: no model can be expected to
    /// do better. `None` if unknown.
    #[must_use]
    pub fn best_rmse(&self) -> Option<f64> {
        match &self.train {
            Train::Synthetic(synthetic) => Some(synthetic.rmse(&self.test.cells)),
            Train::Cells(_) => None,
        }
    }

    /// Returns the number of training cells in these rows.
    pub(crate) fn cells_in(&self, rows: Range<u32>) -> u64 {
        match &self.train {
            Train::Cells(cells) => cells.places(rows).len() as u64,
            Train::Synthetic(synthetic) => synthetic.cells(rows),
        }
    }

    /// Further cells of a generated matrix to select on; none of one that was read.
    pub(crate) fn generate_valid(&self, cells: u32) -> Held {
        let Train::Synthetic(synthetic) = &self.train else { return Held::default() };
        let mut held = Held { cells: synthetic.valid(cells), unseen: Vec::new() };
        sort_by_column(&mut held.cells);
        held
    }

    /// Returns the number of training cells of each row, and of each column. Goes over all of them.
    pub(crate) fn counts_by_vector(&self) -> [Vec<u32>; 2] {
        let mut counts = [vec![0; self.rows()], vec![0; self.columns()]];
        self.for_each(0..self.rows, |cell| {
            counts[0][cell.row as usize] += 1;
            counts[1][cell.column as usize] += 1;
        });
        counts
    }

    /// Returns a number that differs between ratings that differ.
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        digest.word(self.train_digest());
        let held = [&self.valid, &self.test].into_iter().flat_map(|held| &held.cells);
        held.for_each(|cell| add(&mut digest, cell));
        for Unseen { row, column, value } in
            [&self.valid, &self.test].into_iter().flat_map(|held| &held.unseen)
        {
            let known = [row, column].map(|known| known.map_or(0, |index| u64::from(index) + 1));
            known
                .into_iter()
                .chain([u64::from(value.to_bits())])
                .for_each(|word| digest.word(word));
        }
        digest.sum()
    }

    /// Returns a number that differs between training data that differ.
    pub(crate) fn train_digest(&self) -> u64 {
        let mut digest = Digest::new();
        self.row_ids.add_to(&mut digest);
        self.column_ids.add_to(&mut digest);
        match &self.train {
            Train::Cells(cells) => cells.iter().for_each(|cell| add(&mut digest, cell)),
            // A generated matrix is described by its configuration.
            Train::Synthetic(_) => {}
        }
        if let RatingsSource::Generated(config) = &self.source {
            // Cells to predict are drawn apart.
            let config = SyntheticConfig { test_cells: 0, ..*config };
            digest.bytes(format!("{config:?}").as_bytes());
        }
        digest.sum()
    }

    /// Passes the training cells of these rows, row by row, ascending.
    pub(crate) fn for_each(&self, rows: Range<u32>, mut each: impl FnMut(Cell)) {
        match &self.train {
            Train::Cells(cells) => cells[cells.places(rows)].iter().copied().for_each(each),
            Train::Synthetic(synthetic) => synthetic.for_each(rows, &mut each),
        }
    }
}

fn add(digest: &mut Digest, cell: &Cell) {
    digest.word(u64::from(cell.row) << 32 | u64::from(cell.column));
    digest.word(u64::from(cell.value.to_bits()));
}

/// Sorts data points for prediction: by column, then by row.
pub(crate) fn sort_by_column(cells: &mut [Cell]) {
    cells.sort_by_key(|cell| (cell.column, cell.row));
}
