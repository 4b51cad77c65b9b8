//! The requests of a round, and who gets room in them when not everything fits.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::id::{Key, NodeId};
use crate::node::Node;
use crate::node::state::Turn;
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
    /// Bytes of all entries that there are.
    pub(super) demand: usize,
    /// Bytes of the entries that go, counted if not all do.
    reserved: usize,
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

    /// Keeps room for `bytes` more, if they fit; the first entry always does.
    fn reserve(&mut self, bytes: usize, bytes_max: usize) -> bool {
        let fits = self.reserved == 0 || self.reserved + bytes <= bytes_max;
        self.reserved += if fits { bytes } else { 0 };
        fits
    }
}

/// The requests of a round, by receiver: of many nodes few get one.
pub(super) type Requests = [Option<Box<Draft>>];

/// A key that has something to say to a node.
pub(super) struct Entry<T> {
    pub(super) key: Key,
    pub(super) to: NodeId,
    /// What it needs in the request, or its grant in the response: grants are never cut.
    pub(super) bytes: usize,
    /// Whether it goes in this round.
    pub(super) goes: bool,
    pub(super) says: T,
}

/// An entry that goes, unless room turns out to be short.
pub(super) fn entry<T>(drafts: &mut Requests, key: Key, to: NodeId, bytes: usize, says: T) -> Entry<T> {
    drafts[to.index()].get_or_insert_default().demand += bytes;
    Entry { key, to, bytes, goes: true, says }
}

impl<S: Store, P: Policy> Node<S, P> {
    /// Gives room to entries for peers of which `turn` says that it is their turn, from the key on at which it says that the
    /// last request ended. An entry that gets none waits for a later round.
    pub(super) fn share<T>(
        &mut self,
        entries: &mut [Entry<T>],
        drafts: &mut Requests,
        turn: fn(&mut Turn) -> (&mut Key, bool),
    ) {
        let bytes_max = self.config.block_bytes_max;
        let mut next = BTreeMap::new();
        for from_turn_on in [true, false] {
            for entry in entries.iter_mut() {
                let peer = &mut self.peers[entry.to.index()];
                let (first, is_turn) = turn(&mut peer.turn);
                if !is_turn || (entry.key >= *first) != from_turn_on {
                    continue;
                }
                entry.goes = drafts[entry.to.index()].get_or_insert_default().reserve(entry.bytes, bytes_max);
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
