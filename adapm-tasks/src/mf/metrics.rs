//! How far predictions are off.

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
