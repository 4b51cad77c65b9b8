//! Epochs as they are reported to screens and programs, and the words of a task.

use crate::run::{Epoch, ManagerStats};

/// A task's words for what it does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Labels {
    /// Training examples.
    pub(crate) examples: &'static str,
    /// The verb of evaluating held-out data.
    pub(crate) evaluating: &'static str,
    /// The figure by which an epoch is selected on valid.
    pub(crate) quality: &'static str,
}

/// The figures of a task, as a screen shows them.
pub(crate) trait Figure {
    /// The number that an item counts for in an evaluation.
    const COUNTED: u64 = 1;

    /// Returns the figure by which an epoch is compared with others.
    fn figure(&self) -> f64;
}

/// An epoch that is over, of any task.
#[derive(Clone, Debug)]
pub(crate) struct EpochDone {
    pub(crate) epoch: u32,
    /// Of training.
    pub(crate) seconds: f64,
    /// Mean over examples.
    pub(crate) loss: f64,
    pub(crate) examples: u64,
    /// The figure on valid, if it was evaluated.
    pub(crate) valid: Option<f64>,
    pub(crate) evaluation_seconds: f64,
    /// Of this epoch's training.
    pub(crate) stats: ManagerStats,
}

impl EpochDone {
    pub(crate) fn new<F: Figure>(epoch: &Epoch<F>) -> Self {
        Self {
            epoch: epoch.epoch,
            seconds: epoch.seconds,
            loss: epoch.loss,
            examples: epoch.examples,
            valid: epoch.valid.as_ref().map(F::figure),
            evaluation_seconds: epoch.evaluation_seconds,
            stats: epoch.epoch_stats,
        }
    }
}
