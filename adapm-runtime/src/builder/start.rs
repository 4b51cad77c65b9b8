//! The start of this process's nodes: stores, then main copies, then channel threads, then links.
//! Before that, the memory that they will need is allocated and freed again, as far as it is known,
//! as nothing can be refused later.
//!
//! With other processes, all meet after the main copies and after the links.

use std::sync::Arc;

use adapm_core::home::HomeMap;
use adapm_core::layout::{Kind, Layout};
use adapm_core::store::Store;
use adapm_core::{ChannelId, NodeId, Value};
use adapm_transport::threads;

use super::nodes::NodeEnds;
use crate::cluster::Cluster;
use crate::error::{BuildError, RunError};
use crate::hot_keys::HotKeys;
use crate::node_handle::{NodeHandle, Plan, Taste};
use crate::populate::{Populating, populate};
use crate::processes::ProcessGroup;
use crate::promise::Promise;

/// The nodes of this process as far as they have started.
pub(super) struct Starting<V: Value, S: Store<Value = V> + Send + Sync + 'static> {
    plan: Plan<V>,
    nodes: Vec<NodeHandle<S>>,
    /// Promise that all channel threads have links to all peers.
    connected: Arc<Promise<V>>,
    group: Option<Box<dyn ProcessGroup>>,
}

impl<V, S> Starting<V, S>
where
    V: Value,
    S: Store<Value = V> + Send + Sync + 'static,
{
    /// Creates the state before anything has started, with the endpoints and the group of other
    /// processes.
    pub(super) fn new(
        plan: Plan<V>,
        endpoints: &[NodeEnds],
        mut group: Option<Box<dyn ProcessGroup>>,
    ) -> Self {
        let all = || endpoints.iter().flat_map(|(_, endpoints)| endpoints);
        plan.failure.wakes(all().map(|endpoint| endpoint.wake_fn()).collect());
        let connected = Arc::new(Promise::new(all().count(), None));
        if let Some(group) = &mut group {
            plan.failure.on_loss(group.reporter());
            group.watch(&plan.failure);
        }
        Self { plan, nodes: Vec::with_capacity(endpoints.len()), connected, group }
    }

    /// Creates the main copies, all there will be in a dense layout: what initial values are made
    /// of is not kept then.
    pub(super) fn populate(
        &mut self,
        stores: &[(NodeId, S)],
        tell: &mut dyn FnMut(Populating),
    ) -> Result<(), BuildError> {
        populate(&self.plan, stores, tell)?;
        if self.plan.layout.kind() == Kind::Dense {
            self.plan.initial = Arc::new(|_, _| {});
        }
        Ok(())
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
            self.nodes.push(NodeHandle::start(
                plan, node, store, endpoints, taste, connected, first_part,
            )?);
            first_part += channels;
        }
        Ok(())
    }

    /// Returns the cluster once all processes have come this far and have links to each other, or
    /// the failure of any of them.
    pub(super) fn finish(
        mut self,
        mut started: Result<(), BuildError>,
    ) -> Result<Cluster<V, S>, BuildError> {
        for (label, waits) in [("copies of a cluster", false), ("links of a cluster", true)] {
            started = started.and_then(|()| self.check(waits));
            if let Some(group) = &self.group {
                started = group.meet(label, started);
            }
            if started.is_err() {
                self.plan.failure.end();
                break;
            }
        }
        // If it is dropped because of a failure, the drop waits for its threads.
        let cluster = Cluster::new(self.nodes, self.plan, self.group);
        started.map(|()| cluster)
    }

    /// Checks that nothing has failed; with `waits`, once all channel threads have their links.
    fn check(&mut self, waits: bool) -> Result<(), BuildError> {
        let connected = if waits { self.connected.wait().map(drop) } else { Ok(()) };
        match (connected, self.plan.failure.check()) {
            (Ok(()), Ok(())) => Ok(()),
            (_, Err(RunError::Transport { message, .. })) => Err(BuildError::Network { message }),
            (_, Err(RunError::ChannelPanicked { node, channel })) => {
                let message = self.nodes.iter_mut().find_map(NodeHandle::join).unwrap_or_default();
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

/// The memory needed by the nodes of one process.
pub(super) struct Need {
    /// Main copies, directories, engines, and the state per peer.
    bytes: u128,
    /// Stacks of channel threads and workers.
    stacks: u128,
}

impl Need {
    /// Returns the need of `here` of `nodes` nodes with these channels each and so many workers in
    /// all, apart from their stores.
    pub(super) fn new(here: usize, nodes: usize, channels: usize, workers: usize) -> Self {
        let engines = here as u128 * channels as u128;
        Self {
            bytes: engines * (ENGINE_BYTES + nodes as u128 * PEER_BYTES),
            stacks: (engines + workers as u128) * STACK_BYTES,
        }
    }

    /// Adds main copies and directories in memory, for `here` of `nodes` nodes.
    pub(super) fn with_stores<V: Value>(
        mut self,
        layout: &Layout,
        here: usize,
        nodes: usize,
    ) -> Self {
        if layout.kind() == Kind::Dense {
            let values = layout.extents().iter().map(|extent| {
                let keys = u128::from(extent.keys.end.0 - extent.keys.start.0);
                keys * (extent.value_len * size_of::<V>() + HEADER_BYTES) as u128
            });
            let directories = here as u128 * u128::from(layout.keys().end.0) * ENTRY_BYTES;
            self.bytes += directories + values.sum::<u128>() * here as u128 / nodes as u128;
        }
        self
    }

    /// Adds the copies of the hot keys of nodes of this process that have their home elsewhere,
    /// with an update each.
    pub(super) fn with_hot_keys<V: Value>(
        mut self,
        layout: &Layout,
        homes: &HomeMap,
        hot: impl Iterator<Item = (NodeId, HotKeys)>,
    ) -> Self {
        for (node, keys) in hot {
            let foreign = keys.as_slice().iter().filter(|key| homes.home(**key) != node);
            let elements = foreign.filter_map(|key| layout.value_len(*key));
            let copies = elements.map(|len| (2 * len * size_of::<V>() + HEADER_BYTES) as u128);
            self.bytes += copies.sum::<u128>();
        }
        self
    }

    /// Checks that the memory is available.
    pub(super) fn check(self) -> Result<(), BuildError> {
        let bytes = self.bytes + self.stacks;
        let is_bounded = threads::address_space_left().is_some_and(|left| bytes > u128::from(left));
        let has_room = usize::try_from(self.bytes)
            .is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
        if has_room && !is_bounded { Ok(()) } else { Err(BuildError::Memory { bytes }) }
    }
}

/// Memory of a main copy apart from its value (see `adapm_store::DenseStore`).
const HEADER_BYTES: usize = 16;

/// Memory of a directory for each key of the layout.
const ENTRY_BYTES: u128 = 8;

/// Memory of an engine with its thread, apart from its peers, approximately.
const ENGINE_BYTES: u128 = 80 << 10;

/// Memory of an engine and its endpoint for each node of the cluster, approximately.
const PEER_BYTES: u128 = 400;

/// Address space of a thread.
const STACK_BYTES: u128 = 2 << 20;
