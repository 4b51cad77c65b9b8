//! Notices of a cluster, reported outside of any call.

use std::fmt;
use std::net::SocketAddr;

use adapm_core::NodeId;
use adapm_core::engine::{Absent, Collective};
use adapm_core::transport::Stall;

/// A notice for the operator of a running cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A barrier, a quiesce or a clock under a bound has waited for 5 s: these workers have neither
    /// made the call nor ended.
    /// Reported in the process whose workers are missing while others of the same node wait, in
    /// that of node 0, and for a barrier in all processes that wait.
    Missing {
        /// The call.
        call: Collective,
        /// The missing workers.
        absent: Vec<Absent>,
    },
    /// Connections to a peer come up one after the other, but nothing sent to it arrives: it will
    /// be given up.
    LinkStuck {
        /// The peer.
        node: NodeId,
        /// Its address, if it has one.
        address: Option<SocketAddr>,
        /// The stall.
        stall: Stall,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { call, absent } => missing(f, *call, absent),
            Self::LinkStuck { node, address: Some(address), stall } => {
                write!(f, "link to {node} ({address}): {stall}")
            }
            Self::LinkStuck { node, address: None, stall } => write!(f, "link to {node}: {stall}"),
        }
    }
}

fn missing(f: &mut fmt::Formatter<'_>, call: Collective, absent: &[Absent]) -> fmt::Result {
    let (call, other, rule) = match call {
        Collective::Barrier => ("barrier", "quiesce", SAME_CALLS),
        Collective::Quiesce => ("quiesce", "barrier", SAME_CALLS),
        Collective::Tick => ("a clock", "barrier", "under a bound all workers have to advance"),
    };
    write!(f, "{call} has waited for 5 s for ")?;
    for (index, Absent { node, worker, elsewhere }) in absent.iter().enumerate() {
        f.write_str(if index > 0 { ", " } else { "" })?;
        match worker {
            Some(worker) => write!(f, "{worker} of {node}")?,
            None => write!(f, "workers of {node}")?,
        }
        if *elsewhere {
            write!(f, " (in {other})")?;
        }
    }
    write!(f, ": {rule}")
}

const SAME_CALLS: &str = "all workers must make the same calls in the same order";
