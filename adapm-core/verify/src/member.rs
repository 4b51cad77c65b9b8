//! One node of a lockstep cluster with its workers, and the picture that checkers have of it.

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

use crate::planted::{self, Fault};
use crate::{Recorder, digits, setup::Setup};

pub use crate::planted::{Driver, Engine};

/// One node of a cluster.
pub struct Member {
    /// The engine, and what drives it.
    pub node: Driver,
    /// Its workers.
    pub workers: Vec<Worker>,
    /// What it has of every key, as of its last step.
    pub rows: Vec<Row>,
    /// The mistake planted around the engine.
    fault: Option<Fault>,
    told: Arc<Mutex<Vec<Told>>>,
    /// Whether a worker has changed a value since the rows were written.
    is_outdated: bool,
}

/// A worker thread as the runtime has it: a clock, a dirty queue, and the keys on which it must not
/// use the fast path.
#[derive(Clone, Debug, Default)]
pub struct Worker {
    /// Its clock.
    pub clock: Clock,
    /// Keys that it made dirty, in order, not yet fed to the engine.
    pub dirty: Vec<Key>,
    /// Its operations that wait or are unanswered: with their keys it uses the slow path.
    pub order: InFlight<OpId>,
    /// The operation for which it waits; it does nothing else meanwhile.
    pub blocked: Option<OpId>,
    /// Whether it has ended.
    pub ended: bool,
}

/// What a node has of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What the engine says.
    pub view: KeyView,
    /// The local value, empty if there is none.
    pub value: Vec<i64>,
    /// The updates not yet sent, empty unless it is a replica.
    pub delta: Vec<i64>,
}

/// What an engine told its observer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// The main copy of the key left for a node, which owns it under the counter.
    Relocation(Key, NodeId, Counter),
    /// That node got a replica.
    ReplicaSetUp(Key, NodeId),
    /// That node gave its replica up.
    ReplicaDropped(Key, NodeId),
    /// An entry of that node was served after so many forwards.
    Served(Key, NodeId, u32),
    /// Intent of this node became active or expired.
    Intent(Key, bool),
}

/// Workers of a node, and what its engine says.
struct Around<'a> {
    workers: &'a mut [Worker],
    said: Recorder<i64>,
}

impl Host<i64> for Around<'_> {
    /// Worker by worker.
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
    /// Node `node` of the cluster, its main copies in place.
    pub fn new(setup: &Setup, node: NodeId) -> Self {
        let (channel, channels) = setup.channel;
        let mut config =
            NodeConfig::new(node, setup.nodes, setup.workers).on_channel(channel, channels);
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
            is_outdated: false,
        }
    }

    /// Looks at every key again.
    pub fn refresh(&mut self) {
        self.is_outdated = false;
        for (key, row) in self.rows.iter_mut().enumerate() {
            row.refresh(self.node.engine(), Key(key as u64));
        }
    }

    /// Looks at every key again if a worker has changed a value since the last look.
    pub(crate) fn refresh_if_outdated(&mut self) {
        if self.is_outdated {
            self.refresh();
        }
    }

    /// The node is gone: it has nothing of any key, and its workers do nothing.
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

    /// What the engine told since the last call.
    pub fn take_told(&mut self) -> Vec<Told> {
        core::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The clocks of all workers.
    #[must_use]
    pub fn clocks(&self) -> Vec<Clock> {
        self.workers
            .iter()
            .map(|worker| if worker.ended { Clock::INFINITY } else { worker.clock })
            .collect()
    }

    /// Feeds an input, and the dirty keys of the workers where that is due; what the engine says of
    /// it.
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

    /// Feeds the dirty keys of the workers; what the engine says of it.
    pub fn feed_dirty(&mut self) -> Recorder<i64> {
        let mut around = Around { workers: &mut self.workers, said: Recorder::default() };
        self.node.look_at_dirty_keys(&mut around);
        around.said
    }

    /// Whether neither the engine nor a worker has anything waiting.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.node.engine().is_at_rest() && self.workers.iter().all(|worker| worker.dirty.is_empty())
    }

    /// The fast path of a read: the local value, unless there is none or the worker must not
    /// overtake itself.
    pub fn fast_pull(&mut self, worker: WorkerId, key: Key, out: &mut [i64]) -> bool {
        let must_queue = self.workers[worker.index()].order.blocks(key);
        !must_queue && self.node.engine().store().with_slot(key, |slot| slot.pull(out))
    }

    /// The fast path of a write; false if the engine must take it.
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

    /// What the node has of the key.
    #[must_use]
    pub fn state(&self) -> State {
        self.view.packed.state()
    }
}
