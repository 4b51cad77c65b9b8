//! Errors of the handshake between two nodes.

use core::net::SocketAddr;

use adapm_core::NodeId;
use serde::{Deserialize, Serialize};

/// The reason why a handshake ended; both sides hold the same reason, each from its own point of
/// view.
///
/// The order of the variants is part of the wire.
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
    /// A node id that the cluster does not have.
    #[error("there is no node {node} in a cluster of {nodes}: node ids are 0 to {}", nodes.saturating_sub(1))]
    NodeOutOfRange {
        /// The id.
        node: NodeId,
        /// Number of nodes.
        nodes: u32,
    },
    /// Another process has that node id already.
    #[error(
        "node id {node} is taken by {}: give each process its own, or start the whole cluster again if that one \
         has ended",
        process_at(*address)
    )]
    NodeTaken {
        /// The id.
        node: NodeId,
        /// The address of that process, if it has one.
        address: Option<SocketAddr>,
    },
    /// The address leads to another node than the one meant.
    #[error("node {found} is where node {meant} was to be: check the addresses")]
    WrongNode {
        /// The node expected there.
        meant: NodeId,
        /// The node that is there.
        found: NodeId,
    },
    /// The address leads to another channel.
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
    /// One of the nodes was started anew, and the other cannot go on with it.
    #[error("a node was started anew and has lost its state: start the whole cluster again")]
    Restarted,
    /// One of the nodes has given the other up as lost.
    #[error("it was silent for too long and counts as lost: start the whole cluster again")]
    GivenUp,
    /// An invalid message of the handshake.
    #[error("the handshake makes no sense: is that an adapm node?")]
    Malformed,
    /// The first message of an earlier handshake.
    #[error("it repeats an earlier handshake: somebody may have recorded it")]
    Repeated,
}

/// The mismatch of the shared secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum TokenFault {
    /// Both have one, and they differ.
    #[error("the tokens differ")]
    Differs,
    /// Only this node has one.
    #[error("the peer has no token, this node has one")]
    OnlyOurs,
    /// Only the peer has one.
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

    /// Returns true if trying again cannot help. It can if another process listens at the peer's
    /// address: the process of an earlier run may be about to end.
    #[must_use]
    pub fn is_final(self) -> bool {
        let is_elsewhere =
            matches!(self, Self::Cluster | Self::WrongNode { .. } | Self::Channel { .. });
        !is_elsewhere && !matches!(self, Self::Repeated | Self::Malformed)
    }
}

fn process_at(address: Option<SocketAddr>) -> String {
    address.map_or("another process".to_owned(), |address| format!("the process at {address}"))
}
