//! Localizes of this node that have not brought ownership yet (Lapse §3.2).

use alloc::collections::BTreeSet;
use core::mem;

use smallvec::SmallVec;

use crate::engine::ctx::KeyMap;
use crate::engine::input::OpId;
use crate::id::Key;

/// Operations that wait for a key.
pub(super) type Waiters = SmallVec<[OpId; 1]>;

/// Pending localizes by key.
#[derive(Debug, Default)]
pub(super) struct Localizes {
    pending: KeyMap<PendingLocalize>,
    /// Localizes without ownership, other intent and waiters, by the round in which they may end; a key at most once.
    due: BTreeSet<(u64, Key)>,
}

#[derive(Debug, Default)]
struct PendingLocalize {
    /// Operations that wait for the key to be local.
    waiters: Waiters,
    /// The round in which it may end, its place in [`Localizes::due`]; `None` while other intent lasts or somebody waits.
    due: Option<u64>,
}

impl Localizes {
    /// Returns the number of entries in the map and the list.
    pub(super) fn len(&self) -> usize {
        self.pending.len() + self.due.len()
    }

    /// `waiter` waits for `key` to be local: until then the localize is due in no round.
    pub(super) fn add(&mut self, key: Key, waiter: OpId) {
        let localize = self.pending.entry(key).or_default();
        localize.waiters.push(waiter);
        if localize.due.is_some() {
            self.schedule(key, None);
        }
    }

    /// Notes in which round the localize of `key` may end, if there is one.
    pub(super) fn schedule(&mut self, key: Key, due: Option<u64>) {
        let Some(localize) = self.pending.get_mut(&key) else { return };
        if let Some(due) = mem::replace(&mut localize.due, due) {
            self.due.remove(&(due, key));
        }
        self.due.extend(due.map(|due| (due, key)));
    }

    /// Returns true if a localize of `key` is pending for which nobody waits.
    pub(super) fn is_unawaited(&self, key: Key) -> bool {
        self.pending.get(&key).is_some_and(|localize| localize.waiters.is_empty())
    }

    /// Takes the operations that wait for `key`; `None`: no localize of it is pending.
    pub(super) fn take_waiters(&mut self, key: Key) -> Option<Waiters> {
        self.pending.get_mut(&key).map(|localize| mem::take(&mut localize.waiters))
    }

    /// Removes the localize of `key`, if there is one. Returns the operations that wait for it.
    pub(super) fn remove(&mut self, key: Key) -> Waiters {
        let Some(localize) = self.pending.remove(&key) else { return Waiters::new() };
        if let Some(due) = localize.due {
            self.due.remove(&(due, key));
        }
        localize.waiters
    }

    /// Returns a key whose localize may end in `round`, if there is one.
    pub(super) fn due_in(&self, round: u64) -> Option<Key> {
        self.due.first().filter(|(due, _)| *due <= round).map(|(_, key)| *key)
    }

    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.due.clear();
    }
}
