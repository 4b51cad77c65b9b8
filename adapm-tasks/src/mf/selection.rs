//! On which cells the epoch, the penalty and the share of the products are selected, and what is trained on then.
//!
//! | by | when | trained on | known |
//! | --- | --- | --- | --- |
//! | valid | the data has such a part | all of train | epoch by epoch |
//! | generated cells | the matrix is generated | all of train | epoch by epoch |
//! | cross-fitting | train has at most 10,000 cells, and at most 2^19 factors | all of train | before training |
//! | cells held back | train is larger | train without them | epoch by epoch |
//! | nothing | it is not wanted | all of train | |

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

use crate::mf::config::TrainConfig;
use crate::mf::cross::{self, Choice, Descent};
use crate::mf::prediction::RatingMetrics;
use crate::mf::ratings::{Held, Ratings};
use crate::mf::residuals::{Residuals, draw};
use crate::run::observer::Observer;

/// Cells that a run selects on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selection {
    /// The valid part of the data.
    Valid {
        /// Its cells.
        cells: u64,
    },
    /// Cells that are generated beside those to train on.
    Generated {
        /// Their number.
        cells: u64,
    },
    /// Cells of train that are not trained on: a twentieth, at most 10,000, of no row and no column the last.
    HeldBack {
        /// Their number.
        cells: u64,
        /// Cells of train.
        of: u64,
    },
    /// Each fifth of train in turn, predicted from the others by a training of its own, four times over with other fifths.
    CrossFitted {
        /// Cells of train.
        cells: u64,
    },
    /// None: as many epochs as there are, with the same penalty, and what came out last.
    Nothing,
}

impl Selection {
    /// How a run with this configuration selects. There may be fewer cells to hold back than it says.
    #[must_use]
    pub fn planned(ratings: &Ratings, config: &TrainConfig) -> Self {
        let (all, keys) = (ratings.train_len(), ratings.rows() as u64 + ratings.columns() as u64);
        if config.evaluate && ratings.valid_len() > 0 {
            return Self::Valid { cells: ratings.valid_len() as u64 };
        }
        if !config.evaluate || !config.holds_back {
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
    /// What is trained on.
    pub(crate) residuals: Residuals<'a>,
    pub(crate) selection: Selection,
    /// What is looked at between epochs, if anything is.
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
    /// Draws cells to hold back, or finds out by cross-fitting what is selected; takes off means. The same bits on every node. Raising
    /// `stop` ends it early.
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
            Selection::Generated { cells } => valid = Some(Cow::Owned(ratings.generate_valid(*cells as u32))),
            Selection::HeldBack { cells, .. } => {
                held = draw(ratings, *cells as usize, config.seed);
                *cells = held.len() as u64;
            }
            Selection::CrossFitted { .. } | Selection::Nothing => {}
        }
        let residuals = Residuals::new(ratings, held);
        if let Selection::HeldBack { .. } = selection {
            valid = Some(Cow::Owned(residuals.held()));
        }
        let choice = match selection {
            Selection::CrossFitted { .. } => cross::fit(ratings, config, observer, stop),
            // Of what no look can tell, nothing is believed.
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

    /// The same run without what cross-fitting found: where a stop cut it short, that differs between processes.
    pub(crate) fn without_choice(self, config: &TrainConfig) -> Self {
        let Selection::CrossFitted { .. } = self.selection else { return self };
        let schedule = match self.schedule {
            Schedule::Listed(_) => Schedule::Listed(Vec::new()),
            other => other,
        };
        let epochs = config.epochs.unwrap_or(EPOCHS_MAX);
        Self { epochs, gain: 0.0, cross_fitted: None, schedule, ..self }
    }

    /// The penalty of the epoch behind some, of which these are the errors on what is selected on, where it was looked at.
    pub(crate) fn penalty(&self, epochs: usize, errors: impl Iterator<Item = f64>) -> f32 {
        match &self.schedule {
            Schedule::Constant(penalty) => *penalty,
            Schedule::Listed(penalties) => {
                penalties.get(epochs).or(penalties.last()).copied().unwrap_or_default()
            }
            Schedule::Falling(first) => errors.fold(*first, Descent::after).penalty(),
        }
    }

    /// Returns true if training ends behind epochs with these errors.
    pub(crate) fn is_over(&self, errors: impl Iterator<Item = f64>) -> bool {
        self.ends_early && errors.fold(Descent::new(0.0), Descent::after).is_over()
    }

    /// What was found by cross-fitting, in a few words that differ if it differs.
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

/// One in so many cells is held back.
const HELD_SHARE: u64 = 20;
const HELD_MAX: u64 = 10_000;
/// Cells of train up to which they are left out in turn: beyond that, a twentieth is enough to select on.
const CROSS_CELLS_MAX: u64 = 10_000;
/// Factors of all rows and columns up to which it is done: each training of its own has them in memory.
const CROSS_FACTORS_MAX: u64 = 1 << 19;
/// Epochs of a run that selects nothing.
const EPOCHS: u32 = 20;
/// Epochs of a run that ends when it makes no progress.
const EPOCHS_MAX: u32 = 100;
