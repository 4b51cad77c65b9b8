//! From a layout to a running cluster.

mod check;
mod endpoints;
mod observe;
mod start;

use std::sync::Arc;
use std::{fmt, thread};

use adapm_core::engine::Initial;
use adapm_core::layout::Layout;
use adapm_core::policy::{Policy, System, SystemPolicy};
use adapm_core::store::Store;
use adapm_core::transport::Transport;
use adapm_core::{ChannelId, Key, NodeId, Value};
use adapm_transport::group::Group;
use adapm_transport::inproc;

use crate::builder::observe::Watchers;
use crate::channel::Report;
use crate::cluster::Cluster;
use crate::error::BuildError;
use crate::notice::Notice;
use crate::populate::Populating;
use crate::processes::{self, Channels};
use crate::sampling::Sampling;
use crate::store::LayoutStore;
use endpoints::{MakeEndpoints, boxed};

type MakeStore<S> = Box<dyn Fn(&Layout, NodeId) -> S>;
type MakePolicy = Box<dyn Fn(NodeId, ChannelId) -> SystemPolicy>;

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
    /// As the user has told, who may have told another number than the group's.
    told_nodes: Option<usize>,
    workers: usize,
    channels: Option<usize>,
    location_caches: bool,
    decisions: Decisions,
    initial: Initial<V>,
    sampling: Option<Sampling>,
    report: Report,
    watchers: Watchers,
    store: MakeStore<S>,
    /// Whether the stores keep everything in memory, as far as this crate knows.
    in_memory: bool,
    endpoints: MakeEndpoints,
    /// The one node of this process, if the transport alone knows the others.
    only: Option<NodeId>,
    group: Option<Arc<Group>>,
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
            told_nodes: None,
            workers: 1,
            channels: None,
            location_caches: true,
            decisions: Decisions::System(System::Adapm),
            initial: Arc::new(|_, _| {}),
            sampling: None,
            report: Arc::new(|notice| eprintln!("{notice}")),
            watchers: Watchers::default(),
            store: Box::new(|layout, _| LayoutStore::new(layout)),
            in_memory: true,
            endpoints: Box::new(|_, nodes| boxed(inproc::network(nodes))),
            only: None,
            group: None,
        }
    }
}

impl<V: Value, S> Builder<V, S> {
    /// Number of nodes. Defaults to 1, in a [`Builder::group`] to the group's, which alone it may be there.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.told_nodes = Some(nodes);
        if self.group.is_none() {
            self.nodes = nodes;
        }
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
            told_nodes: self.told_nodes,
            workers: self.workers,
            channels: self.channels,
            location_caches: self.location_caches,
            decisions: self.decisions,
            initial: self.initial,
            sampling: self.sampling,
            report: self.report,
            watchers: self.watchers,
            store: Box::new(store),
            in_memory: false,
            endpoints: self.endpoints,
            only: self.only,
            group: self.group,
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

    /// Builds one node only; the others live elsewhere, and what [`Builder::transport`] was given reaches them. It then gives one
    /// endpoint: that of this node.
    ///
    /// Nobody compares the nodes' settings: layout, initial values, channels and system must be the same on all, and it is for
    /// the transport to refuse a node that does not belong here. A [`Builder::group`] does that, and takes the place of this.
    #[must_use]
    pub fn only(mut self, node: NodeId) -> Self {
        self.only = Some(node);
        self
    }

    /// Makes this process one node of a cluster of processes: those of the group, each of which builds its own with the same
    /// settings. The number of nodes is the group's, and links between processes take the place of [`Builder::transport`].
    ///
    /// Building is collective then: it returns when every process has built its node and has links to all others. Where
    /// channels are not set, all use as many as suit the largest machine.
    ///
    /// ```no_run
    /// # use {adapm_core::{Layout, NodeId}, adapm_runtime::Builder, adapm_transport::group::{Group, GroupConfig, Rendezvous}};
    /// let config = GroupConfig::new(NodeId(0), 2, Rendezvous::Address("10.0.0.1:4157".to_owned()));
    /// let group = std::sync::Arc::new(Group::join(config, &mut |roster| eprintln!("{:?}", roster.missing()))?);
    /// let cluster = Builder::<f32>::new(Layout::dense(&[(1_000, 8)])?).group(&group).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn group(mut self, group: &Arc<Group>) -> Self {
        self.nodes = group.nodes();
        self.group = Some(Arc::clone(group));
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
    /// Numbers that cannot work, a bad range to sample from, a layout or number of nodes for which there is no memory, a sparse
    /// layout under [`System::Full`], a transport with too few endpoints, a thread that the operating system refuses, or a
    /// function of initial values or policy that panics in one. In a group also another number of nodes, the reason of another
    /// process, or its settings if they differ.
    pub fn build(self) -> Result<Cluster<S>, BuildError> {
        self.build_telling(&mut |_| {})
    }

    /// As [`Builder::build`], and tells a few times a second how far it is with the main copies: large ones take a while.
    ///
    /// They are made by as many threads as all nodes have workers, or as the operating system grants.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn build_telling(self, tell: &mut dyn FnMut(Populating)) -> Result<Cluster<S>, BuildError> {
        let Some(group) = self.group.clone() else {
            self.check()?;
            let channels = self.channels.unwrap_or_else(|| default_channels(self.nodes));
            let endpoints = self.endpoints_by_node(channels)?;
            return self.start(endpoints, None, tell);
        };
        let terms = self.check().map(|()| self.terms());
        let fitting = || Channels::Fitting(default_channels(group.roster().on_this_host()));
        let channels = processes::agree(&group, terms, self.channels.map_or_else(fitting, Channels::Told))?;
        let (endpoints, deadline) = processes::open(&group, channels, self.layout.digest::<V>())?;
        self.start(vec![(group.node(), endpoints)], Some((&group, deadline)), tell)
    }

    fn policy_of(&self, node: NodeId, channel: ChannelId) -> SystemPolicy {
        match &self.decisions {
            Decisions::System(system) => system.policy(self.workers),
            Decisions::Custom(policy) => policy(node, channel),
        }
    }

    /// Whether workers' signals reach the engines: where nothing ever acts on them, they would only pile up, and on a single node
    /// wake an engine that forgets them.
    fn heeds_intents(&self) -> bool {
        let acts = match self.decisions {
            Decisions::System(system) => !matches!(system, System::Classic | System::Lapse | System::Full),
            Decisions::Custom(_) => true,
        };
        acts && self.nodes > 1
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

fn default_channels(nodes: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if cores <= 4 * nodes { 1 } else { 4 }
}
