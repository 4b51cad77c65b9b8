//! A cluster of several processes, as far as the node of one of them must know of the others.
//!
//! Not here: how processes find each other and exchange bytes, which is behind feature `tcp` (file
//! `group`).

#[cfg(feature = "tcp")]
pub(crate) mod group;

use std::sync::Arc;
use std::time::Duration;

use adapm_core::NodeId;
#[cfg(feature = "tcp")]
use adapm_transport::net::NetStats;

use crate::error::BuildError;
use crate::failure::{Failure, LossFn};
use crate::link::Endpoint;

/// The bond between a cluster and the processes of its other nodes.
pub(crate) trait Bond: Send + Sync {
    /// Returns this process's node.
    fn node(&self) -> NodeId;

    /// Returns the number of processes, one for each node.
    fn nodes(&self) -> usize;

    /// Returns how many of the processes run on this host.
    fn on_this_host(&self) -> usize;

    /// Returns the number of the run, which is the same in all processes.
    fn run(&self) -> u64;

    /// Returns the silence after which a process counts as lost.
    fn dead_after(&self) -> Duration;

    /// Agrees on everything as it is, and on the number of channels: as users have `told`, else the
    /// largest of those `fitting` the machines.
    fn agree(
        &self,
        terms: Result<Terms, BuildError>,
        told: Option<usize>,
        fitting: usize,
    ) -> Result<usize, BuildError>;

    /// Opens this process's endpoints, one for each channel, and connects them with those of the
    /// others.
    fn open(
        &mut self,
        channels: usize,
        layout_digest: u64,
    ) -> Result<Vec<Box<dyn Endpoint>>, BuildError>;

    /// Returns what tells the other processes of a loss that the cluster has noticed.
    fn reporter(&self) -> LossFn;

    /// Tells the cluster of losses that other processes notice, from here on.
    fn watch(&mut self, failure: &Arc<Failure>);

    /// Waits until all processes have come here; one that has failed says why instead. From the
    /// first meeting on, the links are due.
    fn meet(&self, label: &str, own: Result<(), BuildError>) -> Result<(), BuildError>;

    /// Returns what the links of each channel have carried, at most about a second ago.
    #[cfg(feature = "tcp")]
    fn link_stats(&self) -> Vec<NetStats>;

    /// Ends the bond with a cluster that has ended in order.
    fn finish(&self);
}

/// Settings that all processes must have alike, each with its name.
pub(crate) type Terms = Vec<(&'static str, String)>;
