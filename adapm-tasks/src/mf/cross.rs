//! Cross-fitting: the number of epochs, their penalties and the share of the products for few cells, by predictions of cells that were
//! left out.
//!
//! ```text
//!   fit 0   trains on all but the first fifth    \
//!   fit 1   ...         all but the second fifth  \  epoch by epoch, together: the error of all cells, each predicted by
//!   ...                                           /  a fit that does not know it, decides about the penalty, the epoch, the share
//!   fit 19  fifths that were drawn anew thrice   /
//! ```
//!
//! What is trained then has all cells, as many epochs, and the same penalties. Of a hundred cells five held back would tell
//! next to nothing, and a fifth held back would be missed. Runs on plain arrays, in one thread: every node finds the same bits.
//!
//! How a run goes on behind each look at such cells, by which penalty and whether at all, is a [`Descent`].

use std::sync::atomic::{AtomicBool, Ordering};

use adapm_core::Key;

use crate::matrix::dot;
use crate::mf::config::TrainConfig;
use crate::mf::kernel::Rule;
use crate::mf::means::{Products, gain};
use crate::mf::order::{Division, Visits};
use crate::mf::prediction::RatingMetrics;
use crate::mf::ratings::{Ratings, Train};
use crate::mf::residuals::{Residuals, divide};
use crate::mf::selection::Selection;
use crate::mf::step::{Learner, Start, Weights};
use crate::mf::task;
use crate::run::managed::Arrays;
use crate::run::observer::{Observer, Work};
use crate::run::parameters::Parameters;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    pub(crate) epochs: u32,
    /// Of each epoch.
    pub(crate) penalties: Vec<f32>,
    /// The share of the products that is predicted.
    pub(crate) gain: f64,
    /// How far predictions of cells left out are off.
    pub(crate) figures: Option<RatingMetrics>,
}

/// Trains the fits until they make no progress, or as many epochs as are asked for. Raising `stop` ends it with what was found so far.
pub(crate) fn fit(
    ratings: &Ratings,
    config: &TrainConfig,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Choice {
    let Train::Cells { cells, .. } = &ratings.train else { return Choice::default() };
    let draws = (0..DRAWS).flat_map(|draw| divide(ratings, PARTS, config.seed ^ draw << 32));
    let seeds = (0..).map(|fit| config.seed.wrapping_add(fit));
    let mut fits: Vec<Fit<'_>> =
        draws.zip(seeds).map(|(held, seed)| Fit::new(ratings, held, config, seed)).collect();
    // Parts of one draw have no cell in common.
    let left_out: usize = fits[..PARTS].iter().map(|fit| fit.residuals.held_places().len()).sum();
    if left_out == 0 {
        return Choice::default();
    }
    let mut descent = Descent::new(config.penalty_first(SELECTION));
    let mut best = Choice::default();
    let (mut penalties, mut least) = (Vec::new(), f64::INFINITY);
    for epoch in 1..=config.epochs.unwrap_or(EPOCHS_MAX) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        observer.working(Work::Selecting, epoch.into(), 0);
        penalties.push(config.l2.unwrap_or(descent.penalty()));
        let penalty = penalties[penalties.len() - 1];
        if !fits.iter_mut().all(|fit| fit.train(penalty)) {
            // It diverges, which the run is to find out, with the name of a key.
            return Choice { epochs: epoch, penalties, gain: 1.0, figures: None };
        }
        let figures = RatingMetrics { predicted: left_out as u64, ..judge(&mut fits, cells.len()) };
        descent = descent.after(figures.rmse);
        if figures.rmse < least || config.epochs.is_some() {
            least = figures.rmse;
            best =
                Choice { epochs: epoch, penalties: Vec::new(), gain: figures.gain, figures: Some(figures) };
        }
        if config.epochs.is_none() && descent.is_over() {
            break;
        }
    }
    if best.gain == 0.0 {
        best.epochs = 0;
    }
    Choice { penalties, ..best }
}

/// The share of the products to predict, and the errors of all predictions then.
fn judge(fits: &mut [Fit<'_>], cells: usize) -> RatingMetrics {
    let (mut sums, mut predicted) = (vec![Products::default(); cells], Vec::new());
    for fit in fits {
        fit.predict(&mut |place, residual, product| {
            sums[place].add(residual, product);
            predicted.push((residual, product));
        });
    }
    let gain = gain(sums.into_iter());
    let errors = predicted.iter().map(|(residual, product)| residual - gain * product);
    RatingMetrics { gain, ..RatingMetrics::of(errors) }
}

/// A training on plain arrays.
struct Fit<'a> {
    ratings: &'a Ratings,
    residuals: Residuals<'a>,
    visits: Visits,
    weights: Weights,
    learner: Learner,
    arrays: Arrays,
    rule: Rule,
}

impl<'a> Fit<'a> {
    /// Trains on all cells but those at the places `held`.
    fn new(ratings: &'a Ratings, held: Vec<usize>, config: &TrainConfig, seed: u64) -> Self {
        let residuals = Residuals::new(ratings, held);
        let part = Division::new(&residuals, config.order(SELECTION), 1, 1, seed).part(0, &|_, _| {});
        let (rule, start) = (task::rule(config), Start::of(config, seed));
        let shape = task::shape(ratings, rule.value_len());
        Self {
            ratings,
            visits: Visits::new(part, seed, 0, 1),
            weights: Weights::new(&residuals, config.penalty),
            residuals,
            learner: Learner::default(),
            arrays: Arrays::fill(shape, None, seed, |key, value| start.value(key, value), &|_, _| {}),
            rule,
        }
    }

    /// Trains an epoch. Returns false if it diverges.
    fn train(&mut self, penalty: f32) -> bool {
        let Self { ratings, visits, weights, learner, arrays, rule, .. } = self;
        learner.begin(penalty);
        let mut train = |chunk| {
            let trained = learner.train(&chunk, *rule, weights, ratings.rows, arrays);
            trained.map(drop).map_err(drop)
        };
        visits.round(0, &mut train).is_ok()
    }

    /// Passes the place, the residual and the product of each cell that was left out, in units of the ratings.
    fn predict(&mut self, each: &mut dyn FnMut(usize, f64, f64)) {
        let Train::Cells { cells, .. } = &self.ratings.train else { return };
        let (len, dim) = (self.rule.value_len(), self.rule.dim);
        let mut values = vec![0.0; 2 * len];
        for place in self.residuals.held_places() {
            let cell = &cells[*place];
            let keys = [u64::from(cell.row), u64::from(self.ratings.rows) + u64::from(cell.column)].map(Key);
            let Ok(()) = self.arrays.pull(&keys, &mut values);
            let product = f64::from(dot(&values[..dim], &values[len..len + dim]));
            each(*place, self.residuals.means().residual(cell), self.residuals.deviation() * product);
        }
    }
}

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

/// What this is called.
const SELECTION: Selection = Selection::CrossFitted { cells: 0 };
/// Parts that are left out in turn.
const PARTS: usize = 5;
/// How often the parts are drawn.
const DRAWS: u64 = 4;
/// Epochs, at most.
const EPOCHS_MAX: u32 = 100;

const FALL: f64 = 0.995;
const PROGRESS: f64 = 0.999;
const PATIENCE: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mf::residuals::tests::ratings;
    use crate::run::observer::NoProgress;

    #[test]
    fn any_seed_draws_fits() {
        let ratings = ratings();
        for seed in [0, 1, u64::MAX - 1, u64::MAX] {
            let config = TrainConfig { seed, dim: 2, epochs: Some(1), ..TrainConfig::default() };
            let choice = fit(&ratings, &config, &NoProgress, &AtomicBool::new(false));
            assert_eq!(choice.penalties.len(), 1, "{seed}");
            assert!(choice.figures.is_some_and(|figures| figures.rmse.is_finite()), "{seed}");
        }
    }

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
