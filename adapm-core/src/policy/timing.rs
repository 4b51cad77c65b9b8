//! When to act on an intent: Algorithm 1, exactly (AdaPM §4.2.1, AdaPM §4.2.2, AdaPM Alg. 1).
//!
//! The number of clocks that a worker takes in a round is assumed to be Poisson distributed; a high quantile of two rounds
//! is a soft upper bound of the clocks that can pass before the *next* round has ended. Acting too late costs remote
//! accesses, acting too early merely some traffic.
//!
//! Not here: which intents exist, and what acting means ([`crate::node`]).

use alloc::vec::Vec;

use crate::clock::Clock;
use crate::id::WorkerId;
use crate::policy::poisson;

/// The share of the last round in the estimate: α of Algorithm 1.
pub const SMOOTHING: f64 = 0.1;
/// The quantile of the upper bound: p of Algorithm 1.
pub const QUANTILE: f64 = 0.9999;
/// Clocks a round, estimated before anything was observed: the initial rate of Algorithm 1.
pub const RATE_INITIAL: f64 = 10.0;

/// Algorithm 1 for all workers of one engine. Nothing in it needs tuning (AdaPM §4.2.3).
///
/// ```
/// use adapm_core::policy::timing::ActionTimer;
/// use adapm_core::{Clock, WorkerId};
/// let mut timer = ActionTimer::new(1);
/// assert_eq!(timer.act_before(WorkerId(0), Clock(100)), Clock(139));
/// ```
#[derive(Clone, Debug)]
pub struct ActionTimer {
    estimates: Vec<Estimate>,
}

/// What is known of one worker.
#[derive(Clone, Debug)]
struct Estimate {
    rate: f64,
    clock: Option<Clock>,
    /// The last quantile and its mean: the estimate of an idle worker does not change, and a quantile is not cheap.
    cached: Option<(f64, u64)>,
}

impl ActionTimer {
    /// A timer for `workers` workers that has observed nothing.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { estimates: alloc::vec![Estimate::new(); workers] }
    }

    /// One step of Algorithm 1 for `worker`, which is at `clock` at the start of this round: intents that start *before* the
    /// returned clock are acted on.
    ///
    /// A round in which the worker did not move leaves the estimate as it is; so does the first one, which has nothing to
    /// compare with. A worker that has ended ends at [`Clock::INFINITY`].
    pub fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        if clock.is_ended() {
            return Clock::INFINITY;
        }
        if worker.index() >= self.estimates.len() {
            self.estimates.resize(worker.index() + 1, Estimate::new());
        }
        clock.plus(self.estimates[worker.index()].observe(clock))
    }

    /// The estimated number of clocks that `worker` takes in a round.
    #[must_use]
    pub fn rate(&self, worker: WorkerId) -> f64 {
        self.estimates.get(worker.index()).map_or(RATE_INITIAL, |estimate| estimate.rate)
    }
}

impl Estimate {
    fn new() -> Self {
        Self { rate: RATE_INITIAL, clock: None, cached: None }
    }

    /// The width of the window at `clock`.
    fn observe(&mut self, clock: Clock) -> u64 {
        let passed = self.clock.map_or(0, |last| clock.since(last)) as f64;
        self.clock = Some(clock);
        if passed > 0.0 {
            self.rate = (1.0 - SMOOTHING) * self.rate + SMOOTHING * passed;
        }
        let mean = 2.0 * self.rate.max(passed);
        match self.cached {
            Some((of, quantile)) if of.to_bits() == mean.to_bits() => quantile,
            _ => {
                let quantile = poisson::quantile(mean, QUANTILE);
                self.cached = Some((mean, quantile));
                quantile
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W0: WorkerId = WorkerId(0);

    #[test]
    fn follows_the_golden_sequence() {
        let mut timer = ActionTimer::new(1);
        let mut clock = 1_000;
        timer.act_before(W0, Clock(clock));
        let golden =
            [(0, 10.0, 39), (5, 9.5, 37), (5, 9.05, 36), (0, 9.05, 36), (40, 12.145, 115), (3, 11.230_5, 42)];
        for (passed, rate, window) in golden {
            clock += passed;
            assert_eq!(timer.act_before(W0, Clock(clock)), Clock(clock + window), "after {passed} clocks");
            assert!((timer.rate(W0) - rate).abs() < 1e-9, "after {passed} clocks");
        }
    }

    #[test]
    fn first_round_observes_nothing() {
        let mut timer = ActionTimer::new(1);
        assert_eq!(timer.act_before(W0, Clock(5_000)), Clock(5_039));
        assert_eq!(timer.rate(W0), RATE_INITIAL);
    }

    #[test]
    fn workers_are_estimated_apart() {
        let mut timer = ActionTimer::new(2);
        for clock in [0, 100, 200] {
            timer.act_before(WorkerId(1), Clock(clock));
            timer.act_before(W0, Clock(clock / 100));
        }
        assert!(timer.rate(W0) < RATE_INITIAL && timer.rate(WorkerId(1)) > RATE_INITIAL);
    }

    #[test]
    fn neither_the_end_nor_a_leap_overflows() {
        let mut timer = ActionTimer::new(1);
        timer.act_before(W0, Clock(1));
        assert_eq!(timer.act_before(W0, Clock::INFINITY), Clock::INFINITY);
        assert_eq!(timer.act_before(W0, Clock(u64::MAX - 1)), Clock::INFINITY);
    }

    #[test]
    fn an_unannounced_worker_starts_with_the_initial_rate() {
        let mut timer = ActionTimer::new(0);
        assert_eq!(timer.act_before(WorkerId(7), Clock(0)), Clock(39));
    }
}
