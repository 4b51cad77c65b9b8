//! When rounds begin: how long after the last one, and how long what is missing is waited for.

use core::mem;

use crate::config::NodeConfig;
use crate::engine::entry::ROUND_BITS;
use crate::time::Instant;

/// The current round, and how long the last ones took.
#[derive(Debug, Default)]
pub(super) struct Pace {
    number: u64,
    started: Instant,
    /// Requests of this round not answered.
    requests: usize,
    /// Grants asked for in this round that are not here.
    grants: usize,
    /// Durations in nanoseconds of the last rounds that asked for something.
    durations: heapless::Deque<u64, 16>,
    /// Their median.
    usual: u64,
    /// The last round in which a worker asked for a key that was not here, or waited for it or for
    /// all nodes.
    awaited: u64,
    /// Keys of which answers told in the last round.
    brought: usize,
    /// Least intervals from the last round to the next, less one, if nobody waits.
    pause: u64,
}

impl Pace {
    /// Starts round `number`. What the last one still waits for is left behind.
    pub(super) fn start(&mut self, number: u64, now: Instant) {
        self.number = number;
        self.started = now;
        self.requests = 0;
        self.grants = 0;
    }

    /// Somebody waits: the next rounds begin as early as they may.
    pub(super) fn hurry(&mut self) {
        self.awaited = self.number;
    }

    /// Notes that answers have told of so many keys.
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

    /// No grant of this round is awaited any more.
    pub(super) fn give_up_grants(&mut self, now: Instant) {
        self.close(self.number, 0, self.grants, now);
    }

    /// Requests and grants of round `number` are answered; notes how long the round took once all
    /// are.
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

    /// Returns true if the next round may begin: the interval is over, and what the last one waits
    /// for is here, or was waited for long enough. `at_once`: there is no interval.
    pub(super) fn may_begin(&self, config: &NodeConfig, now: Instant, at_once: bool) -> bool {
        let elapsed = now.nanos_since(self.started);
        (self.number == 0 || elapsed >= self.interval(config, at_once))
            && (!self.is_open() || elapsed >= self.patience(config))
    }

    /// Returns when the next round may begin at the earliest if nothing arrives.
    pub(super) fn next_at(&self, config: &NodeConfig, at_once: bool) -> Instant {
        let earliest = self.started.plus_nanos(self.interval(config, at_once));
        if self.is_open() {
            self.started.plus_nanos(self.patience(config)).max(earliest)
        } else {
            earliest
        }
    }

    /// How long after its start the next round may begin: as early as any may where workers have
    /// waited of late, as they do where signals come shortly before keys are needed; else so that
    /// most rounds carry as many keys as they are worth.
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

    /// Notes with how many keys the round begins. Rounds become rarer step by step: timers expect
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

    /// How long a round may stay open before what is missing is left behind.
    fn patience(&self, config: &NodeConfig) -> u64 {
        self.usual.max(config.round_nanos_min).saturating_mul(PATIENCE_ROUNDS)
    }

    /// Notes how long a round took.
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

/// Keys that cost about as much as what a round costs by itself: four messages, four threads that
/// wake up.
const ROUND_WORTH: usize = 256;

/// So rounds are at most four least intervals apart for that: replicas are stale for about as long.
const PAUSE_MAX: u64 = 3;

/// Rounds that hurry after somebody has waited, and at the start.
const HURRIED_ROUNDS: u64 = 8;

/// What takes this many times as long as rounds do is left behind.
const PATIENCE_ROUNDS: u64 = 4;
