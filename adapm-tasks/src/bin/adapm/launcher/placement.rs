//! From flags, `ADAPM_*` and a launcher to one place, or to being alone.

use std::path::PathBuf;

use crate::launcher::error::NODES_MAX;
use crate::launcher::{Environment, Found, LauncherError};

/// A value and the flag or variable that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) origin: &'static str,
}

/// Where the nodes find each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// `HOST:PORT`; node 0 listens there.
    Address(String),
    /// Node 0 writes its address there; all are on one host.
    File(PathBuf),
    /// The same in a folder of the job's own, which is made if it is not there: others can write to the one above.
    JobFile(PathBuf),
}

/// What flags say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) node: Option<usize>,
    pub(crate) nodes: Option<usize>,
    pub(crate) rendezvous: Option<String>,
}

/// Whether there are other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// All nodes are in this process.
    Alone,
    /// This process is one node.
    Member(Member),
}

/// The place of a process among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) node: Sourced<usize>,
    pub(crate) nodes: Sourced<usize>,
    pub(crate) rendezvous: Sourced<Meeting>,
    /// What tells this run from others, if whoever numbered the nodes says so.
    pub(crate) job: Option<String>,
    /// Who started the processes, if that is known.
    pub(crate) launcher: Option<&'static str>,
}

/// Joins what was asked for and what was found to a place.
pub(super) fn decide(own: Own, found: Option<Found>) -> Result<Placement, LauncherError> {
    // A launcher that started one process has nothing to say to a person who starts several by hand.
    let found = found.filter(|found| found.nodes.as_ref().is_none_or(|nodes| nodes.value > 1));
    let found = found.unwrap_or_default();
    let Some(because) = own.reason().or_else(|| found.reason(&own)) else { return Ok(Placement::Alone) };
    let numbered = own.node.is_none();
    let nodes = own.nodes.or(found.nodes).ok_or(LauncherError::NoNodes { because })?;
    let node = own.node.or(found.node).ok_or(LauncherError::NoNode { because })?;
    if !(1..=NODES_MAX).contains(&nodes.value) {
        return Err(LauncherError::NodeCount { origin: nodes.origin, nodes: nodes.value });
    }
    if node.value >= nodes.value {
        return Err(LauncherError::NodeBeyond {
            origin: node.origin,
            node: node.value,
            nodes_origin: nodes.origin,
            nodes: nodes.value,
        });
    }
    if nodes.value == 1 {
        return Ok(Placement::Alone);
    }
    let rendezvous = own.rendezvous.or(found.rendezvous);
    let rendezvous = rendezvous.ok_or(LauncherError::NoRendezvous { because, nodes: nodes.value })?;
    // Processes that are numbered by hand may be started in several ways, and are one run all the same.
    let (job, launcher) = if numbered { (found.job, Some(found.launcher)) } else { (None, None) };
    let job = own.job.or(job);
    Ok(Placement::Member(Member { node, nodes, rendezvous, job, launcher }))
}

impl Found {
    /// The variable by which a launcher makes this process one of several.
    fn reason(&self, own: &Own) -> Option<&'static str> {
        // An index of a pod is no sign that pods belong together; `--nodes 1` asks for being alone.
        let alone = self.index_only || own.nodes.as_ref().is_some_and(|nodes| nodes.value == 1);
        let counted = self.nodes.as_ref().or(self.node.as_ref());
        counted.map(|number| number.origin).filter(|_| !alone)
    }
}

/// What flags and `ADAPM_*` say, flags first.
#[derive(Debug)]
pub(super) struct Own {
    node: Option<Sourced<usize>>,
    nodes: Option<Sourced<usize>>,
    rendezvous: Option<Sourced<Meeting>>,
    job: Option<String>,
}

impl Own {
    /// Whether no launcher needs to be asked.
    pub(super) fn is_complete(&self) -> bool {
        self.node.is_some() && self.nodes.is_some() && self.rendezvous.is_some()
    }

    /// The flag or variable that makes this process one of several, whatever a launcher says.
    fn reason(&self) -> Option<&'static str> {
        let rendezvous = self.rendezvous.as_ref().map(|rendezvous| rendezvous.origin);
        let variable =
            self.nodes.as_ref().map(|nodes| nodes.origin).filter(|origin| *origin == "ADAPM_NODES");
        rendezvous.or(self.node.as_ref().map(|node| node.origin)).or(variable)
    }
}

/// Reads flags and `ADAPM_*`.
pub(super) fn own(asked: &Asked, environment: &Environment<'_>) -> Result<Own, LauncherError> {
    let number = |flag: Option<usize>, origin, variable| match flag {
        Some(value) => Ok(Some(Sourced { value, origin })),
        None => environment.sourced_number(variable),
    };
    let rendezvous = match &asked.rendezvous {
        Some(text) => Some(("--rendezvous", text.clone())),
        None => environment.text("ADAPM_RENDEZVOUS").map(|text| ("ADAPM_RENDEZVOUS", text)),
    };
    Ok(Own {
        node: number(asked.node, "--node", "ADAPM_NODE")?,
        nodes: number(asked.nodes, "--nodes", "ADAPM_NODES")?,
        rendezvous: rendezvous.map(|(origin, text)| meeting(origin, text)).transpose()?,
        job: environment.text("ADAPM_JOB"),
    })
}

/// Reads `HOST:PORT` or `file:PATH`.
fn meeting(origin: &'static str, text: String) -> Result<Sourced<Meeting>, LauncherError> {
    if let Some(path) = text.strip_prefix("file:").filter(|path| !path.is_empty()) {
        return Ok(Sourced { value: Meeting::File(PathBuf::from(path)), origin });
    }
    let well_formed = text.rsplit_once(':').is_some_and(|(host, port)| {
        let bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
        let named = !host.is_empty() && !host.contains([':', '/', '[', ']']);
        let plain = !host.contains(|character: char| character.is_whitespace() || character.is_control());
        (bracketed || named) && plain && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if well_formed && text.contains('%') {
        return Err(LauncherError::Zone { origin, value: text });
    }
    if !well_formed {
        return Err(LauncherError::Rendezvous { origin, value: text });
    }
    Ok(Sourced { value: Meeting::Address(text), origin })
}

/// `host:port`, with the brackets that an IPv6 address needs.
pub(crate) fn join_host(host: &str, port: u16) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// The path below the temporary folder of the file by which the processes of a job meet.
pub(super) fn file_name(launcher: &str, job: &str) -> PathBuf {
    let kept = |character: char| character.is_ascii_alphanumeric() || "._-@".contains(character);
    let job: String = job.chars().take(NAME_MAX).map(|c| if kept(c) { c } else { '_' }).collect();
    PathBuf::from(format!("adapm-{launcher}-{job}")).join("rendezvous")
}

/// Characters of a job's name that fit into that of a file.
const NAME_MAX: usize = 100;
