//! The record of nodes that vanish from a cluster: which survivors know, and which claims are void.
//!
//! Claims that can hold after a loss are checked as before. Void are those about keys whose main
//! copy was at the lost node, left it too late or was sent to it, and about facts that never
//! reached a home.

use std::collections::BTreeSet;

use adapm_core::id::{Key, NodeId};

use crate::flight::{Entry, Kind};

/// Vanished nodes, survivors that know, and lost keys.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Nodes that vanished, in order.
    gone: Vec<NodeId>,
    /// (survivor, vanished node) for every survivor that was notified.
    told: BTreeSet<(NodeId, NodeId)>,
    /// Keys without a main copy.
    doomed: BTreeSet<Key>,
    /// Keys with a relocation whose report to the home was lost.
    unrecorded: BTreeSet<Key>,
}

impl Losses {
    /// Returns true if any node has vanished.
    #[must_use]
    pub fn any(&self) -> bool {
        !self.gone.is_empty()
    }

    /// Returns true if `node` has vanished.
    #[must_use]
    pub fn is_gone(&self, node: NodeId) -> bool {
        self.gone.contains(&node)
    }

    /// Returns true if `survivor` was notified of a loss.
    #[must_use]
    pub fn is_told(&self, survivor: NodeId) -> bool {
        self.gone.iter().any(|node| self.knows(survivor, *node))
    }

    /// Returns true if `survivor` was notified of the loss of `node`.
    #[must_use]
    pub fn knows(&self, survivor: NodeId, node: NodeId) -> bool {
        self.told.contains(&(survivor, node))
    }

    /// Returns true if the main copy of `key` is gone.
    #[must_use]
    pub fn is_doomed(&self, key: Key) -> bool {
        self.doomed.contains(&key)
    }

    /// Returns true if a fact about `key` has not reached its home.
    #[must_use]
    pub fn is_unrecorded(&self, key: Key) -> bool {
        self.unrecorded.contains(&key)
    }

    /// Returns the nodes that have vanished, in order.
    #[must_use]
    pub fn gone(&self) -> &[NodeId] {
        &self.gone
    }

    /// Records entries that will never arrive.
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

    /// Records a node that vanishes with the main copies of `owned`.
    pub(crate) fn note_gone(&mut self, node: NodeId, owned: Vec<Key>) {
        self.doomed.extend(owned);
        self.gone.push(node);
    }

    /// Records that `survivor` is notified of the loss of `node`.
    pub(crate) fn note_told(&mut self, survivor: NodeId, node: NodeId) {
        self.told.insert((survivor, node));
    }
}
