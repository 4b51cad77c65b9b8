//! What can go wrong with an endpoint: one line each, with what to do.

use core::fmt;
use core::net::SocketAddr;
use std::collections::VecDeque;
use std::io;

use adapm_core::NodeId;
use adapm_core::transport::Stall;

use super::address::{Address, Kind};
use super::hello::Refusal;
use super::packet::Fault;
use crate::error::SystemError;

/// Why an endpoint could not be opened, or has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetError {
    /// The node id is not below the number of nodes, or there are more nodes than ids.
    Nodes {
        /// The node.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
    /// The place to listen at cannot be understood.
    BindText {
        /// What was given.
        given: String,
    },
    /// The system does not let this process listen there.
    Bind {
        /// Where.
        at: String,
        /// Why.
        error: SystemError,
    },
    /// Listening there would let anybody in.
    Exposed {
        /// Where.
        at: SocketAddr,
    },
    /// This build has no such transport.
    KindMissing {
        /// The kind.
        kind: Kind,
    },
    /// The system has not given what an endpoint needs.
    System {
        /// Why.
        error: SystemError,
    },
    /// The system does not let this process take in connections that have come.
    Accept {
        /// Why.
        error: SystemError,
    },
    /// Two nodes do not belong together; the handshake is not tried again.
    Refused {
        /// The peer.
        node: NodeId,
        /// Where it was dialed.
        address: Option<Address>,
        /// Why.
        refusal: Refusal,
    },
    /// There is no such peer.
    UnknownNode {
        /// The node.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
}

/// Why a connection came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// It broke, or what it carried made no sense.
    Fault(Fault),
    /// One side refused the other.
    Refused(Refusal),
    /// The handshake took too long.
    Slow,
    /// Too many were waiting to be greeted.
    Crowded,
    /// Connections with that peer come up, and what is sent to it does not arrive.
    Stuck(NodeId, Stall),
}

/// A connection from outside that came to nothing, or a link on which nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetNotice {
    /// Where the other side is, if that has an address.
    pub remote: Option<SocketAddr>,
    /// Why it ended.
    pub trouble: Trouble,
    /// How many from the same place ended so.
    pub times: u32,
}

/// Notices that nobody has fetched: bounded, the same ones counted together.
#[derive(Debug, Default)]
pub(super) struct Notices(VecDeque<NetNotice>);

impl Notices {
    pub(super) fn push(&mut self, remote: Option<SocketAddr>, trouble: Trouble) {
        let ip = |remote: Option<SocketAddr>| remote.map(|remote| remote.ip());
        let same = |notice: &&mut NetNotice| notice.trouble == trouble && ip(notice.remote) == ip(remote);
        if let Some(notice) = self.0.iter_mut().find(same) {
            notice.times = notice.times.saturating_add(1);
        } else if self.0.len() < NOTICES_MAX {
            self.0.push_back(NetNotice { remote, trouble, times: 1 });
        }
    }

    pub(super) fn pop(&mut self) -> Option<NetNotice> {
        self.0.pop_front()
    }
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes { node, nodes } => {
                write!(
                    f,
                    "there is no node {node} in a cluster of {nodes}: ids are 0 to {}",
                    nodes.saturating_sub(1)
                )
            }
            Self::BindText { given } => {
                write!(
                    f,
                    "cannot listen at `{given}`: give an address of this machine like 10.0.0.7 or 10.0.0.7:4157"
                )
            }
            Self::Bind { at, error } if error.kind() == io::ErrorKind::AddrInUse => {
                write!(f, "cannot listen at {at}: it is in use; give another port, or none for any free one")
            }
            Self::Bind { at, error } if error.kind() == io::ErrorKind::AddrNotAvailable => {
                write!(f, "cannot listen at {at}: this machine has no such address")
            }
            Self::Bind { at, error } => write!(f, "cannot listen at {at}: {}", Advised(*error)),
            Self::Exposed { at } => write!(
                f,
                "listening at {at} without a token lets anybody join: give all nodes --token-file, or --insecure in a \
                 network that you trust"
            ),
            Self::KindMissing { kind } => {
                write!(f, "this build has no transport {kind}: build it with feature `{kind}`")
            }
            Self::System { error } => {
                write!(f, "the system refuses what a network endpoint needs: {}", Advised(*error))
            }
            Self::Accept { error } => {
                write!(f, "this node cannot accept connections: {}", Advised(*error))
            }
            Self::Refused { node, address: Some(address), refusal } => {
                write!(f, "node {node} at {address}: {refusal}")
            }
            Self::Refused { node, address: None, refusal } => write!(f, "node {node}: {refusal}"),
            Self::UnknownNode { node, nodes } => {
                write!(f, "node {node} is no peer of this node in a cluster of {nodes}")
            }
        }
    }
}

/// A system error with what to do about it, if that is known.
struct Advised(SystemError);

impl fmt::Display for Advised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        self.0.advice().map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

impl core::error::Error for NetError {}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Slow => f.write_str("the handshake took too long"),
            Self::Stuck(_, stall) => stall.fmt(f),
            Self::Crowded => f.write_str("too many connections were waiting to be greeted"),
        }
    }
}

impl fmt::Display for NetNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Trouble::Stuck(node, stall) = self.trouble {
            write!(f, "link to {node}")?;
            return match self.remote {
                Some(remote) => write!(f, " at {remote}: {stall}"),
                None => write!(f, ": {stall}"),
            };
        }
        match self.remote {
            Some(remote) => write!(f, "refused {remote}: {}", self.trouble)?,
            None => write!(f, "refused a connection: {}", self.trouble)?,
        }
        if self.times > 1 { write!(f, " ({} times)", self.times) } else { Ok(()) }
    }
}

const NOTICES_MAX: usize = 32;
