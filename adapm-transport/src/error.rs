//! What can go wrong between nodes, as one line: which node, what, what to do.

use core::fmt;

use adapm_core::NodeId;

/// Why a transport of this crate failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The endpoint of that node was dropped; what it had sent before still arrives.
    PeerGone {
        /// The node.
        node: NodeId,
    },
    /// The network has no such node.
    UnknownNode {
        /// The node.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerGone { node } => {
                write!(f, "node {node} has left the network: send nothing more to it")
            }
            Self::UnknownNode { node, nodes } => {
                write!(f, "node {node} is not in a network of {nodes} nodes: nodes are numbered from 0")
            }
        }
    }
}

impl core::error::Error for Error {}
