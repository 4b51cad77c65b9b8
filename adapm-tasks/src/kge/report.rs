//! What a run tells while it goes and when it is done. How it fails is told by [`crate::kge::TaskError`].

use crate::kge::checkpoint::Checkpoint;
use crate::metric::{Rank, RankMetrics};
use crate::run::config::Split;
use crate::run::observer::{Epoch, NoProgress, Observer, Training, Work};
use crate::run::stats::ManagerStats;

/// A long step that is not training, passed to [`Progress::stage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Ranks are computed: queries done, of how many.
    Evaluating(Split, u64, u64),
    /// Other work: done, of how much.
    Working(Work, u64, u64),
}

/// Result of one epoch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EpochReport {
    /// The epoch, from 1.
    pub epoch: u32,
    /// Seconds of training, evaluation not counted.
    pub seconds: f64,
    /// Mean loss per training triple.
    pub loss: f64,
    /// Training triples done.
    pub triples: u64,
    /// Figures on valid, if it was evaluated after this epoch.
    pub valid: Option<RankMetrics>,
    /// Seconds of evaluation.
    pub evaluation_seconds: f64,
    /// The manager's counts of training, evaluation not counted, from the start of the run to the end of this epoch.
    pub stats: ManagerStats,
    /// The manager's counts of this epoch's training alone.
    pub epoch_stats: ManagerStats,
}

/// Result of a training run, complete or stopped: the same on all nodes if they are processes, but for `checkpoint`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrainReport {
    /// Every finished epoch.
    pub epochs: Vec<EpochReport>,
    /// The epoch whose parameters are in `checkpoint`: best on valid; without evaluation the last; 0 = initial values.
    pub chosen_epoch: u32,
    /// Figures on test with the chosen parameters; `None` without evaluation, without test triples, or if stopped.
    pub test: Option<RankMetrics>,
    /// Seconds of the evaluation of test.
    pub test_seconds: f64,
    /// Figures of the frequency baseline ([`frequency_baseline`](crate::kge::frequency_baseline)) on the same triples: on test, or
    /// on valid if that alone was evaluated; `None` if neither was.
    pub baseline: Option<RankMetrics>,
    /// How much frequency counts beside the vectors, as was best on valid ([`TrainConfig::prior`](crate::kge::TrainConfig::prior)).
    pub frequency_weight: f32,
    /// The manager's counts of training, evaluation not counted.
    pub stats: ManagerStats,
    /// Parameters of the chosen epoch, if [`TrainConfig::checkpoint`](crate::kge::TrainConfig::checkpoint) asks for them; on
    /// node 0 only if nodes are processes.
    pub checkpoint: Option<Checkpoint>,
    /// The stop flag ended the run early.
    pub stopped: bool,
    /// Training triples that were held back to select the epoch on, as there was no valid set: their figures are those of valid.
    pub held_back: usize,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers per node that took part.
    pub workers: usize,
    /// Triples of a step: of a chunk, or one if negatives are independent.
    pub chunk: usize,
    /// Negatives of a chunk (shared), or of each side of a triple (independent).
    pub negatives: usize,
}

/// Result of an evaluation, the same on all nodes if they are processes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EvalReport {
    /// The figures.
    pub metrics: RankMetrics,
    /// Those of the frequency baseline ([`frequency_baseline`](crate::kge::frequency_baseline)).
    pub baseline: RankMetrics,
    /// How much frequency counts beside the vectors, as the checkpoint says.
    pub frequency_weight: f32,
    /// Two ranks per triple, in the order of the triples: first of the object, then of the subject. Empty if stopped.
    pub ranks: Vec<Rank>,
    /// Seconds it took.
    pub seconds: f64,
    /// The manager's counts.
    pub stats: ManagerStats,
    /// The stop flag ended the evaluation early: no figures.
    pub stopped: bool,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers per node that took part.
    pub workers: usize,
}

/// Observer of a run, one for each process. Called on a thread of the run, a few times a second; a slow observer slows one
/// worker.
pub trait Progress: Sync {
    /// Training goes on.
    fn training(&self, moment: &Training) {
        let _ = moment;
    }

    /// A step that is not training goes on.
    fn stage(&self, stage: Stage) {
        let _ = stage;
    }

    /// An epoch, and its evaluation if any, is done.
    fn epoch(&self, report: &EpochReport) {
        let _ = report;
    }
}

impl Progress for NoProgress {}

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
