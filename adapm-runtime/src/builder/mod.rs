//! From a layout to a running cluster.

mod decisions;
mod introduced;
mod nodes;
mod settings;
mod start;
mod watchers;
mod workers;

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use adapm_core::config::NodeConfig;
use adapm_core::error::ConfigError;
use adapm_core::layout::{Kind, Layout};
use adapm_core::observe::Observe;
use adapm_core::policy::{Place, Policy, Supply, System};
use adapm_core::store::Store;
use adapm_core::{ChannelId, Key, NodeId, Value};

use crate::cluster::Cluster;
use crate::error::BuildError;
use crate::hot_keys::{HotKeys, HotSets};
use crate::notice::Notice;
use crate::populate::Populating;
use crate::sampling::Sampling;
use crate::store::LayoutStore;
use crate::trace::Tracer;
use nodes::NodeEnds;
use settings::Settings;
use start::{Need, Starting};
use watchers::Watchers;

pub use nodes::Nodes;
pub use workers::{InvalidWorkers, Workers};

/// Settings of a cluster; [`Builder::build`] starts it.
///
/// ```
/// use adapm_runtime::prelude::*;
///
/// let cluster = Builder::<f32>::new(Layout::dense(&[(1_000, 8)])?)
///     .nodes(2)
///     .workers(2)
///     .system(System::Adapm)
///     .initial(|key, value| value.fill(key.0 as f32))
///     .build()?;
/// let sums = cluster.try_run(|mut worker| {
///     let mut value = [0.0; 8];
///     worker.push(&[Key(7)], &[1.0; 8])?;
///     worker.quiesce()?;
///     worker.pull(&[Key(7)], &mut value)?;
///     Ok::<f32, OpError>(value[0])
/// })?;
/// assert_eq!(sums, [11.0; 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Builder<V: Value, S = LayoutStore<V>> {
    settings: Settings<V>,
    store: MakeStore<S>,
    /// True if the stores keep everything in memory, as far as this crate knows.
    in_memory: bool,
}

type MakeStore<S> = Box<dyn Fn(&Layout, NodeId) -> S>;

impl<V: Value> Builder<V> {
    /// Creates settings of one node with one worker for the keys of `layout`, under
    /// [`System::Adapm`], with values of zero.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        let settings = Settings::of(layout);
        Self { settings, store: Box::new(|layout, _| LayoutStore::new(layout)), in_memory: true }
    }
}

impl<V: Value, S> Builder<V, S> {
    /// Sets the nodes: a number of them in this process, the processes of a group, or any other
    /// [`Nodes`]. Defaults to 1.
    ///
    /// With a group, building is collective: it returns when every process has built its node and
    /// has links to all others. All must have the same settings, else building fails and names the
    /// process that differs; where channels are not set, all use as many as suit the largest
    /// machine.
    ///
    /// ```no_run
    /// # use {adapm_runtime::prelude::*, std::sync::Arc};
    /// // Started by srun, mpirun, torchrun, as an indexed job, or by hand with ADAPM_NODE, ...
    /// let group = launcher::join(&mut |membership| eprintln!("missing: {:?}", membership.missing()))?.map(Arc::new);
    /// let mut builder = Builder::<f32>::new(Layout::dense(&[(1_000, 8)])?);
    /// if let Some(group) = &group {
    ///     builder = builder.nodes(group);
    /// }
    /// let cluster = builder.build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A process that finds its place by other means calls
    /// [`Group::join`](adapm_transport::group::Group::join) instead.
    #[must_use]
    pub fn nodes(mut self, nodes: impl Into<Nodes>) -> Self {
        self.settings.nodes = nodes.into();
        self
    }

    /// Sets the number of workers of each node: one number for all, or a list with one for each.
    /// Defaults to 1.
    #[must_use]
    pub fn workers(mut self, workers: impl Into<Workers>) -> Self {
        self.settings.workers = workers.into();
        self
    }

    /// Sets the most rounds that a channel begins in a second, but for those that a `wait_sync` or
    /// `quiesce` waits for (AdaPM §B.2.2). Fewer rounds cost less and make replicas older; signals
    /// of intent are acted on the earlier. Defaults to 2,000.
    #[must_use]
    pub fn rounds_per_second(mut self, most: NonZeroU32) -> Self {
        self.settings.rounds_per_second = Some(most);
        self
    }

    /// Bounds how far workers are apart, under any system without a bound of its own: none is more
    /// than `ticks` clocks ahead of the slowest that has not ended, and at clock c each sees all
    /// updates made before clock c - `ticks`, counted from the last barrier or quiesce. A worker
    /// waits in [`crate::Worker::advance_clock`]. Defaults to no bound.
    ///
    /// ```
    /// # use adapm_runtime::prelude::*;
    /// # use adapm_runtime::adapm_core::Layout;
    /// let builder = Builder::<f32>::new(Layout::dense(&[(10, 1)])?).nodes(2).bound(0);
    /// let cluster = builder.build()?;
    /// // In lockstep: behind the clock each sees what all have done before it.
    /// let sums = cluster.try_run(|mut worker| {
    ///     worker.push(&[Key(3)], &[1.0])?;
    ///     worker.advance_clock();
    ///     let mut sum = [0.0];
    ///     worker.pull(&[Key(3)], &mut sum)?;
    ///     Ok::<f32, OpError>(sum[0])
    /// })?;
    /// assert_eq!(sums, [2.0, 2.0]);
    /// cluster.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bound(mut self, ticks: u32) -> Self {
        self.settings.decisions.bound = Some(ticks);
        self
    }

    /// Sets the number of clocks that count as one under a bound: workers wait for others only once
    /// in so many. Defaults to 1.
    #[must_use]
    pub fn clocks_per_tick(mut self, clocks: NonZeroU32) -> Self {
        self.settings.clocks_per_tick = clocks;
        self
    }

    /// Sets the home of each key: the number of the node that has its main copy at first and always
    /// knows where it is, for the keys of the layout from 0 on. Such a table puts keys where they
    /// are used, as a partition of the training data knows (HET-GMP §5.2); it costs 2 bytes a key
    /// in each process. Defaults to a hash of the key ([`Layout::home`]).
    ///
    /// ```
    /// use adapm_runtime::prelude::*;
    ///
    /// let builder = Builder::<f32>::new(Layout::dense(&[(4, 1)])?).nodes(2).system(System::Classic);
    /// let cluster = builder.homes([1, 1, 0, 0]).build()?;
    /// cluster.try_run(|mut worker| {
    ///     let key = Key(if worker.node() == NodeId(1) { 0 } else { 2 });
    ///     assert!(worker.pull_if_local(key, &mut [0.0])?);
    ///     Ok::<(), OpError>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn homes(mut self, homes: impl Into<Arc<[u16]>>) -> Self {
        self.settings.homes = Some(homes.into());
        self
    }

    /// Sets the number of channels, each with a thread on every node. Defaults to 1 up to 4 cores a
    /// node, else 4.
    #[must_use]
    pub fn channels(mut self, channels: usize) -> Self {
        self.settings.channels = Some(channels);
        self
    }

    /// Sets whether nodes keep the locations they learn from answers and grants (AdaPM §B.2.3,
    /// Lapse §3.3). Defaults to true.
    #[must_use]
    pub fn location_caches(mut self, location_caches: bool) -> Self {
        self.settings.location_caches = location_caches;
        self
    }

    /// Sets the system to run. Defaults to [`System::Adapm`].
    #[must_use]
    pub fn system(mut self, system: System) -> Self {
        self.settings.decisions.use_system(system);
        self
    }

    /// Uses policies of your own instead of a system: `policy` creates one for each engine.
    #[must_use]
    pub fn policy<P>(mut self, policy: impl Fn(&Place) -> P + 'static) -> Self
    where
        P: Policy + Send + 'static,
    {
        self.settings.decisions.use_custom(policy);
        self
    }

    /// Sets the keys of which every node gets a copy before the workers begin, and keeps it to the
    /// end, under [`System::Nups`], [`System::Parallax`], or a policy of your own with such a
    /// [`Supply`] (NuPS §3, AdaPM §A.5). The same on all nodes: choose them from the accesses of
    /// all nodes. In memory a key costs each node its value and an update. Accesses to all other
    /// keys are remote, unless they are localized or have their home here; `localize` leaves hot
    /// keys out. Other systems take none. Defaults to none.
    ///
    /// ```
    /// use adapm_runtime::prelude::*;
    ///
    /// let cluster = Builder::<f32>::new(Layout::dense(&[(1_000, 8)])?)
    ///     .nodes(2)
    ///     .system(System::Nups)
    ///     .hot_keys((0..10).map(Key))
    ///     .build()?;
    /// let remote = cluster.try_run(|mut worker| {
    ///     worker.pull(&[Key(3), Key(7)], &mut [0.0; 16])?;
    ///     Ok::<_, OpError>(())
    /// });
    /// remote?;
    /// assert_eq!(cluster.stats().local, 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn hot_keys(mut self, keys: impl IntoIterator<Item = Key>) -> Self {
        self.settings.hot_keys = HotSets::Shared(HotKeys::new(keys));
        self
    }

    /// Sets for each node the keys of which it gets a copy before the workers begin, and keeps it
    /// to the end, under [`System::HetGmp`] or a policy of your own with the [`Supply`] of one:
    /// those of other homes that the node accesses most (HET-GMP §5.2). One list for each node, or
    /// `build` fails; all of them in each process. An own key in a list does nothing. Takes the
    /// place of [`Builder::hot_keys`], and costs what that does.
    ///
    /// ```
    /// use adapm_runtime::prelude::*;
    ///
    /// let cluster = Builder::<f32>::new(Layout::dense(&[(4, 1)])?)
    ///     .nodes(2)
    ///     .homes([0, 0, 1, 1])
    ///     .system(System::HetGmp { staleness: 0 })
    ///     .hot_keys_by_node([vec![Key(2)], vec![]])
    ///     .build()?;
    /// cluster.try_run(|mut worker| {
    ///     assert_eq!(worker.pull_if_local(Key(2), &mut [0.0])?, true);
    ///     assert_eq!(worker.pull_if_local(Key(0), &mut [0.0])?, worker.node() == NodeId(0));
    ///     Ok::<(), OpError>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn hot_keys_by_node(mut self, lists: impl IntoIterator<Item = Vec<Key>>) -> Self {
        self.settings.hot_keys = HotSets::Own(lists.into_iter().map(HotKeys::new).collect());
        self
    }

    /// Sets the keys that every worker reads and changes in each step, as those of dense layers:
    /// under [`System::HetGmp`] every node has a copy of each, which lacks no change when a worker
    /// begins a clock (HET-GMP §5.3). Keys of the layout, or `build` fails. Defaults to none.
    #[must_use]
    pub fn dense_keys(mut self, keys: Range<Key>) -> Self {
        self.settings.decisions.dense = keys;
        self
    }

    /// Sets the function that writes the initial value of a key over zeros. It must be a pure
    /// function of the key, on any node. Defaults to zeros.
    #[must_use]
    pub fn initial(mut self, initial: impl Fn(Key, &mut [V]) + Send + Sync + 'static) -> Self {
        self.settings.initial = Arc::new(initial);
        self
    }

    /// Has `write` write initial values, and what was set before those of keys for which it returns
    /// false.
    #[cfg(feature = "checkpoint")]
    pub(crate) fn initial_before(
        mut self,
        write: impl Fn(Key, &mut [V]) -> bool + Send + Sync + 'static,
    ) -> Self {
        let before = self.settings.initial;
        self.settings.initial = Arc::new(move |key, value| {
            if !write(key, value) {
                before(key, value);
            }
        });
        self
    }

    /// Sets the distribution of [`crate::Worker::prepare_sample`]. Defaults to none.
    #[must_use]
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.settings.sampling = Some(sampling);
        self
    }

    /// Sets the callback for notices. Defaults to one line on standard error.
    #[must_use]
    pub fn report(mut self, report: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        self.settings.report = Arc::new(report);
        self
    }

    /// Sets an observer of your own, one for each engine, which is called on the engine's thread
    /// and must not block it. Replaces an earlier observer and [`Builder::trace`]. The policy's own
    /// observer ([`Policy::observer`]) is called first.
    #[must_use]
    pub fn observe<O>(mut self, observer: impl Fn(NodeId, ChannelId) -> O + 'static) -> Self
    where
        O: Observe + Send + 'static,
    {
        self.settings.watchers = Watchers::observers(observer);
        self
    }

    /// Writes events of the keys of `tracer`; end the file with [`Tracer::finish`] when the cluster
    /// has run. Replaces [`Builder::observe`].
    #[must_use]
    pub fn trace(mut self, tracer: &Tracer) -> Self {
        self.settings.watchers = Watchers::tracing(tracer);
        self
    }

    /// Keeps values in stores of your own, one for each node. Defaults to [`LayoutStore`].
    #[must_use]
    pub fn store<T>(self, store: impl Fn(&Layout, NodeId) -> T + 'static) -> Builder<V, T>
    where
        T: Store<Value = V>,
    {
        Builder { settings: self.settings, store: Box::new(store), in_memory: false }
    }
}

impl<V, S> Builder<V, S>
where
    V: Value,
    S: Store<Value = V> + Send + Sync + 'static,
{
    /// Starts the cluster. Returns when all main copies exist.
    ///
    /// # Errors
    /// Invalid numbers, a bad range to sample from, a layout or number of nodes for which there is
    /// no memory, hot keys that there are not or that the system has no use for, a sparse layout
    /// under [`System::Full`], a transport with too few endpoints, a
    /// refused thread, or a panic in the function of initial values or in a policy's constructor.
    /// In a group also another process's failure, or its settings if they differ.
    pub fn build(self) -> Result<Cluster<V, S>, BuildError> {
        self.build_telling(&mut |_| {})
    }

    /// Like [`Builder::build`], and reports the progress of main copies, which can take a while, a
    /// few times a second.
    ///
    /// They are created by as many threads as all nodes have workers, or as the operating system
    /// grants.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn build_telling(
        mut self,
        tell: &mut dyn FnMut(Populating),
    ) -> Result<Cluster<V, S>, BuildError> {
        let terms = self.check().map(|()| self.settings.terms());
        let settings = &mut self.settings;
        let (told, fitting) = (settings.channels, settings.fitting_channels());
        let endpoints = if let Some(group) = settings.nodes.group_mut() {
            let channels = group.agree(terms, told, fitting)?;
            vec![(group.node(), group.open(channels, settings.layout.digest::<V>())?)]
        } else {
            terms?;
            let digest = settings.layout.digest::<V>() ^ settings.homes()?.digest();
            settings.nodes.endpoints(told.unwrap_or(fitting), digest)?
        };
        self.start(endpoints, tell)
    }

    /// Checks the settings that need no other process.
    fn check(&self) -> Result<(), BuildError> {
        let Settings { layout, nodes, workers, .. } = &self.settings;
        let channels = self.settings.channels.unwrap_or(1);
        let listed = workers.listed();
        if let Some(given) = listed.filter(|given| *given != nodes.count()) {
            return Err(BuildError::WorkerList { given, nodes: nodes.count() });
        }
        self.settings.homes()?.check(layout, nodes.count())?;
        let numbers = match listed {
            Some(1..) => workers.of_each(nodes.count()),
            _ => vec![workers.of(NodeId(0))],
        };
        for workers in numbers {
            // Any channel will do: the numbers are the same for all.
            NodeConfig::new(nodes.own().unwrap_or_default(), nodes.count(), workers)
                .on_channel(ChannelId(0), channels)
                .check(layout)?;
        }
        if channels > usize::from(u16::MAX) {
            return Err(ConfigError::Channels { channels }.into());
        }
        self.settings.sampling.as_ref().map_or(Ok(()), |sampling| sampling.check(layout))?;
        let supply = self.settings.supply();
        let Settings { hot_keys, decisions, .. } = &self.settings;
        hot_keys.check(layout.keys().end, nodes.count(), supply, || decisions.name())?;
        decisions.check(layout.keys().end)?;
        let here = nodes.own().map_or(workers.all(nodes.count()), |own| workers.of(own));
        let need = Need::new(nodes.here(), nodes.count(), channels, here);
        let need = if self.in_memory {
            let hot = self.settings.hot_sets();
            need.with_stores::<V>(layout, nodes.here(), nodes.count()).with_hot_keys::<V>(
                layout,
                &self.settings.homes()?,
                nodes.ids_here().map(|node| (node, hot.of(node))),
            )
        } else {
            need
        };
        need.check()?;
        if supply == Supply::Everything && layout.kind() == Kind::Sparse {
            return Err(BuildError::SparseFull);
        }
        if let Some(system) = decisions.system()
            && decisions.bound.is_some()
            && system.policy(1).bound().is_some()
        {
            return Err(BuildError::TwoBounds { system: system.to_string() });
        }
        Ok(())
    }

    /// Starts the nodes of this process.
    fn start(
        self,
        endpoints: Vec<NodeEnds>,
        tell: &mut dyn FnMut(Populating),
    ) -> Result<Cluster<V, S>, BuildError> {
        let Self { settings, store, .. } = self;
        let plan = settings.plan();
        let (nodes, workers) = (plan.nodes, plan.workers.clone());
        settings.watchers.begin(&settings.trace_head());
        let mut starting = Starting::new(plan, &endpoints, settings.nodes.into_group());
        let made = endpoints.iter().map(|(node, _)| (*node, store(&settings.layout, *node)));
        let stores: Vec<(NodeId, S)> = made.collect();
        let taste = |node, channel: ChannelId| {
            // A place does not determine the number of channels.
            let config = NodeConfig::new(node, nodes, workers.of(node)).on_channel(channel, 1);
            let policy = settings.decisions.policy(&Place::from(&config));
            (policy, settings.watchers.observer_of(node, channel))
        };
        let populated = starting.populate(&stores, tell);
        let started = populated.and_then(|()| starting.start(endpoints, stores, taste));
        starting.finish(started)
    }
}

impl<V: Value, S> fmt::Debug for Builder<V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { layout, nodes, workers, channels, .. } = &self.settings;
        f.debug_struct("Builder")
            .field("layout", layout)
            .field("nodes", nodes)
            .field("workers", workers)
            .field("channels", channels)
            .finish_non_exhaustive()
    }
}
