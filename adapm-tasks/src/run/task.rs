//! The interface of a task; everything else about a run is the same for all.
//!
//! ```text
//!              loader thread of a worker                                worker
//!   load(cursor): prepare batch, signal intent   -- queue --> choose sample, learning_rate(course), train(batch)
//!                 `prefetch_depth` batches before their use       end of a round: all wait for all
//!                                                                 end of an epoch: evaluate a share of valid, compare
//! ```
//!
//! A task is known to all workers of all processes alike and changes in none of its methods. All
//! state that changes is in parameters, or in a loader, worker state or evaluator: each worker has
//! its own. What is decided between epochs follows from what all processes know alike: the losses
//! so far ([`Course`]) and the figures on valid.

use std::ops::Range;
use std::sync::Arc;

use adapm_core::{Clock, Key};
use adapm_runtime::Scheme;
use adapm_runtime::tables::Tables;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::partition::PartitionFile;
use crate::run::config::Split;
use crate::run::error::TaskError;
use crate::run::observer::Epoch;
use crate::run::parameters::{IntentSignaler, Parameters, SamplingDistribution, Shape};
use crate::run::queue::{Cursor, Over, Queue};
use crate::run::topology::WorkerSlot;

/// Something that can be trained.
pub trait Task: Sync {
    /// The batch that a loader prepares and a step trains on, with a prepared sample `S` if it
    /// needs one.
    type Batch<S: Send>: Batch<S> + Send;
    /// The state of a worker's loader thread.
    type Loader: Send;
    /// The state of a worker from step to step.
    type WorkerState;
    /// The evaluation of parameters.
    type Evaluation: Evaluation + Send;

    /// Returns the tables of the parameters that are trained, with the state of the update rule:
    /// keys are their rows.
    fn tables(&self) -> Tables;

    /// Returns the shape of the parameters that are trained, with the state of the update rule.
    fn shape(&self) -> Shape {
        Shape::of(&self.tables())
    }

    /// Returns the shape of the best parameters: of every key the first floats of its value.
    fn best_shape(&self) -> Shape {
        Shape::of(&self.tables().parameters())
    }

    /// Writes the value of a key before the first step: a pure function, so that any node can
    /// compute any of them.
    fn initial(&self) -> Initial;

    /// Names a key for people: `entity Q42`, `row 17`, `word sun`.
    fn name_of(&self, key: Key) -> String {
        format!("key {}", key.0)
    }

    /// Returns the distribution of samples; `None` if the task has none.
    fn sampling_distribution(&self) -> Option<SamplingDistribution> {
        None
    }

    /// Returns the manager's sampling scheme; `None`: as is usual for its system.
    fn scheme(&self) -> Option<Scheme> {
        None
    }

    /// Returns how often each key is accessed in an epoch, by all workers of all nodes together, as
    /// expected: one number for each key, in key order. Systems that choose a technique per key
    /// before the run replicate the most frequent ones (NuPS §3.3, AdaPM §A.5).
    ///
    /// The same on all nodes: of the whole data, not of a node's part, and with negatives and all
    /// else that is sampled, which are most accesses of some tasks. A key that one node alone
    /// accesses counts 0: a copy elsewhere is of no use. `None`: not known; under such a system a
    /// run of this task then needs a list of hot keys (`--replicate-keys`).
    fn frequencies(&self) -> Option<Vec<f64>> {
        None
    }

    /// Passes the keys that each training sample accesses to `each`, samples in an order that
    /// follows from data and settings, whatever the number of nodes: what a partition of samples
    /// and keys is made of. Returns false if the task has no samples that access keys of their own,
    /// as by default, and passes nothing then.
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    fn samples(&self, each: &mut dyn FnMut(&[Key])) -> Result<bool, TaskError> {
        let _ = each;
        Ok(false)
    }

    /// Has loaders deal samples to nodes as `partition` says, where the task can do that; called
    /// before any loader is made. Defaults to no effect.
    fn deal_by(&mut self, partition: &Arc<PartitionFile>) {
        let _ = partition;
    }

    /// Returns the keys that every worker reads and changes in each step, such as those of dense
    /// layers. Defaults to none.
    fn dense_keys(&self) -> Range<Key> {
        Key(0)..Key(0)
    }

    /// Returns the training examples of an epoch, over all workers.
    fn examples(&self) -> u64;

    /// Returns the number of losses in an epoch's sum, if the last round alone has losses; `None`:
    /// they are of training, and over its examples.
    fn judged(&self) -> Option<u64> {
        None
    }

    /// Parts of an epoch between which all workers of all nodes wait for each other and see what
    /// the others did.
    fn rounds(&self) -> u32 {
        1
    }

    /// Batches that a loader is ahead of the one that is trained on at most, at least 1; three
    /// quarters of them always are. As many as are done in a few rounds in which nodes ask for what
    /// they need: a thousand steps of some microseconds, or a dozen of a millisecond.
    fn prefetch_depth(&self) -> usize {
        32
    }

    /// Returns the loader of the worker in this slot; reports its progress in dividing the data if
    /// that may take long.
    fn loader(&self, slot: WorkerSlot, tell: &Tell<'_>) -> Self::Loader;

    /// Prepares the batches of a round from the `start` on, in order, signals intent for them, and
    /// returns the worker's clock after the last one. Rounds come in order; the loader is ahead of
    /// its worker, also across their ends: under a system that localizes, keys that a round hands
    /// over leave while the round before may still use them, which costs waiting, not updates. Such
    /// a task has few batches [`prefetch_depth`](Self::prefetch_depth) there.
    ///
    /// A run may begin at any batch of any epoch: batches and their order are a function of the
    /// seed, the worker, and the epoch and round of `start`, never of the rounds that this loader
    /// has loaded before.
    ///
    /// # Errors
    ///
    /// [`Over`] of the queue or the signaler is to be passed on; what else fails ends the run for
    /// all.
    fn load<A: IntentSignaler>(
        &self,
        loader: &mut Self::Loader,
        start: Cursor,
        signaler: &mut A,
        queue: &Queue<Self::Batch<A::Sample>>,
    ) -> Result<Clock, Over>;

    /// Returns the state of a worker before its first batch.
    fn worker_state(&self) -> Self::WorkerState;

    /// Returns the learning rate of the next batch. Asked for before each; a pure function, for all
    /// workers to have the same.
    fn learning_rate(&self, course: &Course<'_>) -> f32;

    /// Trains on one batch and returns the sum of its losses, or 0 if they are of no interest
    /// ([`Self::judged`]). Advances the clock as the loader assumed.
    ///
    /// # Errors
    ///
    /// Fails on a NaN or infinite loss, before anything is pushed, or with a failed operation.
    fn train<P: Parameters>(
        &self,
        worker_state: &mut Self::WorkerState,
        batch: &mut Self::Batch<P::Sample>,
        learning_rate: f32,
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>>;

    /// Prepares a worker for the epoch after these, before its first batch.
    fn prepare(&self, worker_state: &mut Self::WorkerState, epochs: &[Epoch<FiguresOf<Self>>]) {
        let _ = (worker_state, epochs);
    }

    /// Returns true if training may end before the epochs that are asked for are done.
    fn may_end_early(&self) -> bool {
        false
    }

    /// Returns true if training ends after these epochs, before those that are asked for are done.
    fn is_over(&self, epochs: &[Epoch<FiguresOf<Self>>]) -> bool {
        let _ = epochs;
        false
    }

    /// Returns what evaluations of valid have left behind in the task itself, as text for a
    /// checkpoint. Defaults to none.
    fn kept(&self) -> String {
        String::new()
    }

    /// Takes over what [`kept`](Self::kept) has returned. Returns false if it is none of that.
    fn restore(&self, kept: &str) -> bool {
        kept.is_empty()
    }

    /// Returns the evaluation of parameters in this form on a part of the data; `best` are the
    /// figures on valid by which they were chosen, if they were. `None` without such data.
    fn evaluation(
        &self,
        split: Split,
        form: Form,
        best: Option<&FiguresOf<Self>>,
    ) -> Option<Self::Evaluation>;

    /// Returns true if an epoch with these figures on valid is to be preferred to one with the
    /// `best` so far. The first `best` may be NaN: any number is better.
    fn is_better(&self, figures: &FiguresOf<Self>, best: &FiguresOf<Self>) -> bool;
}

/// Evaluates parameters that do not change meanwhile, item by item, on any number of workers with
/// the same result.
pub trait Evaluation: Sync {
    /// The answer for one item; crosses between processes, so that it may hold anything.
    type Answer: Clone + Default + Send + Serialize + DeserializeOwned;
    /// The figures of all answers.
    type Figures: Clone + Send + Sync + Serialize + DeserializeOwned;
    /// The state of a worker from batch to batch.
    type Evaluator;

    /// Returns the evaluated part of the data.
    fn split(&self) -> Split;

    /// Items: what is evaluated, in order.
    fn items(&self) -> usize;

    /// Items that are evaluated together, at most.
    fn batch(&self) -> usize {
        256
    }

    /// Returns the state of a worker before its first item.
    fn evaluator(&self) -> Self::Evaluator;

    /// Appends an answer for each of these items. It must not depend on what else is in the batch.
    ///
    /// # Errors
    ///
    /// An operation that failed.
    fn evaluate<P: Parameters>(
        &self,
        evaluator: &mut Self::Evaluator,
        items: Range<usize>,
        parameters: &mut P,
        answers: &mut Vec<Self::Answer>,
    ) -> Result<(), P::Error>;

    /// Returns the figures of all items, whose answers are in order.
    fn figures(&self, answers: &[Self::Answer]) -> Self::Figures;
}

/// The figures of a task's evaluations.
pub type FiguresOf<T> = <<T as Task>::Evaluation as Evaluation>::Figures;

/// The form of the keys' values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Trained parameters, of [`Task::shape`].
    Trained,
    /// Best parameters, of [`Task::best_shape`].
    Best,
}

/// Reports how much is done, and of how much.
pub type Tell<'a> = dyn Fn(u64, u64) + Sync + 'a;

/// Writes the initial value of a key.
pub type Initial = Arc<dyn Fn(Key, &mut [f32]) + Send + Sync>;

/// The examples that are trained on at once.
pub trait Batch<S> {
    /// Returns the worker's clock at its first step, which errors of diverged training name.
    fn clock(&self) -> Clock;

    /// Returns the training examples in it.
    fn examples(&self) -> u64;

    /// Its sample, settled on one batch before it is trained on; `None` without any.
    fn sample(&mut self) -> Option<&mut S> {
        None
    }
}

/// A batch of a task without samples.
#[derive(Clone, Debug)]
pub struct Plain<B> {
    /// The worker's clock when it is trained on.
    pub clock: Clock,
    /// Training examples in it.
    pub examples: u64,
    /// The examples, and the keys that a step pulls and pushes.
    pub content: B,
}

impl<B, S> Batch<S> for Plain<B> {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn examples(&self) -> u64 {
        self.examples
    }
}

/// The course of training so far, as all workers of a process know it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Course<'a> {
    /// The running epoch, from 1.
    pub epoch: u32,
    /// Epochs of the run.
    pub epochs: u32,
    /// Examples done in this epoch by all workers; where nodes are processes, an estimate by what
    /// this process has done: all workers have equal parts.
    pub done: u64,
    /// Examples of an epoch.
    pub examples: u64,
    /// Mean loss of each epoch before this one, in order: the same in all processes.
    pub losses: &'a [f64],
}

/// An error of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepError<E> {
    /// An operation on the parameters failed.
    Access(E),
    /// The loss or an update of this key is no finite number; nothing was pushed.
    NotFinite(Key),
}

impl<E> From<E> for StepError<E> {
    fn from(error: E) -> Self {
        Self::Access(error)
    }
}
