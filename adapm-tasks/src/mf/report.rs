//! What a run tells when it is done. How it fails is told by [`TaskError`](crate::run::TaskError).

use crate::mf::checkpoint::Checkpoint;
use crate::mf::metrics::RatingMetrics;
use crate::mf::selection::Selection;
use crate::run::observer::Epoch;
use crate::run::stats::ManagerStats;

/// Result of a training run, complete or stopped: the same on all nodes if they are processes, but for `checkpoint`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrainReport {
    /// Every finished epoch.
    pub epochs: Vec<Epoch<RatingMetrics>>,
    /// Epochs that there were to be, at most.
    pub epochs_max: u32,
    /// The epoch whose parameters are in `checkpoint`: best on what is selected on between epochs, else the last; 0 = none, the means
    /// alone.
    pub chosen_epoch: u32,
    /// What it was selected on.
    pub selection: Selection,
    /// Figures there of the chosen epoch, or of the predictions of cross-fitting.
    pub selected: Option<RatingMetrics>,
    /// The share of the products that is predicted: 0 if the factors did not predict better than the means what they were selected on.
    pub gain: f64,
    /// Figures of the means alone on test, if that was evaluated: the baseline.
    pub means: Option<RatingMetrics>,
    /// Figures on test with the chosen parameters; `None` without evaluation, without test data, or if stopped.
    pub test: Option<RatingMetrics>,
    /// Seconds of the evaluation of test.
    pub test_seconds: f64,
    /// The manager's counts of training, evaluation not counted.
    pub stats: ManagerStats,
    /// Parameters of the chosen epoch, if [`TrainConfig::checkpoint`](crate::mf::TrainConfig::checkpoint) asks for them; on
    /// node 0 only if nodes are processes.
    pub checkpoint: Option<Checkpoint>,
    /// The stop flag ended the run early.
    pub stopped: bool,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers per node that took part.
    pub workers: usize,
}

/// Result of an evaluation, the same on all nodes if they are processes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EvalReport {
    /// The figures; `None` if stopped.
    pub metrics: Option<RatingMetrics>,
    /// Figures of the means alone: the baseline; `None` if stopped.
    pub means: Option<RatingMetrics>,
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
