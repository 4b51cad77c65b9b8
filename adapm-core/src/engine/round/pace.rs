//! Timing of rounds: the interval between them, and how long missing answers are waited for.

use core::mem;

use crate::config::NodeConfig;
use crate::engine::entry::ROUND_BITS;
use crate::time::Instant;

/// The current round, and durations of the last ones.
#[derive(Debug, Default)]
pub(super) struct Pace {
    number: u64,
    started: Instant,
    /// Unanswered requests of this round.
    requests: usize,
    /// Outstanding grants of this round.
    grants: usize,
    /// Durations of the last rounds with requests, in nanoseconds.
    durations: heapless::Deque<u64, 16>,
    /// Their median.
    usual: u64,
    /// The last round in which a worker waited: for an absent key or for all nodes.
    awaited: u64,
    /// Keys reported by answers in the last round.
    brought: usize,
    /// Extra intervals before the next round, if no worker waits.
    pause: u64,
}

impl Pace {
    /// Starts round `number`. Missing answers of the previous one are left behind.
    pub(super) fn start(&mut self, number: u64, now: Instant) {
        self.number = number;
        self.started = now;
        self.requests = 0;
        self.grants = 0;
    }

    /// Makes the next rounds begin as early as allowed: a worker waits.
    pub(super) fn hurry(&mut self) {
        self.awaited = self.number;
    }

    /// Counts keys reported by answers.
    pub(super) fn bring(&mut self, keys: usize) {
        self.brought += keys;
    }

    pub(super) fn await_request(&mut self) {
        self.requests += 1;
    }

    pub(super) fn await_grants(&mut self, grants: usize) {
        self.grants += grants;
    }

    /// Returns true if answers or grants of this round are awaited.
    pub(super) fn is_open(&self) -> bool {
        self.requests + self.grants > 0
    }

    /// Awaits no more grants of this round.
    pub(super) fn give_up_grants(&mut self, now: Instant) {
        self.close(self.number, 0, self.grants, now);
    }

    /// Counts answers to requests and grants of round `number`; records its duration after the
    /// last.
    pub(super) fn close(&mut self, number: u64, requests: usize, grants: usize, now: Instant) {
        if (number ^ self.number) << (u64::BITS - ROUND_BITS) != 0 || !self.is_open() {
            return;
        }
        self.requests = self.requests.saturating_sub(requests);
        self.grants = self.grants.saturating_sub(grants);
        if !self.is_open() {
            self.took(now.nanos_since(self.started));
        }
    }

    /// Returns true if the next round may begin: the interval is over, and all answers of the last
    /// round are here or were waited for long enough. `at_once`: no interval.
    pub(super) fn may_begin(&self, config: &NodeConfig, now: Instant, at_once: bool) -> bool {
        let elapsed = now.nanos_since(self.started);
        (self.number == 0 || elapsed >= self.interval(config, at_once))
            && (!self.is_open() || elapsed >= self.patience(config))
    }

    /// Returns the earliest time of the next round if nothing arrives.
    pub(super) fn next_at(&self, config: &NodeConfig, at_once: bool) -> Instant {
        let earliest = self.started.plus_nanos(self.interval(config, at_once));
        if self.is_open() {
            self.started.plus_nanos(self.patience(config)).max(earliest)
        } else {
            earliest
        }
    }

    /// Returns the interval to the next round: the shortest if workers have waited recently, as
    /// they do if signals come shortly before keys are needed; otherwise long enough for most
    /// rounds to carry as many keys as they are worth.
    fn interval(&self, config: &NodeConfig, at_once: bool) -> u64 {
        let (least, most) = (config.round_nanos_min, config.round_nanos_max);
        match at_once {
            true => 0,
            false if self.hurries() => least,
            false => least.saturating_mul(1 + self.pause).min(most).max(least),
        }
    }

    fn hurries(&self) -> bool {
        self.number <= self.awaited + HURRIED_ROUNDS
    }

    /// Notes the number of keys of the round. Rounds become rarer step by step, as timers expect
    /// the next to be as long as the last.
    pub(super) fn carry(&mut self, keys: usize) {
        let keys = keys + mem::take(&mut self.brought);
        if self.hurries() {
            self.pause = 0;
        } else if keys < ROUND_WORTH / 2 {
            self.pause = (self.pause + 1).min(PAUSE_MAX);
        } else if keys > ROUND_WORTH {
            self.pause /= 2;
        }
    }

    /// Returns the time that a round may stay open before missing answers are left behind.
    fn patience(&self, config: &NodeConfig) -> u64 {
        self.usual.max(config.round_nanos_min).saturating_mul(PATIENCE_ROUNDS)
    }

    /// Records the duration of a round.
    fn took(&mut self, nanos: u64) {
        if self.durations.is_full() {
            self.durations.pop_front();
        }
        self.durations.push_back(nanos).expect("room was just made");
        let mut durations: heapless::Vec<u64, 16> = self.durations.iter().copied().collect();
        durations.sort_unstable();
        self.usual = durations[durations.len() / 2];
    }
}

/// Keys that cost about as much as a round itself: four messages, four thread wake-ups.
const ROUND_WORTH: usize = 256;

/// Rounds are thus at most four least intervals apart, and replicas are stale for about as long.
const PAUSE_MAX: u64 = 3;

/// Rounds that hurry after a wait, and at the start.
const HURRIED_ROUNDS: u64 = 8;

/// Answers that take this many times the usual duration of a round are left behind.
const PATIENCE_ROUNDS: u64 = 4;
