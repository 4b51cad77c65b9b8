//! Errors of an endpoint: one line each, with the remedy.

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

/// Errors of opening and running an endpoint.
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
    /// The address to listen at is invalid.
    #[error(
        "cannot listen at `{given}`: give an address of this machine like 10.0.0.7 or 10.0.0.7:4157"
    )]
    BindText {
        /// The text given.
        given: String,
    },
    /// The system does not let this process listen there.
    #[error("cannot listen at {at}: {}", unbound(*error))]
    Bind {
        /// The address.
        at: String,
        /// The cause.
        error: SystemError,
    },
    /// Listening there would let any process that reaches the port join.
    #[error(
        "listening at {at} without a token lets anybody join: give all nodes --token-file, or --insecure in a \
         network that you trust"
    )]
    Exposed {
        /// The address.
        at: SocketAddr,
    },
    /// This build has no such transport.
    #[error("this build has no transport {kind}: build it with feature `{kind}`")]
    KindMissing {
        /// The kind.
        kind: Kind,
    },
    /// The system refuses a resource of an endpoint.
    #[error("the system refuses a resource of a network endpoint: {}", advised(*error))]
    System {
        /// The cause.
        error: SystemError,
    },
    /// The system does not let this process accept connections.
    #[error("this node cannot accept connections: {}", advised(*error))]
    Accept {
        /// The cause.
        error: SystemError,
    },
    /// Two nodes do not belong together; the handshake is not tried again.
    #[error("node {node}{}: {refusal}", at(address.as_ref()))]
    Refused {
        /// The peer.
        node: NodeId,
        /// The dialed address.
        address: Option<Address>,
        /// The reason.
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

/// Reasons why a connection has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkFault {
    /// It broke, or its bytes were invalid.
    #[error("{0}")]
    Fault(Fault),
    /// One side refused the other.
    #[error("{0}")]
    Refused(HandshakeError),
    /// The handshake took too long.
    #[error("the handshake took too long")]
    Slow,
    /// Too many connections were waiting for their handshake.
    #[error("too many connections were waiting to be greeted")]
    Crowded,
    /// Connections with that peer come up, but nothing sent to it arrives.
    #[error("{1}")]
    Stuck(NodeId, Stall),
}

/// The notice of a failed connection from outside, or of a link on which nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetNotice {
    /// The peer's address, if it has one.
    pub remote: Option<SocketAddr>,
    /// The reason.
    pub fault: LinkFault,
    /// Number of equal failures from the same place.
    pub times: u32,
}

/// Pending notices: bounded, equal ones counted together.
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

/// Formats why the system does not let this process listen.
fn unbound(error: SystemError) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "it is in use; give another port, or none for any free one".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        _ => advised(error),
    }
}

/// Formats a system error with its remedy, if that is known.
fn advised(error: SystemError) -> String {
    error.advice().map_or_else(|| error.to_string(), |advice| format!("{error}; {advice}"))
}

/// Formats ` at 10.0.0.7:4157`, or nothing.
fn at<A: fmt::Display>(address: Option<&A>) -> String {
    address.map(|address| format!(" at {address}")).unwrap_or_default()
}

const NOTICES_MAX: usize = 32;
