//! Replicas with changes that wait until they are due: enough pushes, or an age
//! ([`crate::policy::Patience`]; protocol, "Rounds").
//!
//! Workers push without a word to the engine, so it looks at a replica again when its rate so far
//! foretells that the change will be due.

use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::Vec;

use crate::engine::ctx::{KeyMap, KeySet};
use crate::id::Key;
use crate::policy::Patience;
use crate::time::Instant;

/// Changes that have not left: those that wait, and those that are due.
#[derive(Debug, Default)]
pub(super) struct Undue {
    waits: KeyMap<Wait>,
    /// Those that wait, by the time to look at them.
    looks: BTreeMap<Instant, KeySet>,
}

/// A change that has not left.
#[derive(Debug)]
struct Wait {
    /// The time at which the engine learned of it.
    since: Instant,
    /// The time of the next look; `None` if it is due: it leaves with the next request to its
    /// owner.
    look: Option<Instant>,
}

impl Undue {
    /// Returns true if no change waits, or is due.
    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// Returns the number of entries in all maps and lists.
    pub(super) fn len(&self) -> usize {
        self.waits.len() + self.looks.values().map(KeySet::len).sum::<usize>()
    }

    /// Returns the keys with changes that wait or are due.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.waits.keys().copied()
    }

    /// Returns the time of the next look.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.looks.keys().next().copied()
    }

    /// Takes the keys whose time to be looked at has come, which [`Undue::is_due`] then has to be
    /// asked about, or [`Undue::forget`] to be told of.
    pub(super) fn take_looks(&mut self, now: Instant) -> Vec<Key> {
        let mut keys = Vec::new();
        while let Some(look) = self.looks.first_entry().filter(|look| *look.key() <= now) {
            keys.extend(look.remove());
        }
        keys
    }

    /// Returns true if the change of `key`, of `unsent` pushes, is due: with `share` of them, or if
    /// it has waited for long enough since it was first asked for. Otherwise it is looked at again.
    pub(super) fn is_due(
        &mut self,
        key: Key,
        unsent: u32,
        now: Instant,
        (share, patience): (u32, Patience),
    ) -> bool {
        // The next look is later than now, and so another one.
        let wait = self.waits.entry(key).or_insert(Wait { since: now, look: Some(now) });
        let Some(before) = wait.look else { return true };
        let until = patience.step_at(wait.since.plus_nanos(patience.nanos));
        if unsent >= share || now >= until {
            wait.look = None;
            take_back(&mut self.looks, before, key);
            return true;
        }
        let elapsed = now.nanos_since(wait.since);
        let missing = u64::from(share - unsent);
        // It is first looked at up to a round after its first push, which tells no rate.
        let rest = elapsed.saturating_mul(missing) / u64::from(unsent.max(1));
        let look = patience.step_at(now.plus_nanos(rest.max(1))).min(until);
        if look != before {
            wait.look = Some(look);
            take_back(&mut self.looks, before, key);
            self.looks.entry(look).or_default().insert(key);
        }
        false
    }

    /// Makes all changes due. Returns the keys of those that were not, in order.
    pub(super) fn end(&mut self) -> Vec<Key> {
        self.looks.clear();
        let waits = self.waits.iter_mut().filter_map(|(key, wait)| wait.look.take().map(|_| *key));
        let mut keys: Vec<Key> = waits.collect();
        keys.sort_unstable();
        keys
    }

    /// Forgets a change that leaves, or that is no more. Returns the time since which it waited, if
    /// it did.
    pub(super) fn forget(&mut self, key: Key) -> Option<Instant> {
        let Wait { since, look } = self.waits.remove(&key)?;
        if let Some(look) = look {
            take_back(&mut self.looks, look, key);
        }
        Some(since)
    }
}

/// Removes a look at `key`, unless it has been taken.
fn take_back(looks: &mut BTreeMap<Instant, KeySet>, look: Instant, key: Key) {
    if let btree_map::Entry::Occupied(mut keys) = looks.entry(look) {
        keys.get_mut().remove(&key);
        if keys.get().is_empty() {
            keys.remove();
        }
    }
}
