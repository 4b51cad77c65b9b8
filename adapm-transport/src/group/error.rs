//! Why a group of processes cannot start or go on: one line each, with node, address and what to do.

use core::fmt;
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
use crate::threads::Refusal;

/// Why a group cannot start or go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupError {
    /// Not all nodes have joined in time.
    Missing {
        /// How many have.
        joined: usize,
        /// Those that have not.
        missing: Vec<NodeId>,
        /// How long they were waited for.
        waited: Duration,
        /// Where they were to join.
        rendezvous: String,
        /// What may have kept them, if this node knows.
        hint: Option<String>,
    },
    /// A node could not be reached in time.
    Unreached {
        /// The node.
        node: NodeId,
        /// Where it was to be.
        address: String,
        /// How long it was tried.
        waited: Duration,
        /// What went wrong last.
        reason: String,
    },
    /// A node is gone.
    PeerLost(PeerLoss),
    /// Other nodes have lost this one, or it has come out as the one that is cut off.
    GivenUp {
        /// Those that have lost it.
        by: Vec<NodeId>,
    },
    /// Nothing is heard of any other node.
    Isolated {
        /// Number of nodes.
        nodes: usize,
        /// The longest silence.
        loss: Loss,
    },
    /// A node has left the group in order, and is needed.
    Left {
        /// The node.
        node: NodeId,
    },
    /// A node calls other collectives than this one, or in another order.
    Differs {
        /// The node.
        node: NodeId,
        /// What this node calls.
        ours: String,
        /// What that node calls.
        theirs: String,
    },
    /// The node id is not one of the cluster's.
    NodeOutOfRange {
        /// The id.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
    /// An address or host name of this node's own configuration cannot be used.
    Address {
        /// What was given.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The rendezvous file cannot be written or read.
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Processes cannot meet in a folder.
    Folder(FolderError),
    /// A launcher or a variable does not say which node this is.
    Launcher(LauncherError),
    /// The secret of the processes cannot be used.
    Secret(SecretError),
    /// A link failed or was refused; the message is the transport's.
    Network {
        /// One line.
        message: String,
    },
    /// The operating system refuses what this node needs; the message is the transport's.
    System {
        /// One line.
        message: String,
    },
    /// The operating system refused the control thread.
    Thread(Refusal),
    /// This node has left the group.
    Ended,
}

impl GroupError {
    /// The lost node, if that is the reason.
    #[must_use]
    pub fn lost(&self) -> Option<&PeerLoss> {
        match self {
            Self::PeerLost(loss) => Some(loss),
            _ => None,
        }
    }

    /// What those are told who watch for losses: of a node that was given up, that it has lost the first that has done so.
    pub(super) fn peer_loss(&self) -> Option<PeerLoss> {
        let first = |node, loss| PeerLoss { node, address: None, loss };
        match self {
            Self::PeerLost(loss) => Some(*loss),
            Self::GivenUp { by } => by.first().map(|by| first(*by, Loss::GaveUp)),
            _ => None,
        }
    }
}

impl From<FolderError> for GroupError {
    fn from(error: FolderError) -> Self {
        Self::Folder(error)
    }
}

impl From<LauncherError> for GroupError {
    fn from(error: LauncherError) -> Self {
        Self::Launcher(error)
    }
}

impl From<SecretError> for GroupError {
    fn from(error: SecretError) -> Self {
        Self::Secret(error)
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

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { joined, missing, waited, rendezvous, hint } => {
                let nodes = joined + missing.len();
                let seconds = waited.as_secs_f64();
                write!(f, "{joined} of {nodes} nodes joined within {seconds:.0} s; missing:")?;
                write_nodes(missing, f)?;
                let them = if missing.len() == 1 { "it" } else { "them" };
                write!(f, "; start {them} with --rendezvous {rendezvous}")?;
                hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
            }
            Self::Unreached { node, address, waited, reason } => {
                let seconds = waited.as_secs_f64();
                write!(f, "node {node} could not be reached at {address} within {seconds:.0} s: {reason}")
            }
            Self::PeerLost(loss) => loss.fmt(f),
            Self::GivenUp { by } => {
                f.write_str("this node was given up by")?;
                write_nodes(by, f)?;
                f.write_str(": check the network between them; start the cluster again")
            }
            Self::Isolated { nodes, loss } => write!(
                f,
                "this node has lost contact with all {} others ({loss}): check its network; start the cluster again",
                nodes - 1
            ),
            Self::Left { node } => {
                write!(f, "node {node} has ended and is still needed: run the same program on all nodes")
            }
            Self::Differs { node, ours, theirs } => {
                write!(
                    f,
                    "node {node} is at `{}` while this node is at `{}`: run the same program on all nodes",
                    OneLine(theirs),
                    OneLine(ours)
                )
            }
            Self::NodeOutOfRange { node, nodes } => {
                write!(
                    f,
                    "node {node} is not in a cluster of {nodes} nodes: node ids are 0 to {}",
                    nodes.max(&1) - 1
                )
            }
            Self::Address { given, reason } => {
                write!(f, "`{}` cannot be used as an address: {reason}", OneLine(given))
            }
            Self::File { path, reason } => write!(f, "rendezvous file {}: {reason}", path.display()),
            Self::Folder(error) => error.fmt(f),
            Self::Launcher(error) => error.fmt(f),
            Self::Secret(error) => error.fmt(f),
            Self::Network { message } | Self::System { message } => f.write_str(message),
            Self::Thread(refusal) => refusal.fmt(f),
            Self::Ended => f.write_str("this node has left the group"),
        }
    }
}

impl core::error::Error for GroupError {}

/// Writes ` n1, n2`.
fn write_nodes(nodes: &[NodeId], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, node) in nodes.iter().enumerate() {
        write!(f, "{} {node}", if index == 0 { "" } else { "," })?;
    }
    Ok(())
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
        let text =
            "2 of 4 nodes joined within 60 s; missing: n2, n3; start them with --rendezvous 10.0.0.1:4157";
        assert_eq!(missing.to_string(), text);
        let loss = PeerLoss {
            node: NodeId(3),
            address: Some(SocketAddr::from(([10, 0, 0, 7], 51_234))),
            loss: Loss::Silent(Duration::from_secs(10)),
        };
        let text =
            "node n3 (10.0.0.7:51234) was lost: nothing was heard of it for 10.0 s; start the cluster again";
        assert_eq!(GroupError::PeerLost(loss).to_string(), text);
    }
}
