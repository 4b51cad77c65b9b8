//! The random program of the first phase of a run: hot keys, intents with offsets, sets, localizes,
//! waits, ticks, and barriers, quiesces and snapshots (*meetings*) of all workers.

use core::time::Duration;
use std::collections::BTreeMap;

use adapm_core::{Instant, Key};

use crate::rng::Rng;
use crate::sim::program::{NodeWorker, Program, Step, Then};

/// The program of all workers in the first phase of a run.
#[derive(Debug)]
pub struct Hardship {
    rng: Rng,
    keys: Vec<Key>,
    sets: bool,
    localizes: bool,
    /// Number of keys that all workers want, and the percentage of accesses to them.
    hot: (usize, u64),
    /// Longest pause between two steps, in microseconds.
    pause_micros: u64,
    workers: BTreeMap<NodeWorker, Worker>,
    /// Barriers, quiesces, snapshots and ticks of all workers, each after a part of the operations:
    /// no worker waits at a tick for one that has done all its operations.
    meetings: Vec<Step>,
    operations_each: u64,
    /// Number of accesses of keys that are set: bounded, so that a search can decide if an order
    /// explains them.
    set_accesses: BTreeMap<Key, u64>,
    /// The worker that ends before the others.
    quits: Option<NodeWorker>,
    operations: u64,
}

#[derive(Debug, Default)]
struct Worker {
    operations: u64,
    meetings: usize,
    has_paused: bool,
    has_ended: bool,
}

impl Hardship {
    /// Creates the program of `seed`: at least `operations` operations on `keys`, by `workers`.
    #[must_use]
    pub fn new(seed: u64, keys: Vec<Key>, workers: &[NodeWorker], operations: u64) -> Self {
        let mut rng = Rng::new(seed);
        let meeting = |rng: &mut Rng| match rng.number(0..7) {
            0 => Step::Barrier,
            1 => Step::Quiesce,
            2 => Step::Advance(1),
            3 => Step::Snapshot,
            _ => Step::Tick,
        };
        let quits = rng.chance(20).then(|| rng.choose(workers));
        // A worker that ends early leaves its share to the others.
        let sharers = workers.len() as u64 - u64::from(quits.is_some());
        Self {
            sets: rng.chance(40),
            localizes: rng.chance(60),
            hot: (rng.number(1..4) as usize, rng.choose(&[40, 60, 80])),
            pause_micros: rng.choose(&[20, 100, 400]),
            meetings: (0..rng.number(0..8)).map(|_| meeting(&mut rng)).collect(),
            workers: workers.iter().map(|who| (*who, Worker::default())).collect(),
            operations_each: operations.div_ceil(sharers),
            set_accesses: BTreeMap::new(),
            operations: 0,
            quits,
            keys,
            rng,
        }
    }

    /// Returns the number of operations begun: pulls, pushes, sets, localizes and waits.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations
    }

    fn some_keys(&mut self) -> Vec<Key> {
        let count = self.rng.number(1..4);
        let mut keys = Vec::new();
        for _ in 0..count {
            let (hot, percent) = self.hot;
            let among = if self.rng.chance(percent) { hot } else { self.keys.len() };
            let key = self.keys[self.rng.number(0..among as u64) as usize];
            let key = if self.sets && is_settable(key) { self.settable(key) } else { key };
            if !keys.contains(&key) || self.rng.chance(20) {
                keys.push(key);
            }
        }
        keys
    }

    /// Returns the key, or another one if it has had its accesses.
    fn settable(&mut self, key: Key) -> Key {
        let accesses = self.set_accesses.entry(key).or_default();
        *accesses += 1;
        if *accesses <= SET_ACCESSES_MAX {
            return key;
        }
        let others: Vec<Key> = self.keys.iter().copied().filter(|key| !is_settable(*key)).collect();
        self.rng.choose(&others)
    }

    fn operation(&mut self) -> Step {
        let keys = self.some_keys();
        let then = if self.rng.chance(60) { Then::Wait } else { Then::GoOn };
        match self.rng.number(0..100) {
            0..8 if self.sets => {
                let settable: Vec<Key> =
                    self.keys.iter().copied().filter(|key| is_settable(*key)).collect();
                let key = self.rng.choose(&settable);
                let chosen = self.settable(key);
                if chosen == key {
                    Step::Set(vec![key], then)
                } else {
                    Step::Push(vec![chosen], then)
                }
            }
            8..18 if self.localizes => Step::Localize(keys, then),
            18..22 => Step::WaitSync(then),
            22..25 => Step::Renew(keys, then),
            25..60 => Step::Push(keys, then),
            _ => Step::Pull(keys, then),
        }
    }

    /// Returns a step between two operations, most of the time none.
    fn between(&mut self) -> Option<Step> {
        match self.rng.number(0..100) {
            0..22 => {
                let ahead = if self.rng.chance(30) {
                    self.rng.number(0..60)
                } else {
                    self.rng.number(0..4)
                };
                let clocks = 1 + self.rng.number(0..6);
                Some(Step::Intent { keys: self.some_keys(), ahead, clocks })
            }
            22..50 => {
                let clocks = if self.rng.chance(10) { 30 } else { self.rng.number(1..5) };
                Some(Step::Advance(clocks))
            }
            50..75 => {
                Some(Step::Compute(Duration::from_micros(self.rng.number(0..self.pause_micros))))
            }
            _ => None,
        }
    }
}

impl Program for Hardship {
    fn next(&mut self, _now: Instant, who: NodeWorker) -> Option<Step> {
        let quits = self.quits == Some(who);
        let parts = self.meetings.len() as u64 + 1;
        let each = self.operations_each;
        let worker = self.workers.get_mut(&who)?;
        if worker.has_ended {
            return None;
        }
        if quits && worker.operations * 2 >= each {
            worker.has_ended = true;
            return Some(Step::End);
        }
        let due = worker.operations * parts / each.max(1);
        if (worker.meetings as u64) < due.min(parts - 1) {
            let meeting = self.meetings[worker.meetings].clone();
            // Who waits at a meeting holds nobody up that is still on its way there.
            if matches!(meeting, Step::Barrier | Step::Quiesce | Step::Snapshot)
                && self.rng.chance(30)
            {
                return Some(Step::Tick);
            }
            worker.meetings += 1;
            return Some(meeting);
        }
        if worker.operations >= each {
            return None;
        }
        if !core::mem::replace(&mut worker.has_paused, true)
            && let Some(step) = self.between()
        {
            return Some(step);
        }
        let worker = self.workers.get_mut(&who)?;
        worker.has_paused = false;
        worker.operations += 1;
        self.operations += 1;
        Some(self.operation())
    }
}

/// Returns true if a key is sometimes set, in programs that set keys at all.
fn is_settable(key: Key) -> bool {
    key.0 % 4 == 1
}

/// Most accesses of a key that is set.
const SET_ACCESSES_MAX: u64 = 40;
