//! The logical clocks of a node's workers, read by its channel threads (AdaPM §3), and how far these have read.

use adapm_core::{Clock, WorkerId};

use crate::sync::{AtomicU64, Ordering};

/// One clock per worker, each on cache lines of its own.
///
/// # Ordering
/// A worker stores with `Release`, a channel thread loads with `Acquire`: an engine that sees a clock also sees what the worker
/// did before it raised it. Nothing depends on how soon it is seen.
#[derive(Debug)]
pub struct Clocks {
    workers: Vec<Pair>,
}

/// Two cache lines, as processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Pair {
    clock: AtomicU64,
    /// What a channel thread read last.
    seen: AtomicU64,
}

impl Clocks {
    /// Clocks of `workers` workers, all 0.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { workers: (0..workers).map(|_| Pair::default()).collect() }
    }

    /// Sets the clock of `worker`; only that worker's thread calls this.
    pub fn set(&self, worker: WorkerId, clock: Clock) {
        self.workers[worker.index()].clock.store(clock.0, Ordering::Release);
    }

    /// The clock of `worker`.
    #[must_use]
    pub fn clock(&self, worker: WorkerId) -> Clock {
        Clock(self.workers[worker.index()].clock.load(Ordering::Acquire))
    }

    /// Overwrites `clocks` with the clocks of all workers, in order. Only channel threads call this.
    pub fn read(&self, clocks: &mut Vec<Clock>) {
        clocks.clear();
        clocks.extend(self.workers.iter().map(|pair| {
            let clock = pair.clock.load(Ordering::Acquire);
            pair.seen.store(clock, Ordering::Relaxed);
            Clock(clock)
        }));
    }

    /// Steps of `worker`, which is at `clock`, since a channel thread last looked: about as many as until one looks again.
    pub(crate) fn unseen_steps(&self, worker: WorkerId, clock: Clock) -> u64 {
        clock.0.saturating_sub(self.workers[worker.index()].seen.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(adapm_loom)))]
mod tests {
    use super::*;

    #[test]
    fn steps_are_unseen_until_a_channel_thread_looks() {
        let (clocks, worker) = (Clocks::new(2), WorkerId(1));
        assert_eq!(clocks.unseen_steps(worker, Clock(0)), 0);
        clocks.set(worker, Clock(5));
        assert_eq!(clocks.unseen_steps(worker, Clock(5)), 5);
        clocks.read(&mut Vec::new());
        assert_eq!(clocks.unseen_steps(worker, Clock(5)), 0);
        assert_eq!(clocks.unseen_steps(worker, Clock(7)), 2);
        assert_eq!(clocks.unseen_steps(worker, Clock(4)), 0, "a look in the meantime");
    }
}
