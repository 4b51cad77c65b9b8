//! Epochs as they are reported to screens and programs, and the words and figures of a task.

use crate::metric::Auc;
use crate::run::{Epoch, ManagerStats};

/// A task's words for what it does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Labels {
    /// Training examples: `triples`.
    pub examples: &'static str,
    /// The verb of evaluating held-out data: `ranking`.
    pub evaluating: &'static str,
    /// Evaluated items: `queries`.
    pub items: &'static str,
    /// The figure by which an epoch is selected on valid: `MRR`.
    pub quality: &'static str,
}

/// The figures of an evaluation, as screens and programs are shown them.
pub trait Figures: Clone + Send {
    /// The number that an item counts for in an evaluation.
    const COUNTED: u64 = 1;

    /// Returns the figure by which an epoch is compared with others.
    fn figure(&self) -> f64;

    /// Returns the number of what was evaluated, [`Labels::items`].
    fn items(&self) -> u64;

    /// Returns all figures by name; the names are those of `--json`.
    fn named(&self) -> Vec<(&'static str, f64)> {
        vec![("figure", self.figure())]
    }
}

impl Figures for Auc {
    fn figure(&self) -> f64 {
        self.auc
    }

    fn items(&self) -> u64 {
        self.items
    }

    fn named(&self) -> Vec<(&'static str, f64)> {
        vec![("auc", self.auc)]
    }
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
    pub(crate) fn new<F: Figures>(epoch: &Epoch<F>) -> Self {
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
