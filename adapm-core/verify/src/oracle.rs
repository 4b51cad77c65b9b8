//! The record of all accesses, key by key, which decides what reads and main copies may contain.
//!
//! Each access of one key is recorded when it is issued, in program order, and again when it is
//! done. Values are encoded as in [`digits`]: each push of a key adds a digit of its own, and each
//! set writes its own number, so that a value shows which pushes and which set it contains.
//!
//! Here: soundness of values, and loss at rest (invariant 2). The order of reads (invariants 8 and
//! 9) is checked in [`crate::invariants`] on the same record.

use std::collections::{BTreeMap, BTreeSet};

use adapm_core::clock::Tick;
use adapm_core::id::{Key, NodeId, WorkerId};

use crate::check::Checks;
use crate::digits::{self, Seen};
use crate::violation::{Violation, hold};

/// A worker of the cluster, with its node.
pub type NodeWorker = (NodeId, WorkerId);

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// Reads. The content is empty until the read is done.
    Pull(Seen),
    /// Adds this digit, counted from 0 per key.
    Push(usize),
    /// Overwrites the value with the set of this number, counted from 1 per key.
    Set(u32),
}

/// One access of one key.
#[derive(Clone, Debug)]
pub struct Access {
    /// The worker.
    pub worker: NodeWorker,
    /// The kind.
    pub kind: AccessKind,
    /// The step in which the worker issued it.
    pub issued: u64,
    /// The worker's tick then.
    pub tick: Tick,
    /// The step in which it was done; `None` while it is pending or after it failed.
    pub done: Option<u64>,
    /// True if it failed: it may have been applied or not.
    pub failed: bool,
}

/// The id of one access of one key: its position in the key's list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessId {
    /// The key.
    pub key: Key,
    /// Its position among the accesses of the key, in the order in which they were issued.
    pub index: usize,
}

/// The accesses of all keys.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// The active checkers.
    pub(super) checks: Checks,
    keys: Vec<KeyHistory>,
    /// The ticks of workers that have raised theirs.
    ticks: BTreeMap<NodeWorker, Tick>,
}

#[derive(Clone, Debug)]
struct KeyHistory {
    /// Number of pushes that a value can tell apart.
    capacity: usize,
    /// Number of pushes issued.
    pushes: usize,
    /// Number of sets issued.
    sets: u32,
    /// In the order in which they were issued.
    accesses: Vec<Access>,
    /// Pushes that are done: bit `d` for the push with digit `d`.
    acknowledged: u128,
}

impl Oracle {
    /// Creates an oracle for keys `0..value_lens.len()` with these value lengths.
    #[must_use]
    pub fn new(value_lens: &[usize]) -> Self {
        let history = |len: &usize| KeyHistory {
            capacity: digits::capacity(*len),
            pushes: 0,
            sets: 0,
            accesses: Vec::new(),
            acknowledged: 0,
        };
        let keys = value_lens.iter().map(history).collect();
        Self { checks: Checks::ALL, keys, ticks: BTreeMap::new() }
    }

    /// Restricts the oracle to these checkers.
    #[must_use]
    pub fn with_checks(self, checks: Checks) -> Self {
        Self { checks, ..self }
    }

    /// Records that a worker has reached a tick.
    pub fn raise(&mut self, worker: NodeWorker, tick: Tick) {
        self.ticks.insert(worker, tick);
    }

    /// Returns the tick that a worker has reached.
    #[must_use]
    pub fn tick(&self, worker: NodeWorker) -> Tick {
        self.ticks.get(&worker).copied().unwrap_or_default()
    }

    /// Records a pull of `key`.
    pub fn issue_pull(&mut self, worker: NodeWorker, key: Key, step: u64) -> AccessId {
        self.issue(worker, key, AccessKind::Pull(Seen::default()), step)
    }

    /// Records a push to `key`, and returns its digit; `None` if the key has no digit left.
    pub fn issue_push(
        &mut self,
        worker: NodeWorker,
        key: Key,
        step: u64,
    ) -> Option<(AccessId, usize)> {
        let history = &mut self.keys[key.0 as usize];
        if history.pushes == history.capacity {
            return None;
        }
        let digit = history.pushes;
        history.pushes += 1;
        Some((self.issue(worker, key, AccessKind::Push(digit), step), digit))
    }

    /// Records a set of `key`, and returns its number.
    pub fn issue_set(&mut self, worker: NodeWorker, key: Key, step: u64) -> (AccessId, u32) {
        let history = &mut self.keys[key.0 as usize];
        history.sets += 1;
        let set = history.sets;
        (self.issue(worker, key, AccessKind::Set(set), step), set)
    }

    /// Records that a push or set is done.
    pub fn complete(&mut self, id: AccessId, step: u64) {
        let history = &mut self.keys[id.key.0 as usize];
        let access = &mut history.accesses[id.index];
        access.done = Some(step);
        if let AccessKind::Push(digit) = access.kind {
            history.acknowledged |= 1 << digit;
        }
    }

    /// Records that an access has failed.
    pub fn fail(&mut self, id: AccessId) {
        self.keys[id.key.0 as usize].accesses[id.index].failed = true;
    }

    /// Records the result of a pull.
    ///
    /// # Errors
    /// Invariant 2 if no worker can have written that value.
    pub fn complete_pull(
        &mut self,
        id: AccessId,
        value: &[i64],
        step: u64,
    ) -> Result<(), Violation> {
        let seen = self.decode(id.key, value)?;
        let access = &mut self.keys[id.key.0 as usize].accesses[id.index];
        access.done = Some(step);
        access.kind = AccessKind::Pull(seen);
        Ok(())
    }

    /// Decodes `value` of `key`, and checks that it contains only sets and pushes that were issued.
    ///
    /// # Errors
    /// Invariant 2 if no worker can have written that value.
    pub fn decode(&self, key: Key, value: &[i64]) -> Result<Seen, Violation> {
        let history = &self.keys[key.0 as usize];
        let seen = match digits::seen(key, value) {
            Ok(seen) => seen,
            Err(unsound) => refuse_unsound(key, unsound)?,
        };
        hold!(Checks::ALL => ValueSound, seen.set <= history.sets, "{key} holds a set nobody made: {seen}");
        hold!(Checks::ALL => ValueSound, seen.pushes >> history.pushes == 0, "{key} holds a push nobody made: {seen}");
        Ok(seen)
    }

    /// Returns true if the key was ever set: its older pushes may then be gone.
    #[must_use]
    pub fn was_set(&self, key: Key) -> bool {
        self.keys[key.0 as usize].sets > 0
    }

    /// Returns the pushes to `key` that are done: bit `d` for digit `d`.
    #[must_use]
    pub fn acknowledged(&self, key: Key) -> u128 {
        self.keys[key.0 as usize].acknowledged
    }

    /// Returns the pushes that workers of `node` have issued to `key`: bit `d` for digit `d`.
    #[must_use]
    pub fn pushes_of(&self, node: NodeId, key: Key) -> u128 {
        let of_node = self.accesses(key).iter().filter(|access| access.worker.0 == node);
        of_node.fold(0, |mask, access| match access.kind {
            AccessKind::Push(digit) => mask | 1 << digit,
            AccessKind::Pull(_) | AccessKind::Set(_) => mask,
        })
    }

    /// Returns the number of pushes issued to `key`.
    #[must_use]
    pub fn pushes(&self, key: Key) -> usize {
        self.keys[key.0 as usize].pushes
    }

    /// Returns the accesses of `key` in the order in which they were issued.
    #[must_use]
    pub fn accesses(&self, key: Key) -> &[Access] {
        &self.keys[key.0 as usize].accesses
    }

    /// Checks `seen`, the value at rest, for lost accesses.
    ///
    /// A set that was issued after another was done must replace it; sets that overlap in time may
    /// come in any order. The same holds for pushes after sets.
    ///
    /// # Errors
    /// Invariant 2 if a set that certainly came later is missing, or a push that certainly came
    /// after the last set.
    pub fn check_final(&self, key: Key, seen: Seen) -> Result<(), Violation> {
        let history = &self.keys[key.0 as usize];
        if history.sets == 0 {
            let missing = ((1_u128 << history.pushes) - 1) & !seen.pushes;
            hold!(self.checks => KeptAtRest, missing == 0, "{key} has lost push p{}: {seen}", missing.trailing_zeros());
            return Ok(());
        }
        let sets =
            || history.accesses.iter().filter(|access| matches!(access.kind, AccessKind::Set(_)));
        let last = sets()
            .find(|access| access.kind == AccessKind::Set(seen.set))
            .and_then(|access| access.done);
        let Some(last) = last else {
            hold!(Checks::ALL => SetKept, false, "{key} has been set and yet holds {seen}");
            return Ok(());
        };
        hold!(self.checks => LastSetKept, sets().all(|set| set.issued <= last), "{key} holds {seen}, and a later set is lost");
        let all_done = sets().map(|set| set.done.unwrap_or(u64::MAX)).max().unwrap_or(0);
        for access in &history.accesses {
            let AccessKind::Push(digit) = access.kind else { continue };
            let lost = access.issued > all_done && seen.pushes >> digit & 1 == 0;
            hold!(self.checks => KeptBehindSet, !lost, "{key} has lost push p{digit} behind its last set: {seen}");
        }
        Ok(())
    }

    /// Returns the workers that touched `key`, in order.
    #[must_use]
    pub fn workers(&self, key: Key) -> Vec<NodeWorker> {
        let workers: BTreeSet<NodeWorker> =
            self.accesses(key).iter().map(|access| access.worker).collect();
        workers.into_iter().collect()
    }

    fn issue(&mut self, worker: NodeWorker, key: Key, kind: AccessKind, issued: u64) -> AccessId {
        let tick = self.tick(worker);
        let accesses = &mut self.keys[key.0 as usize].accesses;
        accesses.push(Access { worker, kind, issued, tick, done: None, failed: false });
        AccessId { key, index: accesses.len() - 1 }
    }
}

/// Returns the violation of an undecodable value.
fn refuse_unsound(key: Key, unsound: digits::Unsound) -> Result<Seen, Violation> {
    match unsound {
        digits::Unsound::Tag(tag) => {
            hold!(Checks::ALL => ValueSound, false, "{key} holds the tag {tag}, which no set has written")
        }
        digits::Unsound::Digit(digit, count) => {
            hold!(Checks::ALL => ValueSound, false, "{key} holds push p{digit} {count} times")
        }
    }
    unreachable!("both arms return")
}
