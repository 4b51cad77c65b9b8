//! Signals of own workers, inactive and active (AdaPM §3, AdaPM §B.2.1).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::clock::Clock;
use crate::engine::input::{Intent, SignalId};
use crate::id::{Key, WorkerId};

/// Signals of all workers.
#[derive(Debug, Default)]
pub(super) struct Signals {
    workers: Vec<WorkerSignals>,
    arrivals: u64,
    /// Signals to be forgotten in the next rounds.
    taken_back: VecDeque<Intent>,
}

#[derive(Debug, Default)]
struct WorkerSignals {
    /// Not acted on yet, by start.
    inactive: BTreeMap<Place, Batch>,
    /// Acted on, by end.
    active: BTreeMap<Place, Batch>,
}

/// A signal's start while inactive, its end while active; its id; its arrival, as ids may be
/// shared.
pub(super) type Place = (Clock, SignalId, u64);

/// The keys of one signal.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) end: Clock,
    pub(super) keys: Vec<Key>,
}

impl Signals {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| WorkerSignals::default()).collect(),
            ..Self::default()
        }
    }

    /// Returns true if an intent is not yet let through, retired or forgotten.
    pub(super) fn any(&self) -> bool {
        !self.taken_back.is_empty()
            || self
                .workers
                .iter()
                .any(|worker| !worker.inactive.is_empty() || !worker.active.is_empty())
    }

    /// Returns the number of keys in all signals.
    pub(super) fn keys(&self) -> usize {
        let batches = self
            .workers
            .iter()
            .flat_map(|worker| worker.inactive.values().chain(worker.active.values()));
        batches.map(|batch| batch.keys.len()).sum()
    }

    /// Adds a signal that is not acted on yet.
    pub(super) fn add(&mut self, intent: Intent) {
        let Intent { worker, id, keys, clocks } = intent;
        self.arrivals += 1;
        let place = (clocks.start, id, self.arrivals);
        self.workers[worker.index()].inactive.insert(place, Batch { end: clocks.end, keys });
    }

    /// Queues a signal to be forgotten.
    pub(super) fn take_back(&mut self, intent: Intent) {
        self.taken_back.push_back(intent);
    }

    /// Takes the next signal to be forgotten.
    pub(super) fn next_taken_back(&mut self) -> Option<Intent> {
        self.taken_back.pop_front()
    }

    /// Takes the next inactive signal that has started or starts before `before`. Drops expired
    /// ones.
    pub(super) fn next_started(
        &mut self,
        worker: WorkerId,
        clock: Clock,
        before: Clock,
    ) -> Option<(Place, Batch)> {
        let inactive = &mut self.workers[worker.index()].inactive;
        while let Some(first) = inactive.first_entry() {
            let (start, id, arrival) = *first.key();
            if start >= before && start > clock {
                return None;
            }
            let batch = first.remove();
            if batch.end > clock {
                return Some(((start, id, arrival), batch));
            }
        }
        None
    }

    /// Puts signals back that are still inactive.
    pub(super) fn put_back(&mut self, worker: WorkerId, signals: Vec<(Place, Batch)>) {
        self.workers[worker.index()].inactive.extend(signals);
    }

    /// Makes a signal active until it expires.
    pub(super) fn note_active(&mut self, worker: WorkerId, (_, id, arrival): Place, batch: Batch) {
        self.workers[worker.index()].active.insert((batch.end, id, arrival), batch);
    }

    /// Takes the next active signal that has expired.
    pub(super) fn next_expired(&mut self, worker: WorkerId, clock: Clock) -> Option<Batch> {
        let first = self.workers[worker.index()].active.first_entry()?;
        let (end, ..) = *first.key();
        (end <= clock).then(|| first.remove())
    }

    /// Forgets signals of that worker, id and window, as often as each key is listed. Returns the
    /// keys of those that were active.
    pub(super) fn forget(&mut self, intent: Intent) -> Vec<Key> {
        let Intent { worker, id, keys, clocks } = intent;
        let WorkerSignals { inactive, active } = &mut self.workers[worker.index()];
        let mut times = BTreeMap::<Key, usize>::new();
        let mut left = keys.len();
        keys.into_iter().for_each(|key| *times.entry(key).or_default() += 1);
        let mut found = Vec::new();
        for (batches, at, is_active) in
            [(inactive, clocks.start, false), (active, clocks.end, true)]
        {
            let mut empty = Vec::new();
            for (place, batch) in batches.range_mut((at, id, 0)..=(at, id, u64::MAX)) {
                if left == 0 {
                    break;
                }
                if batch.end != clocks.end {
                    continue;
                }
                batch.keys.retain(|key| {
                    let Some(times) = times.get_mut(key).filter(|times| **times > 0) else {
                        return true;
                    };
                    *times -= 1;
                    left -= 1;
                    if is_active {
                        found.push(*key);
                    }
                    false
                });
                if batch.keys.is_empty() {
                    empty.push(*place);
                }
            }
            for place in empty {
                batches.remove(&place);
            }
        }
        found
    }
}
