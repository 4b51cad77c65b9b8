//! Action timing: Algorithm 1, as published and with an observed variance (AdaPM §4.2.1,
//! AdaPM §4.2.2, AdaPM Alg. 1).
//!
//! The number of clocks that a worker takes in a round is assumed to be Poisson distributed; a high
//! quantile for two rounds is a soft upper bound on the clocks that can pass before the *next*
//! round has ended. Acting too late costs remote accesses, acting too early merely some traffic.
//!
//! # Departure
//! A Poisson distribution varies by the square root of its mean, so a worker with 150 clocks per
//! round would hardly ever meet a round a quarter longer than usual. But rounds last as long as
//! networks and schedulers take, and with short steps it is they that vary: in training of a
//! knowledge graph on two nodes, workers waited for late keys for a sixth of their time.
//! [`ActionTimer::observing`] takes the variance from past rounds instead, by the differences
//! between neighbours, which neither a trend nor a bad first estimate disturbs. Where it is no
//! larger than Poisson's, the bound is that of Algorithm 1.
//!
//! Not here: which intents exist, and what acting means ([`crate::engine`]).

use alloc::vec::Vec;

use crate::clock::Clock;
use crate::id::WorkerId;
use crate::policy::poisson;

/// The share of the last round in the estimate: α of Algorithm 1.
pub const SMOOTHING: f64 = 0.1;
/// The share of the last round in the estimate of the variance: an event of one round in 20 must
/// not be forgotten after ten.
pub const SMOOTHING_VARIANCE: f64 = 0.02;
/// Cap on the clocks of one round in the estimate of the variance, in mean rounds: a process that
/// was stopped for a second should not act early for the next ten.
const PASSED_MAX: f64 = 8.0;
/// The quantile of the upper bound: p of Algorithm 1.
pub const QUANTILE: f64 = 0.9999;
/// Clocks per round before any observation: the initial rate of Algorithm 1.
pub const RATE_INITIAL: f64 = 10.0;

/// Bounds for all workers of one engine. Nothing needs tuning (AdaPM §4.2.3).
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
    spread: Spread,
}

/// The assumed variance of rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spread {
    /// The mean.
    Poisson,
    /// The observed variance, at least the mean.
    Observed,
}

/// The estimates for one worker.
#[derive(Clone, Debug)]
struct Estimate {
    rate: f64,
    /// Variance of the clocks per round.
    variance: f64,
    clock: Option<Clock>,
    /// Clocks in the last round in which the worker moved, capped.
    passed: Option<f64>,
    /// The last mean and its quantile: an idle worker's estimate does not change, and quantiles are
    /// not cheap.
    cached: Option<(f64, u64)>,
}

impl ActionTimer {
    /// Creates Algorithm 1 for `workers` workers, without observations.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { estimates: alloc::vec![Estimate::new(); workers], spread: Spread::Poisson }
    }

    /// Like [`Self::new`], but with the observed variance of rounds if it is larger than that of
    /// Algorithm 1.
    #[must_use]
    pub fn observing(workers: usize) -> Self {
        Self { spread: Spread::Observed, ..Self::new(workers) }
    }

    /// Performs one step of Algorithm 1 for `worker`, which is at `clock` at the start of this
    /// round: intents that start *before* the returned clock are acted on.
    ///
    /// A round in which the worker did not move leaves the estimate unchanged, as does the first
    /// one, which has nothing to compare with. For a worker that has ended, returns
    /// [`Clock::INFINITY`].
    pub fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        if clock.is_ended() {
            return Clock::INFINITY;
        }
        if worker.index() >= self.estimates.len() {
            self.estimates.resize(worker.index() + 1, Estimate::new());
        }
        let estimate = &mut self.estimates[worker.index()];
        let bound = estimate.observe(clock);
        let clocks = match self.spread {
            Spread::Poisson => bound,
            Spread::Observed => estimate.widened(bound),
        };
        clock + clocks
    }

    /// Returns the estimated number of clocks that `worker` takes in a round.
    #[must_use]
    pub fn rate(&self, worker: WorkerId) -> f64 {
        self.estimates.get(worker.index()).map_or(RATE_INITIAL, |estimate| estimate.rate)
    }
}

impl Estimate {
    fn new() -> Self {
        Self { rate: RATE_INITIAL, variance: RATE_INITIAL, clock: None, passed: None, cached: None }
    }

    /// Returns the width of the window at `clock` by Algorithm 1.
    fn observe(&mut self, clock: Clock) -> u64 {
        let passed = self.clock.map_or(0, |last| clock.since(last)) as f64;
        self.clock = Some(clock);
        if passed > 0.0 {
            let counts = passed.min(PASSED_MAX * self.rate);
            if let Some(before) = self.passed.replace(counts) {
                let observed = (counts - before) * (counts - before) / 2.0;
                self.variance =
                    (1.0 - SMOOTHING_VARIANCE) * self.variance + SMOOTHING_VARIANCE * observed;
            }
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

    /// Scales the window's margin over the mean by the ratio of the observed standard deviation to
    /// Poisson's.
    fn widened(&self, window: u64) -> u64 {
        let Some((mean, _)) = self.cached else { return window };
        let dispersion = self.variance / self.rate;
        if dispersion <= 1.0 {
            return window;
        }
        let margin = window as f64 - mean;
        // A cast from float to integer saturates.
        window.max(libm::ceil(mean + margin * libm::sqrt(dispersion)) as u64)
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
        let golden = [
            (0, 10.0, 39),
            (5, 9.5, 37),
            (5, 9.05, 36),
            (0, 9.05, 36),
            (40, 12.145, 115),
            (3, 11.230_5, 42),
        ];
        for (passed, rate, window) in golden {
            clock += passed;
            assert_eq!(
                timer.act_before(W0, Clock(clock)),
                Clock(clock + window),
                "after {passed} clocks"
            );
            assert!((timer.rate(W0) - rate).abs() < 1e-9, "after {passed} clocks");
        }
    }

    #[test]
    fn an_observed_variance_widens_the_margin_and_no_more() {
        let mut timer = ActionTimer::observing(1);
        timer.act_before(W0, Clock(0));
        let (mut clock, mut before, mut rate, mut variance) = (0, None, 10.0_f64, 10.0_f64);
        for passed in [10, 11, 9, 0, 10, 40, 10, 5, 0, 6] {
            clock += passed;
            let passed = passed as f64;
            if passed > 0.0 {
                let counts = passed.min(8.0 * rate);
                rate = 0.9 * rate + 0.1 * passed;
                if let Some(before) = before.replace(counts) {
                    variance = 0.98 * variance + 0.01 * (counts - before) * (counts - before);
                }
            }
            let mean = 2.0 * rate.max(passed);
            let margin = poisson::quantile(mean, QUANTILE) as f64 - mean;
            let window = libm::ceil(mean + margin * (variance / rate).max(1.0).sqrt());
            assert_eq!(
                timer.act_before(W0, Clock(clock)),
                Clock(clock + window as u64),
                "after {passed}"
            );
        }
        assert!(variance / rate > 2.0, "the burst of 40 was seen");
    }

    #[test]
    fn steady_workers_have_the_window_of_algorithm_1() {
        let (mut exact, mut observing) = (ActionTimer::new(1), ActionTimer::observing(1));
        for round in 0..100 {
            let clock = Clock(round * 150);
            let bounds = [&mut exact, &mut observing].map(|timer| timer.act_before(W0, clock));
            assert!(round < 20 || bounds[0] == bounds[1], "round {round}: {bounds:?}");
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
        for mut timer in [ActionTimer::new(1), ActionTimer::observing(1)] {
            timer.act_before(W0, Clock(1));
            timer.act_before(W0, Clock(5));
            assert_eq!(timer.act_before(W0, Clock::INFINITY), Clock::INFINITY);
            assert_eq!(timer.act_before(W0, Clock(u64::MAX - 1)), Clock::INFINITY);
        }
    }

    #[test]
    fn a_leap_is_forgotten_within_a_few_hundred_rounds() {
        let (mut exact, mut observing) = (ActionTimer::new(1), ActionTimer::observing(1));
        let mut clock = 0;
        for round in 0..900 {
            clock += if round == 300 { 150_000 } else { 150 };
            let bounds = [&mut exact, &mut observing]
                .map(|timer| timer.act_before(W0, Clock(clock)).0 - clock);
            assert!(round < 301 || bounds[1] >= bounds[0], "round {round}");
            assert!(round < 700 || bounds[1] < bounds[0] * 2, "round {round}: {bounds:?}");
        }
    }

    #[test]
    fn an_unannounced_worker_starts_with_the_initial_rate() {
        let mut timer = ActionTimer::new(0);
        assert_eq!(timer.act_before(WorkerId(7), Clock(0)), Clock(39));
    }
}
