//! The data points of a split, predicted: the product of the factors of row and column.

use std::ops::Range;

use adapm_core::Key;

use crate::matrix::dot;
use crate::mf::metrics::RatingMetrics;
use crate::mf::ratings::{Held, Ratings};
use crate::run::config::Split;
use crate::run::parameters::Parameters;
use crate::run::task::Examination;

/// Predicts a split of ratings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prediction<'a> {
    ratings: &'a Ratings,
    held: &'a Held,
    split: Split,
    dim: usize,
    /// Floats of a value: the factors come first.
    value_len: usize,
    /// Bounds of what is predicted.
    range: Option<(f32, f32)>,
}

/// A worker's memory for predictions.
#[derive(Debug, Default)]
pub(crate) struct Predictor {
    keys: Vec<Key>,
    values: Vec<f32>,
}

impl<'a> Prediction<'a> {
    /// Predictions by `dim` factors, which are the first of `value_len` floats of each value.
    pub(crate) fn new(ratings: &'a Ratings, split: Split, dim: usize, value_len: usize, clip: bool) -> Self {
        let held = match split {
            Split::Valid => &ratings.valid,
            Split::Test => &ratings.test,
        };
        Self { ratings, held, split, dim, value_len, range: clip.then_some(ratings.range) }
    }

    /// Whether there is anything to predict.
    pub(crate) fn has_any(&self) -> bool {
        self.held.len() > 0
    }
}

impl Examination for Prediction<'_> {
    /// What is predicted for a cell whose row and column were seen.
    type Answer = f32;
    type Figures = RatingMetrics;
    type Examiner = Predictor;

    fn split(&self) -> Split {
        self.split
    }

    fn items(&self) -> usize {
        self.held.cells.len()
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn examiner(&self) -> Predictor {
        Predictor::default()
    }

    fn examine<P: Parameters>(
        &self,
        predictor: &mut Predictor,
        items: Range<usize>,
        parameters: &mut P,
        answers: &mut Vec<f32>,
    ) -> Result<(), P::Error> {
        let cells = &self.held.cells[items];
        let Predictor { keys, values } = predictor;
        keys.clear();
        keys.extend(cells.iter().map(|cell| Key(u64::from(cell.row))));
        // Cells are in the order of columns: one pull of a column serves all its cells.
        let columns = cells.chunk_by(|a, b| a.column == b.column);
        keys.extend(
            columns.clone().map(|cells| Key(u64::from(self.ratings.rows) + u64::from(cells[0].column))),
        );
        values.resize(keys.len() * self.value_len, 0.0);
        parameters.pull(keys, values)?;
        let (rows, column_values) = values.split_at(cells.len() * self.value_len);
        let mut rows = rows.chunks_exact(self.value_len);
        for (cells, column) in columns.zip(column_values.chunks_exact(self.value_len)) {
            for row in rows.by_ref().take(cells.len()) {
                let product = dot(&row[..self.dim], &column[..self.dim]);
                answers.push(self.range.map_or(product, |(least, largest)| product.clamp(least, largest)));
            }
        }
        Ok(())
    }

    fn figures(&self, answers: &[f32]) -> RatingMetrics {
        RatingMetrics::of(&self.held.cells, answers, &self.held.unseen, self.ratings.mean)
    }
}

/// Data points that are predicted at once.
const BATCH: usize = 1024;
