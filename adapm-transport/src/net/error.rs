//! What can go wrong with an endpoint: one line each, with what to do.

use core::fmt;
use core::net::SocketAddr;
use std::collections::VecDeque;
use std::io;

use adapm_core::NodeId;
use adapm_core::transport::Stall;

use super::address::{Address, Kind};
use super::hello::HandshakeError;
use super::packet::Fault;
use crate::error::SystemError;

/// Why an endpoint could not be opened, or has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The node id is not below the number of nodes, or there are more nodes than ids.
    #[error("there is no node {node} in a cluster of {nodes}: ids are 0 to {}", nodes.saturating_sub(1))]
    Nodes {
        /// The node.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
    /// The place to listen at cannot be understood.
    #[error(
        "cannot listen at `{given}`: give an address of this machine like 10.0.0.7 or 10.0.0.7:4157"
    )]
    BindText {
        /// What was given.
        given: String,
    },
    /// The system does not let this process listen there.
    #[error("cannot listen at {at}: {}", unbound(*error))]
    Bind {
        /// Where.
        at: String,
        /// Why.
        error: SystemError,
    },
    /// Listening there would let anybody in.
    #[error(
        "listening at {at} without a token lets anybody join: give all nodes --token-file, or --insecure in a \
         network that you trust"
    )]
    Exposed {
        /// Where.
        at: SocketAddr,
    },
    /// This build has no such transport.
    #[error("this build has no transport {kind}: build it with feature `{kind}`")]
    KindMissing {
        /// The kind.
        kind: Kind,
    },
    /// The system has not given what an endpoint needs.
    #[error("the system refuses what a network endpoint needs: {}", advised(*error))]
    System {
        /// Why.
        error: SystemError,
    },
    /// The system does not let this process take in connections that have come.
    #[error("this node cannot accept connections: {}", advised(*error))]
    Accept {
        /// Why.
        error: SystemError,
    },
    /// Two nodes do not belong together; the handshake is not tried again.
    #[error("node {node}{}: {refusal}", at(address.as_ref()))]
    Refused {
        /// The peer.
        node: NodeId,
        /// Where it was dialed.
        address: Option<Address>,
        /// Why.
        refusal: HandshakeError,
    },
    /// There is no such peer.
    #[error("node {node} is no peer of this node in a cluster of {nodes}")]
    UnknownNode {
        /// The node.
        node: NodeId,
        /// Number of nodes.
        nodes: usize,
    },
}

/// Why a connection came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkFault {
    /// It broke, or what it carried made no sense.
    #[error("{0}")]
    Fault(Fault),
    /// One side refused the other.
    #[error("{0}")]
    Refused(HandshakeError),
    /// The handshake took too long.
    #[error("the handshake took too long")]
    Slow,
    /// Too many were waiting to be greeted.
    #[error("too many connections were waiting to be greeted")]
    Crowded,
    /// Connections with that peer come up, and what is sent to it does not arrive.
    #[error("{1}")]
    Stuck(NodeId, Stall),
}

/// A connection from outside that came to nothing, or a link on which nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetNotice {
    /// Where the other side is, if that has an address.
    pub remote: Option<SocketAddr>,
    /// Why it ended.
    pub fault: LinkFault,
    /// How many from the same place ended so.
    pub times: u32,
}

/// Notices that nobody has fetched: bounded, the same ones counted together.
#[derive(Debug, Default)]
pub(super) struct Notices(VecDeque<NetNotice>);

impl Notices {
    pub(super) fn push(&mut self, remote: Option<SocketAddr>, fault: LinkFault) {
        let ip = |remote: Option<SocketAddr>| remote.map(|remote| remote.ip());
        let same =
            |notice: &&mut NetNotice| notice.fault == fault && ip(notice.remote) == ip(remote);
        if let Some(notice) = self.0.iter_mut().find(same) {
            notice.times = notice.times.saturating_add(1);
        } else if self.0.len() < NOTICES_MAX {
            self.0.push_back(NetNotice { remote, fault, times: 1 });
        }
    }

    pub(super) fn pop(&mut self) -> Option<NetNotice> {
        self.0.pop_front()
    }
}

impl fmt::Display for NetNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { remote, fault, .. } = self;
        match (fault, remote) {
            (LinkFault::Stuck(node, stall), _) => {
                return write!(f, "link to {node}{}: {stall}", at(remote.as_ref()));
            }
            (_, Some(remote)) => write!(f, "refused {remote}: {fault}")?,
            (_, None) => write!(f, "refused a connection: {fault}")?,
        }
        if self.times > 1 { write!(f, " ({} times)", self.times) } else { Ok(()) }
    }
}

/// Why the system does not let this process listen somewhere.
fn unbound(error: SystemError) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "it is in use; give another port, or none for any free one".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        _ => advised(error),
    }
}

/// A system error with what to do about it, if that is known.
fn advised(error: SystemError) -> String {
    error.advice().map_or_else(|| error.to_string(), |advice| format!("{error}; {advice}"))
}

/// ` at 10.0.0.7:4157`, or nothing.
fn at<A: fmt::Display>(address: Option<&A>) -> String {
    address.map(|address| format!(" at {address}")).unwrap_or_default()
}

const NOTICES_MAX: usize = 32;
