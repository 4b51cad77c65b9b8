//! Signals of own workers, aggregated per node and key (AdaPM §3, AdaPM §B.2.1).
//!
//! A node keeps inactive intents to itself. What the action timer lets through (AdaPM §4.2.1) raises the key's reference
//! count, what expires or is taken back lowers it; others learn only that the count has left or reached zero.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use hashbrown::hash_map::Entry;

use crate::clock::Clock;
use crate::engine::Engine;
use crate::engine::input::{Intent, SignalId};
use crate::engine::interest::{Mark, Request};
use crate::error::OpError;
use crate::id::{Key, WorkerId};
use crate::policy::Policy;
use crate::slot::State;
use crate::store::{self, Look, Store};

/// Rounds after which a localize that brought a replica instead of ownership ends, if the node has no other intent. Counted
/// in rounds, not in time: a node that has nothing to say begins none and keeps the replica, for which nothing is sent either
/// as long as the main copy does not change. So these replicas are at most those of the localizes of this many rounds.
const WISH_ROUNDS: u64 = 1_024;

/// Signals of all workers, before and after they were let through.
#[derive(Debug)]
pub(super) struct Signals {
    workers: Vec<WorkerSignals>,
    arrivals: u64,
    /// What is to be forgotten in the next rounds.
    taken_back: VecDeque<Intent>,
    /// The last round has left something that was due to the next one.
    is_behind: bool,
}

#[derive(Debug, Default)]
struct WorkerSignals {
    /// Not acted on yet, by start.
    inactive: BTreeMap<Place, Batch>,
    /// Acted on, by end.
    active: BTreeMap<Place, Batch>,
}

/// A signal's start while inactive, then its end; its name; its arrival, as names may be shared.
type Place = (Clock, SignalId, u64);

/// The keys of one signal.
#[derive(Debug)]
struct Batch {
    end: Clock,
    keys: Vec<Key>,
}

impl Signals {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| WorkerSignals::default()).collect(),
            arrivals: 0,
            taken_back: VecDeque::new(),
            is_behind: false,
        }
    }

    /// Returns true if a round had to leave something that was due to the next one.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Returns true if an intent is not yet let through, retired or forgotten.
    pub(super) fn any(&self) -> bool {
        !self.taken_back.is_empty()
            || self.workers.iter().any(|worker| !worker.inactive.is_empty() || !worker.active.is_empty())
    }

    /// Keys in all signals.
    pub(super) fn keys(&self) -> usize {
        let batches =
            self.workers.iter().flat_map(|worker| worker.inactive.values().chain(worker.active.values()));
        batches.map(|batch| batch.keys.len()).sum()
    }
}

impl<S: Store, P: Policy> Engine<S, P> {
    pub(super) fn handle_intent(&mut self, intent: Intent) -> Result<(), OpError> {
        let Intent { worker, id, keys, clocks } = intent;
        let Some(clock) = self.ctx.clocks.get(worker.index()) else {
            return Err(OpError::UnknownWorker { worker });
        };
        if clocks.start >= clocks.end {
            return Err(OpError::Window { start: clocks.start, end: clocks.end });
        }
        let expired = clocks.end <= *clock;
        self.check_keys(&keys)?;
        // On a single node every key is local, whatever is signaled.
        if expired || keys.is_empty() || self.ctx.config.nodes == 1 {
            return Ok(());
        }
        self.signals.arrivals += 1;
        let place = (clocks.start, id, self.signals.arrivals);
        self.signals.workers[worker.index()].inactive.insert(place, Batch { end: clocks.end, keys });
        Ok(())
    }

    pub(super) fn handle_take_back(&mut self, intent: Intent) -> Result<(), OpError> {
        if intent.worker.index() >= self.ctx.clocks.len() {
            return Err(OpError::UnknownWorker { worker: intent.worker });
        }
        self.check_keys(&intent.keys)?;
        // Where there is nothing to forget, there need not be a round either.
        if self.signals.any() {
            self.signals.taken_back.push_back(intent);
        }
        Ok(())
    }

    /// Forgets what is taken back, lets through what the policy acts on, then retires what has expired: an intent that
    /// continues another keeps the key. Stops behind the signal with which it has looked at as many keys as a round may: so
    /// what ends for millions of keys at once holds up nobody, and what comes later in this order waits for the next rounds.
    pub(super) fn update_intents(&mut self) {
        let mut left = self.ctx.config.requests_max.max(1);
        let mut is_all = self.forget_taken_back(&mut left);
        for index in 0..self.ctx.config.workers {
            is_all = is_all && self.activate_due(index, &mut left) && self.expire_due(index, &mut left);
        }
        self.signals.is_behind = !is_all && self.signals.any();
    }

    /// Forgets what is taken back; false: there may be more.
    fn forget_taken_back(&mut self, left: &mut usize) -> bool {
        while let Some(intent) = self.signals.taken_back.pop_front() {
            let keys = intent.keys.len();
            self.take_back(intent);
            if !spend(left, keys) {
                return false;
            }
        }
        true
    }

    /// Lets through what the policy acts on of a worker; false: there may be more.
    fn activate_due(&mut self, index: usize, left: &mut usize) -> bool {
        let worker = WorkerId(u16::try_from(index).expect("worker ids are 16 bits wide"));
        let clock = self.ctx.clocks[index];
        let before = if clock.is_ended() { clock } else { self.ctx.policy.act_before(worker, clock) };
        // Whatever has started is looked at, so that what a policy never acts on is forgotten when it expires.
        let mut late = Vec::new();
        let mut is_all = true;
        while let Some(first) = self.signals.workers[index].inactive.first_entry() {
            let (start, id, arrival) = *first.key();
            if start >= before && start > clock {
                break;
            }
            let batch = first.remove();
            if batch.end <= clock {
                continue;
            }
            if start >= before {
                late.push(((start, id, arrival), batch));
                continue;
            }
            for (at, &key) in batch.keys.iter().enumerate() {
                store::prefetch_entry_ahead(&self.ctx.store, at, |at| batch.keys.get(at).copied());
                self.activate(key);
            }
            is_all = spend(left, batch.keys.len());
            self.signals.workers[index].active.insert((batch.end, id, arrival), batch);
            if !is_all {
                break;
            }
        }
        self.signals.workers[index].inactive.extend(late);
        is_all
    }

    /// Retires what has expired of a worker; false: there may be more.
    fn expire_due(&mut self, index: usize, left: &mut usize) -> bool {
        while let Some(first) = self.signals.workers[index].active.first_entry() {
            let (end, ..) = *first.key();
            if end > self.ctx.clocks[index] {
                break;
            }
            let batch = first.remove();
            for (at, &key) in batch.keys.iter().enumerate() {
                store::prefetch_entry_ahead(&self.ctx.store, at, |at| batch.keys.get(at).copied());
                self.expire(key);
            }
            if !spend(left, batch.keys.len()) {
                return false;
            }
        }
        true
    }

    fn activate(&mut self, key: Key) {
        let interest = self.interests.entry(key).or_default();
        let first = interest.count() == 0;
        interest.signals += 1;
        let had_turn = interest.take(Mark::HadTurn);
        let has_wish = interest.is(Mark::Wished);
        if has_wish {
            self.schedule_wish(key, None);
        }
        // Most keys are here. One that leaves, or is answered, is looked at again then.
        let is_held = || matches!(self.ctx.store.look(key), Look::Held { .. });
        let is_absent = || !is_held() && self.ctx.state(key) == State::None;
        if (first || had_turn) && (has_wish || is_absent()) {
            self.ask_later(key);
        }
        if first {
            self.ctx.observe(|observer, now| observer.on_intent(now, key, true));
        }
    }

    fn take_back(&mut self, intent: Intent) {
        let Intent { worker, id, keys, clocks } = intent;
        let signals = &mut self.signals.workers[worker.index()];
        let mut times = BTreeMap::<Key, usize>::new();
        let mut left = keys.len();
        keys.into_iter().for_each(|key| *times.entry(key).or_default() += 1);
        let mut found = Vec::new();
        for (batches, at, is_active) in
            [(&mut signals.inactive, clocks.start, false), (&mut signals.active, clocks.end, true)]
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
                    let Some(times) = times.get_mut(key).filter(|times| **times > 0) else { return true };
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
        found.into_iter().for_each(|key| self.expire(key));
    }

    fn expire(&mut self, key: Key) {
        let Entry::Occupied(mut entry) = self.interests.entry(key) else { return };
        let interest = entry.get_mut();
        debug_assert!(interest.signals > 0, "each active signal was counted");
        interest.signals = interest.signals.saturating_sub(1);
        if interest.signals > 0 {
            return;
        }
        if !interest.is(Mark::Wished) {
            if interest.end() {
                entry.remove();
            }
            self.lost_interest(key);
        } else if self.wishes.get(&key).is_some_and(|wish| wish.waiters.is_empty()) {
            self.schedule_wish(key, Some(self.round.number + WISH_ROUNDS));
        }
    }

    /// An intent or localize of this node is answered.
    pub(super) fn note_answered(&mut self, request: Request) {
        self.requested -= 1;
        self.collectives.note_answered(request);
    }

    /// Whether acted-on intent or a localize of this node is active.
    pub(super) fn is_interested(&self, key: Key) -> bool {
        self.interests.get(&key).is_some_and(|interest| interest.count() > 0)
    }

    /// The reference count of `key` reaches zero.
    pub(super) fn lose_interest(&mut self, key: Key) {
        self.schedule_wish(key, None);
        self.wishes.remove(&key);
        if let Entry::Occupied(mut entry) = self.interests.entry(key) {
            if entry.get_mut().end() {
                entry.remove();
            }
            self.lost_interest(key);
        }
    }

    pub(super) fn lost_interest(&mut self, key: Key) {
        self.ctx.observe(|observer, now| observer.on_intent(now, key, false));
        // Of a main copy nobody else holds, there is nothing to decide.
        if self.ctx.store.look(key) == (Look::Held { with_delta: false }) && !self.holdings.contains_key(&key)
        {
            return;
        }
        match self.ctx.state(key) {
            State::Replica if planted!(self.ctx, ForgetRelease) => {}
            State::Replica => self.agenda.release.push(key),
            State::Main => self.reconsider(key),
            State::None => self.advance(key),
            State::Requested | State::Releasing => {}
        }
    }

    /// A worker wants `key` here; `waiter` ends when it is local. Until then the localize is due in no round.
    pub(super) fn wish(&mut self, key: Key, waiter: crate::engine::OpId) {
        let interest = self.interests.entry(key).or_default();
        let first = interest.count() == 0;
        interest.put(Mark::Wished);
        interest.put(Mark::Unsent);
        let is_listed = interest.put(Mark::Listed);
        let wish = self.wishes.entry(key).or_default();
        wish.waiters.push(waiter);
        let is_due = wish.due.is_some();
        if !is_listed {
            self.agenda.request.push_back(key);
        }
        if is_due {
            self.schedule_wish(key, None);
        }
        if first {
            self.ctx.observe(|observer, now| observer.on_intent(now, key, true));
        }
    }

    /// The key is local: ends the localizes that wait for it.
    pub(super) fn end_waiters(&mut self, key: Key) {
        let Some(wish) = self.wishes.get_mut(&key) else { return };
        let waiters = core::mem::take(&mut wish.waiters);
        if self.interests.get(&key).is_some_and(|interest| interest.signals == 0) {
            self.schedule_wish(key, Some(self.round.number + WISH_ROUNDS));
        }
        waiters.into_iter().for_each(|waiter| self.finish(waiter));
    }

    /// The next round looks whether somebody has to be asked for `key`, if it is wanted. However often it comes and goes until
    /// then, it is noted once.
    pub(super) fn ask_later(&mut self, key: Key) {
        if let Some(interest) = self.interests.get_mut(&key)
            && interest.is_wanted()
            && !interest.put(Mark::Listed)
        {
            self.agenda.request.push_back(key);
        }
    }

    /// Notes when the localize of `key` may end, if there is one.
    pub(super) fn schedule_wish(&mut self, key: Key, due: Option<u64>) {
        let Some(wish) = self.wishes.get_mut(&key) else { return };
        if let Some(due) = core::mem::replace(&mut wish.due, due) {
            self.agenda.wishes.remove(&(due, key));
        }
        self.agenda.wishes.extend(due.map(|due| (due, key)));
    }

    /// Ends localizes that have brought no ownership for long while nothing else wants the key.
    pub(super) fn expire_wishes(&mut self) {
        while let Some(&(due, key)) = self.agenda.wishes.first() {
            if due > self.round.number {
                break;
            }
            debug_assert!(
                self.wishes.get(&key).is_none_or(|wish| wish.waiters.is_empty()),
                "who waits clears the date"
            );
            if self.interests.get(&key).is_some_and(|interest| interest.is(Mark::Unsent)) {
                self.schedule_wish(key, Some(self.round.number + 1));
            } else {
                self.lose_interest(key);
            }
        }
    }
}

/// Takes keys off those that a round may still look at; false: none are left.
fn spend(left: &mut usize, keys: usize) -> bool {
    *left = left.saturating_sub(keys);
    *left > 0
}
