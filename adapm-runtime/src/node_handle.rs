//! One node: its store, its channel threads, its workers' shared state. Several nodes in one
//! process share nothing.
//!
//! Not here: how the nodes of a cluster find each other ([`crate::Builder`]) and run together
//! ([`crate::Cluster`]).

use std::hash::{BuildHasher, Hasher, RandomState};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use adapm_core::config::NodeConfig;
use adapm_core::engine::{Engine, Initial, OpBody, SignalId};
use adapm_core::home::HomeMap;
use adapm_core::layout::Layout;
use adapm_core::observe::Observe;
use adapm_core::policy::{Supply, SystemPolicy};
use adapm_core::store::Store;
use adapm_core::{ChannelId, Clock, Key, NodeId, WorkerId};
use adapm_transport::threads;

use crate::builder::Workers;
use crate::channel::{Beginning, Channel, Report};
use crate::error::{BuildError, RunError, message_of};
use crate::failure::Failure;
use crate::hot_keys::HotSets;
use crate::link::{Endpoint, Link};
use crate::node::{Clocks, NodeShared, Port, WorkerShared};
use crate::promise::{Promise, Waiter};
use crate::sampling::Sampling;

/// A node with running channel threads.
pub(crate) struct NodeHandle<S: Store> {
    pub(crate) shared: Arc<NodeShared<S>>,
    threads: Vec<JoinHandle<()>>,
}

/// An engine's policy, and its observer.
pub(crate) type Taste = (SystemPolicy, Option<Box<dyn Observe + Send>>);

/// Settings common to the nodes of a cluster.
pub(crate) struct Plan<V> {
    pub(crate) layout: Layout,
    pub(crate) nodes: usize,
    pub(crate) homes: HomeMap,
    pub(crate) workers: Workers,
    pub(crate) rounds_per_second: Option<NonZeroU32>,
    pub(crate) location_caches: bool,
    pub(crate) initial: Initial<V>,
    pub(crate) sampling: Option<Arc<Sampling>>,
    pub(crate) supply: Supply,
    /// The clocks after which workers wait for others, under a bound.
    pub(crate) clocks_per_tick: Option<NonZeroU32>,
    pub(crate) hot_keys: HotSets,
    /// Longest time for which a peer may owe an answer; `None`: forever.
    pub(crate) unresponsive_after: Option<Duration>,
    pub(crate) failure: Arc<Failure>,
    pub(crate) report: Report,
    pub(crate) origin: std::time::Instant,
}

impl<V> Plan<V> {
    /// Returns the configuration of an engine of `node`.
    fn config(&self, node: NodeId) -> NodeConfig {
        let mut config = NodeConfig::new(node, self.nodes, self.workers.of(node));
        if let Some(most) = self.rounds_per_second {
            config.round_nanos_min = 1_000_000_000 / u64::from(most.get());
            config.round_nanos_max = config.round_nanos_max.max(config.round_nanos_min);
        }
        (config.homes, config.location_caches) = (self.homes.clone(), self.location_caches);
        config.secret = [unguessable(), unguessable()];
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        config.unresponsive_nanos = self.unresponsive_after.map(nanos);
        config
    }
}

impl<S: Store + Send + Sync + 'static> NodeHandle<S> {
    /// Starts the channel threads of `node`, one per endpoint, over a store that has the main
    /// copies. Each keeps one part of the promise that all peers can be reached; parts count from
    /// `first_part`.
    pub(crate) fn start(
        plan: &Plan<S::Value>,
        node: NodeId,
        store: S,
        endpoints: Vec<Box<dyn Endpoint>>,
        mut taste: impl FnMut(ChannelId) -> Taste,
        connected: &Arc<Promise<S::Value>>,
        first_part: usize,
    ) -> Result<Self, BuildError> {
        let (channels, workers) = (endpoints.len(), plan.workers.of(node));
        let shared = Arc::new(NodeShared {
            node,
            nodes: plan.nodes,
            homes: plan.homes.clone(),
            layout: plan.layout.clone(),
            store: Arc::new(store),
            ports: endpoints
                .iter()
                .map(|end| Arc::new(Port::new(workers, end.wake_fn())))
                .collect(),
            clocks: Arc::new(Clocks::new(workers)),
            workers: (0..workers).map(|_| WorkerShared::default()).collect(),
            first_worker: plan.workers.all(node.index()),
            all_workers: plan.workers.all(plan.nodes),
            sampling: plan.sampling.clone(),
            supply: plan.supply,
            clocks_per_tick: plan.clocks_per_tick,
            hot_keys: plan.hot_keys.of(node),
        });
        let mut handle = Self { shared: Arc::clone(&shared), threads: Vec::new() };
        for (index, endpoint) in endpoints.into_iter().enumerate() {
            let id = ChannelId(
                u16::try_from(index).expect("the builder checked the number of channels"),
            );
            let config = plan.config(node).on_channel(id, channels);
            let store = Arc::clone(&shared.store);
            let (policy, observer) = taste(id);
            let mut engine =
                Engine::new(config, plan.layout.clone(), store, policy, Arc::clone(&plan.initial))
                    .expect("the builder checked the configuration");
            observer.into_iter().for_each(|observer| engine.set_observer(observer));
            let channel = Channel::new(Beginning {
                id,
                shared: Arc::clone(&shared),
                engine,
                link: Link::new(endpoint, plan.nodes),
                failure: Arc::clone(&plan.failure),
                report: Arc::clone(&plan.report),
                origin: plan.origin,
            });
            let part = first_part + index;
            let connected = Waiter::new(Arc::clone(connected), part);
            match threads::spawn(format!("adapm {node} {id}"), move || channel.run(connected)) {
                Ok(thread) => handle.threads.push(thread),
                Err(refusal) => {
                    // Ends the running threads; dropping their handles waits for them.
                    plan.failure.raise(RunError::Thread(refusal.clone()));
                    return Err(BuildError::Thread(refusal));
                }
            }
        }
        Ok(handle)
    }

    /// Signals an intent of the whole node, for the whole run, for the keys that its system
    /// replicates.
    pub(crate) fn replicate(&self) {
        let mut keys = self.replicated();
        loop {
            let block: Vec<Key> = keys.by_ref().take(KEYS_AT_ONCE).collect();
            if block.is_empty() {
                break;
            }
            // The mailbox is open: the failure of a cluster surfaces in the wait for replicas.
            let run = Clock(0)..Clock::INFINITY;
            let _ = self.shared.signal(WorkerId(0), SignalId::default(), &block, run);
        }
    }

    /// Returns the keys of which this node holds a copy for the whole run.
    fn replicated(&self) -> Box<dyn Iterator<Item = Key> + '_> {
        let keys = self.shared.layout.keys();
        match self.shared.supply {
            Supply::Everything => Box::new((keys.start.0..keys.end.0).map(Key)),
            _ => Box::new(self.shared.hot_keys.as_slice().iter().copied()),
        }
    }

    /// Blocks until every replicated key whose home is elsewhere has a replica here.
    pub(crate) fn wait_for_replicas(&self) {
        let mut foreign = vec![0_u64; self.shared.ports.len()];
        for key in self.replicated() {
            if self.shared.homes.home(key) != self.shared.node {
                foreign[self.shared.channel(key).index()] += 1;
            }
        }
        for (port, replicas) in self.shared.ports.iter().zip(foreign) {
            port.published.wait_for_replicas(replicas);
        }
    }

    /// Ends all workers, and asks all channel threads to leave once everything sent is applied
    /// everywhere.
    pub(crate) fn leave(&self) -> Arc<Promise<S::Value>> {
        for index in 0..self.shared.workers.len() {
            self.shared.end(WorkerId(u16::try_from(index).expect("worker ids are 16 bits wide")));
        }
        let promise = Arc::new(Promise::new(self.shared.ports.len(), None));
        for (part, port) in self.shared.ports.iter().enumerate() {
            port.post_op(&promise, part, WorkerId(0), OpBody::Leave);
        }
        promise
    }
}

impl<S: Store> NodeHandle<S> {
    /// Waits for the channel threads, which must have been told to end. Returns the message of the
    /// first that panicked.
    pub(crate) fn join(&mut self) -> Option<String> {
        let mut message = None;
        for thread in self.threads.drain(..) {
            message = thread.join().err().map(|payload| message_of(payload.as_ref())).or(message);
        }
        message
    }
}

impl<S: Store> Drop for NodeHandle<S> {
    fn drop(&mut self) {
        // A panic of a channel thread was reported as the cluster's failure.
        let _ = self.join();
    }
}

/// Returns an unguessable number: the system's keys for the standard library's hash functions.
fn unguessable() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Keys of one signal of a node for the whole run.
const KEYS_AT_ONCE: usize = 1 << 14;
