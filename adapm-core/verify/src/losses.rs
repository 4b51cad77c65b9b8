//! Account of nodes that vanish from a cluster: who knows, and what cannot hold any more.
//!
//! What can hold after a loss is judged as before. What cannot: keys whose main copy was at the
//! lost node, came from it too late or was sent to it, and facts that a home never got.

use std::collections::BTreeSet;

use adapm_core::id::{Key, NodeId};

use crate::flight::{Entry, Kind};

/// Who is gone, who knows, and what is gone with them.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Nodes that vanished, in order.
    gone: Vec<NodeId>,
    /// (survivor, vanished node) for every survivor that was told.
    told: BTreeSet<(NodeId, NodeId)>,
    /// Keys without a main copy.
    doomed: BTreeSet<Key>,
    /// Keys of which a fact on its way to the home is gone.
    unrecorded: BTreeSet<Key>,
}

impl Losses {
    /// Whether any node has vanished.
    #[must_use]
    pub fn any(&self) -> bool {
        !self.gone.is_empty()
    }

    /// Whether `node` has vanished.
    #[must_use]
    pub fn is_gone(&self, node: NodeId) -> bool {
        self.gone.contains(&node)
    }

    /// Whether `survivor` was told of a loss.
    #[must_use]
    pub fn is_told(&self, survivor: NodeId) -> bool {
        self.gone.iter().any(|node| self.knows(survivor, *node))
    }

    /// Whether `survivor` was told of the loss of `node`.
    #[must_use]
    pub fn knows(&self, survivor: NodeId, node: NodeId) -> bool {
        self.told.contains(&(survivor, node))
    }

    /// Whether the main copy of `key` is gone.
    #[must_use]
    pub fn is_doomed(&self, key: Key) -> bool {
        self.doomed.contains(&key)
    }

    /// Whether a fact about `key` has not reached its home.
    #[must_use]
    pub fn is_unrecorded(&self, key: Key) -> bool {
        self.unrecorded.contains(&key)
    }

    /// The nodes that have vanished, in order.
    #[must_use]
    pub fn gone(&self) -> &[NodeId] {
        &self.gone
    }

    /// Takes note of entries that will never arrive.
    pub(crate) fn note(&mut self, dropped: &[Entry]) {
        for entry in dropped {
            if entry.kind.is_ownership() {
                self.doomed.insert(entry.key);
            }
            if entry.kind == Kind::Residence {
                self.unrecorded.insert(entry.key);
            }
        }
    }

    /// Takes note of a node that vanishes with the main copies of `owned`.
    pub(crate) fn note_gone(&mut self, node: NodeId, owned: Vec<Key>) {
        self.doomed.extend(owned);
        self.gone.push(node);
    }

    /// Takes note that `survivor` is told of the loss of `node`.
    pub(crate) fn note_told(&mut self, survivor: NodeId, node: NodeId) {
        self.told.insert((survivor, node));
    }
}
