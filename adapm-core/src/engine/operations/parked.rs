//! Entries of other nodes that wait here for a grant on its way to this node (protocol, section 5).

use alloc::vec::Vec;

use crate::engine::ctx::KeyMap;
use crate::engine::entry::Entry;
use crate::id::{Key, NodeId};

/// Entries by the key of which they wait for news, at most `max` of each node.
#[derive(Debug)]
pub(super) struct Parked<V> {
    entries: KeyMap<Vec<Entry<Vec<V>>>>,
    /// The number of entries of each node.
    of: Vec<usize>,
}

impl<V: Copy> Parked<V> {
    pub(super) fn new(nodes: usize) -> Self {
        Self { entries: KeyMap::default(), of: alloc::vec![0; nodes] }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.of.iter().sum()
    }

    /// The number of entries that wait for news of `key`.
    #[cfg(feature = "inspect")]
    pub(super) fn count(&self, key: Key) -> usize {
        self.entries.get(&key).map_or(0, Vec::len)
    }

    /// Returns true if another entry of `origin` may wait.
    pub(super) fn has_room(&self, origin: NodeId, max: usize) -> bool {
        self.of[origin.index()] < max
    }

    pub(super) fn park(&mut self, entry: Entry<&[V]>) {
        self.of[entry.asker.origin.index()] += 1;
        self.entries.entry(entry.key).or_default().push(entry.owned());
    }

    /// Takes the entries that wait for news of `key`.
    pub(super) fn take(&mut self, key: Key) -> Vec<Entry<Vec<V>>> {
        // As most of the time: an empty map is not looked into.
        if self.entries.is_empty() {
            return Vec::new();
        }
        let entries = self.entries.remove(&key).unwrap_or_default();
        entries.iter().for_each(|entry| self.of[entry.asker.origin.index()] -= 1);
        entries
    }

    pub(super) fn clear(&mut self) {
        self.entries = KeyMap::default();
        self.of.fill(0);
    }
}
