//! The share of predictions that is worth adding, judged on cells that they were not made from.
//!
//! For residuals `r` and predictions `p` of them, the factor with the least squared error is `g = sum(r p) / sum(p p)`. Its standard
//! error is `sqrt(sum((p (r - g p))^2)) / sum(p p)`, which holds whatever the deviation of each residual (White 1980). What is
//! added is `g` less one standard error, between 0 and 1 times the predictions: nothing where it might as well be noise, nearly
//! all of it where there are many cells.

/// Sums over the predictions of one cell, which may have been left out several times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Products {
    /// Of residual times prediction.
    pub(crate) crossed: f64,
    /// Of squared predictions.
    pub(crate) squared: f64,
}

impl Products {
    /// Adds a prediction of a residual.
    pub(crate) fn add(&mut self, residual: f64, prediction: f64) {
        self.crossed += residual * prediction;
        self.squared += prediction * prediction;
    }

    /// One prediction of a residual.
    pub(crate) fn of(residual: f64, prediction: f64) -> Self {
        let mut products = Self::default();
        products.add(residual, prediction);
        products
    }
}

/// The factor for predictions, 0 to 1, by the sums of each cell; 0 if there are fewer than two cells.
pub(crate) fn gain(cells: impl Iterator<Item = Products>) -> f64 {
    let (mut count, mut all, mut squares) = (0.0, Products::default(), [0.0; 3]);
    cells.for_each(|Products { crossed, squared }| {
        count += 1.0;
        all = Products { crossed: all.crossed + crossed, squared: all.squared + squared };
        squares[0] += crossed * crossed;
        squares[1] += crossed * squared;
        squares[2] += squared * squared;
    });
    let best = all.crossed / all.squared;
    // The sum of (crossed - best * squared)^2.
    let square = (squares[0] - 2.0 * best * squares[1] + best * best * squares[2]).max(0.0);
    let gain = best - (square * count / (count - 1.0)).sqrt() / all.squared;
    // It is no number if there is one cell, or no prediction but 0.
    if best.is_finite() && gain > 0.0 { gain.min(1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> f64 {
        gain(pairs.iter().map(|(residual, prediction)| Products::of(*residual, *prediction)))
    }

    #[test]
    fn exact_predictions_count_in_full_and_useless_ones_not_at_all() {
        assert_eq!(of(&[(1.0, 1.0), (-2.0, -2.0), (0.5, 0.5)]), 1.0);
        assert_eq!(of(&[(1.0, 2.0), (-2.0, -4.0), (0.5, 1.0)]), 0.5);
        assert_eq!(of(&[(1.0, 0.25), (-2.0, -0.5)]), 1.0, "never more than in full");
        for useless in [&[][..], &[(1.0, 1.0)], &[(1.0, 0.0), (2.0, 0.0)], &[(1.0, -1.0), (2.0, -2.0)]] {
            assert_eq!(of(useless), 0.0, "{useless:?}");
        }
        assert_eq!(of(&[(f64::NAN, 1.0), (1.0, 1.0)]), 0.0);
        assert_eq!(of(&[(f64::INFINITY, 1.0), (1.0, 1.0)]), 0.0);
    }

    #[test]
    fn one_standard_error_is_taken_off() {
        // Four residuals 1 +- 0.5 of predictions 1: g = 1, standard error sqrt(4 / 3) * sqrt(4 * 0.25) / 4.
        let expected = 1.0 - (4.0_f64 / 3.0).sqrt() / 4.0;
        assert!((of(&[(1.5, 1.0), (0.5, 1.0), (1.5, 1.0), (0.5, 1.0)]) - expected).abs() < 1e-12);
    }
}
