//! From a layout to a running cluster.

use std::panic;
use std::sync::Arc;
use std::{fmt, thread};

use adapm_core::config::NodeConfig;
use adapm_core::error::ConfigError;
use adapm_core::layout::{Kind, Layout};
use adapm_core::node::Initial;
use adapm_core::policy::{Policy, System, SystemPolicy};
use adapm_core::store::Store;
use adapm_core::transport::Transport;
use adapm_core::{ChannelId, Key, NodeId, Value};
use adapm_transport::inproc;

use crate::channel::Report;
use crate::cluster::Cluster;
use crate::error::BuildError;
use crate::failure::Failure;
use crate::link::Endpoint;
use crate::manager::{Manager, Plan};
use crate::notice::Notice;
use crate::sampling::Sampling;
use crate::store::LayoutStore;
use crate::ticket::Promise;

type MakeStore<S> = Box<dyn Fn(&Layout, NodeId) -> S>;
type MakePolicy = Box<dyn Fn(NodeId, ChannelId) -> SystemPolicy>;
type MakeEndpoints = Box<dyn Fn(ChannelId, usize) -> Vec<Box<dyn Endpoint>>>;

/// Settings of a cluster; [`Builder::build`] starts it.
///
/// ```
/// use adapm_core::{Key, Layout};
/// use adapm_runtime::{Builder, System};
///
/// let cluster = Builder::<f32>::new(Layout::dense(&[(1_000, 8)])?)
///     .nodes(2)
///     .workers(2)
///     .system(System::Adapm)
///     .initial(|key, value| value.fill(key.0 as f32))
///     .build()?;
/// let sums = cluster.run(|mut worker| {
///     let mut value = [0.0; 8];
///     worker.push(&[Key(7)], &[1.0; 8])?;
///     worker.quiesce()?;
///     worker.pull(&[Key(7)], &mut value)?;
///     Ok::<f32, adapm_core::error::OpError>(value[0])
/// })?;
/// assert_eq!(sums, [Ok(11.0), Ok(11.0), Ok(11.0), Ok(11.0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Builder<V: Value, S = LayoutStore<V>> {
    layout: Layout,
    nodes: usize,
    workers: usize,
    channels: Option<usize>,
    location_caches: bool,
    decisions: Decisions,
    initial: Initial<V>,
    sampling: Option<Sampling>,
    report: Report,
    store: MakeStore<S>,
    /// Whether the stores keep everything in memory, as far as this crate knows.
    in_memory: bool,
    endpoints: MakeEndpoints,
}

/// Who decides about techniques and timing.
enum Decisions {
    System(System),
    Custom(MakePolicy),
}

impl<V: Value> Builder<V> {
    /// A cluster of one node with one worker for the keys of `layout`, under [`System::Adapm`], with values of zero.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            nodes: 1,
            workers: 1,
            channels: None,
            location_caches: true,
            decisions: Decisions::System(System::Adapm),
            initial: Arc::new(|_, _| {}),
            sampling: None,
            report: Arc::new(|notice| eprintln!("{notice}")),
            store: Box::new(|layout, _| LayoutStore::new(layout)),
            in_memory: true,
            endpoints: Box::new(|_, nodes| boxed(inproc::network(nodes))),
        }
    }
}

impl<V: Value, S> Builder<V, S> {
    /// Number of nodes. Defaults to 1.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Number of workers of each node. Defaults to 1.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Number of channels, each with a thread on every node. Defaults to 1 up to 4 cores a node, else 4.
    #[must_use]
    pub fn channels(mut self, channels: usize) -> Self {
        self.channels = Some(channels);
        self
    }

    /// Whether nodes keep the locations they learn from answers and grants (AdaPM §B.2.3, Lapse §3.3). Defaults to true.
    #[must_use]
    pub fn location_caches(mut self, location_caches: bool) -> Self {
        self.location_caches = location_caches;
        self
    }

    /// The system to run. Defaults to [`System::Adapm`].
    #[must_use]
    pub fn system(mut self, system: System) -> Self {
        self.decisions = Decisions::System(system);
        self
    }

    /// Decides by a policy of your own, one for each engine, instead of a system.
    #[must_use]
    pub fn policy<P>(mut self, policy: impl Fn(NodeId, ChannelId) -> P + 'static) -> Self
    where
        P: Policy + Send + 'static,
    {
        self.decisions =
            Decisions::Custom(Box::new(move |node, channel| Box::new(policy(node, channel)) as SystemPolicy));
        self
    }

    /// Writes the initial value of a key over zeros: a pure function of the key, whatever node calls it. Defaults to zeros.
    #[must_use]
    pub fn initial(mut self, initial: impl Fn(Key, &mut [V]) + Send + Sync + 'static) -> Self {
        self.initial = Arc::new(initial);
        self
    }

    /// What [`crate::Worker::prepare_sample`] draws from. Defaults to nothing.
    #[must_use]
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = Some(sampling);
        self
    }

    /// Receives what happens outside of any call. Defaults to one line on standard error.
    #[must_use]
    pub fn report(mut self, report: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        self.report = Arc::new(report);
        self
    }

    /// Keeps values in stores of your own, one for each node. Defaults to [`LayoutStore`].
    #[must_use]
    pub fn store<T>(self, store: impl Fn(&Layout, NodeId) -> T + 'static) -> Builder<V, T>
    where
        T: Store<Value = V>,
    {
        Builder {
            layout: self.layout,
            nodes: self.nodes,
            workers: self.workers,
            channels: self.channels,
            location_caches: self.location_caches,
            decisions: self.decisions,
            initial: self.initial,
            sampling: self.sampling,
            report: self.report,
            store: Box::new(store),
            in_memory: false,
            endpoints: self.endpoints,
        }
    }

    /// Joins the nodes by a transport of your own: given a channel and the number of nodes, the endpoints in node order.
    /// Defaults to [`adapm_transport::inproc`].
    #[must_use]
    pub fn transport<T>(mut self, network: impl Fn(ChannelId, usize) -> Vec<T> + 'static) -> Self
    where
        T: Transport + Send + 'static,
    {
        self.endpoints = Box::new(move |channel, nodes| boxed(network(channel, nodes)));
        self
    }
}

impl<V, S> Builder<V, S>
where
    V: Value,
    S: Store<Value = V> + Send + Sync + 'static,
{
    /// Starts the cluster: returns when all main copies exist.
    ///
    /// # Errors
    /// Numbers that cannot work, a bad range to sample from, a dense layout for which there is no memory, a sparse layout
    /// under [`System::Full`], a transport with too few endpoints, or a thread that the operating system refuses.
    ///
    /// # Panics
    /// With the payload of the function of initial values, if that panics.
    pub fn build(self) -> Result<Cluster<S>, BuildError> {
        let channels = self.channels.unwrap_or_else(|| default_channels(self.nodes));
        // Which node and channel is asked for does not matter: the numbers are the same for all.
        NodeConfig::new(NodeId(0), self.nodes, self.workers)
            .on_channel(ChannelId(0), channels)
            .check(&self.layout)?;
        if channels > usize::from(u16::MAX) {
            return Err(ConfigError::Channels { channels }.into());
        }
        self.check_sampling()?;
        self.check_memory(self.nodes)?;
        let full = matches!(self.decisions, Decisions::System(System::Full));
        if full && self.layout.kind() == Kind::Sparse {
            return Err(BuildError::SparseFull);
        }
        let failure = Arc::new(Failure::default());
        let plan = Plan {
            layout: self.layout.clone(),
            nodes: self.nodes,
            workers: self.workers,
            location_caches: self.location_caches,
            initial: Arc::clone(&self.initial),
            sampling: self.sampling.clone().map(Arc::new),
            heeds_intents: self.heeds_intents(),
            replicates_fully: full,
            failure: Arc::clone(&failure),
            report: Arc::clone(&self.report),
            origin: std::time::Instant::now(),
        };
        let mut endpoints = self.endpoints_by_node(channels)?;
        failure.wakes(endpoints.iter().flatten().map(|endpoint| endpoint.wake_fn()).collect());
        let ready = Arc::new(Promise::new(self.nodes * channels, None));
        let mut nodes = Vec::with_capacity(self.nodes);
        for (index, endpoints) in endpoints.drain(..).enumerate() {
            let node = NodeId(u16::try_from(index).expect("the number of nodes was checked"));
            let policy = |channel| self.policy_of(node, channel);
            let store = (self.store)(&self.layout, node);
            nodes.push(Manager::start(&plan, node, store, endpoints, policy, &ready)?);
        }
        if ready.wait().is_err() {
            let payload = nodes.iter_mut().find_map(Manager::join);
            panic::resume_unwind(payload.unwrap_or_else(|| Box::new("a channel thread ended early")));
        }
        Ok(Cluster::new(nodes, self.layout, failure))
    }

    fn check_sampling(&self) -> Result<(), BuildError> {
        let Some(sampling) = &self.sampling else { return Ok(()) };
        let (start, end) = (sampling.keys.start, sampling.keys.end);
        let keys_end = self.layout.keys().end;
        if start >= end || end > keys_end {
            return Err(BuildError::SampleKeys { start, end, keys_end });
        }
        let len = self.layout.value_len(start);
        match self.layout.extents().iter().find(|extent| {
            extent.keys.start < end && start < extent.keys.end && Some(extent.value_len) != len
        }) {
            None => Ok(()),
            Some(extent) => Err(BuildError::SampleLens { key: extent.keys.start }),
        }
    }

    /// Checks that main copies and directories of `here` of the nodes can be had at all; asks for the memory and gives it back.
    fn check_memory(&self, here: usize) -> Result<(), BuildError> {
        if !self.in_memory || self.layout.kind() == Kind::Sparse {
            return Ok(());
        }
        let values = self.layout.extents().iter().map(|extent| {
            let keys = u128::from(extent.keys.end.0 - extent.keys.start.0);
            keys * (extent.value_len * V::WIDTH + HEADER_BYTES) as u128
        });
        let directories = here as u128 * u128::from(self.layout.keys().end.0) * ENTRY_BYTES;
        let bytes = directories + values.sum::<u128>() * here as u128 / self.nodes as u128;
        let room =
            usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
        if room { Ok(()) } else { Err(BuildError::Memory { bytes }) }
    }

    /// The endpoints of each node, in channel order.
    fn endpoints_by_node(&self, channels: usize) -> Result<Vec<Vec<Box<dyn Endpoint>>>, BuildError> {
        let mut by_node: Vec<Vec<_>> = (0..self.nodes).map(|_| Vec::new()).collect();
        for index in 0..channels {
            let channel = ChannelId(u16::try_from(index).expect("the number of channels was checked"));
            let ends = (self.endpoints)(channel, self.nodes);
            if ends.len() != self.nodes {
                return Err(BuildError::Endpoints { channel, given: ends.len(), nodes: self.nodes });
            }
            for (node, end) in by_node.iter_mut().zip(ends) {
                node.push(end);
            }
        }
        Ok(by_node)
    }

    fn policy_of(&self, node: NodeId, channel: ChannelId) -> SystemPolicy {
        match &self.decisions {
            Decisions::System(system) => system.policy(self.workers),
            Decisions::Custom(policy) => policy(node, channel),
        }
    }

    /// Whether workers' signals reach the engines: where nothing ever acts on them, they would only pile up.
    fn heeds_intents(&self) -> bool {
        match self.decisions {
            Decisions::System(system) => !matches!(system, System::Classic | System::Lapse | System::Full),
            Decisions::Custom(_) => true,
        }
    }
}

impl<V: Value, S> fmt::Debug for Builder<V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("layout", &self.layout)
            .field("nodes", &self.nodes)
            .field("workers", &self.workers)
            .field("channels", &self.channels)
            .finish_non_exhaustive()
    }
}

fn boxed<T: Transport + Send + 'static>(ends: Vec<T>) -> Vec<Box<dyn Endpoint>> {
    ends.into_iter().map(|end| Box::new(end) as Box<dyn Endpoint>).collect()
}

fn default_channels(nodes: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if cores <= 4 * nodes { 1 } else { 4 }
}

/// Memory of a main copy apart from its value (see `adapm_store::DenseStore`).
const HEADER_BYTES: usize = 16;

/// Memory of a directory for each key of the layout.
const ENTRY_BYTES: u128 = 8;
