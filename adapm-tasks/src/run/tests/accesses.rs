//! The accesses and intents of a task's workers, recorded while they train on plain arrays, each by
//! itself.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::mpsc::{self, Sender};
use std::thread;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key};
use adapm_runtime::Random;

use crate::run::managed::Arrays;
use crate::run::parameters::{IntentSignaler, Parameters, SamplingDistribution};
use crate::run::queue::{self, Cursor, Round};
use crate::run::session;
use crate::run::task::{Course, Task};
use crate::run::topology::WorkerSlot;

/// The steps of one worker, in order, and the intents of its loader, in order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Accesses {
    pub(super) steps: Vec<Access>,
    pub(super) signaled: Vec<(Vec<Key>, Range<Clock>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Access {
    Pull(Vec<Key>),
    Push(Vec<Key>),
    Advance,
    Quiesce,
}

/// A worker's parameters, its own alone.
struct Recorder {
    arrays: Arrays,
    steps: Vec<Access>,
}

/// A signaler that records; samples are drawn and signaled when they are prepared.
struct RecordingSignaler {
    sender: Sender<(Vec<Key>, Range<Clock>)>,
    distribution: Option<SamplingDistribution>,
    random: Random,
}

/// Trains as the worker in `slot` would, without the others.
pub(super) fn of<T: Task>(task: &T, slot: WorkerSlot, epochs: u32) -> Accesses {
    let initial = task.initial();
    let arrays = Arrays::new(task.shape(), None, |key, value| initial(key, value));
    let mut recorder = Recorder { arrays, steps: Vec::new() };
    let (sender, signaled) = mpsc::channel();
    let signaler = RecordingSignaler {
        sender,
        distribution: task.sampling_distribution(),
        random: Random::new(1 + slot.number as u64),
    };
    let (queue, mut batches) = queue::queue(task.prefetch_depth());
    let (loader, mut worker_state) = (task.loader(slot, &|_, _| {}), task.worker_state());
    thread::scope(|scope| {
        scope.spawn(move || session::load(task, Cursor::START, epochs, loader, signaler, queue));
        for (epoch, index) in
            (1..=epochs).flat_map(|epoch| (0..task.rounds()).map(move |index| (epoch, index)))
        {
            let course = Course { epoch, epochs, done: 0, examples: task.examples(), losses: &[] };
            let rate = task.learning_rate(&course);
            while let Some(mut batch) = batches.next(Round { epoch, index }).expect("loads") {
                task.train(&mut worker_state, &mut batch, rate, &mut recorder)
                    .expect("numbers are finite");
            }
            recorder.quiesce().expect("cannot fail");
        }
    });
    Accesses { steps: recorder.steps, signaled: signaled.into_iter().collect() }
}

impl Parameters for Recorder {
    type Error = Infallible;
    /// Keys that are left.
    type Sample = Vec<Key>;

    fn pull(&mut self, keys: &[Key], values: &mut [f32]) -> Result<(), Infallible> {
        self.steps.push(Access::Pull(keys.to_vec()));
        self.arrays.pull(keys, values)
    }

    fn push(&mut self, keys: &[Key], updates: &[f32]) -> Result<(), Infallible> {
        self.steps.push(Access::Push(keys.to_vec()));
        self.arrays.push(keys, updates)
    }

    fn pull_sample(
        &mut self,
        sample: &mut Vec<Key>,
        keys: &mut [Key],
        values: &mut [f32],
    ) -> Result<(), Infallible> {
        let drawn: Vec<Key> = sample.drain(..keys.len()).collect();
        keys.copy_from_slice(&drawn);
        self.pull(keys, values)
    }

    fn advance_clock(&mut self) {
        self.steps.push(Access::Advance);
    }

    fn quiesce(&mut self) -> Result<(), Infallible> {
        self.steps.push(Access::Quiesce);
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl IntentSignaler for RecordingSignaler {
    type Sample = Vec<Key>;

    fn signal_intent(&mut self, keys: &[Key], clocks: Range<Clock>) -> Result<(), OpError> {
        self.sender.send((keys.to_vec(), clocks)).expect("is read to its end");
        Ok(())
    }

    fn skip_samples(&mut self, _: u64) {}

    fn prepare_sample(&mut self, n: usize, clocks: Range<Clock>) -> Result<Vec<Key>, OpError> {
        let distribution = self.distribution.as_ref().expect("a task that samples says what from");
        let keys: Vec<Key> = (0..n).map(|_| distribution.draw(&mut self.random)).collect();
        self.signal_intent(&keys, clocks)?;
        Ok(keys)
    }
}
