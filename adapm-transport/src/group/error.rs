//! Errors of starting and running a group of processes: one line each, with node, address and
//! remedy.

use core::time::Duration;
use std::path::PathBuf;

use adapm_core::NodeId;
use adapm_core::error::OneLine;
use adapm_core::transport::Loss;

use super::folder::FolderError;
use super::launcher::error::LauncherError;
use super::launcher::secret::SecretError;
use crate::error::PeerLoss;
use crate::net::NetError;
use crate::threads::SpawnError;

/// Errors of starting and running a group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// Not all nodes have joined in time.
    #[error(
        "{joined} of {} nodes joined within {:.0} s; missing: {}; start {} with --rendezvous {rendezvous}{}",
        joined + missing.len(),
        waited.as_secs_f64(),
        list(missing),
        if missing.len() == 1 { "it" } else { "them" },
        hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default()
    )]
    Missing {
        /// Number of nodes that have joined.
        joined: usize,
        /// Nodes that have not joined.
        missing: Vec<NodeId>,
        /// Time waited.
        waited: Duration,
        /// The rendezvous.
        rendezvous: String,
        /// A likely reason, if this node knows one.
        hint: Option<String>,
    },
    /// A node could not be reached in time.
    #[error("node {node} could not be reached at {address} within {:.0} s: {reason}", waited.as_secs_f64())]
    Unreached {
        /// The node.
        node: NodeId,
        /// Its address.
        address: String,
        /// Time of the attempts.
        waited: Duration,
        /// The last error.
        reason: String,
    },
    /// A node is gone.
    #[error(transparent)]
    PeerLost(PeerLoss),
    /// Other nodes have lost this one, or the verdict is that this one is cut off.
    #[error(
        "this node was given up by {}: check the network between them; start the cluster again",
        list(by)
    )]
    GivenUp {
        /// Nodes that have lost it.
        by: Vec<NodeId>,
    },
    /// No other node is reachable.
    #[error(
        "this node has lost contact with all {} others ({loss}): check its network; start the cluster again",
        nodes - 1
    )]
    Isolated {
        /// Number of nodes.
        nodes: usize,
        /// The longest silence.
        loss: Loss,
    },
    /// A node that is still needed has left the group in order.
    #[error("node {node} has ended and is still needed: run the same program on all nodes")]
    Left {
        /// The node.
        node: NodeId,
    },
    /// A node calls other collectives than this one, or in another order.
    #[error(
        "node {node} is at `{}` while this node is at `{}`: run the same program on all nodes",
        OneLine(theirs),
        OneLine(ours)
    )]
    Differs {
        /// The node.
        node: NodeId,
        /// The call of this node.
        ours: String,
        /// The call of that node.
        theirs: String,
    },
    /// The node id is not one of the cluster's.
    #[error("node {node} is not in a cluster of {nodes} nodes: node ids are 0 to {}", nodes.max(&1) - 1)]
    NodeOutOfRange {
        /// The id.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
    /// An address or host name in this node's own configuration is unusable.
    #[error("`{}` cannot be used as an address: {reason}", OneLine(given))]
    Address {
        /// The text given.
        given: String,
        /// The fault.
        reason: String,
    },
    /// The rendezvous file cannot be written or read.
    #[error("rendezvous file {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The folder is unusable for a rendezvous file.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Neither a launcher nor a variable sets which node this is.
    #[error(transparent)]
    Launcher(#[from] LauncherError),
    /// The secret of the processes is unusable.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A link failed or was refused; the message is the transport's.
    #[error("{message}")]
    Network {
        /// The message, in one line.
        message: String,
    },
    /// The operating system refuses what this node needs; the message is the transport's.
    #[error("{message}")]
    System {
        /// The message, in one line.
        message: String,
    },
    /// The operating system refused the control thread.
    #[error(transparent)]
    Thread(SpawnError),
    /// This node has left the group.
    #[error("this node has left the group")]
    Ended,
}

impl GroupError {
    /// Returns the lost node, if that is the error.
    #[must_use]
    pub fn lost(&self) -> Option<&PeerLoss> {
        match self {
            Self::PeerLost(loss) => Some(loss),
            _ => None,
        }
    }

    /// Returns the node without which this one cannot go on, as it is lost or has left.
    pub(super) fn lacks(&self) -> Option<NodeId> {
        match self {
            Self::PeerLost(loss) => Some(loss.node),
            Self::Left { node } => Some(*node),
            _ => None,
        }
    }

    /// Returns true if another node is missing, lost or gone, or has given this one up.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::Unreached { .. }
                | Self::PeerLost(_)
                | Self::GivenUp { .. }
                | Self::Isolated { .. }
                | Self::Left { .. }
        )
    }

    /// Returns the loss reported to watchers: a node that was given up reports the first node that
    /// did so as lost.
    pub(super) fn peer_loss(&self) -> Option<PeerLoss> {
        let first = |node, loss| PeerLoss { node, address: None, loss };
        match self {
            Self::PeerLost(loss) => Some(*loss),
            Self::GivenUp { by } => by.first().map(|by| first(*by, Loss::GaveUp)),
            _ => None,
        }
    }
}

impl From<NetError> for GroupError {
    fn from(error: NetError) -> Self {
        let message = error.to_string();
        match error {
            NetError::System { .. } | NetError::Accept { .. } => Self::System { message },
            _ => Self::Network { message },
        }
    }
}

/// Formats `n1, n2`.
fn list(nodes: &[NodeId]) -> String {
    nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use super::*;

    #[test]
    fn messages_are_one_line_and_say_what_to_do() {
        let missing = GroupError::Missing {
            joined: 2,
            missing: vec![NodeId(2), NodeId(3)],
            waited: Duration::from_secs(60),
            rendezvous: "10.0.0.1:4157".to_owned(),
            hint: None,
        };
        let text = "2 of 4 nodes joined within 60 s; missing: n2, n3; start them with --rendezvous 10.0.0.1:4157";
        assert_eq!(missing.to_string(), text);
        let loss = PeerLoss {
            node: NodeId(3),
            address: Some(SocketAddr::from(([10, 0, 0, 7], 51_234))),
            loss: Loss::Silent(Duration::from_secs(10)),
        };
        let text = "node n3 (10.0.0.7:51234) was lost: it has been silent for 10.0 s; start the cluster again";
        assert_eq!(GroupError::PeerLost(loss).to_string(), text);
    }
}
