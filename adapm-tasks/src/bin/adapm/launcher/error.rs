//! What can be wrong with what a launcher left. Each message is one line and names the flag or variable.

use std::fmt;

use adapm_core::error::OneLine;
use adapm_transport::net::Kind;

use crate::args::{SECONDS_WANTED, transports};

/// Why this process cannot find its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LauncherError {
    /// A whole number was expected.
    NotANumber { name: &'static str, value: String },
    /// A time was expected.
    NotSeconds { name: &'static str, value: String },
    /// Nothing that carries frames has this name.
    Transport { value: String },
    /// A launcher sets both or none.
    HalfSet { launcher: &'static str, present: &'static str, missing: &'static str },
    /// Asked to be one of several, but not told which.
    NoNode { because: &'static str },
    /// Asked to be one of several, but not told of how many.
    NoNodes { because: &'static str },
    /// Nobody knows where to meet.
    NoRendezvous { because: &'static str, nodes: usize },
    /// A cluster has at least one node and at most [`NODES_MAX`].
    NodeCount { origin: &'static str, nodes: usize },
    /// Nodes count from 0.
    NodeBeyond { origin: &'static str, node: usize, nodes_origin: &'static str, nodes: usize },
    /// No `HOST:PORT` and no `file:PATH`.
    Rendezvous { origin: &'static str, value: String },
    /// An address that means another link on each host.
    Zone { origin: &'static str, value: String },
    /// No port, or one that leaves no room for ours.
    Port { name: &'static str, value: String },
    /// No list of hosts.
    Hostlist { name: &'static str, value: String },
}

impl std::error::Error for LauncherError {}

impl fmt::Display for LauncherError {
    /// One line, whatever the variables hold.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber { name, value } => {
                let value = OneLine(value);
                write!(f, "{name} is '{value}': give a whole number, or unset it")
            }
            Self::NotSeconds { name, value } => {
                let value = OneLine(value);
                write!(f, "{name} is '{value}': {SECONDS_WANTED}")
            }
            Self::Transport { value } => {
                let names = transports().map(Kind::scheme).collect::<Vec<_>>().join(", ");
                let value = OneLine(value);
                write!(f, "ADAPM_TRANSPORT is '{value}': give one of {names}")
            }
            Self::HalfSet { launcher, present, missing } => write!(
                f,
                "{present} is set but {missing} is not: {launcher} sets both; unset {present}, or give --node, --nodes \
                 and --rendezvous"
            ),
            Self::NoNode { because } => {
                write!(f, "{because} is given, but not which node this is: give --node or set ADAPM_NODE")
            }
            Self::NoNodes { because } => {
                write!(
                    f,
                    "{because} is given, but not how many nodes there are: give --nodes or set ADAPM_NODES"
                )
            }
            Self::NoRendezvous { because, nodes } => write!(
                f,
                "{because} makes this one of {nodes} nodes, but does not say where they meet: give --rendezvous HOST:PORT \
                 with the host of node 0, the same on all"
            ),
            Self::NodeCount { origin, nodes } => {
                write!(f, "{origin} is {nodes}: a cluster has 1 to {NODES_MAX} nodes")
            }
            Self::NodeBeyond { origin, node, nodes_origin, nodes } => write!(
                f,
                "{origin} is {node}, but {nodes_origin} is {nodes}: nodes count from 0 to {}",
                nodes.saturating_sub(1)
            ),
            Self::Rendezvous { origin, value } => write!(
                f,
                "{origin} is '{}': give HOST:PORT, or file:PATH if all nodes are on one host{}",
                OneLine(value),
                if value.matches(':').count() > 1 { BRACKETS } else { "" }
            ),
            Self::Zone { origin, value } => write!(
                f,
                "{origin} is '{}': its zone means another link on each host; give an address of node 0 that is the same \
                 everywhere, like [fd00::1]:4157, or a name",
                OneLine(value)
            ),
            Self::Port { name, value } => {
                write!(f, "{name} is '{}': give a port from 1 to 65534", OneLine(value))
            }
            Self::Hostlist { name, value } => {
                let value = OneLine(value);
                write!(
                    f,
                    "{name} is '{value}', no list of hosts: give --rendezvous HOST:PORT with the host of node 0"
                )
            }
        }
    }
}

/// More than any cluster has that was ever tried, and far fewer than ids there are.
pub(super) const NODES_MAX: usize = 4096;

/// What to do where colons do not tell address from port.
const BRACKETS: &str = "; an IPv6 address needs brackets, as in [fd00::1]:4157";
