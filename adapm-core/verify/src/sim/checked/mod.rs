//! A simulated cluster of real engines with every invariant checked after every step: the lockstep
//! cluster of [`crate::cluster`], whose messages travel as frames over the links of the simulation.
//!
//! | file | subject |
//! | --- | --- |
//! | `run` | one run from a seed: its faults, phases and report |
//! | `hardship` | the random program of the first phase |

mod hardship;
mod run;

use core::fmt;
use std::collections::VecDeque;

use adapm_core::engine::{OpId, Reason};
use adapm_core::slot::State;
use adapm_core::transport::Frame;
use adapm_core::wire::message::Body;
use adapm_core::{Instant, Key, NodeId, wire};

use super::coverage::{Fact, Facts};
use super::program::{NodeWorker, Step, Then};
use super::under_test::{Outcome, Sent, SystemUnderTest, Turn};
use crate::flight::Kind;
use crate::invariants::refusal;
use crate::rng::Rng;
use crate::{Cluster, Setup, Violation};

pub use hardship::Hardship;
pub use run::{Conditions, OPERATIONS, Report, Run, RunFailure};

/// A system under test that checks invariants and links.
///
/// The lockstep cluster keeps every message until it is delivered, and so knows which must arrive
/// next: a frame that the links deliver must decode to that message, or the links have lost,
/// doubled or reordered one.
pub struct CheckedCluster {
    cluster: Cluster,
    costs: Costs,
    /// Number of messages given to the links that have not arrived, by [`Self::link_index`].
    handed_over: Vec<usize>,
    /// Messages that the simulator has not taken yet.
    buffer: VecDeque<Sent>,
    /// Workers whose wait has ended, for the simulator.
    ready: VecDeque<NodeWorker>,
    /// Operations that are not done yet.
    open: Vec<OpenOperation>,
}

/// Durations of the work of workers and engines, in nanoseconds of virtual time.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Costs {
    /// An access of a worker.
    pub access_nanos: u64,
    /// An input of a node's channel.
    pub input_nanos: u64,
}

/// A bug found by a checked cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// An invariant is broken.
    Invariant(Violation),
    /// The links have delivered something other than what was sent.
    Delivery(String),
    /// A node has given a peer up that is alive.
    GivenUp {
        /// The node.
        survivor: NodeId,
        /// The peer.
        peer: NodeId,
    },
}

/// An operation that is not done yet.
struct OpenOperation {
    who: NodeWorker,
    op: OpId,
    fact: Option<Fact>,
    waits: bool,
    step: String,
}

impl CheckedCluster {
    /// Creates a cluster before its first step, at the beginning of time. Messages are encoded
    /// here, so the cluster's own encoding is turned off.
    #[must_use]
    pub fn new(mut setup: Setup, costs: Costs) -> Self {
        setup.codec = false;
        // Its time is the simulator's.
        setup.ran_nanos = 0;
        let nodes = setup.nodes;
        Self {
            cluster: Cluster::new(setup),
            costs,
            handed_over: vec![0; nodes * nodes],
            buffer: VecDeque::new(),
            ready: VecDeque::new(),
            open: Vec::new(),
        }
    }

    /// Returns the cluster.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Calls `tell` with a description of every step.
    pub fn tell(&mut self, tell: impl FnMut(&str) + 'static) {
        self.cluster.tell_steps(tell);
    }

    /// Checks everything that must hold at rest.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check_at_rest(&mut self) -> Result<(), Finding> {
        self.cluster.check_at_rest().map_err(Finding::Invariant)
    }

    fn advance_to(&mut self, now: Instant) {
        self.cluster.advance_time(now.nanos_since(self.cluster.now()));
    }

    /// Collects the new messages of `node` and the workers whose operations are done.
    fn collect(&mut self, node: NodeId) {
        for to in self.cluster.nodes() {
            let link = self.link_index(node, to);
            let queue = self.cluster.network().queue(node, to);
            for message in queue.skip(self.handed_over[link]) {
                let mut frame = Frame::default();
                let is_request = matches!(*message.body, Body::SyncRequest(_));
                wire::encode(message.clone(), &mut frame);
                self.handed_over[link] += 1;
                self.buffer.push_back(Sent {
                    from: node,
                    to,
                    asks: is_request,
                    bytes: frame.len(),
                    frame,
                });
            }
        }
        let (cluster, ready) = (&self.cluster, &mut self.ready);
        self.open.retain_mut(|open| {
            if !cluster.is_done(open.op) {
                return true;
            }
            let next = if open.waits { blocking(cluster, open.who) } else { None };
            match next {
                // Under a bound a worker waits at a tick behind a meeting.
                Some(op) => open.op = op,
                None if open.waits => ready.push_back(open.who),
                None => {}
            }
            next.is_some()
        });
    }

    /// Returns the index in `handed_over` of the link from `from` to `to`.
    fn link_index(&self, from: NodeId, to: NodeId) -> usize {
        from.index() * self.cluster.setup().nodes + to.index()
    }

    /// Takes a step of a worker. Returns its operation if it began one.
    fn call(&mut self, who: NodeWorker, step: &Step) -> Result<Option<OpId>, Violation> {
        let cluster = &mut self.cluster;
        let op = match step {
            Step::Pull(keys, _) => cluster.pull(who, keys)?,
            Step::Push(keys, _) => cluster.push(who, keys)?,
            Step::Set(keys, _) => cluster.set(who, keys)?,
            // Drivers refuse it there: a copy that a localize holds would not end in time.
            Step::Localize(..) if cluster.setup().keeps => return Ok(None),
            Step::Localize(keys, _) => cluster.localize(who, keys)?,
            Step::Renew(keys, _) => cluster.renew(who, keys)?,
            Step::WaitSync(_) => cluster.wait_sync(who)?,
            Step::Tick if cluster.setup().bound.is_none() => return Ok(None),
            Step::Tick => cluster.tick(who)?,
            Step::Barrier => cluster.barrier(who)?,
            Step::Quiesce => cluster.quiesce(who)?,
            Step::Snapshot => cluster.snapshot(who)?,
            Step::End => cluster.end(who)?,
            Step::Leave => cluster.leave(who)?,
            Step::Intent { keys, ahead, clocks } => {
                let start = cluster.member(who.0).workers[who.1.index()].clock.0 + ahead;
                cluster.intent(who, keys, start..start + clocks)?;
                return Ok(None);
            }
            Step::Advance(clocks) => {
                cluster.advance_clock(who, *clocks);
                return Ok(None);
            }
            Step::Compute(_) => return Ok(None),
        };
        Ok(Some(op))
    }
}

impl SystemUnderTest for CheckedCluster {
    type Violation = Finding;

    fn nodes(&self) -> usize {
        self.cluster.setup().nodes
    }

    fn workers(&self) -> usize {
        self.cluster.setup().workers
    }

    fn step(&mut self, now: Instant, who: NodeWorker, step: Step) -> Result<Turn, Finding> {
        self.advance_to(now);
        let op = self.call(who, &step).map_err(Finding::Invariant)?;
        let mut outcome = Outcome::Done;
        let waits = blocks_worker(&step);
        if waits && let Some(op) = op {
            self.cluster.block(who, op);
        }
        let blocking = blocking(&self.cluster, who);
        if blocking.is_some() {
            outcome = Outcome::Waits;
        }
        if let Some(op) = blocking.or(op).filter(|op| !self.cluster.is_done(*op)) {
            self.open.push(OpenOperation {
                who,
                op,
                fact: waiting_fact(&step),
                waits,
                step: format!("{step:?}"),
            });
        }
        self.collect(who.0);
        Ok(Turn {
            outcome,
            worker_nanos: self.costs.access_nanos,
            node_nanos: self.costs.input_nanos,
        })
    }

    fn deliver(
        &mut self,
        now: Instant,
        from: NodeId,
        to: NodeId,
        mut frame: Frame,
    ) -> Result<u64, Finding> {
        self.advance_to(now);
        let message = wire::decode(&mut frame).map_err(|error| {
            Finding::Delivery(format!("the frame of {from} for {to} cannot be decoded: {error}"))
        })?;
        if self.cluster.network().first(from, to) != Some(&message) {
            let due = self.cluster.network().first(from, to).map(|due| self.cluster.describe(due));
            let came = self.cluster.describe(&message);
            return Err(Finding::Delivery(format!(
                "{to} receives {came} from {from}, but {due:?} is next"
            )));
        }
        let link = self.link_index(from, to);
        self.handed_over[link] -= 1;
        self.cluster.deliver(from, to).map_err(Finding::Invariant)?;
        self.collect(to);
        Ok(self.costs.input_nanos)
    }

    fn timeout(&mut self, now: Instant, node: NodeId) -> Result<u64, Finding> {
        self.advance_to(now);
        self.cluster.timeout(node).map_err(Finding::Invariant)?;
        self.collect(node);
        Ok(self.costs.input_nanos)
    }

    fn next_peer_check(&self, node: NodeId) -> Option<Instant> {
        self.cluster.member(node).node.engine().next_look_at()
    }

    fn note_held_up(&mut self, now: Instant, node: NodeId, peer: NodeId) -> Result<(), Finding> {
        self.advance_to(now);
        self.cluster.note_heard(node, peer).map_err(Finding::Invariant)
    }

    fn poll_sent(&mut self) -> Option<Sent> {
        self.buffer.pop_front()
    }

    fn poll_ready(&mut self) -> Option<NodeWorker> {
        self.ready.pop_front()
    }

    fn wake_at(&self, node: NodeId) -> Option<Instant> {
        let member = self.cluster.member(node);
        // The first entry of an empty dirty queue wakes the channel.
        let is_dirty = member.workers.iter().any(|worker| !worker.dirty.is_empty());
        if is_dirty { Some(self.cluster.now()) } else { member.node.until() }
    }

    fn is_at_rest(&self) -> bool {
        self.cluster.is_at_rest()
    }

    fn waiting(&self) -> String {
        let open = self
            .open
            .iter()
            .map(|open| format!("{}.{} waits for {}", open.who.0, open.who.1, open.step));
        let busy = self
            .cluster
            .living()
            .filter(|node| !self.cluster.member(*node).node.engine().is_at_rest());
        let busy = busy.map(|node| {
            format!("{node} has something waiting ({:?})", self.cluster.member(node).node.reason())
        });
        let loaded = self.cluster.network().loaded();
        let in_flight = (!loaded.is_empty()).then(|| format!("messages on their way: {loaded:?}"));
        open.chain(busy).chain(in_flight).collect::<Vec<_>>().join("; ")
    }

    fn facts(&self, node: NodeId) -> Facts {
        let mut facts = Facts::default();
        for key in self.cluster.keys() {
            facts.note(state_fact(self.cluster.state(node, key)), true);
            self.note_in_flight(node, key, &mut facts);
        }
        let reason = self.cluster.member(node).node.reason();
        facts.note(Fact::RoundOpen, matches!(reason, Reason::Round { .. }));
        for open in self.open.iter().filter(|open| open.who.0 == node) {
            if let Some(fact) = open.fact {
                facts.note(fact, true);
            }
        }
        facts
    }

    fn vanish(
        &mut self,
        now: Instant,
        node: NodeId,
        arriving: &dyn Fn(NodeId) -> usize,
    ) -> Result<(), Finding> {
        self.advance_to(now);
        self.cluster.vanish(node, |to, count| arriving(to).min(count));
        self.open.retain(|open| open.who.0 != node);
        for from in self.cluster.nodes() {
            for to in self.cluster.nodes() {
                let link = self.link_index(from, to);
                self.handed_over[link] =
                    self.handed_over[link].min(self.cluster.network().queue(from, to).count());
            }
        }
        Ok(())
    }

    fn lose(&mut self, now: Instant, survivor: NodeId, peer: NodeId) -> Result<u64, Finding> {
        self.advance_to(now);
        if !self.cluster.losses().is_gone(peer) {
            return Err(Finding::GivenUp { survivor, peer });
        }
        self.cluster.tell_lost(survivor, peer).map_err(Finding::Invariant)?;
        self.collect(survivor);
        Ok(self.costs.input_nanos)
    }

    fn lie(
        &mut self,
        now: Instant,
        from: NodeId,
        to: NodeId,
        rng: &mut Rng,
    ) -> Result<(), Finding> {
        self.advance_to(now);
        // After a loss, messages that are impossible otherwise may be late ones. 11: bad messages
        // are refused.
        if self.cluster.losses().any() || !self.cluster.setup().checks.contains(11) {
            return Ok(());
        }
        let message = refusal::bad_message(&self.cluster, &mut Rng::new(rng.bits()), from, to);
        self.cluster.feed_bad(from, to, message).map_err(Finding::Invariant)
    }
}

impl CheckedCluster {
    /// Adds facts about the entries for `key` in flight to and from `node`.
    fn note_in_flight(&self, node: NodeId, key: Key, facts: &mut Facts) {
        for in_flight in self.cluster.network().about(key) {
            let (here, away) = (in_flight.to == node, in_flight.from == node);
            let is_ownership = in_flight.entry.kind.is_ownership();
            facts.note(Fact::RelocationHere, here && is_ownership);
            facts.note(Fact::RelocationAway, away && is_ownership);
            facts.note(Fact::DeltaOut, away && in_flight.entry.kind == Kind::Delta);
            facts.note(Fact::RefreshHere, here && in_flight.entry.kind == Kind::Refresh);
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invariant(violation) => violation.fmt(f),
            Self::Delivery(what) => f.write_str(what),
            Self::GivenUp { survivor, peer } => {
                write!(f, "{survivor} gives {peer} up, which is alive")
            }
        }
    }
}

/// Returns the operation for which a worker waits.
fn blocking(cluster: &Cluster, (node, worker): NodeWorker) -> Option<OpId> {
    cluster.member(node).workers[worker.index()].blocked
}

/// Returns true if the worker waits until the step is done.
fn blocks_worker(step: &Step) -> bool {
    match step {
        Step::Pull(_, then)
        | Step::Push(_, then)
        | Step::Set(_, then)
        | Step::Localize(_, then)
        | Step::Renew(_, then)
        | Step::WaitSync(then) => *then == Then::Wait,
        Step::Tick | Step::Barrier | Step::Quiesce | Step::Snapshot | Step::End | Step::Leave => {
            true
        }
        Step::Intent { .. } | Step::Advance(_) | Step::Compute(_) => false,
    }
}

/// Returns the fact that an operation of this kind is pending.
fn waiting_fact(step: &Step) -> Option<Fact> {
    match step {
        Step::Pull(..) => Some(Fact::PullWaits),
        Step::Push(..) => Some(Fact::PushWaits),
        Step::Set(..) => Some(Fact::SetWaits),
        Step::Localize(..) => Some(Fact::LocalizeWaits),
        Step::WaitSync(_) => Some(Fact::WaitSyncWaits),
        Step::Barrier => Some(Fact::BarrierWaits),
        Step::Quiesce => Some(Fact::QuiesceWaits),
        Step::Snapshot => Some(Fact::SnapshotWaits),
        Step::Leave => Some(Fact::LeaveWaits),
        Step::Renew(..)
        | Step::Tick
        | Step::End
        | Step::Intent { .. }
        | Step::Advance(_)
        | Step::Compute(_) => None,
    }
}

/// Returns the fact that a key is in this state.
fn state_fact(state: State) -> Fact {
    match state {
        State::None => Fact::KeyNone,
        State::Requested => Fact::KeyRequested,
        State::Replica => Fact::KeyReplica,
        State::Main => Fact::KeyMain,
        State::Releasing => Fact::KeyReleasing,
    }
}
