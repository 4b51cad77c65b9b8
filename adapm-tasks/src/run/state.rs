//! The state that the workers of a process share beside the parameters: progress, where a phase was
//! cut short, answers, decisions.
//!
//! Parameters are not part of it. A worker writes before a barrier of the parameter manager, the
//! others read after it. If nodes are processes each has a state; the first workers make all states
//! equal between two barriers, by a [`PhaseSummary`] each. An evaluation is shared out among
//! workers, each of which evaluates a [`Share`] of the items.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use adapm_core::NodeId;
use serde::{Deserialize, Serialize};

use crate::run::error::TaskError;
use crate::run::observer::{Epoch, ManagerStats, Observer, Told};
use crate::run::parameters::Parameters;
use crate::run::peers::Peers;
use crate::run::task::Evaluation;
use crate::run::topology::WorkerSlot;

/// The state that the workers of one run share in one process.
pub(crate) struct RunState<'a, E: Evaluation> {
    pub(crate) observer: &'a dyn Observer<E::Figures>,
    pub(crate) peers: &'a Peers<'a>,
    stop: &'a AtomicBool,
    stats: &'a (dyn Fn() -> ManagerStats + Sync),
    /// One tally for each worker of this process.
    /// Workers of each process.
    by_process: Vec<usize>,
    tallies: Vec<Tally>,
    /// The first phase that some worker did not complete.
    cut: AtomicU64,
    /// The reason of the failure, with the worker that reported it: the first one.
    failure: Mutex<Option<(usize, TaskError)>>,
    /// True once an exchange has reported that the run fails.
    has_failed: AtomicBool,
    verdicts: Mutex<Verdicts<E>>,
}

/// A worker's progress in the current phase.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Tally {
    done: AtomicU64,
    /// Sum of the losses so far: the bits of an `f64`.
    loss: AtomicU64,
}

/// The decisions for all workers, made between two barriers by the first of them.
pub(crate) struct Verdicts<E: Evaluation> {
    pub(crate) epochs: Vec<Epoch<E::Figures>>,
    /// The answers for the data that is being evaluated.
    pub(crate) answers: Answers<E::Answer>,
    /// The best figures on valid so far.
    pub(crate) best: Option<E::Figures>,
    /// Epoch with the figures `best`.
    pub(crate) chosen: Option<u32>,
    /// The parameters at the end are copied, too.
    pub(crate) has_last: bool,
    /// Figures on test of the parameters as they are at the end, with the seconds that the
    /// evaluation took; `None` if they were not evaluated in place.
    pub(crate) test: Option<(E::Figures, f64)>,
    /// The time when training of the current epoch began, and the manager's counts at that time.
    pub(crate) started: Option<(Instant, ManagerStats)>,
    /// The manager's counts when the training of the last epoch ended.
    pub(crate) trained: Option<ManagerStats>,
}

impl<E: Evaluation> Default for Verdicts<E> {
    fn default() -> Self {
        let (epochs, answers) = (Vec::new(), Answers::none());
        Self {
            epochs,
            answers,
            best: None,
            chosen: None,
            has_last: false,
            test: None,
            started: None,
            trained: None,
        }
    }
}

impl<'a, E: Evaluation> RunState<'a, E> {
    /// Returns the state of this process's workers, of the numbers `by_process`.
    pub(crate) fn new(
        by_process: Vec<usize>,
        peers: &'a Peers<'a>,
        observer: &'a dyn Observer<E::Figures>,
        stop: &'a AtomicBool,
        stats: &'a (dyn Fn() -> ManagerStats + Sync),
    ) -> Self {
        let tallies = (0..by_process[peers.node()]).map(|_| Tally::default()).collect();
        let (cut, failure, verdicts) =
            (AtomicU64::new(u64::MAX), Mutex::default(), Mutex::default());
        let has_failed = AtomicBool::new(false);
        Self {
            observer,
            peers,
            stop,
            stats,
            by_process,
            tallies,
            cut,
            failure,
            has_failed,
            verdicts,
        }
    }

    /// Returns true if this worker has to leave `phase` here; then notifies the others.
    pub(crate) fn must_stop(&self, phase: u64) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            self.cut(phase);
        }
        self.is_cut(phase)
    }

    /// Declares that `phase` will not be complete.
    ///
    /// # Ordering
    ///
    /// Relaxed suffices: others read it after a barrier. A worker that is ahead can only cut a
    /// later phase, so all read the same answer about a phase after its barrier.
    pub(crate) fn cut(&self, phase: u64) {
        self.cut.fetch_min(phase, Ordering::Relaxed);
    }

    /// Returns true if a worker left `phase` early; valid after the barrier that ends it. After the
    /// first barrier this covers the workers of this process, after the one that follows the
    /// exchange those of all processes.
    pub(crate) fn is_cut(&self, phase: u64) -> bool {
        self.cut.load(Ordering::Relaxed) <= phase
    }

    /// Declares that the run fails in `phase`, by the worker of this index.
    pub(crate) fn fail(&self, phase: u64, worker: usize, error: TaskError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.as_ref().is_none_or(|(other, _)| worker < *other) {
            *failure = Some((worker, error));
        }
        drop(failure);
        self.cut(phase);
    }

    /// Returns true if the run fails; valid after a barrier that follows an exchange.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Starts the count of a worker for a phase.
    pub(crate) fn reset(&self, worker: usize) {
        self.tallies[worker].done.store(0, Ordering::Relaxed);
        self.tallies[worker].loss.store(0, Ordering::Relaxed);
    }

    /// Publishes the examples that a worker has done in this phase and the sum of their losses.
    /// Only that worker writes its tally.
    pub(crate) fn tally(&self, worker: usize, done: u64, loss: f64) {
        self.tallies[worker].done.store(done, Ordering::Relaxed);
        self.tallies[worker].loss.store(loss.to_bits(), Ordering::Relaxed);
    }

    /// Returns the examples done by all workers of this process, and the sum of their losses.
    pub(crate) fn totals(&self) -> (u64, f64) {
        self.tallies().fold((0, 0.0), |(done, loss), (d, l)| (done + d, loss + l))
    }

    /// Estimates how much of `total`, of which all workers have equal parts, they have done in all
    /// processes.
    pub(crate) fn estimate(&self, total: u64) -> u64 {
        let here = self.by_process[self.peers.node()];
        extrapolated(self.totals().0, (self.by_process.iter().sum(), here), total)
    }

    /// Estimates the same of what all processes have equal parts of.
    pub(crate) fn estimate_by_process(&self, total: u64) -> u64 {
        extrapolated(self.totals().0, (self.peers.processes(), 1), total)
    }

    /// Makes the states of all processes equal for `phase`, which has ended: where it was cut, and
    /// if `evaluated` the answers. Called by the first worker of each process, between two
    /// barriers.
    ///
    /// # Errors
    ///
    /// If the run fails in any process, with the same reason in all of them as far as they know it.
    pub(crate) fn conclude(
        &self,
        phase: u64,
        stats: ManagerStats,
        evaluated: bool,
    ) -> Result<Totals, TaskError> {
        let totals = self.merge(phase, stats, evaluated);
        if totals.is_err() {
            self.give_up(phase);
        }
        totals
    }

    /// Declares that an exchange in `phase` has reported that the run fails.
    pub(crate) fn give_up(&self, phase: u64) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.cut(phase);
    }

    /// Returns the manager's counts of the nodes in this process.
    pub(crate) fn stats(&self) -> ManagerStats {
        (self.stats)()
    }

    /// Returns the decisions, when the run is over.
    pub(crate) fn into_verdicts(self) -> Verdicts<E> {
        self.verdicts.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the decisions, for a short time.
    pub(crate) fn verdicts(&self) -> MutexGuard<'_, Verdicts<E>> {
        // A worker that panicked brings the run down itself.
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tallies(&self) -> impl Iterator<Item = (u64, f64)> {
        self.tallies.iter().map(|tally| {
            (tally.done.load(Ordering::Relaxed), f64::from_bits(tally.loss.load(Ordering::Relaxed)))
        })
    }

    fn merge(&self, phase: u64, stats: ManagerStats, evaluated: bool) -> Result<Totals, TaskError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        let own = failure
            .map_or(Ok(()), |(_, error)| Err(error))
            .map(|()| self.summary(phase, stats, evaluated));
        let summaries = self.peers.share(own)?;
        let mut verdicts = self.verdicts();
        let mut none = Answers::none();
        let answers = if evaluated { &mut verdicts.answers } else { &mut none };
        let mut taken = (0..)
            .zip(&summaries)
            .map(|(node, summary)| (node, self.take(node, summary, phase, answers)));
        match taken.find(|(_, taken)| taken.is_none()) {
            None => Ok(Totals::of(&summaries)),
            Some((node, _)) => {
                let node = NodeId(u16::try_from(node).unwrap_or(u16::MAX));
                Err(TaskError::Unintelligible { node })
            }
        }
    }

    /// Returns this process's summary of a phase.
    fn summary(&self, phase: u64, stats: ManagerStats, evaluated: bool) -> PhaseSummary<E::Answer> {
        let verdicts = self.verdicts();
        let (workers, all) = self.workers(self.peers.node());
        let answers = evaluated.then(|| verdicts.answers.of(workers, all)).into_iter().flatten();
        PhaseSummary {
            phase,
            is_cut: self.is_cut(phase),
            tallies: self.tallies().collect(),
            stats: stats.told(),
            answers: answers.cloned().collect(),
        }
    }

    /// Takes over the summary of process `node`; `None` if it is inconsistent.
    fn take(
        &self,
        node: usize,
        summary: &PhaseSummary<E::Answer>,
        phase: u64,
        answers: &mut Answers<E::Answer>,
    ) -> Option<()> {
        (summary.phase == phase && summary.tallies.len() == self.by_process[node]).then_some(())?;
        if summary.is_cut {
            self.cut(phase);
        }
        let (workers, all) = self.workers(node);
        answers.take(workers, all, &summary.answers)
    }

    /// Returns the numbers of the workers of process `node`, and how many all processes have.
    fn workers(&self, node: usize) -> (Range<usize>, usize) {
        let first = self.by_process[..node].iter().sum();
        (first..first + self.by_process[node], self.by_process.iter().sum())
    }
}

/// The summary of a phase in one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PhaseSummary<A> {
    /// The phase: the same in all processes.
    pub(crate) phase: u64,
    /// Some worker left it early.
    pub(crate) is_cut: bool,
    /// The examples done by each worker, and the sum of its losses.
    pub(crate) tallies: Vec<(u64, f64)>,
    /// The manager's counts of this phase.
    pub(crate) stats: Told,
    /// The workers' answers for their items, worker by worker; none if nothing was evaluated.
    pub(crate) answers: Vec<A>,
}

/// The totals of all workers of all processes in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) done: u64,
    /// Summed up in the order of the workers: the same number however they are spread over
    /// processes.
    pub(crate) loss: f64,
    pub(crate) stats: ManagerStats,
}

impl Totals {
    pub(crate) fn of<A>(summaries: &[PhaseSummary<A>]) -> Self {
        let tallies = || summaries.iter().flat_map(|summary| &summary.tallies);
        let stats = summaries.iter().map(|summary| ManagerStats::from_told(&summary.stats));
        Self {
            // The numbers of other processes may be too large to add up.
            done: tallies().fold(0, |sum: u64, (done, _)| sum.saturating_add(*done)),
            loss: tallies().map(|(_, loss)| loss).sum(),
            stats: stats.fold(ManagerStats::default(), |sum, stats| sum.plus(&stats)),
        }
    }
}

/// The answers for all items, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answers<A> {
    items: Vec<A>,
    /// Items that one worker evaluates together, at most.
    batch: usize,
}

impl<A: Clone + Default> Answers<A> {
    /// Returns answers for an evaluation of no items.
    pub(crate) fn none() -> Self {
        Self { items: Vec::new(), batch: 1 }
    }

    /// Returns default answers for the items of `evaluation`, to be replaced by [`Self::take`] or a
    /// share.
    pub(crate) fn to(evaluation: &impl Evaluation<Answer = A>) -> Self {
        Self { items: vec![A::default(); evaluation.items()], batch: evaluation.batch() }
    }

    /// Returns all answers, in order.
    pub(crate) fn items(&self) -> &[A] {
        &self.items
    }

    /// Returns all answers, in order.
    pub(crate) fn into_items(self) -> Vec<A> {
        self.items
    }

    /// Returns the items that one of `workers` workers evaluates: every `workers`-th batch. Batches
    /// are smaller if items are few, so that fewer workers get none.
    fn places(&self, worker: usize, workers: usize) -> impl Iterator<Item = Range<usize>> + use<A> {
        places(self.items.len(), self.batch, worker, workers)
    }

    /// Returns the answers of `workers` among `all`, worker by worker.
    pub(crate) fn of(&self, workers: Range<usize>, all: usize) -> impl Iterator<Item = &A> {
        workers
            .flat_map(move |worker| self.places(worker, all))
            .flat_map(|place| &self.items[place])
    }

    /// Takes over the answers of `workers` among `all`; `None` if `told` has not exactly one answer
    /// for each of their items.
    pub(crate) fn take(&mut self, workers: Range<usize>, all: usize, told: &[A]) -> Option<()> {
        let mut rest = told;
        for worker in workers {
            for place in self.places(worker, all) {
                let told = rest.split_off(..place.len())?;
                self.items[place].clone_from_slice(told);
            }
        }
        rest.is_empty().then_some(())
    }
}

/// One worker's share in an evaluation.
#[derive(Clone, Copy)]
pub(crate) struct Share<'a, E> {
    pub(crate) evaluation: &'a E,
    pub(crate) slot: WorkerSlot,
    /// Number of this phase, for [`RunState::must_stop`].
    pub(crate) phase: u64,
}

impl<E: Evaluation> Share<'_, E> {
    /// Evaluates this worker's batches and writes the answers to their places in the state. Returns
    /// early once the phase is cut.
    pub(crate) fn evaluate<P: Parameters>(
        self,
        evaluator: &mut E::Evaluator,
        parameters: &mut P,
        state: &RunState<'_, E>,
    ) -> Result<(), P::Error> {
        state.reset(self.slot.index);
        let (split, all) = (self.evaluation.split(), self.evaluation.items() as u64);
        let places = state.verdicts().answers.places(self.slot.number, self.slot.all);
        let (mut answers, mut done) = (Vec::new(), 0);
        for place in places {
            if state.must_stop(self.phase) {
                return Ok(());
            }
            answers.clear();
            self.evaluation.evaluate(evaluator, place.clone(), parameters, &mut answers)?;
            assert_eq!(answers.len(), place.len(), "a task gives an answer for each item");
            done += place.len() as u64;
            state.verdicts().answers.items[place].clone_from_slice(&answers);
            state.tally(self.slot.index, done, 0.0);
            if self.slot.is_first() {
                state.observer.evaluating(split, state.estimate(all), all);
            }
        }
        Ok(())
    }
}

fn places(
    len: usize,
    batch: usize,
    worker: usize,
    workers: usize,
) -> impl Iterator<Item = Range<usize>> {
    let batch = batch.min(len.div_ceil(workers)).max(1);
    let starts = (worker * batch..len).step_by(workers * batch);
    starts.map(move |start| start..len.min(start + batch))
}

/// Returns what all have done if these of them have `done` this, `total` at most.
fn extrapolated(done: u64, (all, these): (usize, usize), total: u64) -> u64 {
    (u128::from(done) * all as u128 / these as u128).min(total.into()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::observer::{COUNTS, ToldHistogram};

    #[test]
    fn what_is_too_much_to_sum_up_is_the_most_there_is() {
        let most = || ToldHistogram { buckets: [[u64::MAX; 20]; 2], sum: u64::MAX, max: u64::MAX };
        let summary = |done| PhaseSummary::<()> {
            phase: 1,
            is_cut: false,
            tallies: vec![(done, 0.5), (1, 0.25)],
            stats: Told {
                counts: [u64::MAX; COUNTS],
                held_max: u64::MAX,
                histograms: [most(), most(), most(), most()],
            },
            answers: Vec::new(),
        };
        let totals = Totals::of(&[summary(3), summary(u64::MAX)]);
        assert_eq!((totals.done, totals.loss), (u64::MAX, 1.5));
        assert!((0.0..=1.0).contains(&totals.stats.local_share()));
        let stats = totals.stats;
        for seconds in [
            stats.staleness_mean(),
            stats.staleness_p99_bound(),
            stats.blocked_seconds(),
            stats.wait_mean(),
            stats.wait_p99_bound(),
        ] {
            assert!(seconds.is_finite() && seconds >= 0.0, "{seconds}");
        }
    }

    #[test]
    fn a_process_with_more_workers_does_not_take_the_others_to_be_as_far() {
        // Three workers here and one elsewhere, each with 250 of 1,000 examples.
        assert_eq!([375, 750].map(|done| extrapolated(done, (4, 3), 1_000)), [500, 1_000]);
        assert_eq!([125, 250].map(|done| extrapolated(done, (4, 1), 1_000)), [500, 1_000]);
        assert_eq!(extrapolated(u64::MAX, (4, 1), u64::MAX), u64::MAX);
        assert_eq!(extrapolated(9, (2, 1), 10), 10);
    }

    const BATCH: usize = 512;

    #[test]
    fn the_places_of_all_workers_are_all_places_once() {
        for (len, workers) in [(0, 2), (1, 3), (7, 4), (2 * BATCH + 3, 2), (5 * BATCH, 3)] {
            let mut seen = vec![0; len];
            for place in (0..workers).flat_map(|worker| places(len, BATCH, worker, workers)) {
                assert!(place.len() <= BATCH);
                seen[place].iter_mut().for_each(|count| *count += 1);
            }
            assert!(seen.iter().all(|count| *count == 1), "{len} {workers}");
        }
        assert!((0..4).all(|worker| places(7, BATCH, worker, 4).next().is_some()), "each has some");
    }

    #[test]
    fn answers_go_where_the_worker_that_gave_them_has_its_items() {
        let whole = Answers { items: (0..23).collect::<Vec<u8>>(), batch: 3 };
        let mut taken = Answers { items: vec![u8::MAX; 23], batch: 3 };
        for workers in [0..2, 2..4] {
            let told: Vec<u8> = whole.of(workers.clone(), 4).copied().collect();
            assert_eq!(taken.clone().take(workers.clone(), 4, &told[1..]), None);
            assert_eq!(
                taken.clone().take(workers.clone(), 4, &[told.as_slice(), &[1]].concat()),
                None
            );
            assert_eq!(taken.take(workers, 4, &told), Some(()));
        }
        assert_eq!(taken, whole);
    }
}
