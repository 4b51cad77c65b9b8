//! How a run goes on behind each look at cells that it is not trained on: with which penalty, and whether at all.

/// The penalty of the next epoch, and the epochs without progress, by the errors so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Descent {
    penalty: f32,
    last: f64,
    best: f64,
    /// Errors behind the best.
    idle: u32,
}

impl Descent {
    /// Begins with a penalty.
    pub(crate) fn new(penalty: f32) -> Self {
        Self { penalty, last: f64::INFINITY, best: f64::INFINITY, idle: 0 }
    }

    /// Goes on behind an error: halves the penalty if the error has not fallen by half a percent.
    #[must_use]
    pub(crate) fn after(self, error: f64) -> Self {
        let falls = error <= FALL * self.last;
        // Not even an error of 0 goes on for ever.
        let progresses = error < PROGRESS * self.best;
        Self {
            penalty: if falls { self.penalty } else { 0.5 * self.penalty },
            last: error,
            best: if progresses { error } else { self.best },
            idle: if progresses { 0 } else { self.idle + 1 },
        }
    }

    /// The penalty of the next epoch.
    pub(crate) fn penalty(&self) -> f32 {
        self.penalty
    }

    /// Returns true if five errors in a row were not a thousandth below the best before them.
    pub(crate) fn is_over(&self) -> bool {
        self.idle >= PATIENCE
    }
}

const FALL: f64 = 0.995;
const PROGRESS: f64 = 0.999;
const PATIENCE: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn after(errors: &[f64]) -> Descent {
        errors.iter().fold(Descent::new(0.12), |descent, error| descent.after(*error))
    }

    #[test]
    fn the_penalty_is_halved_where_the_error_hardly_falls() {
        assert_eq!(after(&[]).penalty(), 0.12);
        assert_eq!(after(&[1.0, 0.9, 0.8]).penalty(), 0.12);
        assert_eq!(after(&[1.0, 0.996, 0.9]).penalty(), 0.06);
        assert_eq!(after(&[1.0, 1.1, f64::NAN]).penalty(), 0.03);
    }

    #[test]
    fn five_errors_without_progress_are_the_end() {
        assert!(!after(&[1.0, 1.0, 1.0, 1.0, 1.0]).is_over());
        assert!(after(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0]).is_over());
        assert!(!after(&[1.0, 1.0, 1.0, 1.0, 1.0, 0.998]).is_over());
        assert!(after(&[0.0; 6]).is_over() && after(&[f64::NAN; 6]).is_over());
    }
}
