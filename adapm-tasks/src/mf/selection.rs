//! On which cells the epoch, the penalty and the share of the products are selected, and what is
//! trained on then.
//!
//! | by | when | trained on | known |
//! | --- | --- | --- | --- |
//! | valid | the data has such a part | all of train | epoch by epoch |
//! | generated cells | the matrix is generated | all of train | epoch by epoch |
//! | cross-fitting | train has at most 10,000 cells, and at most 2^19 factors | all of train | before training |
//! | cells held back | train is larger | train without them | epoch by epoch |
//! | nothing | it is not wanted | all of train | |
//!
//! # Cross-fitting
//! The number of epochs, their penalties and the share of the products for few cells are found by
//! predictions of cells that were left out.
//!
//! ```text
//!   fit 0   trains on all but the first fifth    \
//!   fit 1   ...         all but the second fifth  \  epoch by epoch, together: the error of all cells, each predicted by
//!   ...                                           /  a fit that does not know it, decides about the penalty, the epoch, the share
//!   fit 19  fifths that were drawn anew thrice   /
//! ```
//!
//! What is trained then has all cells, as many epochs, and the same penalties. With a hundred cells
//! in all, five held back would tell next to nothing, and a fifth held back would be missing in
//! training. Runs on plain arrays, in one thread: every node finds the same bits.
//!
//! After each look at such cells a [`Descent`] decides whether the run goes on, and with which
//! penalty.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use adapm_core::Key;

use crate::matrix::dot;
use crate::mf::config::{Selection, TrainConfig};
use crate::mf::kernel::Rule;
use crate::mf::order::{Division, Visits};
use crate::mf::prediction::{Products, RatingMetrics, gain};
use crate::mf::ratings::{Held, Ratings, Train};
use crate::mf::residuals::{Residuals, divide, draw};
use crate::mf::step::{Start, Weights, WorkerState};
use crate::run::WorkerSlot;
use crate::run::managed::Arrays;
use crate::run::observer::{Observer, Work};
use crate::run::parameters::Parameters;
use crate::run::queue::Round;

impl Selection {
    /// Returns the selection of a run with this configuration. There may be fewer cells to hold
    /// back than it says.
    #[must_use]
    pub fn planned(ratings: &Ratings, config: &TrainConfig) -> Self {
        let (all, keys) = (ratings.train_len(), ratings.rows() as u64 + ratings.columns() as u64);
        if !config.run.no_eval && ratings.valid_len() > 0 {
            return Self::Valid { cells: ratings.valid_len() as u64 };
        }
        if config.run.no_eval || config.no_hold_back {
            return Self::Nothing;
        }
        if ratings.is_generated() {
            return Self::Generated { cells: all.min(HELD_MAX) };
        }
        if all <= CROSS_CELLS_MAX && keys.saturating_mul(config.dim as u64) <= CROSS_FACTORS_MAX {
            return Self::CrossFitted { cells: all };
        }
        Self::HeldBack { cells: (all / HELD_SHARE).clamp(1, HELD_MAX), of: all }
    }
}

/// Weights of squared norms, epoch by epoch.
#[derive(Clone, Debug, PartialEq)]
enum Schedule {
    Constant(f32),
    /// Of each epoch.
    Listed(Vec<f32>),
    /// By the errors on the cells that are selected on.
    Falling(Descent),
}

/// A run that can begin.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    /// The training cells.
    pub(crate) residuals: Residuals<'a>,
    pub(crate) selection: Selection,
    /// The cells that are evaluated between epochs, if any.
    pub(crate) valid: Option<Cow<'a, Held>>,
    /// Epochs, at most.
    pub(crate) epochs: u32,
    /// Ends when epochs make no progress.
    pub(crate) ends_early: bool,
    /// The share of the products that is predicted, if it is not selected between epochs.
    pub(crate) gain: f64,
    /// Figures on cells left out in turn.
    pub(crate) cross_fitted: Option<RatingMetrics>,
    schedule: Schedule,
}

impl<'a> Prepared<'a> {
    /// Draws cells to hold back, or finds out by cross-fitting what is selected; takes off means.
    /// The same bits on every node. Raising `stop` ends it early.
    pub(crate) fn new(
        ratings: &'a Ratings,
        config: &TrainConfig,
        observer: &dyn Observer<RatingMetrics>,
        stop: &AtomicBool,
    ) -> Self {
        let mut selection = Selection::planned(ratings, config);
        let (mut held, mut valid) = (Vec::new(), None);
        match &mut selection {
            Selection::Valid { .. } => valid = Some(Cow::Borrowed(&ratings.valid)),
            Selection::Generated { cells } => {
                valid = Some(Cow::Owned(ratings.generate_valid(*cells as u32)))
            }
            Selection::HeldBack { cells, .. } => {
                held = draw(ratings, *cells as usize, config.run.seed);
                *cells = held.len() as u64;
            }
            Selection::CrossFitted { .. } | Selection::Nothing => {}
        }
        let residuals = Residuals::new(ratings, held);
        if let Selection::HeldBack { .. } = selection {
            valid = Some(Cow::Owned(residuals.held()));
        }
        let choice = match selection {
            Selection::CrossFitted { .. } => fit(ratings, config, observer, stop),
            // Without cells to look at there is no basis for a choice.
            Selection::HeldBack { cells: 0, .. } => Choice::default(),
            _ if residuals.deviation() == 0.0 => Choice::default(),
            Selection::Nothing => Choice { epochs: EPOCHS, gain: 1.0, ..Choice::default() },
            _ => Choice { epochs: EPOCHS_MAX, gain: 1.0, ..Choice::default() },
        };
        let epochs = config.epochs.unwrap_or(choice.epochs);
        let first = config.penalty_first(selection);
        let schedule = match (config.l2, selection) {
            (Some(_), _) | (None, Selection::Nothing) => Schedule::Constant(first),
            (None, Selection::CrossFitted { .. }) => Schedule::Listed(choice.penalties),
            (None, _) => Schedule::Falling(Descent::new(first)),
        };
        Self {
            residuals,
            selection,
            ends_early: config.epochs.is_none() && valid.is_some(),
            valid: valid.filter(|held| held.len() > 0),
            epochs,
            // Products of initial values predict nothing.
            gain: if epochs == 0 { 0.0 } else { choice.gain },
            cross_fitted: choice.figures,
            schedule,
        }
    }

    /// Returns the same run without what cross-fitting found: where a stop cut it short, that
    /// differs between processes.
    pub(crate) fn without_choice(self, config: &TrainConfig) -> Self {
        let Selection::CrossFitted { .. } = self.selection else { return self };
        let schedule = match self.schedule {
            Schedule::Listed(_) => Schedule::Listed(Vec::new()),
            other => other,
        };
        let epochs = config.epochs.unwrap_or(EPOCHS_MAX);
        Self { epochs, gain: 0.0, cross_fitted: None, schedule, ..self }
    }

    /// Returns the penalty of the next epoch. `errors` are those of the epochs before it on the
    /// cells that are selected on, where these were looked at.
    pub(crate) fn penalty(&self, epochs: usize, errors: impl Iterator<Item = f64>) -> f32 {
        match &self.schedule {
            Schedule::Constant(penalty) => *penalty,
            Schedule::Listed(penalties) => {
                penalties.get(epochs).or(penalties.last()).copied().unwrap_or_default()
            }
            Schedule::Falling(first) => errors.fold(*first, Descent::after).penalty(),
        }
    }

    /// Returns true if training ends after epochs with these errors.
    pub(crate) fn is_over(&self, errors: impl Iterator<Item = f64>) -> bool {
        self.ends_early && errors.fold(Descent::new(0.0), Descent::after).is_over()
    }

    /// Describes the findings of cross-fitting, in a few words that differ if they differ.
    pub(crate) fn found(&self) -> String {
        let Self { epochs, gain, schedule, .. } = self;
        match schedule {
            Schedule::Listed(penalties) => {
                let last = penalties.last().copied().unwrap_or_default();
                format!("{epochs} epochs, {gain}, {last}")
            }
            _ => "nothing".to_owned(),
        }
    }
}

/// The choices that cross-fitting found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    pub(crate) epochs: u32,
    /// Of each epoch.
    pub(crate) penalties: Vec<f32>,
    /// The share of the products that is predicted.
    pub(crate) gain: f64,
    /// The errors of predictions of cells left out.
    pub(crate) figures: Option<RatingMetrics>,
}

/// Trains the fits until they make no progress, or as many epochs as are asked for. Raising `stop`
/// ends it with what was found so far.
pub(crate) fn fit(
    ratings: &Ratings,
    config: &TrainConfig,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Choice {
    let Train::Cells(cells) = &ratings.train else { return Choice::default() };
    let draws = (0..DRAWS).flat_map(|draw| divide(ratings, PARTS, config.run.seed ^ draw << 32));
    let seeds = (0..).map(|fit| config.run.seed.wrapping_add(fit));
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
        if !fits.iter_mut().all(|fit| fit.train(epoch, penalty)) {
            // It diverges, which the run is to find out, with the name of a key.
            return Choice { epochs: epoch, penalties, gain: 1.0, figures: None };
        }
        let figures = RatingMetrics { predicted: left_out as u64, ..judge(&mut fits, cells.len()) };
        descent = descent.after(figures.rmse);
        if figures.rmse < least || config.epochs.is_some() {
            least = figures.rmse;
            best = Choice {
                epochs: epoch,
                penalties: Vec::new(),
                gain: figures.gain,
                figures: Some(figures),
            };
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

/// Returns the share of the products to predict, and the errors of all predictions then.
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
    worker_state: WorkerState,
    arrays: Arrays,
    rule: Rule,
}

impl<'a> Fit<'a> {
    /// Trains on all cells but those at the places `held`.
    fn new(ratings: &'a Ratings, held: Vec<usize>, config: &TrainConfig, seed: u64) -> Self {
        let residuals = Residuals::new(ratings, held);
        let part = Division::new(&residuals, config.order(SELECTION), &[1], seed)
            .part(WorkerSlot::ONLY, &|_, _| {});
        let (rule, start) = (Rule::of(config), Start::of(config, seed));
        let shape = ratings.shape(rule.value_len());
        Self {
            ratings,
            visits: Visits::new(part, seed, 0, 1),
            weights: Weights::new(&residuals, config.penalty),
            residuals,
            worker_state: WorkerState::default(),
            arrays: Arrays::fill(shape, None, |key, value| start.value(key, value), &|_, _| {}),
            rule,
        }
    }

    /// Trains an epoch. Returns false if it diverges.
    fn train(&mut self, epoch: u32, penalty: f32) -> bool {
        let Self { ratings, visits, weights, worker_state, arrays, rule, .. } = self;
        worker_state.begin(penalty);
        let mut train = |chunk| {
            let trained = worker_state.train(&chunk, *rule, weights, ratings.rows, arrays);
            trained.map(drop).map_err(drop)
        };
        visits.round(Round { epoch, index: 0 }, 0, &mut train).is_ok()
    }

    /// Passes the place, the residual and the product of each cell that was left out, in units of
    /// the ratings.
    fn predict(&mut self, each: &mut dyn FnMut(usize, f64, f64)) {
        let Train::Cells(cells) = &self.ratings.train else { return };
        let (len, dim) = (self.rule.value_len(), self.rule.dim);
        let mut values = vec![0.0; 2 * len];
        for place in self.residuals.held_places() {
            let cell = &cells[*place];
            let keys = [u64::from(cell.row), u64::from(self.ratings.rows) + u64::from(cell.column)]
                .map(Key);
            let Ok(()) = self.arrays.pull(&keys, &mut values);
            let product = f64::from(dot(&values[..dim], &values[len..len + dim]));
            each(
                *place,
                self.residuals.means().residual(cell),
                self.residuals.deviation() * product,
            );
        }
    }
}

/// The penalty of the next epoch, and the epochs without progress, by the errors so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Descent {
    penalty: f32,
    last: f64,
    best: f64,
    /// Number of errors since the best one.
    idle: u32,
}

impl Descent {
    /// Begins with a penalty.
    pub(crate) fn new(penalty: f32) -> Self {
        Self { penalty, last: f64::INFINITY, best: f64::INFINITY, idle: 0 }
    }

    /// Goes on after an error: halves the penalty if the error has not fallen by half a percent.
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

    /// Returns the penalty of the next epoch.
    pub(crate) fn penalty(&self) -> f32 {
        self.penalty
    }

    /// Returns true if five errors in a row were not a thousandth below the best before them.
    pub(crate) fn is_over(&self) -> bool {
        self.idle >= PATIENCE
    }
}

/// One in so many cells is held back.
const HELD_SHARE: u64 = 20;
const HELD_MAX: u64 = 10_000;
/// Cells of train up to which they are left out in turn: beyond that, a twentieth is enough to
/// select on.
const CROSS_CELLS_MAX: u64 = 10_000;
/// Factors of all rows and columns up to which it is done: each training of its own has them in
/// memory.
const CROSS_FACTORS_MAX: u64 = 1 << 19;
/// Epochs of a run that selects nothing.
const EPOCHS: u32 = 20;
/// Epochs of a run that ends when it makes no progress.
const EPOCHS_MAX: u32 = 100;

/// The name of this selection.
const SELECTION: Selection = Selection::CrossFitted { cells: 0 };
/// Parts that are left out in turn.
const PARTS: usize = 5;
/// The number of draws of the parts.
const DRAWS: u64 = 4;

const FALL: f64 = 0.995;
const PROGRESS: f64 = 0.999;
const PATIENCE: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mf::residuals::tests::ratings;
    use crate::run::config::RunConfig;
    use crate::run::observer::NoProgress;

    #[test]
    fn any_seed_draws_fits() {
        let ratings = ratings();
        for seed in [0, 1, u64::MAX - 1, u64::MAX] {
            let run = RunConfig { seed, ..RunConfig::default() };
            let config = TrainConfig { run, dim: 2, epochs: Some(1), ..TrainConfig::default() };
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
