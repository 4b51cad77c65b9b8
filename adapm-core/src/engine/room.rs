//! Room in messages, in bytes: how much fits into each part of a message, and who gets room in the requests of a round when
//! not everything fits.
//!
//! Each part of a message holds at most [`NodeConfig::block_bytes_max`](crate::config::NodeConfig::block_bytes_max), heads
//! included, and at most 30,000 entries, or one entry alone. Of a response there are two parts, what was asked for and what the
//! owner adds; of every other message one. [`NodeConfig::frame_bytes_max`](crate::config::NodeConfig::frame_bytes_max) follows from that.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::config::{ENTRIES_MAX, HEAD_BYTES};
use crate::engine::Engine;
use crate::engine::state::Turn;
use crate::id::{Key, NodeId};
use crate::policy::Policy;
use crate::store::Store;
use crate::value::Block;
use crate::wire::message::SyncRequest;

/// A request that takes shape.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) request: SyncRequest,
    pub(super) values: Block,
    pub(super) sets: Block,
    /// All entries that there are, and their bytes.
    demand: Room,
    /// Room of the entries that go, counted if not all do.
    room: Room,
}

impl Draft {
    /// Whether there are more entries than one part may hold.
    pub(super) fn exceeds(&self, bytes_max: usize) -> bool {
        self.demand.bytes > bytes_max || self.demand.entries > ENTRIES_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        let request = &self.request;
        request.deltas.is_empty()
            && request.sets.is_empty()
            && request.releases.is_empty()
            && request.intents.is_empty()
            && request.localizes.is_empty()
    }
}

/// What is taken of one part of a message.
#[derive(Debug, Default)]
pub(super) struct Room {
    bytes: usize,
    entries: usize,
}

impl Room {
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

/// The requests of a round, by receiver: of many nodes few get one.
pub(super) type Requests = [Option<Box<Draft>>];

/// A key that has something to say to a node.
pub(super) struct Entry<T> {
    pub(super) key: Key,
    pub(super) to: NodeId,
    /// Bytes of its values in the request, or of its grant's in the response: grants are never cut.
    pub(super) values: usize,
    /// Whether it goes in this round.
    pub(super) goes: bool,
    /// Whether a mark waits for it, so that it comes first.
    pub(super) is_sealed: bool,
    pub(super) says: T,
}

/// An entry that goes, unless room turns out to be short.
pub(super) fn entry<T>(drafts: &mut Requests, key: Key, to: NodeId, values: usize, says: T) -> Entry<T> {
    let demand = &mut drafts[to.index()].get_or_insert_default().demand;
    demand.bytes += HEAD_BYTES + values;
    demand.entries += 1;
    Entry { key, to, values, goes: true, is_sealed: false, says }
}

impl<S: Store, P: Policy> Engine<S, P> {
    /// Gives room to entries for peers of which `turn` says that it is their turn: to those that are sealed, then from the key on
    /// at which it says that the last request ended. An entry that gets none waits for a later round.
    pub(super) fn share<T>(
        &mut self,
        entries: &mut [Entry<T>],
        drafts: &mut Requests,
        turn: fn(&mut Turn) -> (&mut Key, bool),
    ) {
        let bytes_max = self.ctx.config.block_bytes_max;
        let mut next = BTreeMap::new();
        for (sealed, from_turn_on) in [(true, true), (true, false), (false, true), (false, false)] {
            for entry in entries.iter_mut().filter(|entry| entry.is_sealed == sealed) {
                let peer = &mut self.peers[entry.to.index()];
                let (first, is_turn) = turn(&mut peer.turn);
                if !is_turn || (entry.key >= *first) != from_turn_on {
                    continue;
                }
                let draft = drafts[entry.to.index()].get_or_insert_default();
                entry.goes = draft.room.take(entry.values, bytes_max);
                if !entry.goes {
                    next.entry(entry.to).or_insert(entry.key);
                }
            }
        }
        for (node, key) in next {
            *turn(&mut self.peers[node.index()].turn).0 = key;
        }
    }
}
