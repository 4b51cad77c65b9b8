//! Another node that holds replicas of keys owned here, and what it is to be told about them.

use core::mem;

use hashlink::linked_hash_map::Entry;

use crate::engine::ctx::KeyQueue;
use crate::id::Key;
use crate::time::Instant;

/// Pending reports to one other node about keys owned here, each key at most once.
#[derive(Debug, Default)]
pub(super) struct Holder {
    /// Keys of which the holder lacks more changes than the policy tolerates, or one for long
    /// enough; that it has asked to be refreshed; or with a decided hand-over to it. Oldest first,
    /// each with its number; may contain obsolete entries.
    due: KeyQueue<u64>,
    /// Keys with changes that the holder lacks and that are not due, with the time since which it
    /// lacks one, oldest first.
    waiting: KeyQueue<Instant>,
    /// Numbers given to keys that are due, and the number of them when the answer to the request
    /// with the node's mark was complete.
    numbered: u64,
    marked: Option<u64>,
    /// True if it has been notified that a request would bring something.
    told: bool,
    /// Time of its last request.
    asked: Option<Instant>,
}

impl Holder {
    /// Returns the number of entries in all lists.
    pub(super) fn len(&self) -> usize {
        self.due.len() + self.waiting.len()
    }

    /// Returns true if something is due.
    pub(super) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns the time since which the holder lacks a change that is not due.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.waiting.front().map(|(_, since)| *since)
    }

    /// Notes that the holder lacks a change of `key` from now on, which is not due.
    pub(super) fn wait(&mut self, key: Key, now: Instant) {
        if !self.due.contains_key(&key) {
            self.waiting.insert(key, now);
        }
    }

    /// Makes a report about `key` due, after those that are.
    pub(super) fn make_due(&mut self, key: Key) {
        self.waiting.remove(&key);
        self.add_due(key);
    }

    /// Makes the changes due that wait and for which `is_over` is true of the time since which they
    /// do. Returns true if there are any.
    pub(super) fn end_waits(&mut self, is_over: impl Fn(Instant) -> bool) -> bool {
        let before = self.waiting.len();
        while self.waits_since().is_some_and(&is_over)
            && let Some((key, _)) = self.waiting.pop_front()
        {
            self.add_due(key);
        }
        self.waiting.len() < before
    }

    /// Returns the key to report next.
    pub(super) fn next_due(&self) -> Option<Key> {
        self.due.front().map(|(key, _)| *key)
    }

    /// Removes the key to report next.
    pub(super) fn pop_due(&mut self) {
        self.due.pop_front();
    }

    /// Notes that the holder lacks no change of `key` that is not due.
    pub(super) fn end_wait(&mut self, key: Key) {
        self.waiting.remove(&key);
    }

    /// Forgets `key`, which the holder no longer holds.
    pub(super) fn forget(&mut self, key: Key) {
        if self.due.remove(&key).is_none() {
            self.waiting.remove(&key);
        }
    }

    /// Notes a request of the holder. Returns the time of the one before.
    pub(super) fn note_request(&mut self, now: Instant) -> Option<Instant> {
        self.told = false;
        self.asked.replace(now)
    }

    /// Notes the holder's mark: everything that is due now has to be reported before it is
    /// answered.
    pub(super) fn mark(&mut self) {
        self.marked = Some(self.numbered);
    }

    /// Returns true if a mark of the holder is not answered.
    pub(super) fn is_marked(&self) -> bool {
        self.marked.is_some()
    }

    /// Answers the mark if all has been reported. Returns true if it is answered, and whether more
    /// is due, which the holder is told by this.
    pub(super) fn note_response(&mut self) -> (bool, bool) {
        let reached =
            |marked: &mut u64| self.due.front().is_none_or(|(_, number)| number >= marked);
        let is_synced = self.marked.take_if(|marked| reached(marked)).is_some();
        self.told = self.is_due();
        (is_synced, self.told)
    }

    /// Returns true if the holder has to be notified that something is due, once.
    pub(super) fn tell(&mut self) -> bool {
        self.is_due() && !mem::replace(&mut self.told, true)
    }

    fn add_due(&mut self, key: Key) {
        // Not `or_insert`, which moves a key that is there behind all others.
        if let Entry::Vacant(entry) = self.due.entry(key) {
            entry.insert(self.numbered);
            self.numbered += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const K: [Key; 3] = [Key(0), Key(1), Key(2)];

    fn due(holder: &mut Holder) -> Vec<Key> {
        let next = || holder.next_due().inspect(|_| holder.pop_due());
        core::iter::from_fn(next).collect()
    }

    #[test]
    fn a_key_is_listed_once_and_keeps_its_place() {
        let mut holder = Holder::default();
        for key in K {
            holder.wait(key, Instant::from_nanos(key.0));
        }
        assert!(holder.end_waits(|since| since.nanos() < 1));
        holder.make_due(K[2]);
        holder.make_due(K[0]);
        holder.wait(K[2], Instant::from_nanos(5));
        assert_eq!((holder.len(), holder.waits_since()), (3, Some(Instant::from_nanos(1))));
        assert!(holder.end_waits(|_| true) && !holder.end_waits(|_| true));
        holder.forget(K[2]);
        assert_eq!(due(&mut holder), [K[0], K[1]]);
        assert_eq!(holder.len(), 0);
    }

    #[test]
    fn a_mark_is_answered_once_all_that_was_due_before_it_is_reported() {
        let mut holder = Holder::default();
        holder.make_due(K[0]);
        holder.make_due(K[1]);
        holder.mark();
        holder.make_due(K[0]);
        holder.make_due(K[2]);
        assert_eq!(holder.note_response(), (false, true));
        holder.pop_due();
        holder.make_due(K[0]);
        assert_eq!(holder.note_response(), (false, true));
        holder.forget(K[1]);
        assert_eq!(holder.note_response(), (true, true));
        assert!(!holder.is_marked() && !holder.tell(), "the response has told");
        assert_eq!(due(&mut holder), [K[2], K[0]]);
    }
}
