//! What the workers of a run share beside the parameters: progress, where a phase was cut short, ranks, decisions.
//!
//! Parameters never pass here. A worker writes before a barrier of the parameter manager, the others read behind it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::kge::report::{EpochReport, ManagerStats, Progress};
use crate::metric::Rank;

/// Shared by the workers of one run.
pub(crate) struct Board<'a> {
    pub(crate) progress: &'a dyn Progress,
    stop: &'a AtomicBool,
    stats: &'a (dyn Fn() -> ManagerStats + Sync),
    /// One per worker.
    tallies: Vec<Tally>,
    /// The first phase that some worker did not complete.
    cut: AtomicU64,
    verdicts: Mutex<Verdicts>,
}

/// What a worker has done in the running phase.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Tally {
    done: AtomicU64,
    /// Bits of an `f64`.
    loss: AtomicU64,
}

/// What is decided for all workers, between two barriers, by the first of them.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    pub(crate) epochs: Vec<EpochReport>,
    /// Ranks of the split that is evaluated, in order.
    pub(crate) ranks: Vec<Rank>,
    /// The best MRR on valid so far.
    pub(crate) best: Option<f64>,
    /// Epoch whose parameters were copied last.
    pub(crate) chosen: Option<u32>,
    pub(crate) started: Option<(Instant, ManagerStats)>,
}

impl<'a> Board<'a> {
    pub(crate) fn new(
        workers: usize,
        progress: &'a dyn Progress,
        stop: &'a AtomicBool,
        stats: &'a (dyn Fn() -> ManagerStats + Sync),
    ) -> Self {
        let tallies = (0..workers).map(|_| Tally::default()).collect();
        let (cut, verdicts) = (AtomicU64::new(u64::MAX), Mutex::default());
        Self { progress, stop, stats, tallies, cut, verdicts }
    }

    /// Asks whether this worker has to leave `phase` here; tells the others if so.
    pub(crate) fn must_stop(&self, phase: u64) -> bool {
        let stops = self.stop.load(Ordering::Relaxed);
        if stops {
            self.cut(phase);
        }
        stops
    }

    /// Declares that `phase` will not be complete.
    ///
    /// # Ordering
    ///
    /// Relaxed suffices: others read it behind a barrier. A worker that is ahead can only cut a later phase, so all read
    /// the same answer about a phase behind its barrier.
    pub(crate) fn cut(&self, phase: u64) {
        self.cut.fetch_min(phase, Ordering::Relaxed);
    }

    /// Tells, behind the barrier that ends `phase`, whether some worker left it early.
    pub(crate) fn is_cut(&self, phase: u64) -> bool {
        self.cut.load(Ordering::Relaxed) <= phase
    }

    /// Starts the count of a worker for a phase.
    pub(crate) fn reset(&self, worker: usize) {
        self.tallies[worker].done.store(0, Ordering::Relaxed);
        self.tallies[worker].loss.store(0, Ordering::Relaxed);
    }

    /// Publishes what a worker has done so far in the phase; it alone writes its tally.
    pub(crate) fn tally(&self, worker: usize, done: u64, loss: f64) {
        self.tallies[worker].done.store(done, Ordering::Relaxed);
        self.tallies[worker].loss.store(loss.to_bits(), Ordering::Relaxed);
    }

    /// What all workers have done, and the sum of their losses in the order of the workers.
    pub(crate) fn totals(&self) -> (u64, f64) {
        let done = self.tallies.iter().map(|tally| tally.done.load(Ordering::Relaxed)).sum();
        let loss = self.tallies.iter().map(|tally| f64::from_bits(tally.loss.load(Ordering::Relaxed))).sum();
        (done, loss)
    }

    /// The manager's counts.
    pub(crate) fn stats(&self) -> ManagerStats {
        (self.stats)()
    }

    /// The decisions, when the run is over.
    pub(crate) fn into_verdicts(self) -> Verdicts {
        self.verdicts.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The decisions, for a short time.
    pub(crate) fn verdicts(&self) -> MutexGuard<'_, Verdicts> {
        // A worker that panicked brings the run down itself.
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
