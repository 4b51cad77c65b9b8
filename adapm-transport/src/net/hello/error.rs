//! Errors of the handshake between two nodes, as one side reports them to the other on the wire.

use core::net::SocketAddr;

use adapm_core::NodeId;
use serde::{Deserialize, Serialize};

/// The reason that a handshake failed. Both sides report the same reason, each from its own point
/// of view ([`HandshakeError::flipped`]).
///
/// The order of the variants is part of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The protocol versions differ.
    #[error(
        "protocol versions differ ({ours} here, {theirs} there): run the same build on all nodes"
    )]
    Version {
        /// The version of this node.
        ours: u8,
        /// The version of the peer.
        theirs: u8,
    },
    /// The clusters differ.
    #[error("it belongs to another cluster: check the rendezvous and the cluster id")]
    Cluster,
    /// The shared secret does not match.
    #[error("{0}: give all nodes the same token")]
    Token(TokenFault),
    /// The numbers of nodes differ.
    #[error(
        "node counts differ ({ours} here, {theirs} there): start all nodes with the same count"
    )]
    Nodes {
        /// The number of this node.
        ours: u32,
        /// The number of the peer.
        theirs: u32,
    },
    /// A node id outside of the cluster.
    #[error("there is no node {node} in a cluster of {nodes}: node ids are 0 to {}", nodes.saturating_sub(1))]
    NodeOutOfRange {
        /// The node id.
        node: NodeId,
        /// Number of nodes in the cluster.
        nodes: u32,
    },
    /// Another process has that node id already.
    #[error(
        "node id {node} is taken by {}: give each process its own, or start the whole cluster again if that one \
         has ended",
        process_at(*address)
    )]
    NodeTaken {
        /// The node id.
        node: NodeId,
        /// The address of that process, if known.
        address: Option<SocketAddr>,
    },
    /// The address belongs to another node than the dialed one.
    #[error("node {found} is at the address of node {meant}: check the addresses")]
    WrongNode {
        /// The node that was dialed.
        meant: NodeId,
        /// The node that answered.
        found: NodeId,
    },
    /// The address belongs to another channel.
    #[error("channels differ ({ours} here, {theirs} there): check the addresses")]
    Channel {
        /// The channel of this node.
        ours: u16,
        /// The channel of the peer.
        theirs: u16,
    },
    /// The layouts of keys and values differ.
    #[error("the layouts differ: give all nodes the same keys, lengths and value type")]
    Layout,
    /// One of the nodes was restarted: its link state is gone, so the other cannot resume the link.
    #[error("a node was started anew and has lost its state: start the whole cluster again")]
    Restarted,
    /// One of the nodes counts the other as lost, which is final.
    #[error("it was silent for too long and counts as lost: start the whole cluster again")]
    GivenUp,
    /// A handshake message that cannot be decoded or does not belong here.
    #[error("the handshake is invalid: is that an adapm node?")]
    Malformed,
    /// A copy of an earlier handshake's first message: a replay.
    #[error("it repeats an earlier handshake, which may have been recorded")]
    Repeated,
}

/// A mismatch of the tokens, from this node's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum TokenFault {
    /// Both nodes have a token, and the tokens differ.
    #[error("the tokens differ")]
    Differs,
    /// Only this node has a token.
    #[error("the peer has no token, this node has one")]
    OnlyOurs,
    /// Only the peer has a token.
    #[error("the peer has a token, this node has none")]
    OnlyTheirs,
}

impl HandshakeError {
    /// Returns the same reason from the other side's point of view.
    #[must_use]
    pub fn flipped(self) -> Self {
        match self {
            Self::Version { ours, theirs } => Self::Version { ours: theirs, theirs: ours },
            Self::Nodes { ours, theirs } => Self::Nodes { ours: theirs, theirs: ours },
            Self::Channel { ours, theirs } => Self::Channel { ours: theirs, theirs: ours },
            Self::Token(TokenFault::OnlyOurs) => Self::Token(TokenFault::OnlyTheirs),
            Self::Token(TokenFault::OnlyTheirs) => Self::Token(TokenFault::OnlyOurs),
            other => other,
        }
    }

    /// Returns true if dialing again cannot help.
    ///
    /// It can help if another process answers at the peer's address, as that of an earlier run may
    /// be about to end, and if a message was damaged or replayed on the way.
    #[must_use]
    pub fn is_final(self) -> bool {
        let is_other_process =
            matches!(self, Self::Cluster | Self::WrongNode { .. } | Self::Channel { .. });
        !is_other_process && !matches!(self, Self::Repeated | Self::Malformed)
    }
}

/// Returns `the process at 10.0.0.7:4157`, or `another process`.
fn process_at(address: Option<SocketAddr>) -> String {
    address.map_or("another process".to_owned(), |address| format!("the process at {address}"))
}
