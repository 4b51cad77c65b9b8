//! A cluster of several processes: the interface of this process's node to the other processes.
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

/// The process group of a cluster: this process and those of the other nodes.
pub(crate) trait ProcessGroup: Send + Sync {
    /// Returns this process's node.
    fn node(&self) -> NodeId;

    /// Returns the number of processes, one for each node.
    fn nodes(&self) -> usize;

    /// Returns the number of processes on this host.
    fn on_this_host(&self) -> usize;

    /// Returns the number of the run, which is the same in all processes.
    fn run(&self) -> u64;

    /// Returns the silence after which a process counts as lost.
    fn dead_after(&self) -> Duration;

    /// Checks that all processes have the same settings, and agrees on the number of channels: the
    /// number `told`, which users have chosen, else the largest of the numbers `fitting` the
    /// machines.
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

    /// Returns the callback that reports losses noticed by the cluster to the other processes.
    fn reporter(&self) -> LossFn;

    /// Reports losses noticed by other processes to the cluster, from here on.
    fn watch(&mut self, failure: &Arc<Failure>);

    /// Waits until all processes have called this under the same `label`; a process that has failed
    /// gives its reason as `own`. The deadline of the links counts from the first such call on.
    fn meet(&self, label: &str, own: Result<(), BuildError>) -> Result<(), BuildError>;

    /// Returns the traffic of each channel's links, at most about a second old.
    #[cfg(feature = "tcp")]
    fn link_stats(&self) -> Vec<NetStats>;

    /// Reports to the group that the cluster has ended in order.
    fn finish(&self);
}

/// Settings that all processes must have alike, each with its name.
pub(crate) type Terms = Vec<(&'static str, String)>;
