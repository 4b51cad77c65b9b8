//! What a run has to know beside its parameters to go on: the part of a manifest that is its own.

use std::fmt::Write as _;

use adapm_core::policy::Supply;
use adapm_runtime::System;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::run::consistency::RunFingerprint;
use crate::run::observer::{Epoch, ManagerStats, Told};
use crate::run::state::Verdicts;
use crate::run::task::{Evaluation, Task};

/// The place of a worker in its data, and what it has done of the running epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seat {
    /// The running epoch, from 1.
    pub(crate) epoch: u32,
    /// The round of the epoch.
    pub(crate) index: u32,
    /// Batches of the round that are done.
    pub(crate) batches: u64,
    /// Samples that were used since the run began.
    pub(crate) samples: u64,
    /// Training examples of the epoch that are done.
    pub(crate) done: u64,
    /// The sum of their losses: the bits of an `f64`.
    pub(crate) loss: u64,
    /// Batches that were done since this process began.
    pub(crate) total: u64,
}

impl Seat {
    /// The place of a worker before its first batch.
    pub(crate) const START: Self =
        Self { epoch: 1, index: 0, batches: 0, samples: 0, done: 0, loss: 0, total: 0 };

    /// Returns the place at the start of a round of another epoch.
    pub(crate) fn at(self, epoch: u32, index: u32) -> Self {
        Self { epoch, index, batches: 0, done: 0, loss: 0, ..self }
    }

    /// Adds a batch of so many examples and samples, and the sum of its losses.
    pub(crate) fn add(&mut self, examples: u64, loss: f64, samples: u64) {
        self.batches += 1;
        self.total += 1;
        self.samples += samples;
        self.done += examples;
        self.loss = (f64::from_bits(self.loss) + loss).to_bits();
    }
}

/// What a manifest says of a run, for people and for `check`; `state` is all that it takes to go
/// on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) task: String,
    /// A digest of the data.
    pub(crate) data: String,
    /// Settings by name, as text.
    pub(crate) settings: Vec<(String, String)>,
    /// Of each node.
    pub(crate) workers: Vec<usize>,
    /// On what it depends which examples are in a batch.
    pub(crate) order: String,
    /// The running epoch, from 1.
    pub(crate) epoch: u32,
    /// Examples of the epoch that are done, and of how many.
    pub(crate) done: u64,
    pub(crate) examples: u64,
    /// The epoch of the best parameters, if there is one.
    pub(crate) chosen: Option<u32>,
    /// Its figures on valid.
    pub(crate) best: Value,
    /// The name of the checkpoint that has its parameters.
    pub(crate) best_checkpoint: Option<String>,
    /// Batches of all workers since the run began.
    pub(crate) step: u64,
    /// The start of the run that wrote it.
    #[serde(default)]
    pub(crate) start: String,
    /// Checkpoints of the run that could not be written.
    #[serde(default)]
    pub(crate) failures: u32,
    /// Of each process, if hosts have a folder each.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    state: String,
}

/// All that it takes to go on, exactly: with every bit of every number.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "F: Serialize", deserialize = "F: DeserializeOwned"))]
pub(crate) struct State<F> {
    version: u32,
    /// By the number of the worker.
    pub(crate) seats: Vec<Seat>,
    epochs: Vec<EpochState<F>>,
    best: Option<F>,
    /// What evaluations have left behind in the task.
    pub(crate) kept: String,
    /// Seconds of training in the running epoch.
    pub(crate) seconds: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct EpochState<F> {
    epoch: u32,
    seconds: f64,
    loss: f64,
    examples: u64,
    valid: Option<F>,
    evaluation_seconds: f64,
    stats: Told,
    epoch_stats: Told,
}

impl Record {
    /// Returns the record of a run whose workers are at these places.
    pub(crate) fn of<T: Task>(
        fingerprint: &RunFingerprint,
        workers: &[usize],
        task: &T,
        (seats, step): (Vec<Seat>, u64),
        verdicts: &Verdicts<T::Evaluation>,
    ) -> Self {
        let epoch = seats.iter().map(|seat| seat.epoch).min().unwrap_or(1);
        // An epoch that is not evaluated yet is ended again.
        let epochs = verdicts.epochs.iter().filter(|ended| ended.epoch < epoch);
        let (chosen, best) = (verdicts.chosen, verdicts.best.clone());
        let done = seats.iter().map(|seat| seat.done).sum();
        let in_words = best.as_ref().map(|best| serde_json::to_value(best).unwrap_or_default());
        let is_running = seats.iter().any(|seat| seat.batches > 0 || seat.index > 0);
        let started = verdicts.started.filter(|_| is_running);
        let seconds = started.map_or(0.0, |(at, _)| at.elapsed().as_secs_f64());
        let state = State {
            version: VERSION,
            seconds,
            seats,
            epochs: epochs.map(EpochState::of).collect(),
            best,
            kept: task.kept(),
        };
        Self {
            task: fingerprint.task().to_owned(),
            data: fingerprint.data().to_owned(),
            settings: fingerprint.settings().to_vec(),
            workers: workers.to_vec(),
            order: order_of(fingerprint, workers),
            epoch,
            done,
            examples: task.examples(),
            chosen,
            best: in_words.unwrap_or_default(),
            best_checkpoint: None,
            step,
            start: String::new(),
            failures: 0,
            hosts: Vec::new(),
            state: to_hex(&state),
        }
    }

    /// Returns the name of the task.
    pub(crate) fn task_name(&self) -> String {
        self.task.split(' ').next_back().unwrap_or_default().to_owned()
    }

    /// Returns all that it takes to go on; `None` if it is of another version or task.
    pub(crate) fn state<E: Evaluation>(&self) -> Option<State<E::Figures>> {
        let bytes = from_hex(&self.state)?;
        let (state, rest) = postcard::take_from_bytes::<State<E::Figures>>(&bytes).ok()?;
        let seats = self.workers.iter().sum::<usize>();
        let fits = state.version == VERSION && state.seats.len() == seats && rest.is_empty();
        fits.then_some(state)
    }
}

impl<F: Clone> State<F> {
    /// Takes the decisions so far over.
    pub(crate) fn restore<E: Evaluation<Figures = F>>(
        &self,
        chosen: Option<u32>,
        verdicts: &mut Verdicts<E>,
    ) {
        verdicts.epochs = self.epochs.iter().map(EpochState::epoch).collect();
        (verdicts.best, verdicts.chosen) = (self.best.clone(), chosen);
    }

    /// Gives other workers the end of an epoch of which all is done, but not judged or evaluated.
    pub(crate) fn end_seats<T: Task>(&mut self, epoch: u32, workers: usize, task: &T) {
        let done = self.seats.iter().map(|seat| seat.done).sum();
        let loss: f64 = self.seats.iter().map(|seat| f64::from_bits(seat.loss)).sum();
        // What is judged at the end of an epoch is judged again.
        let (batches, loss) = if task.judged().is_some() { (0, 0.0) } else { (u64::MAX, loss) };
        let end = Seat { batches, ..Seat::START.at(epoch, task.rounds() - 1) };
        self.seats = vec![end; workers];
        (self.seats[0].done, self.seats[0].loss) = (done, loss.to_bits());
    }

    /// Adds an epoch that ends here, before all of it is done; `is_judged`: its loss is known at
    /// its end only.
    pub(crate) fn end_epoch(&mut self, epoch: u32, is_judged: bool) {
        let done: u64 = self.seats.iter().map(|seat| seat.done).sum();
        let loss: f64 = self.seats.iter().map(|seat| f64::from_bits(seat.loss)).sum();
        let stats = self
            .epochs
            .last()
            .map_or_else(|| ManagerStats::default().told(), |last| last.stats.clone());
        self.epochs.push(EpochState {
            epoch,
            seconds: self.seconds,
            loss: if is_judged { f64::NAN } else { loss / done.max(1) as f64 },
            examples: done,
            valid: None,
            evaluation_seconds: 0.0,
            stats,
            epoch_stats: ManagerStats::default().told(),
        });
    }
}

impl<F: Clone> EpochState<F> {
    fn of(epoch: &Epoch<F>) -> Self {
        Self {
            epoch: epoch.epoch,
            seconds: epoch.seconds,
            loss: epoch.loss,
            examples: epoch.examples,
            valid: epoch.valid.clone(),
            evaluation_seconds: epoch.evaluation_seconds,
            stats: epoch.stats.told(),
            epoch_stats: epoch.epoch_stats.told(),
        }
    }

    fn epoch(&self) -> Epoch<F> {
        Epoch {
            epoch: self.epoch,
            seconds: self.seconds,
            loss: self.loss,
            examples: self.examples,
            valid: self.valid.clone(),
            evaluation_seconds: self.evaluation_seconds,
            stats: ManagerStats::from_told(&self.stats),
            epoch_stats: ManagerStats::from_told(&self.epoch_stats),
        }
    }
}

/// Returns all on which it depends which examples are in a batch of a worker, beside what cannot
/// change.
pub(super) fn order_of(fingerprint: &RunFingerprint, workers: &[usize]) -> String {
    let settings = fingerprint.settings();
    let of = |name: &str| {
        let found = settings.iter().find(|(other, _)| other == name);
        found.map_or("none", |(_, value)| value)
    };
    let system = of("system").parse::<System>().ok();
    let is_partitioned = system.is_some_and(|system| system.supply() == Supply::Partition);
    let ahead = if system.is_some_and(System::localizes) { of("localize_ahead") } else { "none" };
    format!(
        "workers {workers:?}, homes {}, partitioned {is_partitioned}, ahead {ahead}",
        of("homes")
    )
}

fn to_hex(state: &impl Serialize) -> String {
    let bytes = postcard::to_allocvec(state).expect("a state has no part that cannot be encoded");
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // A text takes all that is written.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The version of the state.
const VERSION: u32 = 1;
