//! The accesses of every worker with their results, key by key: the judge of reads (invariants 8
//! and 9) and of the content of main copies.
//!
//! Each access of one key is recorded when it is issued, in program order, and again when it is
//! done. Checks cost one pass over the accesses of the key.

use std::collections::BTreeSet;

use adapm_core::id::{Key, NodeId, WorkerId};

use crate::check::Checks;
use crate::digits::{self, Seen};
use crate::violation::{Violation, hold};

/// A worker of the cluster.
pub type Who = (NodeId, WorkerId);

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Reads; carries the content read, once done.
    Pull(Seen),
    /// Adds its digit.
    Push(usize),
    /// Overwrites with the set of this number, counted from 1.
    Set(u32),
}

/// One access of one key.
#[derive(Clone, Debug)]
pub struct Access {
    /// The worker.
    pub who: Who,
    /// The kind.
    pub what: What,
    /// The step in which the worker issued it.
    pub issued: u64,
    /// The step in which it was done.
    pub done: Option<u64>,
    /// True if it failed: it may or may not have been applied.
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
}

#[derive(Clone, Debug)]
struct KeyHistory {
    capacity: usize,
    pushes: usize,
    sets: u32,
    accesses: Vec<Access>,
    /// Pushes that are done.
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
        Self { checks: Checks::ALL, keys: value_lens.iter().map(history).collect() }
    }

    /// Restricts the oracle to these checkers.
    #[must_use]
    pub fn judged_by(self, checks: Checks) -> Self {
        Self { checks, ..self }
    }

    /// Records a pull of `key`.
    pub fn issue_pull(&mut self, who: Who, key: Key, step: u64) -> AccessId {
        self.issue(who, key, What::Pull(Seen::default()), step)
    }

    /// Records a push to `key`, with the next digit; `None` if the key has no digit left.
    pub fn issue_push(&mut self, who: Who, key: Key, step: u64) -> Option<(AccessId, usize)> {
        let history = &mut self.keys[key.0 as usize];
        if history.pushes == history.capacity {
            return None;
        }
        let digit = history.pushes;
        history.pushes += 1;
        Some((self.issue(who, key, What::Push(digit), step), digit))
    }

    /// Records a set of `key`, with the next number.
    pub fn issue_set(&mut self, who: Who, key: Key, step: u64) -> (AccessId, u32) {
        let history = &mut self.keys[key.0 as usize];
        history.sets += 1;
        let set = history.sets;
        (self.issue(who, key, What::Set(set), step), set)
    }

    /// Records that a push or set is done.
    pub fn complete(&mut self, id: AccessId, step: u64) {
        let history = &mut self.keys[id.key.0 as usize];
        let access = &mut history.accesses[id.index];
        access.done = Some(step);
        if let What::Push(digit) = access.what {
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
        let seen = self.judge(id.key, value)?;
        let access = &mut self.keys[id.key.0 as usize].accesses[id.index];
        access.done = Some(step);
        access.what = What::Pull(seen);
        Ok(())
    }

    /// Returns the content of `value` of `key`.
    ///
    /// # Errors
    /// Invariant 2 if no worker can have written that value.
    pub fn judge(&self, key: Key, value: &[i64]) -> Result<Seen, Violation> {
        let history = &self.keys[key.0 as usize];
        let seen = match digits::seen(key, value) {
            Ok(seen) => seen,
            Err(unsound) => hold_unsound(key, unsound)?,
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

    /// Returns the pushes to `key` that are done.
    #[must_use]
    pub fn acknowledged(&self, key: Key) -> u128 {
        self.keys[key.0 as usize].acknowledged
    }

    /// Returns the pushes that workers of `node` have made to `key`.
    #[must_use]
    pub fn pushes_of(&self, node: NodeId, key: Key) -> u128 {
        let of_node = self.accesses(key).iter().filter(|access| access.who.0 == node);
        of_node.fold(0, |mask, access| match access.what {
            What::Push(digit) => mask | 1 << digit,
            What::Pull(_) | What::Set(_) => mask,
        })
    }

    /// Returns the number of pushes to `key`.
    #[must_use]
    pub fn pushes(&self, key: Key) -> usize {
        self.keys[key.0 as usize].pushes
    }

    /// Returns the accesses of `key` in the order in which they were issued.
    #[must_use]
    pub fn accesses(&self, key: Key) -> &[Access] {
        &self.keys[key.0 as usize].accesses
    }

    /// Checks that no later set can have come after that of `seen`, the value at rest.
    ///
    /// # Errors
    /// Invariant 2 if a set that was certainly later is missing, or a push that certainly came
    /// after the last set.
    pub fn check_final(&self, key: Key, seen: Seen) -> Result<(), Violation> {
        let history = &self.keys[key.0 as usize];
        if history.sets == 0 {
            let missing = ((1_u128 << history.pushes) - 1) & !seen.pushes;
            hold!(self.checks => KeptAtRest, missing == 0, "{key} has lost push p{}: {seen}", missing.trailing_zeros());
            return Ok(());
        }
        let sets = || history.accesses.iter().filter(|access| matches!(access.what, What::Set(_)));
        let last =
            sets().find(|access| access.what == What::Set(seen.set)).and_then(|access| access.done);
        let Some(last) = last else {
            hold!(Checks::ALL => SetKept, false, "{key} has been set and yet holds {seen}");
            return Ok(());
        };
        hold!(self.checks => LastSetKept, sets().all(|set| set.issued <= last), "{key} holds {seen}, and a later set is lost");
        let all_done = sets().map(|set| set.done.unwrap_or(u64::MAX)).max().unwrap_or(0);
        for access in &history.accesses {
            let What::Push(digit) = access.what else { continue };
            let lost = access.issued > all_done && seen.pushes >> digit & 1 == 0;
            hold!(self.checks => KeptBehindSet, !lost, "{key} has lost push p{digit} behind its last set: {seen}");
        }
        Ok(())
    }

    /// Returns the workers that touched `key`, in order.
    #[must_use]
    pub fn workers(&self, key: Key) -> Vec<Who> {
        let who: BTreeSet<Who> = self.accesses(key).iter().map(|access| access.who).collect();
        who.into_iter().collect()
    }

    fn issue(&mut self, who: Who, key: Key, what: What, issued: u64) -> AccessId {
        let accesses = &mut self.keys[key.0 as usize].accesses;
        accesses.push(Access { who, what, issued, done: None, failed: false });
        AccessId { key, index: accesses.len() - 1 }
    }
}

fn hold_unsound(key: Key, unsound: digits::Unsound) -> Result<Seen, Violation> {
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
