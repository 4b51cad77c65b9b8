//! What a run tells when it is done. While it goes, an [`Observer`](crate::run::Observer) is told.

use crate::run::observer::Epoch;
use crate::run::stats::ManagerStats;
use crate::wv::analogy::AnalogyReport;
use crate::wv::checkpoint::Checkpoint;

/// Result of a training run, complete or stopped: the same on all nodes if they are processes, but for `checkpoint`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrainReport {
    /// Every finished epoch. Examples are words of the vocabulary, also those that were thinned; the loss is the mean over the
    /// pairs of a sample of the text that is the same for all epochs.
    pub epochs: Vec<Epoch<AnalogyReport>>,
    /// Answers with the vectors of the last epoch; `None` without questions, or if stopped.
    pub analogies: Option<AnalogyReport>,
    /// Seconds that answering took.
    pub analogies_seconds: f64,
    /// The manager's counts of training.
    pub stats: ManagerStats,
    /// The vectors of the last epoch, if [`TrainConfig::checkpoint`](crate::wv::TrainConfig::checkpoint) asks for them; on
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
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EvalReport {
    /// The answers; `None` if stopped.
    pub analogies: Option<AnalogyReport>,
    /// Seconds it took.
    pub seconds: f64,
    /// The manager's counts.
    pub stats: ManagerStats,
    /// The stop flag ended the evaluation early.
    pub stopped: bool,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers per node that took part.
    pub workers: usize,
}
