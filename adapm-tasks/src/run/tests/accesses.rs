//! What the workers of a task access and announce, written down while they train on plain arrays,
//! each by itself.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::mpsc::{self, Sender};
use std::thread;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key};
use adapm_runtime::Random;

use crate::run::crew::Seat;
use crate::run::managed::Arrays;
use crate::run::parameters::{Announcer, Draws, Parameters};
use crate::run::queue;
use crate::run::task::{Course, Round, Task};

/// What one worker does, in order, and what its loader announces, in order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Accesses {
    pub(super) steps: Vec<Access>,
    pub(super) announced: Vec<(Vec<Key>, Range<Clock>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Access {
    Pull(Vec<Key>),
    Push(Vec<Key>),
    Advance,
    Quiesce,
}

/// A worker's parameters, of which nobody else knows.
struct Recorder {
    arrays: Arrays,
    steps: Vec<Access>,
}

/// What a loader tells; samples are drawn and announced when they are prepared.
struct Announced {
    sender: Sender<(Vec<Key>, Range<Clock>)>,
    draws: Option<Draws>,
    random: Random,
}

/// Trains as the worker in `seat` would, without the others.
pub(super) fn of<T: Task>(task: &T, seat: Seat, epochs: u32) -> Accesses {
    let initial = task.initial();
    let arrays = Arrays::new(task.shape(), None, 0, |key, value| initial(key, value));
    let mut recorder = Recorder { arrays, steps: Vec::new() };
    let (sender, announced) = mpsc::channel();
    let announcer =
        Announced { sender, draws: task.draws(), random: Random::new(1 + seat.number as u64) };
    let (queue, mut units) = queue::queue(task.ahead());
    let (loader, mut learner) = (task.loader(seat, &|_, _| {}), task.learner());
    thread::scope(|scope| {
        scope.spawn(move || queue::load(task, epochs, loader, announcer, queue));
        for (epoch, index) in
            (1..=epochs).flat_map(|epoch| (0..task.rounds()).map(move |index| (epoch, index)))
        {
            let course = Course { epoch, epochs, done: 0, examples: task.examples(), losses: &[] };
            let rate = task.learning_rate(&course);
            while let Some(mut unit) = units.next(Round { epoch, index }).expect("loads") {
                task.train(&mut learner, &mut unit, rate, &mut recorder)
                    .expect("numbers are finite");
            }
            recorder.quiesce().expect("cannot fail");
        }
    });
    Accesses { steps: recorder.steps, announced: announced.into_iter().collect() }
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

impl Announcer for Announced {
    type Sample = Vec<Key>;

    fn announce(&mut self, keys: &[Key], clocks: Range<Clock>) -> Result<(), OpError> {
        self.sender.send((keys.to_vec(), clocks)).expect("is read to its end");
        Ok(())
    }

    fn prepare_sample(&mut self, n: usize, clocks: Range<Clock>) -> Result<Vec<Key>, OpError> {
        let draws = self.draws.as_ref().expect("a task that samples says what from");
        let keys: Vec<Key> = (0..n).map(|_| draws.draw(&mut self.random)).collect();
        self.announce(&keys, clocks)?;
        Ok(keys)
    }
}
