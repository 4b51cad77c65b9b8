//! One node of a lockstep cluster with its workers, and its state as seen by checkers.

use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use adapm_core::clock::Clock;
use adapm_core::config::NodeConfig;
use adapm_core::driver::Host;
use adapm_core::driver::order::InFlight;
use adapm_core::engine::{Event, Input, KeyView, OpId};
use adapm_core::error::InputError;
use adapm_core::id::{Counter, Key, NodeId, WorkerId};
use adapm_core::observe::Observe;
use adapm_core::slot::{Pushed, State};
use adapm_core::store::Store;
use adapm_core::time::Instant;
use adapm_core::wire::Message;

use crate::cut::Stage;
use crate::planted::{self, Fault};
use crate::{Recorder, digits, setup::Setup};

pub use crate::planted::{Driver, Engine};

/// One node of a cluster.
pub struct Member {
    /// The engine with its driver.
    pub node: Driver,
    /// Its workers.
    pub workers: Vec<Worker>,
    /// Its state of every key, as of its last step.
    pub rows: Vec<Row>,
    /// The mistake planted around the engine.
    fault: Option<Fault>,
    told: Arc<Mutex<Vec<Told>>>,
    /// True if worker 0 stands for the node, and lasts as long as any of its workers.
    signals_for_node: bool,
    /// True if a worker has changed a value since the rows were written.
    is_outdated: bool,
}

/// A worker thread as in the runtime: a clock, a dirty queue, and the keys on which it must not use
/// the fast path.
#[derive(Clone, Debug, Default)]
pub struct Worker {
    /// Its clock.
    pub clock: Clock,
    /// Barriers and quiesces that it has called, and ticks since.
    pub progress: (u64, u64),
    /// Keys that it made dirty, in order, not yet fed to the engine.
    pub dirty: Vec<Key>,
    /// Its waiting or unanswered operations: it uses the slow path for their keys.
    pub order: InFlight<OpId>,
    /// The operation for which it waits, and does nothing else.
    pub blocked: Option<OpId>,
    /// What it does next in the snapshot in which it takes part.
    pub(crate) snapshot: Option<Stage>,
    /// True if it has ended.
    pub ended: bool,
}

/// A node's state of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The engine's view.
    pub view: KeyView,
    /// The local value, empty if there is none.
    pub value: Vec<i64>,
    /// The updates not yet sent, empty unless it is a replica.
    pub delta: Vec<i64>,
}

/// An event reported to an engine's observer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// The main copy of the key left for a node, which owns it under the counter.
    Relocation(Key, NodeId, Counter),
    /// That node was granted a replica.
    ReplicaSetUp(Key, NodeId),
    /// That node released its replica.
    ReplicaDropped(Key, NodeId),
    /// An entry of that node was served after so many forwards.
    Served(Key, NodeId, u32),
    /// Intent of this node became active or expired.
    Intent(Key, bool),
}

/// Workers of a node, and the outputs of its engine.
struct Around<'a> {
    workers: &'a mut [Worker],
    said: Recorder<i64>,
}

impl Host<i64> for Around<'_> {
    /// Appends worker by worker.
    fn take_dirty(&mut self, keys: &mut Vec<Key>) {
        self.workers.iter_mut().for_each(|worker| keys.append(&mut worker.dirty));
    }

    fn transmit(&mut self, to: NodeId, message: Message) {
        self.said.transmit(to, message);
    }

    fn tell(&mut self, event: Event<i64>) {
        self.said.tell(event);
    }
}

struct Listener(Arc<Mutex<Vec<Told>>>);

impl Listener {
    fn note(&self, told: Told) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(told);
    }
}

impl Observe for Listener {
    fn on_relocation(&mut self, _now: Instant, key: Key, to: NodeId, counter: Counter) {
        self.note(Told::Relocation(key, to, counter));
    }

    fn on_replica_set_up(&mut self, _now: Instant, key: Key, holder: NodeId) {
        self.note(Told::ReplicaSetUp(key, holder));
    }

    fn on_replica_dropped(&mut self, _now: Instant, key: Key, holder: NodeId) {
        self.note(Told::ReplicaDropped(key, holder));
    }

    fn on_served(&mut self, _now: Instant, key: Key, origin: NodeId, hops: u32) {
        self.note(Told::Served(key, origin, hops));
    }

    fn on_intent(&mut self, _now: Instant, key: Key, active: bool) {
        self.note(Told::Intent(key, active));
    }
}

impl Member {
    /// Creates node `node` of the cluster, with its main copies in place.
    pub fn new(setup: &Setup, node: NodeId) -> Self {
        let (channel, channels) = setup.channel;
        let mut config =
            NodeConfig::new(node, setup.nodes, setup.workers).on_channel(channel, channels);
        config.homes = setup.homes();
        config.location_caches = setup.location_caches;
        config.block_bytes_max = setup.block_bytes_max;
        config.grants_max = setup.grants_max;
        config.requests_max = setup.requests_max;
        config.parked_max = setup.parked_max;
        config.unresponsive_nanos = setup.unresponsive_nanos;
        let policy = (setup.policy)(node);
        let initial = Arc::new(|key, value: &mut [i64]| digits::initial(key, value));
        let (mut engine, fault) =
            planted::engine(config, &setup.layout, policy, initial, setup.bug);
        let told = Arc::new(Mutex::new(Vec::new()));
        engine.set_observer(Box::new(Listener(told.clone())));
        let keys = setup.layout.keys().end.0;
        let rows = (0..keys).map(|key| Row::of(&engine, Key(key))).collect();
        Self {
            node: Driver::new(engine),
            workers: vec![Worker::default(); setup.workers],
            rows,
            fault,
            told,
            signals_for_node: setup.hot.is_some(),
            is_outdated: false,
        }
    }

    /// Updates the row of every key.
    pub fn refresh(&mut self) {
        self.is_outdated = false;
        for (key, row) in self.rows.iter_mut().enumerate() {
            row.refresh(self.node.engine(), Key(key as u64));
        }
    }

    /// Updates the row of every key if a worker has changed a value since the last update.
    pub(crate) fn refresh_if_outdated(&mut self) {
        if self.is_outdated {
            self.refresh();
        }
    }

    /// Makes the node vanish: it has nothing of any key, and its workers do nothing.
    pub fn vanish(&mut self) {
        for row in &mut self.rows {
            let view = KeyView::default();
            *row = Row { view, value: Vec::new(), delta: Vec::new() };
        }
        for worker in &mut self.workers {
            worker.dirty.clear();
            worker.ended = true;
        }
        self.take_told();
    }

    /// Takes the events since the last call.
    pub fn take_told(&mut self) -> Vec<Told> {
        core::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the clocks of all workers. Where the node's intents were signalled as worker 0, its
    /// clock stays until all have ended.
    #[must_use]
    pub fn clocks(&self) -> Vec<Clock> {
        let mut clocks: Vec<Clock> = self
            .workers
            .iter()
            .map(|worker| if worker.ended { Clock::INFINITY } else { worker.clock })
            .collect();
        if self.signals_for_node && self.workers.iter().any(|worker| !worker.ended) {
            clocks[0] = Clock(0);
        }
        clocks
    }

    /// Feeds an input, after the dirty keys of the workers where required. Returns the engine's
    /// outputs.
    pub fn feed(
        &mut self,
        now: Instant,
        input: Input<'_, i64>,
    ) -> (Result<(), InputError>, Recorder<i64>) {
        let mut around = Around { workers: &mut self.workers, said: Recorder::default() };
        let verdict = match &mut self.fault {
            Some(fault) => fault.feed(&mut self.node, now, input, &mut around),
            None => self.node.feed(now, input, &mut around),
        };
        (verdict, around.said)
    }

    /// Feeds the dirty keys of the workers. Returns the engine's outputs.
    pub fn feed_dirty(&mut self) -> Recorder<i64> {
        let mut around = Around { workers: &mut self.workers, said: Recorder::default() };
        self.node.look_at_dirty_keys(&mut around);
        around.said
    }

    /// Returns true if neither the engine nor a worker has anything waiting.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.node.engine().is_at_rest() && self.workers.iter().all(|worker| worker.dirty.is_empty())
    }

    /// Reads by the fast path. Returns false if there is no local value or the worker would
    /// overtake itself.
    pub fn fast_pull(&mut self, worker: WorkerId, key: Key, out: &mut [i64]) -> bool {
        let must_queue = self.workers[worker.index()].order.blocks(key);
        !must_queue && self.node.engine().store().with_slot(key, |slot| slot.pull(out))
    }

    /// Writes by the fast path. Returns false if the engine must do it.
    pub fn fast_push(&mut self, worker: WorkerId, key: Key, update: &[i64]) -> bool {
        self.is_outdated = true;
        let worker = &mut self.workers[worker.index()];
        if worker.order.blocks(key) {
            return false;
        }
        match self.node.engine().store().push(key, update) {
            Pushed::Refused => false,
            Pushed::Done => true,
            Pushed::Dirtied => {
                worker.dirty.push(key);
                true
            }
        }
    }
}

impl Row {
    fn of(node: &Engine, key: Key) -> Self {
        let mut row = Self { view: node.inspect(key), value: Vec::new(), delta: Vec::new() };
        row.refresh(node, key);
        row
    }

    fn refresh(&mut self, node: &Engine, key: Key) {
        self.view = node.inspect(key);
        node.store().with_slot(key, |slot| {
            self.value.clear();
            self.value.extend_from_slice(slot.value);
            self.delta.clear();
            if slot.packed.state() == State::Replica {
                self.delta.extend_from_slice(slot.delta);
            }
        });
    }

    /// Returns the node's state of the key.
    #[must_use]
    pub fn state(&self) -> State {
        self.view.packed.state()
    }
}
