//! Workers and nodes that can still take part in collective calls.

use alloc::vec::Vec;

use crate::id::NodeId;
use crate::node_set::NodeSet;

/// The node that coordinates barriers and waves.
pub(super) const COORDINATOR: NodeId = NodeId(0);

/// Workers and nodes that have not ended.
#[derive(Debug)]
pub(super) struct Presence {
    /// Workers of this node that have not ended.
    pub(super) live: Vec<bool>,
    /// Coordinator: nodes without live workers.
    pub(super) ended: NodeSet,
}

impl Presence {
    pub(super) fn new(workers: usize) -> Self {
        Self { live: alloc::vec![true; workers], ended: NodeSet::new() }
    }

    /// Returns the number of workers of this node that have not ended.
    pub(super) fn live(&self) -> usize {
        self.live.iter().filter(|live| **live).count()
    }
}
