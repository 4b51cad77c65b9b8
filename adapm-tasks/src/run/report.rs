//! Results of training and of evaluation: what those of all tasks have, and beside it what a task
//! found itself.

use adapm_runtime::Workers;

use crate::run::observer::{Epoch, ManagerStats};

/// Result of a training run, complete or stopped: the same on all nodes if they are processes, but
/// for `checkpoint`. Its evaluations give `F`, `C` are the parameters, `X` is the task's own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrainReport<F, C, X = ()> {
    /// Seconds in which the partition was made, if the run has made one; part of no epoch.
    pub partition_seconds: Option<f64>,
    /// Every finished epoch.
    pub epochs: Vec<Epoch<F>>,
    /// Epochs that there were to be, at most.
    pub epochs_max: u32,
    /// The epoch of the best parameters: best on valid; if nothing is selected on the last; 0 =
    /// initial values.
    pub chosen_epoch: u32,
    /// There is something to select the epoch on.
    pub selects: bool,
    /// Figures on test with the best parameters; `None` without evaluation, without such data, or
    /// if stopped.
    pub test: Option<F>,
    /// Seconds of the evaluation of test.
    pub test_seconds: f64,
    /// The manager's counts of training, evaluation not counted.
    pub stats: ManagerStats,
    /// Parameters of the chosen epoch, if [`RunConfig::keep`](crate::run::RunConfig) asks for them
    /// and an epoch is complete; on node 0 only if nodes are processes.
    pub checkpoint: Option<C>,
    /// Parameters at the end of training, if these are asked for and are others.
    pub last: Option<C>,
    /// The stop flag ended the run early.
    pub stopped: bool,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers of each node that took part.
    pub workers: Workers,
    /// Results that only this task has.
    pub own: X,
}

impl<F, C, X> TrainReport<F, C, X> {
    /// Returns the figures on valid of the chosen epoch, if it was chosen by them.
    #[must_use]
    pub fn chosen_valid(&self) -> Option<&F> {
        let chosen = self.epochs.iter().find(|epoch| epoch.epoch == self.chosen_epoch)?;
        chosen.valid.as_ref()
    }

    /// Returns the same report with a checkpoint made from the parameters, and with what only this
    /// task reports.
    #[must_use]
    pub fn with<D, Y>(self, own: Y, checkpoint: impl Fn(C) -> D) -> TrainReport<F, D, Y> {
        TrainReport {
            partition_seconds: self.partition_seconds,
            epochs: self.epochs,
            epochs_max: self.epochs_max,
            chosen_epoch: self.chosen_epoch,
            selects: self.selects,
            test: self.test,
            test_seconds: self.test_seconds,
            stats: self.stats,
            checkpoint: self.checkpoint.map(&checkpoint),
            last: self.last.map(&checkpoint),
            stopped: self.stopped,
            nodes: self.nodes,
            workers: self.workers,
            own,
        }
    }
}

/// Result of an evaluation, the same on all nodes if they are processes. `X` is the task's own.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EvalReport<F, X = ()> {
    /// The figures; `None` if stopped.
    pub figures: Option<F>,
    /// Seconds it took.
    pub seconds: f64,
    /// The manager's counts.
    pub stats: ManagerStats,
    /// The stop flag ended the evaluation early: no figures.
    pub stopped: bool,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers of each node that took part.
    pub workers: Workers,
    /// Results that only this task has.
    pub own: X,
}

impl<F, X> EvalReport<F, X> {
    /// Returns the same report with what only this task reports.
    #[must_use]
    pub fn with<Y>(self, own: Y) -> EvalReport<F, Y> {
        let Self { figures, seconds, stats, stopped, nodes, workers, .. } = self;
        EvalReport { figures, seconds, stats, stopped, nodes, workers, own }
    }
}
