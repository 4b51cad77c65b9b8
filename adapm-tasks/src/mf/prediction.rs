//! The data points of a split, predicted by the means of row and column and a share of the product of their factors, and how far
//! predictions are off.

use std::iter;
use std::ops::Range;

use adapm_core::Key;

use crate::matrix::dot;
use crate::mf::ids::Cell;
use crate::mf::means::{Means, Products, gain};
use crate::mf::ratings::Held;
use crate::run::config::Split;
use crate::run::parameters::Parameters;
use crate::run::task::Examination;

/// Predicts a split of ratings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prediction<'a> {
    pub(crate) split: Split,
    pub(crate) held: &'a Held,
    pub(crate) means: &'a Means,
    pub(crate) scale: Scale,
    /// Number of rows: the key of the first column.
    pub(crate) rows: u32,
    /// Number of factors.
    pub(crate) dim: usize,
    /// Floats of a value: the factors come first.
    pub(crate) value_len: usize,
    /// Bounds of what is predicted.
    pub(crate) range: Option<(f32, f32)>,
}

/// What products are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    /// It is known.
    Known(f64),
    /// The deviation of residuals, times the share that these data points show to be worth adding.
    Judged(f64),
}

/// A worker's memory for predictions.
#[derive(Debug, Default)]
pub(crate) struct Predictor {
    keys: Vec<Key>,
    values: Vec<f32>,
}

/// The figures of predictions of `held` by means, and by `factor` times the product of each of its cells that were seen; without
/// products by the means alone.
pub(crate) fn figures(
    held: &Held,
    means: &Means,
    factor: f64,
    products: &[f32],
    range: Option<(f32, f32)>,
) -> RatingMetrics {
    let products = products.iter().map(|product| factor * f64::from(*product)).chain(iter::repeat(0.0));
    let clip = |value: f64| {
        range.map_or(value, |(least, largest)| value.clamp(f64::from(least), f64::from(largest)))
    };
    let seen = held.cells.iter().zip(products).map(|(cell, product)| {
        f64::from(cell.value) - clip(means.predict(Some(cell.row), Some(cell.column)) + product)
    });
    let unseen =
        held.unseen.iter().map(|point| f64::from(point.value) - clip(means.predict(point.row, point.column)));
    RatingMetrics { unseen: held.unseen.len() as u64, ..RatingMetrics::of(seen.chain(unseen)) }
}

impl Examination for Prediction<'_> {
    /// The product for a cell whose row and column were seen.
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
        keys.extend(columns.clone().map(|cells| Key(u64::from(self.rows) + u64::from(cells[0].column))));
        values.resize(keys.len() * self.value_len, 0.0);
        parameters.pull(keys, values)?;
        let (rows, column_values) = values.split_at(cells.len() * self.value_len);
        let mut rows = rows.chunks_exact(self.value_len);
        for (cells, column) in columns.zip(column_values.chunks_exact(self.value_len)) {
            for row in rows.by_ref().take(cells.len()) {
                answers.push(dot(&row[..self.dim], &column[..self.dim]));
            }
        }
        Ok(())
    }

    fn figures(&self, answers: &[f32]) -> RatingMetrics {
        let Self { held, means, range, .. } = *self;
        match self.scale {
            Scale::Known(factor) => figures(held, means, factor, answers, range),
            Scale::Judged(deviation) => {
                let of_cell = |(cell, product): (&Cell, &f32)| {
                    Products::of(means.residual(cell), deviation * f64::from(*product))
                };
                let gain = gain(held.cells.iter().zip(answers).map(of_cell));
                RatingMetrics { gain, ..figures(held, means, gain * deviation, answers, range) }
            }
        }
    }
}

/// Figures over data points that were predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RatingMetrics {
    /// Data points.
    pub predicted: u64,
    /// Those of them with a row or column that train does not know: what is known of the other one was predicted, or the training mean.
    pub unseen: u64,
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
    /// The share of the products of factors that was added to the means, 0 to 1: by these data points if they are selected on.
    pub gain: f64,
}

impl RatingMetrics {
    /// The figures of errors, all of data points that were seen and with all of the products; 0 if there is none. Sums run in order, in
    /// f64.
    pub(crate) fn of(errors: impl Iterator<Item = f64>) -> Self {
        let (mut predicted, mut squares, mut absolute) = (0_u64, 0.0, 0.0);
        for error in errors {
            (predicted, squares, absolute) = (predicted + 1, squares + error * error, absolute + error.abs());
        }
        let over = 1.0 / predicted.max(1) as f64;
        Self { predicted, unseen: 0, rmse: (squares * over).sqrt(), mae: absolute * over, gain: 1.0 }
    }
}

/// Data points that are predicted at once.
const BATCH: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_count_by_their_squares_and_by_their_size() {
        let metrics = RatingMetrics::of([1.0, 0.0, -3.0].into_iter());
        assert_eq!((metrics.predicted, metrics.unseen), (3, 0));
        assert!((metrics.rmse.powi(2) - 10.0 / 3.0).abs() < 1e-12 && (metrics.mae - 4.0 / 3.0).abs() < 1e-12);
        assert_eq!(
            RatingMetrics::of([].into_iter()),
            RatingMetrics { gain: 1.0, ..RatingMetrics::default() }
        );
    }
}
