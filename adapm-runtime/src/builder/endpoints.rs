//! The endpoints of the nodes of this process, from a transport that its user has chosen.
//!
//! Not here: links between the processes of a group ([`crate::processes`]).

use adapm_core::transport::Transport;
use adapm_core::{ChannelId, NodeId, Value};

use super::Builder;
use crate::error::BuildError;
use crate::link::Endpoint;

/// Given a channel and the number of nodes: the endpoints of the nodes of this process.
pub(super) type MakeEndpoints = Box<dyn Fn(ChannelId, usize) -> Vec<Box<dyn Endpoint>>>;

/// A node with its endpoints in channel order.
pub(super) type NodeEnds = (NodeId, Vec<Box<dyn Endpoint>>);

impl<V: Value, S> Builder<V, S> {
    /// The endpoints of each node of this process, in channel order.
    pub(super) fn endpoints_by_node(&self, channels: usize) -> Result<Vec<NodeEnds>, BuildError> {
        let ids = (0..self.nodes).map(|node| NodeId(u16::try_from(node).expect("their number was checked")));
        let ids = ids.filter(|node| self.only.is_none_or(|only| only == *node));
        let mut by_node: Vec<NodeEnds> = ids.map(|node| (node, Vec::new())).collect();
        for index in 0..channels {
            let channel = ChannelId(u16::try_from(index).expect("the number of channels was checked"));
            let ends = (self.endpoints)(channel, self.nodes);
            if ends.len() != by_node.len() {
                return Err(BuildError::Endpoints { channel, given: ends.len(), nodes: by_node.len() });
            }
            for ((_, node_ends), end) in by_node.iter_mut().zip(ends) {
                node_ends.push(end);
            }
        }
        Ok(by_node)
    }
}

pub(super) fn boxed<T: Transport + Send + 'static>(ends: Vec<T>) -> Vec<Box<dyn Endpoint>> {
    ends.into_iter().map(|end| Box::new(end) as Box<dyn Endpoint>).collect()
}
