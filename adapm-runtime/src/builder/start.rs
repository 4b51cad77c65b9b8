//! The nodes of this process, started: stores, then main copies, then channel threads, then links.
//!
//! Where there are other processes, all meet behind the main copies and behind the links.

use std::sync::Arc;

use adapm_core::store::Store;
use adapm_core::{ChannelId, NodeId, Value};

use super::nodes::NodeEnds;
use crate::cluster::Cluster;
use crate::error::{BuildError, RunError};
use crate::manager::{Manager, Plan, Taste};
use crate::populate::{Populating, populate};
use crate::processes::Bond;
use crate::promise::Promise;

/// The nodes of this process as far as they have started.
pub(super) struct Starting<V: Value, S: Store<Value = V> + Send + Sync + 'static> {
    plan: Plan<V>,
    nodes: Vec<Manager<S>>,
    /// All channel threads have links to all peers.
    connected: Arc<Promise<V>>,
    bond: Option<Box<dyn Bond>>,
}

impl<V, S> Starting<V, S>
where
    V: Value,
    S: Store<Value = V> + Send + Sync + 'static,
{
    /// Nothing has started; the endpoints that will be, and the bond with other processes.
    pub(super) fn new(plan: Plan<V>, endpoints: &[NodeEnds], mut bond: Option<Box<dyn Bond>>) -> Self {
        let all = || endpoints.iter().flat_map(|(_, endpoints)| endpoints);
        plan.failure.wakes(all().map(|endpoint| endpoint.wake_fn()).collect());
        let connected = Arc::new(Promise::new(all().count(), None));
        if let Some(bond) = &mut bond {
            plan.failure.on_loss(bond.reporter());
            bond.watch(&plan.failure);
        }
        Self { plan, nodes: Vec::with_capacity(endpoints.len()), connected, bond }
    }

    /// Makes the main copies.
    pub(super) fn populate(
        &self,
        stores: &[(NodeId, S)],
        tell: &mut dyn FnMut(Populating),
    ) -> Result<(), BuildError> {
        populate(&self.plan, stores, tell)
    }

    /// Starts the channel threads.
    pub(super) fn start(
        &mut self,
        endpoints: Vec<NodeEnds>,
        stores: Vec<(NodeId, S)>,
        taste: impl Fn(NodeId, ChannelId) -> Taste,
    ) -> Result<(), BuildError> {
        let mut first_part = 0;
        for ((node, endpoints), (_, store)) in endpoints.into_iter().zip(stores) {
            let channels = endpoints.len();
            let taste = |channel| taste(node, channel);
            let (plan, connected) = (&self.plan, &self.connected);
            self.nodes.push(Manager::start(plan, node, store, endpoints, taste, connected, first_part)?);
            first_part += channels;
        }
        Ok(())
    }

    /// The cluster, once all processes have come so far, and have links to each other; unless one
    /// of them, or this one, has failed.
    pub(super) fn finish(mut self, mut started: Result<(), BuildError>) -> Result<Cluster<V, S>, BuildError> {
        for (label, waits) in [("copies of a cluster", false), ("links of a cluster", true)] {
            started = started.and_then(|()| self.check(waits));
            if let Some(bond) = &self.bond {
                started = bond.meet(label, started);
            }
            if started.is_err() {
                self.plan.failure.end();
                break;
            }
        }
        // Dropped if it is of no use: that waits for its threads.
        let cluster = Cluster::new(self.nodes, self.plan.layout, self.plan.failure, self.bond);
        started.map(|()| cluster)
    }

    /// Checks that nothing has failed, if asked for once all channel threads have their links.
    fn check(&mut self, waits: bool) -> Result<(), BuildError> {
        let connected = if waits { self.connected.wait().map(drop) } else { Ok(()) };
        match (connected, self.plan.failure.check()) {
            (Ok(()), Ok(())) => Ok(()),
            (_, Err(RunError::Transport { message, .. })) => Err(BuildError::Network { message }),
            (_, Err(RunError::ChannelPanicked { node, channel })) => {
                let message = self.nodes.iter_mut().find_map(Manager::join).unwrap_or_default();
                let what = format!("the thread of channel {channel} of node {node}");
                Err(BuildError::Panicked { what, message })
            }
            (_, Err(error)) => Err(BuildError::Run(error)),
            (Err(_), Ok(())) => {
                Err(BuildError::Network { message: "a channel thread ended early".to_owned() })
            }
        }
    }
}
