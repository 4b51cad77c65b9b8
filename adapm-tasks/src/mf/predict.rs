//! Answers of a trained factorization: the value of a cell, and the columns of a row that are
//! predicted to be highest.
//!
//! A prediction is that of [`Checkpoint::predict`], bit for bit. Columns that a row has in given
//! ratings are left out; which these are a file of parameters does not say.
//!
//! From a file the head is read, with ids and means; of the values, for a cell, those of its row
//! and its column, and for the columns of a row these block by block, and never those of other
//! rows. So the checksum, which is of the whole file, is not checked.

use std::collections::BTreeMap;
use std::path::Path;

use crate::data::RatingId;
use crate::mf::checkpoint::Checkpoint;
use crate::mf::ratings::Ratings;
use crate::run::config::{ConfigError, whole};
use crate::run::error::TaskError;
use crate::run::file::CheckpointError;
use crate::top::{Scored, Top};

/// A column with the value that is predicted for it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// Its index.
    pub column: usize,
    /// The predicted value, in the unit of the training data.
    pub value: f64,
    /// The row has a value in this column; false if no ratings are given.
    pub is_rated: bool,
}

/// A trained model that predicts.
///
/// ```
/// use adapm_tasks::mf::{Predictor, Ratings, SyntheticConfig, TrainConfig, train};
/// use adapm_tasks::run::Run;
///
/// let mut synthetic = SyntheticConfig::default();
/// (synthetic.rows, synthetic.columns, synthetic.cells) = (200, 100, 4_000);
/// let ratings = Ratings::synthetic(synthetic)?;
/// let mut config = TrainConfig::default();
/// (config.dim, config.epochs) = (8, Some(3));
/// let trained = train(&ratings, &config, &Run::alone())?;
///
/// // From a file it is `Predictor::open(path)?`.
/// let checkpoint = trained.checkpoint.expect("is asked for by default");
/// let mut predictor = Predictor::new(&checkpoint).with_ratings(&ratings);
/// assert_eq!(predictor.predict(&[(7, 3)])?, [checkpoint.predict(Some(7), Some(3))]);
/// let best = &predictor.top_columns(&[7], 5)?[0];
/// assert!(best.len() == 5 && best[0].value >= best[1].value && !best[0].is_rated);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Predictor<'a> {
    model: Checkpoint,
    ratings: Option<&'a Ratings>,
    keeps_rated: bool,
    clips: bool,
}

impl<'a> Predictor<'a> {
    /// Opens a file written by [`Checkpoint::save`]. Reads its head: ids, means, and what tells how
    /// long the file has to be.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::load`]; damage of the values is not seen, unless it makes them no finite
    /// numbers, which is when they are read, or until [`check`](Self::check) is called.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        Ok(Self::of(Checkpoint::open(path)?))
    }

    /// Returns one for parameters in memory.
    #[must_use]
    pub fn new(checkpoint: &Checkpoint) -> Self {
        Self::of(checkpoint.clone())
    }

    fn of(model: Checkpoint) -> Self {
        Self { model, ratings: None, keeps_rated: false, clips: false }
    }

    /// Returns the same with ratings, of any data with these ids: columns that a row has there, in
    /// any part, are left out of its answers.
    #[must_use]
    pub fn with_ratings(self, ratings: &'a Ratings) -> Self {
        Self { ratings: Some(ratings), ..self }
    }

    /// Returns the same, with rated columns among the answers if `keeps_rated` is true.
    #[must_use]
    pub fn with_rated(self, keeps_rated: bool) -> Self {
        Self { keeps_rated, ..self }
    }

    /// Returns the same; if `clips` is true, values are clipped to the range of the training data.
    /// The order of columns is that of the values before.
    #[must_use]
    pub fn clipped(self, clips: bool) -> Self {
        Self { clips, ..self }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.model.rows()
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.model.columns()
    }

    /// Returns the index of the row with this id.
    #[must_use]
    pub fn row(&self, id: RatingId<'_>) -> Option<usize> {
        self.model.row_ids.find(id)
    }

    /// Returns the index of the column with this id.
    #[must_use]
    pub fn column(&self, id: RatingId<'_>) -> Option<usize> {
        self.model.column_ids.find(id)
    }

    /// Returns the id of a row in the data; `None` beyond the last.
    #[must_use]
    pub fn row_id(&self, row: usize) -> Option<RatingId<'_>> {
        self.model.row_id(row)
    }

    /// Returns the id of a column in the data; `None` beyond the last.
    #[must_use]
    pub fn column_id(&self, column: usize) -> Option<RatingId<'_>> {
        self.model.column_id(column)
    }

    /// Returns the ratings that are given, if any.
    #[must_use]
    pub fn ratings(&self) -> Option<&'a Ratings> {
        self.ratings
    }

    /// Reads the whole file, if there is one, and compares its checksum.
    ///
    /// # Errors
    ///
    /// A file that is damaged or cannot be read.
    pub fn check(&mut self) -> Result<(), CheckpointError> {
        self.model.values.check()
    }

    /// Returns the value of each cell, given by the indices of its row and column.
    ///
    /// Cost: two vectors are read for each cell.
    ///
    /// # Errors
    ///
    /// An index of a row or column that there is not; a file that cannot be read.
    pub fn predict(&mut self, cells: &[(usize, usize)]) -> Result<Vec<f64>, TaskError> {
        let dim = self.model.dim;
        let (mut row_values, mut column_values) = (vec![0.0; dim], vec![0.0; dim]);
        let mut predicted = Vec::with_capacity(cells.len());
        for (row, column) in cells {
            is_below("row", *row, self.rows())?;
            is_below("column", *column, self.columns())?;
            self.model.values.read(row * dim, &mut row_values)?;
            self.model.values.read((self.rows() + column) * dim, &mut column_values)?;
            let value = self.value((*row, *column), (&row_values, &column_values));
            predicted.push(self.shown(value));
        }
        Ok(predicted)
    }

    /// Returns, for each of these rows, at most `top` columns with the highest values, the highest
    /// first.
    ///
    /// Cost: two operations for each row, column and factor, and a pass over the factors of all
    /// columns for each 256 rows. Memory: those of 1024 columns, whatever their number.
    ///
    /// # Errors
    ///
    /// An index of a row that there is not; a file that cannot be read.
    pub fn top_columns(
        &mut self,
        rows: &[usize],
        top: usize,
    ) -> Result<Vec<Vec<Candidate>>, TaskError> {
        rows.iter().try_for_each(|row| is_below("row", *row, self.rows()))?;
        let mut answers = Vec::with_capacity(rows.len());
        for rows in rows.chunks(BATCH) {
            answers.append(&mut self.top_of_batch(rows, top)?);
        }
        Ok(answers)
    }

    fn top_of_batch(
        &mut self,
        rows: &[usize],
        top: usize,
    ) -> Result<Vec<Vec<Candidate>>, CheckpointError> {
        let (dim, columns) = (self.model.dim, self.columns());
        let rated = self.rated(rows);
        let mut factors = vec![0.0; rows.len() * dim];
        for (row, factors) in rows.iter().zip(factors.chunks_exact_mut(dim)) {
            self.model.values.read(row * dim, factors)?;
        }
        let mut tops = vec![Top::new(top); rows.len()];
        let mut block = Vec::new();
        for first in (0..columns).step_by(BLOCK) {
            block.resize(BLOCK.min(columns - first) * dim, 0.0);
            self.model.values.read((self.rows() + first) * dim, &mut block)?;
            let of_rows = rows.iter().zip(factors.chunks_exact(dim)).zip(&rated).zip(&mut tops);
            for (((row, factors), rated), top) in of_rows {
                for (column, column_factors) in (first..).zip(block.chunks_exact(dim)) {
                    if self.keeps_rated || rated.binary_search(&(column as u32)).is_err() {
                        let value = self.value((*row, column), (factors, column_factors));
                        top.offer(value, column as u32);
                    }
                }
            }
        }
        let candidate = |rated: &[u32], Scored { score, index }: Scored| Candidate {
            column: index as usize,
            value: self.shown(score),
            is_rated: rated.binary_search(&index).is_ok(),
        };
        let of_row = |(top, rated): (Top, Vec<u32>)| {
            top.into_vec().into_iter().map(|scored| candidate(&rated, scored)).collect()
        };
        Ok(tops.into_iter().zip(rated).map(of_row).collect())
    }

    /// Returns the columns that each of these rows has in the ratings, ascending.
    fn rated(&self, rows: &[usize]) -> Vec<Vec<u32>> {
        let Some(ratings) = self.ratings else { return vec![Vec::new(); rows.len()] };
        let there = |row: &usize| {
            let id = self.model.row_id(*row)?;
            ratings.row_ids.find(id).map(|row| row as u32)
        };
        let there: Vec<Option<u32>> = rows.iter().map(there).collect();
        let mut found: BTreeMap<u32, Vec<u32>> =
            there.iter().flatten().map(|row| (*row, Vec::new())).collect();
        let here = |column: u32| {
            let id = ratings.column_id(column as usize)?;
            self.model.column_ids.find(id).map(|column| column as u32)
        };
        for (row, columns) in &mut found {
            ratings.for_each(*row..*row + 1, |cell| columns.extend(here(cell.column)));
        }
        for cell in ratings.valid.cells.iter().chain(&ratings.test.cells) {
            if let Some(columns) = found.get_mut(&cell.row) {
                columns.extend(here(cell.column));
            }
        }
        found.values_mut().for_each(|columns| columns.sort_unstable());
        let of_row =
            |row: &Option<u32>| row.and_then(|row| found.get(&row)).cloned().unwrap_or_default();
        there.iter().map(of_row).collect()
    }

    /// Returns the prediction for a cell with these factors of its row and its column.
    fn value(&self, (row, column): (usize, usize), factors: (&[f32], &[f32])) -> f64 {
        self.model.predict_by((Some(row), Some(column)), Some(factors))
    }

    fn shown(&self, value: f64) -> f64 {
        let (least, largest) = self.model.range;
        if self.clips { value.clamp(f64::from(least), f64::from(largest)) } else { value }
    }
}

fn is_below(field: &'static str, index: usize, len: usize) -> Result<(), ConfigError> {
    whole(field, index as u64, 0, (len as u64).saturating_sub(1))
}

/// Rows that are answered by one pass over the columns.
const BATCH: usize = 256;
/// Columns that are compared at once.
const BLOCK: usize = 1024;

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::*;
    use crate::mf::{EvalConfig, SyntheticConfig, TrainConfig, evaluate, train};
    use crate::run::Run;
    use crate::run::config::Wanted;

    fn trained() -> (Ratings, Checkpoint) {
        let mut synthetic = SyntheticConfig::default();
        (synthetic.rows, synthetic.columns, synthetic.cells) = (60, 1_500, 20_000);
        let ratings = Ratings::synthetic(synthetic).expect("there are such matrices");
        let mut config = TrainConfig::default();
        (config.dim, config.epochs, config.cluster.system) = (8, Some(3), None);
        let trained = train(&ratings, &config, &Run::alone());
        (ratings, trained.expect("it trains").checkpoint.expect("is asked for by default"))
    }

    /// Returns true for each column that a row has in train or test.
    fn rated(ratings: &Ratings, row: u32) -> Vec<bool> {
        let mut rated = vec![false; ratings.columns()];
        ratings.for_each(row..row + 1, |cell| rated[cell.column as usize] = true);
        let held = ratings.test.cells.iter().filter(|cell| cell.row == row);
        held.for_each(|cell| rated[cell.column as usize] = true);
        rated
    }

    #[test]
    fn predictions_are_those_of_an_evaluation_and_the_highest_come_first() {
        let (ratings, checkpoint) = trained();
        let path = env::temp_dir().join(format!("adapm-mf-predict-{}", process::id()));
        checkpoint.save(&path).expect("the folder for temporary files can be written");
        let mut predictor = Predictor::open(&path).expect("it was just written");
        let cells: Vec<(usize, usize)> = ratings
            .test
            .cells
            .iter()
            .map(|cell| (cell.row as usize, cell.column as usize))
            .collect();
        let predicted = predictor.predict(&cells).expect("all cells are known");
        let squares = predicted.iter().zip(&ratings.test.cells);
        let squares: f64 =
            squares.map(|(value, cell)| (value - f64::from(cell.value)).powi(2)).sum();
        let rmse = (squares / cells.len() as f64).sqrt();
        let config = EvalConfig::default();
        let evaluated = evaluate(&ratings, &checkpoint, &config, &Run::alone());
        let metrics = evaluated.expect("it can be evaluated").figures.expect("it was not stopped");
        assert!((rmse - metrics.rmse).abs() < 1e-9, "{rmse} {}", metrics.rmse);

        let mut predictor = predictor.with_ratings(&ratings);
        for row in [0, 59] {
            let rated = rated(&ratings, row);
            let mut expected: Vec<(usize, f64)> = (0..1_500)
                .filter(|column| !rated[*column])
                .map(|column| (column, checkpoint.predict(Some(row as usize), Some(column))))
                .collect();
            expected.sort_by(|a, b| b.1.total_cmp(&a.1));
            let found = predictor.top_columns(&[row as usize], 20).expect("the row is known");
            let found: Vec<(usize, f64)> =
                found[0].iter().map(|found| (found.column, found.value)).collect();
            assert_eq!(found, expected[..20], "row {row}");
        }
        let mut predictor = predictor.with_rated(true);
        let all = &predictor.top_columns(&[3, 3], usize::MAX).expect("the row is known");
        let marked: Vec<usize> =
            all[0].iter().filter(|found| found.is_rated).map(|found| found.column).collect();
        let expected = rated(&ratings, 3).iter().filter(|is_rated| **is_rated).count();
        assert_eq!((all[0].len(), marked.len()), (1_500, expected));
        assert_eq!(all[0], all[1]);
        fs::remove_file(path).expect("it was just written");
    }

    #[test]
    fn ratings_of_other_data_count_by_their_ids_and_values_can_be_clipped() {
        let checkpoint = crate::mf::checkpoint::tests::checkpoint();
        let folder = env::temp_dir().join(format!("adapm-mf-predict-ids-{}", process::id()));
        fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        fs::write(folder.join("train.txt"), "7 3 1\n9 3 1\n").expect("a file can be written");
        fs::write(folder.join("test.txt"), "9 4 1\n").expect("a file can be written");
        let ratings = Ratings::load(&folder).expect("these are ratings");
        fs::remove_dir_all(&folder).expect("it was just written");
        let mut predictor = Predictor::new(&checkpoint).with_ratings(&ratings);
        let other = RatingId::Number(u64::MAX);
        assert_eq!((predictor.row(RatingId::Number(7)), predictor.row(other)), (Some(0), Some(1)));
        let answers = predictor.top_columns(&[0, 1], 5).expect("rows are known");
        assert_eq!((answers[0].len(), answers[1].len()), (0, 1));
        let value = checkpoint.predict(Some(1), Some(0));
        assert_eq!(answers[1][0].value, value);
        assert!(value < 1.0);
        let mut predictor = predictor.clipped(true);
        assert_eq!(predictor.predict(&[(1, 0)]).expect("it is known"), [1.0]);
    }

    #[test]
    fn indices_beyond_the_last_are_refused_and_damage_is_seen_if_that_is_asked_for() {
        let checkpoint = crate::mf::checkpoint::tests::checkpoint();
        let mut predictor = Predictor::new(&checkpoint);
        let wanted = |max| Wanted::Whole { min: 0, max };
        for (field, cell, value, max) in [("row", (2, 0), "2", 1), ("column", (0, 1), "1", 0)] {
            let error = predictor.predict(&[(0, 0), cell]).expect_err("there is no such cell");
            let (value, wanted) = (value.to_owned(), wanted(max));
            let expected = ConfigError::Value { field, value, wanted };
            assert!(matches!(error, TaskError::Config(error) if error == expected), "{field}");
        }
        let mut bytes = checkpoint.write_to(Vec::new()).expect("memory takes all bytes");
        // The row that is not asked for.
        let values: Vec<u8> = checkpoint
            .values
            .in_memory()
            .unwrap_or_default()
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let at = bytes.windows(values.len()).position(|window| window == values);
        bytes[at.expect("the values are in it")] ^= 1;
        let path = env::temp_dir().join(format!("adapm-mf-predict-damage-{}", process::id()));
        fs::write(&path, bytes).expect("the folder for temporary files can be written");
        let mut predictor = Predictor::open(&path).expect("the head is whole");
        let expected = checkpoint.predict(Some(1), Some(0));
        assert_eq!(predictor.predict(&[(1, 0)]).expect("these values are whole"), [expected]);
        assert_eq!(predictor.check(), Err(CheckpointError::Corrupt { path: path.clone() }));
        fs::remove_file(path).expect("it was just written");
    }
}
