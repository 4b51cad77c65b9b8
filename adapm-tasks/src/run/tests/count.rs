//! A task of a few keys: every batch adds the learning rate to one of them and one to others.
//!
//! Keys come in blocks, each visited by one worker at a time: in the next round by another. The
//! first batch of a visit looks whether all is there that the visits before it have added. What a
//! batch loses is the learning rate, and what is missing.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use adapm_core::{Clock, Key};
use adapm_runtime::Random;
use adapm_runtime::tables::{Table, Tables};

use serde::{Deserialize, Serialize};

use crate::run::config::{ConfigError, Split};
use crate::run::parameters::{IntentSignaler, Parameters, SamplingDistribution, Shape};
use crate::run::queue::{Cursor, Over, Queue};
use crate::run::task::{
    Batch, Course, Evaluation, FiguresOf, Form, Initial, StepError, Task, Tell,
};
use crate::run::topology::WorkerSlot;

/// Keys that are visited; their values are `[sum of rates | visits' batches]`; only the sum is
/// kept.
pub(crate) const BLOCKS: u64 = 6;
/// Keys that samples are drawn from, after the others; each counts how often it was drawn.
pub(crate) const SAMPLED: u64 = 2;

/// A task that counts, and its number of workers.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    pub(crate) workers: usize,
    /// Batches of a visit, the same for all workers but one that has none.
    pub(crate) batches: u64,
    pub(crate) idle: Option<usize>,
    /// The sum of all rates that is best; `None`: nothing is evaluated.
    pub(crate) target: Option<f64>,
    /// There is something to select an epoch on.
    pub(crate) has_valid: bool,
    /// In the second epoch, this worker has an update that is no number.
    pub(crate) diverges: Option<usize>,
    /// The learning rate of all epochs, if it is not to follow from losses.
    pub(crate) rate: Option<f32>,
    /// In the second epoch, this worker's loader cannot go on.
    pub(crate) unreadable: Option<usize>,
    /// Raises its flag with the last of so many batches.
    pub(crate) stopper: Option<Arc<Stopper>>,
    /// Rows of another table, which nobody accesses.
    pub(crate) unused: u64,
}

/// Stops a run after so many batches of all workers.
#[derive(Debug)]
pub(crate) struct Stopper {
    left: AtomicU64,
    pub(crate) flag: AtomicBool,
}

impl Stopper {
    pub(crate) fn after(batches: u64) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(batches), flag: AtomicBool::new(false) })
    }

    fn count(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.flag.store(true, Ordering::Relaxed);
        }
    }
}

impl Count {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers,
            batches: 5,
            idle: None,
            target: None,
            has_valid: true,
            diverges: None,
            rate: None,
            unreadable: None,
            stopper: None,
            unused: 0,
        }
    }

    fn batches_of(&self, worker: usize) -> u64 {
        if self.idle == Some(worker) { 0 } else { self.batches }
    }

    /// Returns the block that a worker visits, `rounds` rounds after the first of all.
    fn block(worker: usize, rounds: u64) -> Key {
        Key((worker as u64 + rounds) % BLOCKS)
    }

    /// Batches that a block has seen in so many rounds.
    fn seen(&self, block: Key, rounds: u64) -> u64 {
        let visits =
            (0..rounds).flat_map(|round| (0..self.workers).map(move |worker| (round, worker)));
        let of_block = visits.filter(|(round, worker)| Self::block(*worker, *round) == block);
        of_block.map(|(_, worker)| self.batches_of(worker)).sum()
    }
}

/// Adds to one block.
#[derive(Debug)]
pub(crate) struct Addition<S> {
    block: Key,
    clock: Clock,
    /// Batches that the block has seen, at the first of a visit.
    seen: Option<u64>,
    diverges: bool,
    sample: S,
}

impl<S> Batch<S> for Addition<S> {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn examples(&self) -> u64 {
        1
    }

    fn sample(&mut self) -> Option<&mut S> {
        Some(&mut self.sample)
    }
}

impl Task for Count {
    type Batch<S: Send> = Addition<S>;
    /// The worker.
    type Loader = usize;
    type WorkerState = ();
    type Evaluation = Distance;

    /// Samples are drawn with every batch, from a few keys.
    fn frequencies(&self) -> Option<Vec<f64>> {
        let of = |key| if key < BLOCKS { 1.0 } else { 2.0 };
        Some((0..BLOCKS + SAMPLED).map(of).collect())
    }

    fn tables(&self) -> Tables {
        let blocks = Table::new("blocks", BLOCKS, 1).with_state("rest", 1);
        let sampled = Table::new("sampled", SAMPLED, 1);
        let unused = (self.unused > 0).then(|| Table::new("unused", self.unused, 1));
        Tables::new([blocks, sampled].into_iter().chain(unused)).expect("names are there once")
    }

    fn initial(&self) -> Initial {
        Arc::new(|_, value| value.fill(0.0))
    }

    fn name_of(&self, key: Key) -> String {
        format!("block {}", key.0)
    }

    fn sampling_distribution(&self) -> Option<SamplingDistribution> {
        let draw = |random: &mut Random| Key(BLOCKS + random.below(SAMPLED));
        Some(SamplingDistribution::By(Key(BLOCKS)..Key(BLOCKS + SAMPLED), Arc::new(draw)))
    }

    fn examples(&self) -> u64 {
        (0..self.workers).map(|worker| self.batches_of(worker)).sum::<u64>() * BLOCKS
    }

    fn rounds(&self) -> u32 {
        BLOCKS as u32
    }

    fn prefetch_depth(&self) -> usize {
        3
    }

    fn loader(&self, slot: WorkerSlot, _: &Tell<'_>) -> usize {
        assert_eq!(slot.all, self.workers);
        slot.number
    }

    fn load<A: IntentSignaler>(
        &self,
        worker: &mut usize,
        Cursor { round, batch, mut clock }: Cursor,
        signaler: &mut A,
        queue: &Queue<Addition<A::Sample>>,
    ) -> Result<Clock, Over> {
        let before = u64::from(round.epoch - 1) * BLOCKS + u64::from(round.index);
        let block = Self::block(*worker, before);
        let is_second = round.epoch == 2;
        for batch in batch as u64..self.batches_of(*worker) {
            if is_second && self.unreadable == Some(*worker) {
                return Err(Over::Failed(ConfigError::NothingToTrain.into()));
            }
            let window = clock..clock + 1;
            signaler.signal_intent(&[block], window.clone())?;
            let sample = signaler.prepare_sample(1, window)?;
            let seen = (batch == 0).then(|| self.seen(block, before));
            let diverges = is_second && self.diverges == Some(*worker);
            queue.send(Addition { block, clock, seen, diverges, sample })?;
            clock = clock + 1;
        }
        Ok(clock)
    }

    fn worker_state(&self) {}

    /// Twice the loss of the epoch before.
    fn learning_rate(&self, course: &Course<'_>) -> f32 {
        let Course { epoch, epochs, done, examples, losses } = *course;
        assert!(
            epoch <= epochs && losses.len() + 1 == epoch as usize,
            "the losses of all epochs before"
        );
        assert!(done <= examples && examples == self.examples());
        self.rate.unwrap_or_else(|| losses.last().map_or(1.0, |loss| 2.0 * *loss as f32))
    }

    fn train<P: Parameters>(
        &self,
        (): &mut (),
        batch: &mut Addition<P::Sample>,
        learning_rate: f32,
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>> {
        if batch.diverges {
            return Err(StepError::NotFinite(batch.block));
        }
        let (mut value, mut keys, mut sampled) = ([0.0; 2], [Key(0)], [0.0]);
        parameters.pull(&[batch.block], &mut value)?;
        parameters.pull_sample(&mut batch.sample, &mut keys, &mut sampled)?;
        parameters.push(&[batch.block, keys[0]], &[learning_rate, 1.0, 1.0])?;
        parameters.advance_clock();
        self.stopper.iter().for_each(|stopper| stopper.count());
        let missing = batch.seen.map_or(0.0, |seen| seen as f64 - f64::from(value[1]));
        Ok(f64::from(learning_rate) + missing)
    }

    fn evaluation(
        &self,
        split: Split,
        form: Form,
        _: Option<&FiguresOf<Self>>,
    ) -> Option<Distance> {
        let shape = if form == Form::Trained { self.shape() } else { self.best_shape() };
        let target = self.target.filter(|_| self.has_valid || split == Split::Test);
        target.map(|target| Distance { split, shape, target })
    }

    fn is_better(&self, figures: &Figures, best: &Figures) -> bool {
        figures.distance < best.distance
    }
}

/// The distance of the sum of all rates from where it should be: the smaller the better.
pub(crate) struct Distance {
    split: Split,
    shape: Shape,
    target: f64,
}

/// The counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Of all blocks.
    pub(crate) rates: f64,
    /// Of all keys that are sampled.
    pub(crate) samples: f64,
    pub(crate) distance: f64,
}

impl Evaluation for Distance {
    /// The first float of a key, which is an item.
    type Answer = f64;
    type Figures = Figures;
    type Evaluator = Vec<f32>;

    fn split(&self) -> Split {
        self.split
    }

    fn items(&self) -> usize {
        self.shape.keys() as usize
    }

    fn batch(&self) -> usize {
        3
    }

    fn evaluator(&self) -> Vec<f32> {
        Vec::new()
    }

    fn evaluate<P: Parameters>(
        &self,
        values: &mut Vec<f32>,
        items: Range<usize>,
        parameters: &mut P,
        answers: &mut Vec<f64>,
    ) -> Result<(), P::Error> {
        for key in items.map(|item| Key(item as u64)) {
            values.resize(self.shape.len_of(key), 0.0);
            parameters.pull(&[key], values)?;
            answers.push(f64::from(values[0]));
        }
        Ok(())
    }

    fn figures(&self, answers: &[f64]) -> Figures {
        let (blocks, sampled) = answers.split_at(BLOCKS as usize);
        let rates: f64 = blocks.iter().sum();
        Figures { rates, samples: sampled.iter().sum(), distance: (rates - self.target).abs() }
    }
}
