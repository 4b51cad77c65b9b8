//! Room in messages, in bytes: how much fits into each part of a message, and which keys get room
//! in the requests of a round when not everything fits.
//!
//! Each part of a message holds at most
//! [`NodeConfig::block_bytes_max`](crate::config::NodeConfig::block_bytes_max), heads included, and
//! at most 30,000 entries, or one entry alone. A response has two parts, the answers and what the
//! owner adds; every other message has one.
//! [`NodeConfig::frame_bytes_max`](crate::config::NodeConfig::frame_bytes_max) follows from that.
//!
//! Keys that did not fit into the last request to a peer, or came while the peer owed an answer,
//! are [`Deferred`]: examined again when the peer can be asked, not in every round.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::mem;

use crate::config::{ENTRIES_MAX, HEAD_BYTES};
use crate::id::{Key, NodeId};
use crate::value::Block;
use crate::wire::message::SyncRequest;

/// Room taken in one part of a message.
#[derive(Debug, Default)]
pub(super) struct Budget {
    bytes: usize,
    entries: usize,
}

impl Budget {
    /// Takes room for an entry with `values` bytes of values. Returns false, and takes nothing, if
    /// the part would exceed `bytes_max` or its number of entries; the first entry always fits.
    pub(super) fn take(&mut self, values: usize, bytes_max: usize) -> bool {
        let bytes = self.bytes + HEAD_BYTES + values;
        let fits = self.entries == 0 || (bytes <= bytes_max && self.entries < ENTRIES_MAX);
        if fits {
            self.bytes = bytes;
            self.entries += 1;
        }
        fits
    }

    /// Takes room for `values` more bytes of the last entry, if they fit. Returns false if not.
    pub(super) fn widen(&mut self, values: usize, bytes_max: usize) -> bool {
        let bytes = self.bytes + values;
        let fits = self.bytes <= HEAD_BYTES || bytes <= bytes_max;
        if fits {
            self.bytes = bytes;
        }
        fits
    }
}

/// A request under construction.
#[derive(Default)]
pub(super) struct RequestDraft {
    pub(super) request: SyncRequest,
    pub(super) values: Block,
    pub(super) sets: Block,
    /// Size of all candidates.
    demand: Budget,
    /// Room taken by the candidates that go, counted if not all do.
    room: Budget,
}

impl RequestDraft {
    pub(super) fn is_empty(&self) -> bool {
        let request = &self.request;
        request.deltas.is_empty()
            && request.sets.is_empty()
            && request.releases.is_empty()
            && request.renews.is_empty()
            && request.intents.is_empty()
            && request.localizes.is_empty()
    }
}

/// A key with an entry for a node in this round.
pub(super) struct Candidate<T> {
    pub(super) key: Key,
    pub(super) to: NodeId,
    /// Bytes of its values in the request or, for a grant or renewal, in the response: grants are
    /// never cut.
    pub(super) values: usize,
    /// True if it goes in this round.
    pub(super) goes: bool,
    /// True if a mark waits for it; sealed candidates come first.
    pub(super) is_sealed: bool,
    pub(super) says: T,
}

/// The requests of a round, by receiver; few of the nodes get one.
pub(super) struct RequestDrafts(Vec<Option<Box<RequestDraft>>>);

impl RequestDrafts {
    pub(super) fn new(nodes: usize) -> Self {
        Self((0..nodes).map(|_| None).collect())
    }

    /// Returns the request to `to`, begun if needed.
    pub(super) fn of(&mut self, to: NodeId) -> &mut RequestDraft {
        self.0[to.index()].get_or_insert_default()
    }

    /// Takes the request to `to`, if there is one.
    pub(super) fn take(&mut self, to: NodeId) -> Option<Box<RequestDraft>> {
        self.0[to.index()].take()
    }

    /// Adds a candidate; it goes unless room turns out to be short.
    pub(super) fn candidate<T>(
        &mut self,
        key: Key,
        to: NodeId,
        values: usize,
        says: T,
    ) -> Candidate<T> {
        let demand = &mut self.of(to).demand;
        demand.bytes += HEAD_BYTES + values;
        demand.entries += 1;
        Candidate { key, to, values, goes: true, is_sealed: false, says }
    }

    /// Returns true if a request has more candidates than one message may hold.
    pub(super) fn exceed(&self, bytes_max: usize) -> bool {
        let mut drafts = self.0.iter().flatten();
        drafts.any(|draft| draft.demand.bytes > bytes_max || draft.demand.entries > ENTRIES_MAX)
    }

    /// Reserves memory for the values of candidates that go.
    pub(super) fn reserve<T>(&mut self, candidates: &[Candidate<T>]) {
        let mut bytes = alloc::vec![0; self.0.len()];
        for candidate in candidates.iter().filter(|candidate| candidate.goes) {
            bytes[candidate.to.index()] += candidate.values;
        }
        for (draft, bytes) in self.0.iter_mut().zip(bytes) {
            draft.iter_mut().for_each(|draft| draft.values.reserve(bytes));
        }
    }

    /// Gives room to candidates in turn: sealed ones first, then from the key `first(peer)` on;
    /// peers for which `first` is `None` are skipped. Candidates without room wait for a later
    /// round. Returns, for each peer, the first of them.
    pub(super) fn share<T>(
        &mut self,
        candidates: &mut [Candidate<T>],
        bytes_max: usize,
        first: impl Fn(NodeId) -> Option<Key>,
    ) -> BTreeMap<NodeId, Key> {
        let mut next = BTreeMap::new();
        for (sealed, from_turn_on) in [(true, true), (true, false), (false, true), (false, false)] {
            for candidate in candidates.iter_mut().filter(|candidate| candidate.is_sealed == sealed)
            {
                let Some(first) = first(candidate.to) else { continue };
                if (candidate.key >= first) != from_turn_on {
                    continue;
                }
                candidate.goes = self.of(candidate.to).room.take(candidate.values, bytes_max);
                if !candidate.goes {
                    next.entry(candidate.to).or_insert(candidate.key);
                }
            }
        }
        next
    }
}

/// Keys that wait for one peer, each once, with a fairness cursor: without it, keys with something
/// to send in every round would starve the others.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    keys: BTreeSet<Key>,
    /// Keys that a mark waits for (`wait_sync`): they come before the others.
    sealed: BTreeSet<Key>,
    /// The key from which the next request goes on: the first that had no room in the last one.
    next: Key,
}

impl Deferred {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.sealed.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len() + self.sealed.len()
    }

    /// Seals all waiting keys: they come first.
    pub(super) fn seal(&mut self) {
        self.sealed.append(&mut self.keys);
    }

    pub(super) fn has_sealed(&self) -> bool {
        !self.sealed.is_empty()
    }

    pub(super) fn sealed(&self) -> impl Iterator<Item = Key> + '_ {
        self.sealed.iter().copied()
    }

    /// Defers a key, as a sealed one if `was_sealed`.
    pub(super) fn put_off(&mut self, key: Key, was_sealed: bool) {
        let keys = if was_sealed { &mut self.sealed } else { &mut self.keys };
        keys.insert(key);
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.sealed.clear();
    }

    /// Returns the key from which the next request goes on.
    pub(super) fn next(&self) -> Key {
        self.next
    }

    /// Moves the cursor to `key` for the next time that not all keys fit.
    pub(super) fn begin_with(&mut self, key: Key) {
        self.next = key;
    }

    /// Takes at most `most` keys, of the sealed ones if there are any: from the cursor on, then
    /// from the beginning. If some are left, the cursor moves to the first of them.
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

    /// No key starves, even if keys come back as soon as they are taken.
    #[test]
    fn all_have_their_turn() {
        let mut deferred =
            Deferred { keys: (0..10).map(Key).collect(), next: Key(4), ..Deferred::default() };
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
