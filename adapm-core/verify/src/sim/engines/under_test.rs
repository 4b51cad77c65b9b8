//! The nodes together, as the simulator sees them.

use core::fmt;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use adapm_core::config::NodeConfig;
use adapm_core::engine::{Engine, OpBody};
use adapm_core::error::{ConfigError, InputError};
use adapm_core::policy::SystemPolicy;
use adapm_core::stats::Stats;
use adapm_core::transport::Frame;
use adapm_core::wire::{self, Message};
use adapm_core::{Clock, Instant, Layout, NodeId};
use foldhash::fast::FixedState;

use super::machine::keys_in;
use super::member::{Accessed, ELEMENTS_MAX, Member};
use super::{LightStore, Machine, SharedState, Totals};
use crate::sim::{NodeWorker, Outcome, Sent, Step, SystemUnderTest, Then, Turn};

/// The shape of a cluster of bare engines.
#[derive(Clone, Debug)]
pub struct EnginesConfig {
    /// Number of nodes.
    pub nodes: usize,
    /// Workers of each node.
    pub workers: usize,
    /// Keys and lengths of values in modelled elements, at most 64 of them. Main copies of a dense
    /// layout are made at the start: it is sparse if it is huge.
    pub layout: Layout,
    /// Bytes of one modelled element on the wire.
    pub element_bytes: u64,
    /// Number of keys that a modelled key stands for: each costs channel threads time.
    pub keys_per_key: u64,
    /// Costs of machines and network.
    pub machine: Machine,
    /// The clock at which workers start.
    pub clock: Clock,
    /// Least time between the starts of two rounds, in nanoseconds. `None` for the engines'
    /// default.
    pub round_nanos: Option<u64>,
}

/// A failure of the engines: always a defect of the model or of an engine.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{node}: {error}")]
pub struct EngineError {
    /// The node.
    pub node: NodeId,
    /// The engine's error.
    pub error: InputError,
}

/// Bare engines with costs.
pub struct Engines {
    config: EnginesConfig,
    members: Vec<Member>,
    shared: Rc<SharedState>,
    totals: Totals,
    ways: HashMap<(NodeId, NodeId), VecDeque<Message>, FixedState>,
    on_the_way: usize,
    sent: VecDeque<Sent>,
    ready: VecDeque<NodeWorker>,
    /// Time that each node's channels took from its cores; then the share of it that each of its
    /// workers has paid.
    taken_nanos: Vec<u64>,
    paid_nanos: Vec<u64>,
}

impl Engines {
    /// Creates a cluster whose nodes decide by `policy`.
    ///
    /// # Errors
    /// If the configuration does not fit the layout.
    pub fn new(
        config: EnginesConfig,
        policy: impl Fn(NodeId) -> SystemPolicy,
    ) -> Result<Self, ConfigError> {
        let shared = Rc::new(SharedState::default());
        let mut members = Vec::new();
        for index in 0..config.nodes {
            let node = NodeId(
                u16::try_from(index).map_err(|_| ConfigError::Nodes { nodes: config.nodes })?,
            );
            let store = Rc::new(LightStore::new(config.layout.clone()));
            shared.add_store(Rc::clone(&store));
            let mut place = NodeConfig::new(node, config.nodes, config.workers);
            if let Some(nanos) = config.round_nanos {
                (place.round_nanos_min, place.round_nanos_max) = (nanos, nanos);
            }
            // Bounds are in modelled bytes.
            let scaled = place.block_bytes_max as u64 * size_of::<i64>() as u64
                / config.element_bytes.max(1);
            place.block_bytes_max = (scaled as usize).max(size_of::<i64>() * ELEMENTS_MAX);
            let layout = config.layout.clone();
            let engine =
                Engine::new(place, layout, Rc::clone(&store), policy(node), Arc::new(|_, _| {}))?;
            engine.populate();
            members.push(Member::new(engine, store, config.clock));
        }
        Ok(Self {
            members,
            shared,
            totals: Totals::default(),
            ways: HashMap::default(),
            on_the_way: 0,
            sent: VecDeque::new(),
            ready: VecDeque::new(),
            taken_nanos: vec![0; config.nodes],
            paid_nanos: vec![0; config.nodes * config.workers],
            config,
        })
    }

    /// Returns the state shared with the program.
    #[must_use]
    pub fn shared(&self) -> Rc<SharedState> {
        Rc::clone(&self.shared)
    }

    /// Returns the costs of the run so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut engines = Stats::default();
        for member in &self.members {
            engines.merge(member.driver.engine().stats());
        }
        Totals { engines, ..self.totals }
    }

    fn note(&mut self, now: Instant) {
        if self.shared.wants() {
            let totals = self.totals();
            self.shared.take(totals);
        }
        self.totals.now = now;
    }

    /// Collects the messages of `node`, and lists workers that may go on. Returns the time that its
    /// channels spend on them.
    fn collect(&mut self, node: NodeId) -> u64 {
        let mut busy = 0;
        let mut sent = std::mem::take(&mut self.members[node.index()].around.sent);
        for (to, message) in sent.drain(..) {
            let keys = keys_in(&message.body) * self.config.keys_per_key;
            let bytes = self.weigh(&message);
            busy += self.config.machine.service_nanos(keys, bytes);
            self.totals.messages += 1;
            self.totals.bytes += bytes;
            self.ways.entry((node, to)).or_default().push_back(message);
            self.on_the_way += 1;
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.sent.push_back(Sent {
                from: node,
                to,
                asks: false,
                bytes,
                frame: Frame::default(),
            });
        }
        let member = &mut self.members[node.index()];
        member.around.sent = sent;
        self.ready.extend(member.around.ready.drain(..).map(|worker| (node, worker)));
        busy
    }

    fn spend(&mut self, node: NodeId, nanos: u64) -> u64 {
        self.totals.busy_nanos += nanos;
        self.taken_nanos[node.index()] += nanos * self.config.machine.channels;
        nanos
    }

    /// Returns the bytes of the message's frame, with values scaled.
    fn weigh(&self, message: &Message) -> u64 {
        wire::head_bytes(&message.body) as u64 + self.scaled(message)
    }

    /// Returns the bytes of the message's values, scaled.
    fn scaled(&self, message: &Message) -> u64 {
        (message.values.len() / size_of::<i64>()) as u64 * self.config.element_bytes
    }

    /// Returns the part of a worker's time that its node's channels took from its core since the
    /// last call.
    fn toll(&mut self, (node, worker): NodeWorker) -> u64 {
        let cores = self.config.machine.cores;
        if cores == 0 {
            return 0;
        }
        let share = self.taken_nanos[node.index()] / cores;
        let paid = &mut self.paid_nanos[node.index() * self.config.workers + worker.index()];
        let due = share - *paid;
        *paid = share;
        due
    }
}

impl SystemUnderTest for Engines {
    type Violation = EngineError;

    fn nodes(&self) -> usize {
        self.config.nodes
    }

    fn workers(&self) -> usize {
        self.config.workers
    }

    fn step(&mut self, now: Instant, who: NodeWorker, step: Step) -> Result<Turn, EngineError> {
        self.note(now);
        let (node, worker) = who;
        let reads = matches!(step, Step::Pull(..));
        let member = &mut self.members[node.index()];
        let stats = member.driver.engine().stats();
        let before = (stats.local, stats.waited, stats.remote);
        let waits = |then: Then| then == Then::Wait;
        let accessed = match step {
            Step::Pull(keys, then) => member.pull(now, worker, keys, waits(then)),
            Step::Push(keys, then) => {
                self.totals.pushed += keys.len() as u64;
                member.push(now, worker, keys, waits(then))
            }
            Step::Localize(keys, then) => member.localize(now, worker, keys, waits(then)),
            Step::Intent { keys, ahead, clocks } => {
                member.intent(now, worker, keys, ahead, clocks).map(|()| Accessed::default())
            }
            Step::Advance(clocks) => {
                member.advance(worker, clocks);
                let worker_nanos = self.toll(who);
                return Ok(Turn { outcome: Outcome::Done, worker_nanos, node_nanos: 0 });
            }
            Step::WaitSync(then) => member.collective(now, worker, OpBody::WaitSync, waits(then)),
            Step::Tick => member.tick(now, worker),
            Step::Barrier => member.collective(now, worker, OpBody::Barrier, true),
            Step::Quiesce => member.collective(now, worker, OpBody::Quiesce, true),
            Step::End => member.collective(now, worker, OpBody::End, true),
            Step::Leave => member.collective(now, worker, OpBody::Leave, true),
            Step::Set(..) | Step::Renew(..) | Step::Snapshot | Step::Compute(_) => {
                Ok(Accessed::default())
            }
        };
        let accessed = accessed.map_err(|error| EngineError { node, error })?;
        if reads {
            let stats = member.driver.engine().stats();
            self.totals.local += accessed.fast + stats.local - before.0;
            self.totals.waited += stats.waited - before.1;
            self.totals.remote += stats.remote - before.2;
        }
        let handed = u64::from(accessed.slow > 0);
        let keys = accessed.slow * self.config.keys_per_key;
        let mut busy = self.collect(node);
        if handed > 0 {
            busy += self.config.machine.service_nanos(keys, 0);
        }
        let node_nanos = self.spend(node, busy);
        let outcome = if accessed.waits { Outcome::Waits } else { Outcome::Done };
        Ok(Turn { outcome, worker_nanos: handed * self.config.machine.hand_over_nanos, node_nanos })
    }

    fn deliver(
        &mut self,
        now: Instant,
        from: NodeId,
        to: NodeId,
        _frame: Frame,
    ) -> Result<u64, EngineError> {
        self.note(now);
        let message = self.ways.get_mut(&(from, to)).and_then(VecDeque::pop_front);
        let message = message.expect("what arrives was sent");
        self.on_the_way -= 1;
        let keys = keys_in(&message.body) * self.config.keys_per_key;
        let bytes = self.scaled(&message);
        let received = self.config.machine.service_nanos(keys, bytes);
        let fed = self.members[to.index()].deliver(now, from, message);
        fed.map_err(|error| EngineError { node: to, error })?;
        let busy = received + self.collect(to);
        Ok(self.spend(to, busy))
    }

    fn timeout(&mut self, now: Instant, node: NodeId) -> Result<u64, EngineError> {
        self.note(now);
        self.members[node.index()].timeout(now).map_err(|error| EngineError { node, error })?;
        let busy = self.collect(node);
        Ok(self.spend(node, busy))
    }

    fn poll_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    fn poll_ready(&mut self) -> Option<NodeWorker> {
        self.ready.pop_front()
    }

    fn wake_at(&self, node: NodeId) -> Option<Instant> {
        self.members[node.index()].driver.until()
    }

    fn is_at_rest(&self) -> bool {
        self.on_the_way == 0 && self.members.iter().all(Member::is_at_rest)
    }

    fn waiting(&self) -> String {
        let busy = self.members.iter().enumerate().find(|(_, member)| !member.is_at_rest());
        match busy {
            Some((node, member)) => format!("n{node}: {}", member.waiting()),
            None => format!("{} messages are on their way", self.on_the_way),
        }
    }
}

impl fmt::Debug for Engines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engines").field("config", &self.config).finish_non_exhaustive()
    }
}
