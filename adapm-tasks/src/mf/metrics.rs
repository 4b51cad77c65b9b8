//! How far predictions are off.

use crate::mf::cell::Cell;

/// Figures over data points that were predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RatingMetrics {
    /// Data points.
    pub predicted: u64,
    /// Those of them with a row or column that train does not know: the training mean was predicted.
    pub unseen: u64,
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
}

impl RatingMetrics {
    /// The figures of `cells` with a prediction for each, and of the values of unseen ones, for which `mean` is predicted. All
    /// are 0 if there is none. The sum runs in order, in f64.
    pub(crate) fn of(cells: &[Cell], predictions: &[f32], unseen: &[f32], mean: f64) -> Self {
        let seen = cells.iter().zip(predictions);
        let seen = seen.map(|(cell, prediction)| f64::from(cell.value) - f64::from(*prediction));
        let errors = seen.chain(unseen.iter().map(|value| f64::from(*value) - mean));
        let (mut predicted, mut squares, mut absolute) = (0_u64, 0.0, 0.0);
        for error in errors {
            (predicted, squares, absolute) = (predicted + 1, squares + error * error, absolute + error.abs());
        }
        let over = 1.0 / predicted.max(1) as f64;
        let (rmse, mae) = ((squares * over).sqrt(), absolute * over);
        Self { predicted, unseen: unseen.len() as u64, rmse, mae }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_ones_count_with_the_mean() {
        let cell = |value| Cell { value, ..Cell::default() };
        let metrics = RatingMetrics::of(&[cell(1.0), cell(2.0)], &[2.0, 2.0], &[5.0], 2.0);
        assert_eq!((metrics.predicted, metrics.unseen), (3, 1));
        assert!((metrics.rmse.powi(2) - 10.0 / 3.0).abs() < 1e-12 && (metrics.mae - 4.0 / 3.0).abs() < 1e-12);
        assert_eq!(RatingMetrics::of(&[], &[], &[], 2.0), RatingMetrics::default());
    }
}
