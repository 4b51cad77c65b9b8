//! What a run tells while it goes. How it fails is told by [`TaskError`](crate::run::TaskError).

use crate::run::config::Split;
use crate::run::stats::ManagerStats;

/// A moment of training, passed to [`Observer::training`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Training {
    /// The running epoch, from 1.
    pub epoch: u32,
    /// Epochs of the run.
    pub epochs: u32,
    /// It may end before, if epochs make no progress.
    pub may_end_early: bool,
    /// Training examples done in this epoch, over all workers. While an epoch runs and nodes are processes, what this node
    /// has done, times the number of nodes: all have equal parts.
    pub done: u64,
    /// Training examples of an epoch.
    pub total: u64,
    /// Mean loss per training example so far in this epoch; while it runs, over the workers of this process, or no number (NaN) if
    /// the task judges each epoch in its end.
    pub loss: f64,
    /// Seconds of training in this epoch so far.
    pub seconds: f64,
    /// The manager's counts in this epoch, of the nodes in this process.
    pub stats: ManagerStats,
}

impl Training {
    /// Training examples per second in this epoch.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        if self.seconds > 0.0 { self.done as f64 / self.seconds } else { 0.0 }
    }
}

/// What a run does beside training and evaluating, passed to [`Observer::working`]. Takes a while if parameters or data are large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// Gives every key its value at the start, of training or of an evaluation; counted in keys.
    Initializing,
    /// Selects what training begins with, on small data; counted in epochs, of which nobody knows how many it takes.
    Selecting,
    /// Divides the data among workers; counted in parts of the data.
    Dividing,
    /// Waits until keys are where workers have announced that they will need them first; not counted.
    Settling,
    /// Copies the parameters that are kept; counted in keys.
    Copying,
}

/// One epoch of a run, whose evaluations give `F`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Epoch<F> {
    /// The epoch, from 1.
    pub epoch: u32,
    /// Seconds of training, evaluation not counted.
    pub seconds: f64,
    /// Mean loss per training example, or per pair of a fixed sample (word vectors).
    pub loss: f64,
    /// Training examples done.
    pub examples: u64,
    /// Figures on valid, if it was evaluated after this epoch.
    pub valid: Option<F>,
    /// Seconds of evaluation.
    pub evaluation_seconds: f64,
    /// The manager's counts of training, evaluation not counted, from the start of the run to the end of this epoch.
    pub stats: ManagerStats,
    /// The manager's counts of this epoch's training alone.
    pub epoch_stats: ManagerStats,
}

/// Observer of a run, one for each process. Called on a thread of the run, a few times a second; a slow observer slows one
/// worker.
pub trait Observer<F>: Sync {
    /// Training goes on.
    fn training(&self, moment: &Training) {
        let _ = moment;
    }

    /// An evaluation goes on: `done` of `all` items.
    fn evaluating(&self, split: Split, done: u64, all: u64) {
        let _ = (split, done, all);
    }

    /// Work goes on that is neither: `done` of `all`, in a group as far as this process knows.
    fn working(&self, work: Work, done: u64, all: u64) {
        let _ = (work, done, all);
    }

    /// An epoch, and its evaluation if any, is done.
    fn epoch(&self, epoch: &Epoch<F>) {
        let _ = epoch;
    }
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl<F> Observer<F> for NoProgress {}
