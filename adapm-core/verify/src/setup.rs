//! The configuration of a lockstep [`Cluster`](crate::cluster::Cluster): its size, policy, planted
//! bug, and the invariants to check.

use std::collections::BTreeSet;
use std::sync::Arc;

use adapm_core::clock::Tick;
use adapm_core::home::HomeMap;
use adapm_core::id::{ChannelId, Key, NodeId};
use adapm_core::layout::Layout;
use adapm_core::policy::{Bound, Policy, Supply, System, SystemPolicy};

use crate::check::Checks;
use crate::planted::{Bug, bug_from_environment};

/// A constructor of the policy of each node.
pub type MakePolicy = Arc<dyn Fn(NodeId) -> SystemPolicy + Send + Sync>;

/// The configuration of a lockstep cluster.
#[derive(Clone)]
pub struct Setup {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of workers of each node.
    pub workers: usize,
    /// Keys and value lengths.
    pub layout: Layout,
    /// The home of each key of the layout; `None`: by hash.
    pub table: Option<Arc<[u16]>>,
    /// The channel under test, whose keys alone are used, and the number of channels.
    pub channel: (ChannelId, usize),
    /// The policy of each node.
    pub policy: MakePolicy,
    /// True if invariant 5 must hold, as it does under the systems `adapm*`.
    pub adaptive: bool,
    /// True if invariant 9 must hold, as it does without replication, for all keys but hot ones.
    pub sequential: bool,
    /// The bound of the policy ([`Policy::bound`]): workers have ticks, and invariant 13 must hold.
    pub bound: Option<Bound>,
    /// True if pulls of absent keys set up replicas.
    pub keeps: bool,
    /// The changes that a replica may lack at rest; 0: invariant 4 must hold then.
    pub lag: u32,
    /// The hot keys of each node, under a system that has them: the node signals intent for its own
    /// and the whole run; its workers signal none, and localize none of these. They are the same
    /// for all nodes, but where each has its own ([`Supply::Partition`]). The first key of each
    /// home by default. `None`: workers signal.
    pub hot: Option<Vec<BTreeSet<Key>>>,
    /// See [`adapm_core::config::NodeConfig::location_caches`].
    pub location_caches: bool,
    /// See [`adapm_core::config::NodeConfig::block_bytes_max`].
    pub block_bytes_max: usize,
    /// See [`adapm_core::config::NodeConfig::grants_max`].
    pub grants_max: usize,
    /// See [`adapm_core::config::NodeConfig::requests_max`].
    pub requests_max: usize,
    /// See [`adapm_core::config::NodeConfig::parked_max`].
    pub parked_max: usize,
    /// See [`adapm_core::config::NodeConfig::unresponsive_nanos`].
    pub unresponsive_nanos: Option<u64>,
    /// True if messages are encoded and decoded on the way.
    pub codec: bool,
    /// Most nodes that vanish in a random schedule; less than the number of nodes.
    pub losses: usize,
    /// True if random schedules take back signalled intents.
    pub takes_back: bool,
    /// The mistake planted in every node: [`bug_from_environment`] by default.
    pub bug: Option<Bug>,
    /// Nanoseconds for which workers have changed copies before the first step.
    pub ran_nanos: u64,
    /// The invariants that are checked.
    pub checks: Checks,
}

impl Setup {
    /// Creates the setup of `nodes` nodes with `workers` workers each under `system`, with `keys`
    /// keys of 2 elements: a tag and digits ([`crate::digits`]).
    ///
    /// # Panics
    /// If there is no key.
    #[must_use]
    pub fn new(system: System, nodes: usize, workers: usize, keys: u64) -> Self {
        let first_of =
            |home: usize| (0..keys).map(Key).find(|key| Layout::home(*key, nodes).index() == home);
        let has_hot = system.has_hot_keys() || system.supply() == Supply::Partition;
        let hot = has_hot.then(|| vec![(0..nodes).filter_map(first_of).collect(); nodes]);
        Self {
            nodes,
            workers,
            layout: Layout::dense(&[(keys, 2)]).expect("a cluster has keys"),
            table: None,
            channel: (ChannelId(0), 1),
            policy: Arc::new(move |_| system.policy(workers)),
            adaptive: matches!(
                system,
                System::Adapm
                    | System::AdapmNoRelocation
                    | System::AdapmPoisson
                    | System::AdapmImmediate
            ),
            sequential: !system.replicates() || hot.is_some(),
            hot,
            bound: system.policy(workers).bound(),
            keeps: system.policy(workers).keep(Tick::default()).is_some(),
            lag: system.policy(workers).lag(Key(0)),
            location_caches: true,
            block_bytes_max: 4 << 20,
            grants_max: 512,
            requests_max: 1 << 16,
            parked_max: 1 << 16,
            unresponsive_nanos: None,
            codec: true,
            losses: 0,
            takes_back: false,
            bug: bug_from_environment(),
            ran_nanos: 0,
            checks: Checks::ALL,
        }
    }

    /// Returns the homes of all keys.
    ///
    /// # Panics
    /// If the table names a node that there is not.
    #[must_use]
    pub fn homes(&self) -> HomeMap {
        let table = |table| HomeMap::table(self.nodes, Arc::clone(table)).expect("all are nodes");
        self.table.as_ref().map_or_else(|| HomeMap::scale(self.nodes), table)
    }

    /// Returns the home of `key`, which is a key of the layout.
    #[must_use]
    pub fn home(&self, key: Key) -> NodeId {
        let entry = self.table.as_ref().map(|table| NodeId(table[key.0 as usize]));
        entry.unwrap_or_else(|| Layout::home(key, self.nodes))
    }

    /// Returns the hot keys of `node`, in order.
    pub fn hot_keys(&self, node: NodeId) -> impl Iterator<Item = Key> {
        self.hot.iter().flat_map(move |hot| &hot[node.index()]).copied()
    }

    /// Returns true if `key` is hot on `node`.
    #[must_use]
    pub fn is_hot_at(&self, node: NodeId, key: Key) -> bool {
        self.hot.as_ref().is_some_and(|hot| hot[node.index()].contains(&key))
    }

    /// Returns the nodes on which `key` is hot, in order.
    pub fn hot_nodes(&self, key: Key) -> impl Iterator<Item = NodeId> {
        let nodes = (0..).map(NodeId).zip(self.hot.iter().flatten());
        nodes.filter(move |(_, hot)| hot.contains(&key)).map(|(node, _)| node)
    }

    /// Returns true if `key` is hot on any node.
    #[must_use]
    pub fn is_hot(&self, key: Key) -> bool {
        self.hot_nodes(key).next().is_some()
    }

    /// Returns true if invariant 9 must hold for `key`.
    #[must_use]
    pub fn is_sequential(&self, key: Key) -> bool {
        self.sequential && !self.is_hot(key)
    }

    /// Returns the keys of the channel, in order.
    pub fn keys(&self) -> impl Iterator<Item = Key> + use<> {
        let (channel, channels) = self.channel;
        (0..self.layout.keys().end.0)
            .map(Key)
            .filter(move |key| Layout::channel(*key, channels) == channel)
    }

    /// Returns the first key of the channel whose home is `node`.
    ///
    /// # Panics
    /// If the layout has too few keys to have one.
    #[must_use]
    pub fn key_of(&self, node: NodeId) -> Key {
        self.keys().find(|key| self.home(*key) == node).expect("every node is home of a key")
    }

    /// Returns the number of elements of the value of `key`, which is a key of the layout.
    #[must_use]
    pub fn value_len(&self, key: Key) -> usize {
        self.layout.value_len(key).expect("the cluster knows its keys")
    }
}
