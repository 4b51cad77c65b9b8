//! The logical clocks of a node's workers, read by its channel threads (AdaPM §3).

use adapm_core::{Clock, WorkerId};

use crate::sync::{AtomicU64, Ordering};

/// One clock per worker, each on cache lines of its own.
///
/// # Ordering
/// A worker stores with `Release`, a channel thread loads with `Acquire`: an engine that sees a clock also sees what the worker
/// did before it raised it. Nothing depends on how soon it is seen.
#[derive(Debug)]
pub struct Clocks {
    clocks: Vec<Padded>,
}

/// Two cache lines, as processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Padded(AtomicU64);

impl Clocks {
    /// Clocks of `workers` workers, all 0.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { clocks: (0..workers).map(|_| Padded(AtomicU64::new(0))).collect() }
    }

    /// Sets the clock of `worker`; only that worker's thread calls this.
    pub fn set(&self, worker: WorkerId, clock: Clock) {
        self.clocks[worker.index()].0.store(clock.0, Ordering::Release);
    }

    /// The clock of `worker`.
    #[must_use]
    pub fn clock(&self, worker: WorkerId) -> Clock {
        Clock(self.clocks[worker.index()].0.load(Ordering::Acquire))
    }

    /// Overwrites `clocks` with the clocks of all workers, in order.
    pub fn read(&self, clocks: &mut Vec<Clock>) {
        clocks.clear();
        clocks.extend(self.clocks.iter().map(|clock| Clock(clock.0.load(Ordering::Acquire))));
    }
}
