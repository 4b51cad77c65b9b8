//! Room in messages, in bytes: how much fits into each part of a message, and who gets room in the requests of a round when
//! not everything fits.
//!
//! Each part of a message holds at most [`NodeConfig::block_bytes_max`](crate::config::NodeConfig::block_bytes_max), heads
//! included, and at most 30,000 entries, or one entry alone. Of a response there are two parts, what was asked for and what the
//! owner adds; of every other message one. [`NodeConfig::frame_bytes_max`](crate::config::NodeConfig::frame_bytes_max) follows from that.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::config::{ENTRIES_MAX, HEAD_BYTES};
use crate::id::{Key, NodeId};
use crate::value::Block;
use crate::wire::message::SyncRequest;

/// What is taken of one part of a message.
#[derive(Debug, Default)]
pub(super) struct Budget {
    bytes: usize,
    entries: usize,
}

impl Budget {
    /// Takes room for an entry with `values` bytes of values. Returns false, and takes nothing, if the part would exceed
    /// `bytes_max`, or the number of entries that it may have; the first entry always fits.
    pub(super) fn take(&mut self, values: usize, bytes_max: usize) -> bool {
        let bytes = self.bytes + HEAD_BYTES + values;
        let fits = self.entries == 0 || (bytes <= bytes_max && self.entries < ENTRIES_MAX);
        if fits {
            self.bytes = bytes;
            self.entries += 1;
        }
        fits
    }

    /// Takes room for `values` more bytes of an entry that fitted without them, if they fit.
    pub(super) fn widen(&mut self, values: usize, bytes_max: usize) -> bool {
        let bytes = self.bytes + values;
        let fits = self.bytes <= HEAD_BYTES || bytes <= bytes_max;
        if fits {
            self.bytes = bytes;
        }
        fits
    }
}

/// A request that takes shape.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) request: SyncRequest,
    pub(super) values: Block,
    pub(super) sets: Block,
    /// All candidates that there are, and their bytes.
    demand: Budget,
    /// Room of the candidates that go, counted if not all do.
    room: Budget,
}

impl Draft {
    pub(super) fn is_empty(&self) -> bool {
        let request = &self.request;
        request.deltas.is_empty()
            && request.sets.is_empty()
            && request.releases.is_empty()
            && request.intents.is_empty()
            && request.localizes.is_empty()
    }
}

/// A key that has something to say to a node in this round.
pub(super) struct Candidate<T> {
    pub(super) key: Key,
    pub(super) to: NodeId,
    /// Bytes of its values in the request, or of its grant's in the response: grants are never cut.
    pub(super) values: usize,
    /// True if it goes in this round.
    pub(super) goes: bool,
    /// True if a mark waits for it, so that it comes first.
    pub(super) is_sealed: bool,
    pub(super) says: T,
}

/// The requests of a round, by receiver: of many nodes few get one.
pub(super) struct Drafts(Vec<Option<Box<Draft>>>);

impl Drafts {
    pub(super) fn new(nodes: usize) -> Self {
        Self((0..nodes).map(|_| None).collect())
    }

    /// Returns the request to `to`, which is begun if there is none.
    pub(super) fn of(&mut self, to: NodeId) -> &mut Draft {
        self.0[to.index()].get_or_insert_default()
    }

    /// Takes the request to `to`, if there is one.
    pub(super) fn take(&mut self, to: NodeId) -> Option<Box<Draft>> {
        self.0[to.index()].take()
    }

    /// Counts a candidate, which goes unless room turns out to be short.
    pub(super) fn candidate<T>(&mut self, key: Key, to: NodeId, values: usize, says: T) -> Candidate<T> {
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

    /// Makes room for the values of candidates that go.
    pub(super) fn reserve<T>(&mut self, candidates: &[Candidate<T>]) {
        let mut bytes = alloc::vec![0; self.0.len()];
        for candidate in candidates.iter().filter(|candidate| candidate.goes) {
            bytes[candidate.to.index()] += candidate.values;
        }
        for (draft, bytes) in self.0.iter_mut().zip(bytes) {
            draft.iter_mut().for_each(|draft| draft.values.reserve(bytes));
        }
    }

    /// Gives room to candidates for the peers of which `first` tells the key with which they begin, as it is their turn: to those
    /// that are sealed, then from that key on. One that gets none waits for a later round. Returns the first that got none, of
    /// each peer.
    pub(super) fn share<T>(
        &mut self,
        candidates: &mut [Candidate<T>],
        bytes_max: usize,
        first: impl Fn(NodeId) -> Option<Key>,
    ) -> BTreeMap<NodeId, Key> {
        let mut next = BTreeMap::new();
        for (sealed, from_turn_on) in [(true, true), (true, false), (false, true), (false, false)] {
            for candidate in candidates.iter_mut().filter(|candidate| candidate.is_sealed == sealed) {
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
