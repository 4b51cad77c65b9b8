//! Why one node does not talk with another.

use core::fmt;
use core::net::SocketAddr;

use adapm_core::NodeId;
use serde::{Deserialize, Serialize};

/// Why a handshake ended; both sides hold the same reason, each from its own point of view.
///
/// The order of the variants is part of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Refusal {
    /// Two versions of the protocol.
    Version {
        /// This node's.
        ours: u8,
        /// The peer's.
        theirs: u8,
    },
    /// Two clusters.
    Cluster,
    /// The shared secret.
    Token(TokenFault),
    /// Two ideas of how many nodes there are.
    Nodes {
        /// This node's.
        ours: u32,
        /// The peer's.
        theirs: u32,
    },
    /// A node id that the cluster does not have.
    NodeOutOfRange {
        /// The id.
        node: NodeId,
        /// Number of nodes.
        nodes: u32,
    },
    /// Another process has that node id already.
    NodeTaken {
        /// The id.
        node: NodeId,
        /// Where that process is, if it has an address.
        address: Option<SocketAddr>,
    },
    /// The address leads to another node than the one meant.
    WrongNode {
        /// The node that was to be there.
        meant: NodeId,
        /// The node that is there.
        found: NodeId,
    },
    /// The address leads to another channel.
    Channel {
        /// This node's.
        ours: u16,
        /// The peer's.
        theirs: u16,
    },
    /// Two layouts of keys and values.
    Layout,
    /// One of both was started anew, which the other cannot go on with.
    Restarted,
    /// One of both has given the other up as lost.
    GivenUp,
    /// A message of the handshake that makes no sense.
    Malformed,
    /// The first message of a handshake that was there before.
    Repeated,
}

/// What is wrong with the shared secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TokenFault {
    /// Both have one, and they differ.
    Differs,
    /// Only this node has one.
    OnlyOurs,
    /// Only the peer has one.
    OnlyTheirs,
}

impl Refusal {
    /// The same reason as the other side sees it.
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

    /// Whether trying again cannot help. It can if somebody else listens where the peer was to be: the process of an earlier
    /// run may be about to end.
    #[must_use]
    pub fn is_final(self) -> bool {
        let is_elsewhere = matches!(self, Self::Cluster | Self::WrongNode { .. } | Self::Channel { .. });
        !is_elsewhere && !matches!(self, Self::Repeated | Self::Malformed)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { ours, theirs } => {
                write!(
                    f,
                    "protocol versions differ ({ours} here, {theirs} there): run the same build on all nodes"
                )
            }
            Self::Cluster => {
                f.write_str("it belongs to another cluster: check the rendezvous and the cluster id")
            }
            Self::Token(TokenFault::Differs) => {
                f.write_str("the tokens differ: give all nodes the same token")
            }
            Self::Token(TokenFault::OnlyOurs) => {
                f.write_str("the peer has no token, this node has one: give all nodes the same token")
            }
            Self::Token(TokenFault::OnlyTheirs) => {
                f.write_str("the peer has a token, this node has none: give all nodes the same token")
            }
            Self::Nodes { ours, theirs } => {
                write!(
                    f,
                    "node counts differ ({ours} here, {theirs} there): start all nodes with the same count"
                )
            }
            Self::NodeOutOfRange { node, nodes } => {
                write!(
                    f,
                    "there is no node {node} in a cluster of {nodes}: node ids are 0 to {}",
                    nodes.saturating_sub(1)
                )
            }
            Self::NodeTaken { node, address: Some(address) } => {
                write!(
                    f,
                    "node id {node} is taken by the process at {address}: give each process its own, or start the whole \
                     cluster again if that one has ended"
                )
            }
            Self::NodeTaken { node, address: None } => {
                write!(
                    f,
                    "node id {node} is taken by another process: give each process its own, or start the whole cluster \
                     again if that one has ended"
                )
            }
            Self::WrongNode { meant, found } => {
                write!(f, "node {found} is where node {meant} was to be: check the addresses")
            }
            Self::Channel { ours, theirs } => {
                write!(f, "channels differ ({ours} here, {theirs} there): check the addresses")
            }
            Self::Layout => {
                f.write_str("the layouts differ: give all nodes the same keys, lengths and value type")
            }
            Self::Restarted => {
                f.write_str("a node was started anew and has lost its state: start the whole cluster again")
            }
            Self::GivenUp => {
                f.write_str("it was silent for too long and counts as lost: start the whole cluster again")
            }
            Self::Malformed => f.write_str("the handshake makes no sense: is that an adapm node?"),
            Self::Repeated => f.write_str("it repeats an earlier handshake: somebody may have recorded it"),
        }
    }
}

impl core::error::Error for Refusal {}
