//! The nodes of this process, started: stores, then main copies, then channel threads, then links.
//!
//! Where there are other processes, all meet behind the main copies and behind the links.

use std::sync::Arc;

use adapm_core::policy::System;
use adapm_core::store::Store;
use adapm_core::{NodeId, Value};
use adapm_transport::group::{Group, GroupError, PeerLoss};

use super::endpoints::NodeEnds;
use super::{Builder, Decisions};
use crate::cluster::Cluster;
use crate::error::{BuildError, RunError};
use crate::failure::Failure;
use crate::manager::{Manager, Plan};
use crate::populate::{Populating, populate};
use crate::processes::{Bond, Deadline};
use crate::ticket::Promise;

impl<V, S> Builder<V, S>
where
    V: Value,
    S: Store<Value = V> + Send + Sync + 'static,
{
    /// Starts the nodes of this process.
    pub(super) fn start(
        self,
        endpoints: Vec<NodeEnds>,
        processes: Option<(&Arc<Group>, Deadline)>,
        tell: &mut dyn FnMut(Populating),
    ) -> Result<Cluster<S>, BuildError> {
        let failure = Arc::new(Failure::default());
        let plan = self.plan(&failure);
        self.begin_trace(processes.as_ref().map(|(group, _)| (group.node(), group.run())));
        let all = || endpoints.iter().flat_map(|(_, endpoints)| endpoints);
        failure.wakes(all().map(|endpoint| endpoint.wake_fn()).collect());
        let connected = Arc::new(Promise::new(all().count(), None));
        let bond = processes.as_ref().map(|(group, _)| Bond::new(group, &failure));
        let stores: Vec<(NodeId, S)> =
            endpoints.iter().map(|(node, _)| (*node, (self.store)(&self.layout, *node))).collect();
        let mut nodes = Vec::with_capacity(endpoints.len());
        let populated = populate(&plan, &stores, tell);
        let mut started =
            populated.and_then(|()| self.start_nodes(endpoints, stores, &plan, &connected, &mut nodes));
        for (promise, label) in [(None, "copies of a cluster"), (Some(&*connected), "links of a cluster")] {
            started = started.and_then(|()| kept(promise, &failure, &mut nodes));
            if let Some((bond, (_, deadline))) = bond.as_ref().zip(processes.as_ref()) {
                started = bond.meet(label, started);
                deadline.begin();
            }
            if started.is_err() {
                failure.end();
                break;
            }
        }
        // Dropped if it is of no use: that waits for its threads.
        let cluster = Cluster::new(nodes, self.layout, failure, bond);
        started.map(|()| cluster)
    }

    fn start_nodes(
        &self,
        endpoints: Vec<NodeEnds>,
        stores: Vec<(NodeId, S)>,
        plan: &Plan<V>,
        connected: &Arc<Promise<V>>,
        nodes: &mut Vec<Manager<S>>,
    ) -> Result<(), BuildError> {
        let mut first_part = 0;
        for ((node, endpoints), (_, store)) in endpoints.into_iter().zip(stores) {
            let taste = |channel| (self.policy_of(node, channel), self.watchers.observer_of(node, channel));
            let channels = endpoints.len();
            nodes.push(Manager::start(plan, node, store, endpoints, taste, connected, first_part)?);
            first_part += channels;
        }
        Ok(())
    }

    fn plan(&self, failure: &Arc<Failure>) -> Plan<V> {
        Plan {
            layout: self.layout.clone(),
            nodes: self.nodes,
            workers: self.workers,
            location_caches: self.location_caches,
            initial: Arc::clone(&self.initial),
            sampling: self.sampling.clone().map(Arc::new),
            heeds_intents: self.heeds_intents(),
            localizes: matches!(self.decisions, Decisions::System(System::Lapse)),
            replicates_fully: self.is_full(),
            unresponsive_after: self.group.as_ref().map(|group| UNRESPONSIVE_DEAD_TIMES * group.dead_after()),
            failure: Arc::clone(failure),
            report: Arc::clone(&self.report),
            origin: std::time::Instant::now(),
        }
    }
}

/// A node whose link lives is lost if it answers nothing for so many of the times after which silent ones are.
const UNRESPONSIVE_DEAD_TIMES: u32 = 6;

/// Waits until all channel threads have kept their promise, if there is one.
fn kept<S: Store>(
    promise: Option<&Promise<S::Value>>,
    failure: &Failure,
    nodes: &mut [Manager<S>],
) -> Result<(), BuildError> {
    match (promise.map_or(Ok(Vec::new()), Promise::wait), failure.check()) {
        (Ok(_), Ok(())) => Ok(()),
        (_, Err(RunError::Transport { message, .. })) => Err(BuildError::Network { message }),
        (_, Err(RunError::PeerLost { node, address, loss })) => {
            Err(BuildError::Group(GroupError::PeerLost(PeerLoss { node, address, loss })))
        }
        (_, Err(RunError::ChannelPanicked { node, channel })) => {
            let message = nodes.iter_mut().find_map(Manager::join).unwrap_or_default();
            Err(BuildError::Panicked {
                what: format!("the thread of channel {channel} of node {node}"),
                message,
            })
        }
        (_, Err(error)) => Err(BuildError::Network { message: error.to_string() }),
        (Err(_), Ok(())) => Err(BuildError::Network { message: "a channel thread ended early".to_owned() }),
    }
}
