//! Errors in the variables of a launcher. Each message is one line and names the flag or variable.

use core::fmt;

use adapm_core::error::OneLine;

use crate::net::Kind;

/// Errors of finding a process's place.
///
/// Messages advise variables, which every program with this library reads; for a program with
/// flags, [`LauncherError::with_flags`] advises those.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LauncherError {
    /// A whole number was expected.
    #[error("{name} is '{}': give a whole number, or unset it", OneLine(value))]
    NotANumber {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// A time was expected.
    #[error("{name} is '{}': {SECONDS_WANTED}", OneLine(value))]
    NotSeconds {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// There is no transport of this name.
    #[error("ADAPM_TRANSPORT is '{}': give one of {}", OneLine(value), transports())]
    Transport {
        /// The value of the variable.
        value: String,
    },
    /// A launcher sets only one of two variables that belong together.
    #[error("{}", half_set(launcher, present, missing, &VARIABLES))]
    HalfSet {
        /// The launcher.
        launcher: &'static str,
        /// The variable that is set.
        present: &'static str,
        /// The variable that is not.
        missing: &'static str,
    },
    /// The process is one of several, but its node is unknown.
    #[error("{}", no_node(because, &VARIABLES))]
    NoNode {
        /// The flag or variable that implies this.
        because: &'static str,
    },
    /// The process is one of several, but their number is unknown.
    #[error("{}", no_nodes(because, &VARIABLES))]
    NoNodes {
        /// The flag or variable that implies this.
        because: &'static str,
    },
    /// The rendezvous is unknown.
    #[error("{}", no_rendezvous(because, *nodes, &VARIABLES))]
    NoRendezvous {
        /// The flag or variable that makes the process one of several.
        because: &'static str,
        /// Number of nodes.
        nodes: usize,
    },
    /// A number of nodes outside the allowed range.
    #[error("{origin} is {nodes}: a cluster has 1 to {NODES_MAX} nodes")]
    NodeCount {
        /// The flag or variable.
        origin: &'static str,
        /// The number.
        nodes: usize,
    },
    /// A node at or beyond the number of nodes; nodes count from 0.
    #[error(
        "{origin} is {node}, but {nodes_origin} is {nodes}: nodes count from 0 to {}",
        nodes.saturating_sub(1)
    )]
    NodeBeyond {
        /// The flag or variable of the node.
        origin: &'static str,
        /// The node.
        node: usize,
        /// The flag or variable of the number.
        nodes_origin: &'static str,
        /// Number of nodes.
        nodes: usize,
    },
    /// Neither `HOST:PORT` nor `file:PATH`.
    #[error(
        "{origin} is '{}': give HOST:PORT, or file:PATH if all nodes are on one host{}",
        OneLine(value),
        if value.matches(':').count() > 1 { BRACKETS } else { "" }
    )]
    Rendezvous {
        /// The flag or variable.
        origin: &'static str,
        /// Its value.
        value: String,
    },
    /// An address with a zone, which means another link on each host.
    #[error(
        "{origin} is '{}': its zone means another link on each host; give an address of node 0 that \
         is the same everywhere, like [fd00::1]:4157, or a name",
        OneLine(value)
    )]
    Zone {
        /// The flag or variable.
        origin: &'static str,
        /// Its value.
        value: String,
    },
    /// An invalid port, or one that leaves no room for the next.
    #[error("{name} is '{}': give a port from 1 to 65534", OneLine(value))]
    Port {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// An invalid list of hosts.
    #[error("{}", no_hostlist(name, value, &VARIABLES))]
    Hostlist {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
}

impl LauncherError {
    /// Returns the message for a program with the flags `--node`, `--nodes` and `--rendezvous`,
    /// which it then advises.
    #[must_use]
    pub fn with_flags(&self) -> impl fmt::Display {
        WithFlags(self)
    }
}

struct WithFlags<'a>(&'a LauncherError);

impl fmt::Display for WithFlags<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            LauncherError::HalfSet { launcher, present, missing } => {
                half_set(launcher, present, missing, &FLAGS)
            }
            LauncherError::NoNode { because } => no_node(because, &FLAGS),
            LauncherError::NoNodes { because } => no_nodes(because, &FLAGS),
            LauncherError::NoRendezvous { because, nodes } => {
                no_rendezvous(because, *nodes, &FLAGS)
            }
            LauncherError::Hostlist { name, value } => no_hostlist(name, value, &FLAGS),
            other => return other.fmt(f),
        };
        f.write_str(&text)
    }
}

fn half_set(launcher: &str, present: &str, missing: &str, advice: &Advice) -> String {
    let place = advice.place;
    format!(
        "{present} is set but {missing} is not: {launcher} sets both; unset {present}, or {place}"
    )
}

fn no_node(because: &str, advice: &Advice) -> String {
    format!("{because} is given, but not which node this is: {}", advice.node)
}

fn no_nodes(because: &str, advice: &Advice) -> String {
    format!("{because} is given, but not how many nodes there are: {}", advice.nodes)
}

fn no_rendezvous(because: &str, nodes: usize, advice: &Advice) -> String {
    let rendezvous = advice.rendezvous;
    format!(
        "{because} makes this one of {nodes} nodes, but does not say where they meet: {rendezvous} \
         with the host of node 0, the same on all"
    )
}

fn no_hostlist(name: &str, value: &str, advice: &Advice) -> String {
    let (value, rendezvous) = (OneLine(value), advice.rendezvous);
    format!("{name} is '{value}', no list of hosts: {rendezvous} with the host of node 0")
}

/// The names of the transports that are built in, with commas between them.
fn transports() -> String {
    Kind::available().map(Kind::scheme).collect::<Vec<_>>().join(", ")
}

/// Remedies, in the words of a program.
struct Advice {
    place: &'static str,
    node: &'static str,
    nodes: &'static str,
    rendezvous: &'static str,
}

const VARIABLES: Advice = Advice {
    place: "set ADAPM_NODE, ADAPM_NODES and ADAPM_RENDEZVOUS",
    node: "set ADAPM_NODE",
    nodes: "set ADAPM_NODES",
    rendezvous: "set ADAPM_RENDEZVOUS to HOST:PORT",
};

const FLAGS: Advice = Advice {
    place: "give --node, --nodes and --rendezvous",
    node: "give --node or set ADAPM_NODE",
    nodes: "give --nodes or set ADAPM_NODES",
    rendezvous: "give --rendezvous HOST:PORT",
};

/// The remedy for an invalid duration.
pub(super) const SECONDS_WANTED: &str = "give seconds, from 0.001 to 86400";

/// More nodes than any cluster that was ever tried, and far fewer than there are ids.
pub(super) const NODES_MAX: usize = 4096;

/// The remedy where colons do not separate address and port.
const BRACKETS: &str = "; an IPv6 address needs brackets, as in [fd00::1]:4157";
