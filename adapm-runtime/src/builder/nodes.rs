//! The nodes of a cluster and their network: one setting, so that its parts cannot disagree.
//!
//! Not here: links between the processes of a group ([`crate::processes`]).

use std::fmt;
#[cfg(feature = "tcp")]
use std::sync::Arc;

use adapm_core::transport::Transport;
use adapm_core::{ChannelId, NodeId};
#[cfg(feature = "tcp")]
use adapm_transport::group::Group;
use adapm_transport::inproc;

use super::introduced::Introduced;
use crate::error::BuildError;
use crate::link::Endpoint;
use crate::processes::ProcessGroup;
#[cfg(feature = "tcp")]
use crate::processes::group::JoinedGroup;

/// The nodes of a cluster: their number, those that this process builds, and the network between
/// them; passed to [`crate::Builder::nodes`].
///
/// | made from | builds | joined by |
/// | --- | --- | --- |
/// | a number | all nodes, in this process | [`adapm_transport::inproc`] |
/// | [`Nodes::over`] | all nodes, in this process | a transport of your own |
/// | a `Group` of processes (feature `tcp`) | the node that this process is in the group | the links of the group |
/// | [`Nodes::only`] | one node | a transport of your own that reaches the others |
pub struct Nodes(Place);

enum Place {
    /// All are in this process.
    Here { nodes: usize, network: Network },
    /// All but one are elsewhere.
    Only { node: NodeId, nodes: usize, network: Network, introduces: bool },
    /// Each is a process of the group.
    #[cfg_attr(not(feature = "tcp"), expect(dead_code, reason = "groups of processes need TCP"))]
    Group(Box<dyn ProcessGroup>),
}

/// A function from a channel to the endpoints of this process's nodes.
type Network = Box<dyn FnMut(ChannelId) -> Vec<Box<dyn Endpoint>>>;

/// A node with its endpoints in channel order.
pub(super) type NodeEnds = (NodeId, Vec<Box<dyn Endpoint>>);

impl Nodes {
    /// Builds `nodes` nodes in this process, joined by a transport of your own: given a channel and
    /// the number of nodes, `network` creates the endpoints in node order.
    #[must_use]
    pub fn over<T>(
        nodes: usize,
        mut network: impl FnMut(ChannelId, usize) -> Vec<T> + 'static,
    ) -> Self
    where
        T: Transport + Send + 'static,
    {
        let network = Box::new(move |channel| boxed(network(channel, nodes)));
        Self(Place::Here { nodes, network })
    }

    /// Builds one of `nodes` nodes; the others live elsewhere, reached by the endpoint that
    /// `network` creates for each channel.
    ///
    /// Layout, homes, initial values, channels, system, bound, hot and dense keys must be the same
    /// on all nodes. The first frame to each peer describes layout and homes of this node, and a
    /// peer with others, such as another number of keys, ends the run. All else is for the
    /// transport's own handshake to compare, and so are these if a node is to be refused before it
    /// sends anything: [`Layout::digest`](adapm_core::Layout::digest) and
    /// [`HomeMap::digest`](adapm_core::home::HomeMap::digest) are the numbers to exchange. A group
    /// of processes does all that.
    #[must_use]
    pub fn only<T>(
        node: NodeId,
        nodes: usize,
        mut network: impl FnMut(ChannelId) -> T + 'static,
    ) -> Self
    where
        T: Transport + Send + 'static,
    {
        let network = Box::new(move |channel| boxed(vec![network(channel)]));
        Self(Place::Only { node, nodes, network, introduces: true })
    }

    /// Leaves out the first frame that describes the layout, towards peers that expect none: nodes
    /// that drive an engine themselves, without a [`crate::Builder`]. Then the transport must
    /// compare [`Layout::digest`](adapm_core::Layout::digest), or nodes of different layouts run on
    /// in silence. Changes nothing but [`Nodes::only`].
    #[must_use]
    pub fn without_introduction(mut self) -> Self {
        if let Place::Only { introduces, .. } = &mut self.0 {
            *introduces = false;
        }
        self
    }

    /// Returns the number of nodes of all processes.
    pub(super) fn count(&self) -> usize {
        match &self.0 {
            Place::Here { nodes, .. } | Place::Only { nodes, .. } => *nodes,
            Place::Group(group) => group.nodes(),
        }
    }

    /// Returns the nodes of this process.
    pub(super) fn ids_here(&self) -> impl Iterator<Item = NodeId> {
        let (own, ids) = (self.own(), 0..u16::try_from(self.count()).unwrap_or(u16::MAX));
        ids.map(NodeId).filter(move |node| own.is_none_or(|own| own == *node))
    }

    /// Returns the number of nodes of this process.
    pub(super) fn here(&self) -> usize {
        if let Place::Here { nodes, .. } = &self.0 { *nodes } else { 1 }
    }

    /// Returns the number of nodes of this machine, as far as is known.
    pub(super) fn on_this_host(&self) -> usize {
        match &self.0 {
            Place::Here { nodes, .. } | Place::Only { nodes, .. } => *nodes,
            Place::Group(group) => group.on_this_host(),
        }
    }

    /// Returns the node of this process, if the others are elsewhere.
    pub(super) fn own(&self) -> Option<NodeId> {
        match &self.0 {
            Place::Here { .. } => None,
            Place::Only { node, .. } => Some(*node),
            Place::Group(group) => Some(group.node()),
        }
    }

    /// Returns the process group whose processes are the nodes.
    pub(super) fn group(&self) -> Option<&dyn ProcessGroup> {
        if let Place::Group(group) = &self.0 { Some(&**group) } else { None }
    }

    /// Returns the process group, to open endpoints.
    pub(super) fn group_mut(&mut self) -> Option<&mut Box<dyn ProcessGroup>> {
        if let Place::Group(group) = &mut self.0 { Some(group) } else { None }
    }

    /// Returns the process group, for the cluster.
    pub(super) fn into_group(self) -> Option<Box<dyn ProcessGroup>> {
        if let Place::Group(group) = self.0 { Some(group) } else { None }
    }

    /// Returns the endpoints of each node of this process, in channel order; none for a group,
    /// which opens its own.
    pub(super) fn endpoints(
        &mut self,
        channels: usize,
        digest: u64,
    ) -> Result<Vec<NodeEnds>, BuildError> {
        let here = self.here();
        let nodes = self.count();
        let introduces = matches!(self.0, Place::Only { introduces: true, .. });
        let first = self.own().unwrap_or_default().0;
        let (Place::Here { network, .. } | Place::Only { network, .. }) = &mut self.0 else {
            return Ok(Vec::new());
        };
        let mut by_node: Vec<NodeEnds> =
            (first..).take(here).map(|node| (NodeId(node), Vec::new())).collect();
        for index in 0..channels {
            let channel =
                ChannelId(u16::try_from(index).expect("the number of channels was checked"));
            let ends = network(channel);
            if ends.len() != here {
                return Err(BuildError::Endpoints { channel, given: ends.len(), nodes: here });
            }
            for ((node, node_ends), end) in by_node.iter_mut().zip(ends) {
                node_ends.push(if introduces {
                    Box::new(Introduced::new(end, *node, nodes, digest))
                } else {
                    end
                });
            }
        }
        Ok(by_node)
    }
}

/// That many nodes in this process.
impl From<usize> for Nodes {
    fn from(nodes: usize) -> Self {
        Self::over(nodes, |_, nodes| inproc::network(nodes))
    }
}

/// The processes of the group; this one builds its own node.
#[cfg(feature = "tcp")]
impl From<&Arc<Group>> for Nodes {
    fn from(group: &Arc<Group>) -> Self {
        Self(Place::Group(Box::new(JoinedGroup::new(group))))
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Here { nodes, .. } => write!(f, "{nodes} nodes"),
            Place::Only { node, nodes, .. } => write!(f, "{node} of {nodes} nodes"),
            Place::Group(group) => {
                write!(f, "{} of a group of {} nodes", group.node(), group.nodes())
            }
        }
    }
}

fn boxed<T: Transport + Send + 'static>(ends: Vec<T>) -> Vec<Box<dyn Endpoint>> {
    ends.into_iter().map(|end| Box::new(end) as Box<dyn Endpoint>).collect()
}
