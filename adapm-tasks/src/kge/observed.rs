//! What the observer of a run on a graph is told.

use crate::kge::report::{EpochReport, Progress, Stage};
use crate::metric::RankMetrics;
use crate::run::config::Split;
use crate::run::observer::{Epoch, Observer, Training, Work};

/// Passes on what a run tells.
pub(crate) struct Observed<'a>(pub(crate) &'a dyn Progress);

impl Observer<RankMetrics> for Observed<'_> {
    fn training(&self, moment: &Training) {
        self.0.training(moment);
    }

    fn evaluating(&self, split: Split, done: u64, all: u64) {
        // Two queries a triple.
        self.0.stage(Stage::Evaluating(split, 2 * done, 2 * all));
    }

    fn working(&self, work: Work, done: u64, all: u64) {
        self.0.stage(Stage::Working(work, done, all));
    }

    fn epoch(&self, epoch: &Epoch<RankMetrics>) {
        self.0.epoch(&EpochReport::from(epoch.clone()));
    }
}

impl From<Epoch<RankMetrics>> for EpochReport {
    fn from(epoch: Epoch<RankMetrics>) -> Self {
        let Epoch { epoch, seconds, loss, examples, valid, evaluation_seconds, stats, epoch_stats } = epoch;
        Self { epoch, seconds, loss, triples: examples, valid, evaluation_seconds, stats, epoch_stats }
    }
}
