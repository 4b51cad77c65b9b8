//! What a node has at a moment, as a value.

use adapm_core::slot::State;
use adapm_core::store::Store;
use adapm_core::{Key, NodeId};

use crate::node::NodeShared;
use crate::stats::Stats;

/// Copies and totals of one node at a moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// The node.
    pub node: NodeId,
    /// Its totals since it was built.
    pub stats: Stats,
    /// Keys that it owns.
    pub main_copies: u64,
    /// Replicas of other keys that it holds.
    pub replicas: u64,
    /// Of each of [`PARTS`](Self::PARTS) equal parts of all keys, in order, how many it owns.
    pub owned: Vec<u64>,
}

impl NodeStatus {
    /// Number of parts of all keys by which is told what a node owns.
    pub const PARTS: usize = 256;

    pub(crate) fn of<S: Store>(shared: &NodeShared<S>) -> Self {
        let keys = shared.layout.keys();
        let part_of = |key: Key| {
            let at = u128::from(key.0 - keys.start.0) * Self::PARTS as u128;
            (at / u128::from(keys.end.0 - keys.start.0)) as usize
        };
        let (mut owned, mut replicas) = (vec![0; Self::PARTS], 0);
        shared.store.visit(keys.clone(), |key, slot| match slot.packed.state() {
            State::Main => owned[part_of(key)] += 1,
            State::Replica => replicas += 1,
            State::None | State::Requested | State::Releasing => {}
        });
        let main_copies = owned.iter().sum();
        Self { node: shared.node, stats: shared.stats(), main_copies, replicas, owned }
    }
}
