//! From flags, `ADAPM_*` and a launcher to one place, or to a process alone.

use core::time::Duration;

use adapm_core::NodeId;

use super::environment::{Environment, Sourced, dead_after, digest, link_kind, read_rendezvous};
use super::error::{LauncherError, NODES_MAX};
use super::found::Found;
use crate::group::config::{GroupConfig, Rendezvous};
use crate::net::{ClusterId, Kind};

/// The values of a program's own flags; each takes precedence over the variables.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--node`, else `ADAPM_NODE`, else the launcher's value.
    pub node: Option<usize>,
    /// `--nodes`, else `ADAPM_NODES`, else the launcher's value.
    pub nodes: Option<usize>,
    /// `--rendezvous`, else `ADAPM_RENDEZVOUS`, else the launcher's value: `HOST:PORT` or
    /// `file:PATH`.
    pub rendezvous: Option<String>,
    /// `--transport`, else `ADAPM_TRANSPORT`. Defaults to TCP.
    pub kind: Option<Kind>,
    /// `--dead-after`, else `ADAPM_DEAD_AFTER`, in seconds. Defaults to that of [`GroupConfig`].
    pub dead_after: Option<Duration>,
}

/// The other processes, if there are any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// All nodes are in this process.
    Alone,
    /// This process is one node.
    Among(Position),
}

/// The place of a process among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The node of this process.
    pub node: Sourced<usize>,
    /// The number of nodes.
    pub nodes: Sourced<usize>,
    /// The rendezvous.
    pub rendezvous: Sourced<Rendezvous>,
    /// The name of this run, if the launcher that numbered the nodes gives one.
    pub job: Option<String>,
    /// The launcher of the processes, if it is known.
    pub launcher: Option<&'static str>,
}

impl Position {
    /// Returns the settings of this process's group, with those that flags and variables give for
    /// its links. The token is separate ([`super::token`]).
    ///
    /// # Errors
    /// An unknown name of a transport, or an invalid duration.
    pub fn config(
        &self,
        flags: &Flags,
        environment: &Environment<'_>,
    ) -> Result<GroupConfig, LauncherError> {
        // A place has fewer nodes than there are ids.
        let node = NodeId(u16::try_from(self.node.value).unwrap_or(u16::MAX));
        let mut config = GroupConfig::new(node, self.nodes.value, self.rendezvous.value.clone());
        config.cluster = ClusterId(self.job.as_deref().map_or(0, digest));
        if let Some(dead_after) = dead_after(flags.dead_after, environment)? {
            config.dead_after = dead_after;
        }
        config.kind = link_kind(flags.kind, environment)?;
        Ok(config)
    }
}

/// Combines flags, variables and the launcher's findings into a place.
pub(super) fn decide(own: Own, found: Option<Found>) -> Result<Placement, LauncherError> {
    // A launcher that started one process does not count for a user who starts several by hand.
    let found = found.filter(|found| found.nodes.as_ref().is_none_or(|nodes| nodes.value > 1));
    let found = found.unwrap_or_default();
    let Some(because) = own.reason().or_else(|| found.reason(&own)) else {
        return Ok(Placement::Alone);
    };
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
    let rendezvous =
        rendezvous.ok_or(LauncherError::NoRendezvous { because, nodes: nodes.value })?;
    // Processes numbered by hand may be started in several ways, and still are one run.
    let (job, launcher) = if numbered { (found.job, Some(found.launcher)) } else { (None, None) };
    let job = own.job.or(job);
    Ok(Placement::Among(Position { node, nodes, rendezvous, job, launcher }))
}

impl Found {
    /// Returns the variable by which a launcher makes this process one of several.
    fn reason(&self, own: &Own) -> Option<&'static str> {
        // A pod's index does not imply that pods belong together; `--nodes 1` asks for being alone.
        let alone = self.index_only || own.nodes.as_ref().is_some_and(|nodes| nodes.value == 1);
        let counted = self.nodes.as_ref().or(self.node.as_ref());
        counted.map(|number| number.origin).filter(|_| !alone)
    }
}

/// The values of flags and `ADAPM_*`, flags first.
#[derive(Debug)]
pub(super) struct Own {
    node: Option<Sourced<usize>>,
    nodes: Option<Sourced<usize>>,
    rendezvous: Option<Sourced<Rendezvous>>,
    job: Option<String>,
}

impl Own {
    /// Returns true if no launcher needs to be consulted.
    pub(super) fn is_complete(&self) -> bool {
        self.node.is_some() && self.nodes.is_some() && self.rendezvous.is_some()
    }

    /// Returns the flag or variable that makes this process one of several, regardless of
    /// launchers.
    fn reason(&self) -> Option<&'static str> {
        let rendezvous = self.rendezvous.as_ref().map(|rendezvous| rendezvous.origin);
        let variable =
            self.nodes.as_ref().map(|nodes| nodes.origin).filter(|origin| *origin == "ADAPM_NODES");
        rendezvous.or(self.node.as_ref().map(|node| node.origin)).or(variable)
    }
}

/// Reads flags and `ADAPM_*`.
pub(super) fn own(flags: &Flags, environment: &Environment<'_>) -> Result<Own, LauncherError> {
    let number = |flag: Option<usize>, origin, variable| match flag {
        Some(value) => Ok(Some(Sourced { value, origin })),
        None => environment.sourced_number(variable),
    };
    let rendezvous = match &flags.rendezvous {
        Some(text) => Some(("--rendezvous", text.clone())),
        None => environment.text("ADAPM_RENDEZVOUS").map(|text| ("ADAPM_RENDEZVOUS", text)),
    };
    Ok(Own {
        node: number(flags.node, "--node", "ADAPM_NODE")?,
        nodes: number(flags.nodes, "--nodes", "ADAPM_NODES")?,
        rendezvous: rendezvous.map(|(origin, text)| read_rendezvous(origin, text)).transpose()?,
        job: environment.text("ADAPM_JOB"),
    })
}
