//! What a run tells when it is done. How it fails is told by [`TaskError`](crate::run::TaskError).

use crate::mf::checkpoint::Checkpoint;
use crate::mf::metrics::RatingMetrics;
use crate::run::observer::Epoch;
use crate::run::stats::ManagerStats;

/// Result of a training run, complete or stopped: the same on all nodes if they are processes, but for `checkpoint`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrainReport {
    /// Every finished epoch.
    pub epochs: Vec<Epoch<RatingMetrics>>,
    /// The epoch whose parameters are in `checkpoint`: best on valid; without valid the last; 0 = initial values.
    pub chosen_epoch: u32,
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
