//! Views of an engine's state, for tests.

use alloc::vec::Vec;

use crate::id::NodeId;

/// The state that an engine keeps for one key, for tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyView {
    /// State, bits and location.
    pub packed: crate::slot::PackedState,
    /// The version of a held copy.
    pub version: crate::id::Version,
    /// Nodes that the owner knows to have a replica.
    pub holders: Vec<NodeId>,
    /// Holders that lack a change.
    pub stale: Vec<NodeId>,
    /// Active signals, each as often as it names the key, and the localize.
    pub intent_count: usize,
    /// Parked entries of other nodes.
    pub parked: usize,
    /// First receiver of this node's unanswered operation message, if there is one.
    pub unanswered: Option<crate::slot::Location>,
    /// Waiting operations of this node.
    pub waiting: usize,
}
