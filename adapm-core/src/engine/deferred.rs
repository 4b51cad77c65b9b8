//! Keys of which a peer is to be told or asked, that did not fit into the last request to it, or came
//! while it owed an answer: looked at again when it can be asked, not in every round until then.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::mem;

use crate::id::Key;

/// Keys that wait for one peer, each once, with the fairness cursor: without it, keys that always have
/// something to say would starve the others.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    keys: BTreeSet<Key>,
    /// Keys that a mark waits for (`wait_sync`): they come before the others.
    sealed: BTreeSet<Key>,
    /// The first key that the last request left behind.
    next: Key,
}

impl Deferred {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.sealed.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len() + self.sealed.len()
    }

    /// Seals all keys that wait now: they come first.
    pub(super) fn seal(&mut self) {
        self.sealed.append(&mut self.keys);
    }

    pub(super) fn has_sealed(&self) -> bool {
        !self.sealed.is_empty()
    }

    pub(super) fn sealed(&self) -> impl Iterator<Item = Key> + '_ {
        self.sealed.iter().copied()
    }

    /// Puts a key off, among the sealed ones if it was one of them.
    pub(super) fn put_off(&mut self, key: Key, was_sealed: bool) {
        let keys = if was_sealed { &mut self.sealed } else { &mut self.keys };
        keys.insert(key);
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.sealed.clear();
    }

    /// Returns the first key that the last request left behind.
    pub(super) fn next(&self) -> Key {
        self.next
    }

    /// Begins with `key` the next time that not all keys fit.
    pub(super) fn begin_with(&mut self, key: Key) {
        self.next = key;
    }

    /// Takes at most `most` keys, of the sealed ones if there are any: those from the cursor on, then
    /// those before it. If some are left, the cursor stands at the first of them.
    pub(super) fn take(&mut self, most: usize) -> Vec<Key> {
        let keys = if self.sealed.is_empty() { &mut self.keys } else { &mut self.sealed };
        if keys.len() <= most {
            return mem::take(keys).into_iter().collect();
        }
        let mut in_turn = keys.range(self.next..).chain(keys.range(..self.next)).copied();
        let taken: Vec<Key> = in_turn.by_ref().take(most).collect();
        self.next = in_turn.next().expect("there are more than are taken");
        taken.iter().for_each(|key| assert!(keys.remove(key), "it was just found"));
        taken
    }

    /// Takes all keys.
    pub(super) fn take_all(self) -> impl Iterator<Item = Key> {
        self.keys.into_iter().chain(self.sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also of keys that come back as soon as they were taken: none starves.
    #[test]
    fn all_have_their_turn() {
        let mut deferred = Deferred { keys: (0..10).map(Key).collect(), next: Key(4), ..Deferred::default() };
        let mut turns = Vec::new();
        for _ in 0..5 {
            let taken = deferred.take(4);
            taken.iter().for_each(|key| deferred.put_off(*key, false));
            turns.extend(taken.iter().map(|key| key.0));
        }
        assert_eq!(turns, (4..24).map(|key| key % 10).collect::<Vec<u64>>());
        assert_eq!(deferred.take(10).len(), 10);
        assert!(deferred.is_empty());
    }

    #[test]
    fn sealed_keys_come_first() {
        let mut deferred = Deferred::default();
        deferred.put_off(Key(5), false);
        deferred.seal();
        deferred.put_off(Key(1), false);
        assert_eq!(deferred.take(9), [Key(5)]);
        assert_eq!(deferred.take(9), [Key(1)]);
    }
}
