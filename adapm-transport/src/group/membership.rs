//! Who has joined and who is missing: the start-up table of a cluster of processes.

use core::net::SocketAddr;
use core::time::Duration;
use std::process;

use adapm_core::NodeId;

use super::message::MemberInfo;

/// The members of a group as far as this node knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    pub(super) node: NodeId,
    pub(super) members: Vec<Option<Member>>,
    pub(super) rendezvous: String,
    pub(super) refused: Vec<String>,
    pub(super) refusals: u64,
    pub(super) fault: Option<JoinFault>,
}

/// One process of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// Where its control endpoint is reached.
    pub address: SocketAddr,
    /// The name of its machine.
    pub host: String,
    /// Its process id on that machine.
    pub pid: u32,
    /// Time of a message there and back, once it was measured; `None` for this process itself.
    pub rtt: Option<Duration>,
}

impl Membership {
    /// The node that this is the view of.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.members.len()
    }

    /// All nodes in order, with the process of each if it has joined.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (NodeId, Option<&Member>)> {
        let number = |index| NodeId(u16::try_from(index).expect("node ids are 16 bits wide"));
        self.members.iter().enumerate().map(move |(index, member)| (number(index), member.as_ref()))
    }

    /// Nodes that have joined.
    #[must_use]
    pub fn joined(&self) -> usize {
        self.members.iter().flatten().count()
    }

    /// Nodes that have not joined.
    #[must_use]
    pub fn missing(&self) -> Vec<NodeId> {
        self.members().filter(|(_, member)| member.is_none()).map(|(node, _)| node).collect()
    }

    /// Nodes in processes of the machine on which this node is, with itself.
    #[must_use]
    pub fn on_this_host(&self) -> usize {
        let host = self.members[self.node.index()].as_ref().map(|member| &member.host);
        self.members.iter().flatten().filter(|member| Some(&member.host) == host).count()
    }

    /// Where the nodes join: an address or a file.
    #[must_use]
    pub fn rendezvous(&self) -> &str {
        &self.rendezvous
    }

    /// Who was refused and why, a line each; the last ones.
    #[must_use]
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Connections that were refused so far, of nodes that do not belong here and of others.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// What keeps this node from its links so far, if it knows: one line.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        self.fault.as_ref().map(|fault| match fault {
            JoinFault { node: Some(node), reason } => {
                format!("node {node} was not reached so far: {reason}")
            }
            JoinFault { node: None, reason } => reason.clone(),
        })
    }
}

/// What keeps a node from its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JoinFault {
    /// The node that is not reached; `None`: all is the fault of this one.
    pub(super) node: Option<NodeId>,
    pub(super) reason: String,
}

impl Membership {
    /// Of a group of `nodes` that nobody has joined.
    pub(super) fn new(node: NodeId, nodes: usize, rendezvous: String) -> Self {
        let members = vec![None; nodes];
        Self { node, members, rendezvous, refused: Vec::new(), refusals: 0, fault: None }
    }
}

impl Member {
    pub(super) fn of(info: MemberInfo, rtt: Option<Duration>) -> Self {
        let MemberInfo { address, host, pid } = info;
        Self { address, host, pid, rtt }
    }
}

impl MemberInfo {
    /// This process, reached at `address`.
    pub(super) fn own(address: SocketAddr) -> Self {
        Self { address, host: host_name(), pid: process::id() }
    }
}

/// The name of this machine, for people and to tell machines apart.
fn host_name() -> String {
    let name =
        std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::env::var("HOSTNAME"));
    let name = name.unwrap_or_default();
    let name: String =
        name.trim().chars().filter(|c| !c.is_control()).take(HOST_CHARS_MAX).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// Characters of a host name that are kept.
const HOST_CHARS_MAX: usize = 64;

/// Refusals that are kept.
pub(super) const REFUSED_MAX: usize = 16;
