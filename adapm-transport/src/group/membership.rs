//! Nodes that have joined and nodes that are missing: the start-up table of a cluster of processes.

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
    /// The address of its control endpoint.
    pub address: SocketAddr,
    /// The name of its machine.
    pub host: String,
    /// Its process id on that machine.
    pub pid: u32,
    /// Round-trip time, once measured; `None` for this process itself.
    pub rtt: Option<Duration>,
}

impl Membership {
    /// Returns the node whose view this is.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.members.len()
    }

    /// Returns all nodes in order, with the process of each if it has joined.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (NodeId, Option<&Member>)> {
        let number = |index| NodeId(u16::try_from(index).expect("node ids are 16 bits wide"));
        self.members.iter().enumerate().map(move |(index, member)| (number(index), member.as_ref()))
    }

    /// Returns the number of nodes that have joined.
    #[must_use]
    pub fn joined(&self) -> usize {
        self.members.iter().flatten().count()
    }

    /// Returns the nodes that have not joined.
    #[must_use]
    pub fn missing(&self) -> Vec<NodeId> {
        self.members().filter(|(_, member)| member.is_none()).map(|(node, _)| node).collect()
    }

    /// Returns the number of nodes on this node's machine, itself included.
    #[must_use]
    pub fn on_this_host(&self) -> usize {
        let host = self.members[self.node.index()].as_ref().map(|member| &member.host);
        self.members.iter().flatten().filter(|member| Some(&member.host) == host).count()
    }

    /// Returns the rendezvous: an address or a file.
    #[must_use]
    pub fn rendezvous(&self) -> &str {
        &self.rendezvous
    }

    /// Returns the last refusals with their reasons, one line each.
    #[must_use]
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Returns the number of refused connections, of foreign nodes and of others.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Returns what keeps this node from its links, if known: one line.
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

/// A fault that keeps a node from its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JoinFault {
    /// The node that is not reached; `None`: the fault is this node's.
    pub(super) node: Option<NodeId>,
    pub(super) reason: String,
}

impl Membership {
    /// Creates the membership of a group of `nodes` that none has joined.
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
    /// Returns the data of this process, reached at `address`.
    pub(super) fn own(address: SocketAddr) -> Self {
        Self { address, host: host_name(), pid: process::id() }
    }
}

/// Returns the name of this machine, for people and to tell machines apart.
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
