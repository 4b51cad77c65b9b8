//! Copies that pulls have set up, without a signal (AdaPM §A.3): how long they stay.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::clock::Tick;
use crate::engine::ctx::KeyMap;
use crate::engine::entry::Request;
use crate::id::Key;

/// Keys that were pulled while they were absent.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By the tick from which no worker of this node may read the copy.
    ends: BTreeMap<Tick, Vec<Key>>,
    /// Keys asked for and not answered.
    asked: BTreeSet<Key>,
    /// Ended keys whose copy is still here or on its way, with that tick.
    ended: KeyMap<Tick>,
    /// The number of ended keys by tick.
    leaving: BTreeMap<Tick, usize>,
}

impl Kept {
    /// Records that `key` is asked for, and stays until `end`.
    pub(super) fn begin(&mut self, key: Key, end: Tick) {
        self.ends.entry(end).or_default().push(key);
        self.asked.insert(key);
    }

    /// Returns the keys asked for and not answered, in order.
    pub(super) fn asked(&self) -> impl ExactSizeIterator<Item = Key> + '_ {
        self.asked.iter().copied()
    }

    /// Returns `request`, the entry for `key` that is answered now, with the fact whether a pull
    /// had asked.
    pub(super) fn name(&mut self, key: Key, request: Request) -> Request {
        let at_once = !self.asked.is_empty() && self.asked.remove(&key);
        Request { at_once, ..request }
    }

    /// Takes the keys of one tick, no later than `tick`, from which they must not be read.
    pub(super) fn take_ended(&mut self, tick: Tick) -> Option<(Tick, Vec<Key>)> {
        let first = self.ends.first_entry().filter(|first| *first.key() <= tick)?;
        Some(first.remove_entry())
    }

    /// Records that the copy of `key`, which must not be read from `end` on, is still here or on
    /// its way.
    pub(super) fn await_end(&mut self, key: Key, end: Tick) {
        let before = self.ended.insert(key, end);
        debug_assert!(before.is_none(), "no pull asks for a key of which a copy lingers");
        *self.leaving.entry(end).or_default() += 1;
    }

    /// Records that the copy of `key` is gone.
    pub(super) fn note_gone(&mut self, key: Key) {
        if self.ended.is_empty() {
            return;
        }
        if let Some(end) = self.ended.remove(&key)
            && let Some(keys) = self.leaving.get_mut(&end)
        {
            *keys -= 1;
            if *keys == 0 {
                self.leaving.remove(&end);
            }
        }
    }

    /// Returns the least tick from which a copy that is still here or on its way must not be read.
    pub(super) fn oldest(&self) -> Option<Tick> {
        self.leaving.keys().next().copied()
    }

    /// Returns the number of entries in all maps and lists.
    pub(super) fn len(&self) -> usize {
        self.ends.values().map(Vec::len).sum::<usize>() + self.asked.len() + self.ended.len()
    }
}
