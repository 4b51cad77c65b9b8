//! A whole cluster in one thread: the test chooses every step, and every invariant is checked after
//! each.
//!
//! Nodes are real engines over reference stores; workers use the fast path as the runtime's do;
//! messages wait in one queue per sender and receiver until the test delivers the first of one.
//! Time is virtual. Nothing here is random ([`super::random`]) or parsed from text
//! ([`super::script`]).
//!
//! A step that breaks an invariant returns a [`Violation`].

mod operations;

use core::ops::Deref;

use adapm_core::clock::Clock;
use adapm_core::engine::{Event, Input, Intent, OpId, Reason, SignalId};
use adapm_core::error::InputError;
use adapm_core::id::{Key, NodeId, WorkerId};
use adapm_core::slot::State;
use adapm_core::stats::Stats;
use adapm_core::time::Instant;
use adapm_core::wire::Message;

use crate::check::Checks;
use crate::invariants;
use crate::member::{Member, Row};
use crate::network::Pairs;
use crate::oracle::NodeWorker;
use crate::picture::Picture;
use crate::recorder::Recorder;
use crate::setup::Setup;
use crate::violation::{Violation, hold};

/// A listener for events in words.
type Tell = Box<dyn FnMut(&str)>;

/// Nodes in lockstep. Dereferences to its [`Picture`].
pub struct Cluster {
    picture: Picture,
    step: u64,
    /// The listener for every step in words.
    tell: Option<Tell>,
    now: Instant,
    pairs: Pairs,
}

impl Cluster {
    /// Creates a cluster before its first step.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let picture = Picture::new(setup);
        let mut cluster =
            Self { picture, step: 0, tell: None, now: Instant::ZERO, pairs: Pairs::default() };
        cluster.run_before();
        cluster.signal_hot();
        cluster
    }

    /// Lets workers have changed copies for a while: each engine is told of a key that is not
    /// dirty any more.
    fn run_before(&mut self) {
        let first = self.keys().next().filter(|_| self.picture.setup.ran_nanos > 0);
        let Some(key) = first else { return };
        for node in self.nodes() {
            let member = &mut self.picture.members[node.index()];
            member.workers[0].dirty.push(key);
            let clocks = member.clocks();
            self.feed(node, Input::Timeout(&clocks)).expect("time alone breaks nothing");
        }
        self.advance_time(self.picture.setup.ran_nanos);
    }

    /// Signals intent of every node for its hot keys and the whole run, as a driver does.
    fn signal_hot(&mut self) {
        for node in self.nodes() {
            let is_hot = |key: &Key| self.picture.setup.is_hot_at(node, *key);
            let hot: Vec<Key> = self.keys().filter(is_hot).collect();
            if hot.is_empty() {
                continue;
            }
            let run = 0..Clock::INFINITY.0;
            let intent = intent_of((node, WorkerId(0)), SignalId::default(), &hot, run);
            self.picture.signalled.push((node, intent.clone()));
            self.feed(node, Input::Intent(intent)).expect("a signal alone breaks nothing");
        }
    }

    /// Delivers the first message from `from` to `to`. Returns false if there was none.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn deliver(&mut self, from: NodeId, to: NodeId) -> Result<bool, Violation> {
        let Some((message, entries)) = self.picture.network.take(from, to) else {
            return Ok(false);
        };
        if self.picture.losses.knows(to, from) {
            self.deliver_late(to, from, message)?;
            return Ok(true);
        }
        for entry in &entries {
            self.pairs.record(self.row(to, entry.key).state(), entry.kind);
        }
        self.note(|cluster| {
            format!("{:?} {from} -> {to}: {}", cluster.now, cluster.describe(&message))
        });
        self.feed(to, Input::Message(from, message))?;
        self.finish_step(to)?;
        Ok(true)
    }

    /// Lets time pass.
    pub fn advance_time(&mut self, nanos: u64) {
        self.now = self.now.plus_nanos(nanos);
    }

    /// Feeds `node` the time and its workers' clocks: a round begins if one is due.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn timeout(&mut self, node: NodeId) -> Result<(), Violation> {
        let clocks = self.picture.members[node.index()].clocks();
        self.feed(node, Input::Timeout(&clocks))?;
        self.finish_step(node)
    }

    /// Lets enough time pass for a round of `node` to be due, then calls [`Cluster::timeout`].
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn round(&mut self, node: NodeId) -> Result<(), Violation> {
        let earliest = self.now.plus_nanos(ROUND_NANOS);
        let member = &self.picture.members[node.index()];
        let due = member.node.until().map_or(earliest, |until| until.max(self.now));
        self.now = if member.node.reason() == Reason::NextRound { due } else { due.min(earliest) };
        self.timeout(node)
    }

    /// Feeds the dirty queues of `node` to its engine.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn drain(&mut self, node: NodeId) -> Result<(), Violation> {
        self.drain_quietly(node)?;
        self.finish_step(node)
    }

    /// Signals an intent of a worker; without effect under a system with hot keys, where drivers
    /// drop it.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn intent(
        &mut self,
        who: NodeWorker,
        keys: &[Key],
        clocks: core::ops::Range<u64>,
    ) -> Result<(), Violation> {
        self.intent_as(who, SignalId::default(), keys, clocks)
    }

    /// Signals an intent under an id, like [`Cluster::intent`].
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn intent_as(
        &mut self,
        who: NodeWorker,
        id: SignalId,
        keys: &[Key],
        clocks: core::ops::Range<u64>,
    ) -> Result<(), Violation> {
        if self.picture.setup.hot.is_some() {
            return Ok(());
        }
        let intent = intent_of(who, id, keys, clocks);
        self.picture.signalled.push((who.0, intent.clone()));
        self.feed(who.0, Input::Intent(intent))?;
        self.finish_step(who.0)
    }

    /// Takes an intent of a worker back.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn take_back(
        &mut self,
        who: NodeWorker,
        id: SignalId,
        keys: &[Key],
        clocks: core::ops::Range<u64>,
    ) -> Result<(), Violation> {
        if self.picture.setup.hot.is_some() {
            return Ok(());
        }
        let intent = intent_of(who, id, keys, clocks);
        self.feed(who.0, Input::TakeBack(intent))?;
        self.finish_step(who.0)
    }

    /// Raises the clock of a worker by `clocks`; its node learns of it with the next timeout.
    pub fn advance_clock(&mut self, who: NodeWorker, clocks: u64) {
        let worker = &mut self.picture.members[who.0.index()].workers[who.1.index()];
        worker.clock = worker.clock + clocks;
    }

    /// Delivers messages and lets time pass until nothing is left to do: everything sent is applied
    /// everywhere.
    ///
    /// # Errors
    /// If that breaks an invariant, or the cluster does not come to rest (6).
    pub fn settle(&mut self) -> Result<(), Violation> {
        let mut calm = 0;
        for _ in 0..SETTLE_ROUNDS_MAX {
            self.deliver_all()?;
            if self.is_at_rest() {
                calm += 1;
                if calm == CALM_ROUNDS {
                    return self.check_at_rest();
                }
            } else {
                calm = 0;
            }
            self.now = self.now.plus_nanos(ROUND_NANOS);
            for node in self.living() {
                if let Some(until) = self.picture.members[node.index()].node.until() {
                    self.now = self.now.max(until);
                }
                self.timeout(node)?;
            }
        }
        let waiting: Vec<_> =
            self.living().filter(|node| !self.member(*node).is_at_rest()).collect();
        hold!(Checks::ALL => ComesToRest, false, "the cluster does not come to rest: {waiting:?} have something waiting");
        Ok(())
    }

    /// Checks everything that must hold when nothing is left to do.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check_at_rest(&mut self) -> Result<(), Violation> {
        if self.picture.setup.checks.contains(10) {
            let members = &self.picture.members;
            let lasts = |(node, intent): &(NodeId, Intent)| {
                members[node.index()].clocks()[intent.worker.index()] < intent.clocks.end
            };
            self.picture.signalled.retain(lasts);
        }
        invariants::check_at_rest(&self.picture)
    }

    /// Delivers every message, and those sent meanwhile, link by link.
    ///
    /// # Errors
    /// If that breaks an invariant, or messages breed messages forever (6).
    pub fn deliver_all(&mut self) -> Result<(), Violation> {
        for _ in 0..DELIVERIES_MAX {
            let loaded = self.picture.network.loaded();
            if loaded.is_empty() {
                return Ok(());
            }
            for (from, to) in loaded {
                self.deliver(from, to)?;
            }
        }
        hold!(Checks::ALL => ComesToRest, false, "messages go on forever: {:?}", self.picture.network.loaded());
        Ok(())
    }

    /// Feeds a message that `from` cannot have sent: `node` must refuse it, blame `from`, and
    /// change nothing.
    ///
    /// # Errors
    /// Invariant 11 if it does not.
    pub fn feed_bad(
        &mut self,
        from: NodeId,
        node: NodeId,
        message: Message,
    ) -> Result<(), Violation> {
        let text = format!("{:?}", message.body);
        let before = self.memory_of(node);
        let (result, said) =
            self.picture.members[node.index()].feed(self.now, Input::Message(from, message));
        let blamed = match &result {
            Err(InputError::Peer(error)) => Some(error.peer),
            Ok(()) | Err(_) => None,
        };
        hold!(self.picture.setup.checks => BadIsBlamed, blamed == Some(from), "{node} answers {text} of {from} with {result:?}");
        let after = self.memory_of(node);
        hold!(self.picture.setup.checks => BadChangesNothing, before == after, "{node} refuses {text} of {from} and yet is changed by it");
        hold!(self.picture.setup.checks => BadSaysNothing, said.is_silent(), "{node} refuses {text} of {from} and yet says {said:?}");
        Ok(())
    }

    /// Returns all state that an input without effect must leave unchanged.
    fn memory_of(&mut self, node: NodeId) -> (Vec<Row>, usize, Stats) {
        let member = &mut self.picture.members[node.index()];
        member.refresh();
        let mut stats = *member.node.engine().stats();
        // Time passes whatever comes.
        (stats.micros, stats.held.micros) = (0, 0);
        (member.rows.clone(), member.node.engine().side_entries(), stats)
    }

    /// Feeds an input to the engine and collects its outputs, without checking invariants.
    fn feed(&mut self, node: NodeId, input: Input<'_, i64>) -> Result<(), Violation> {
        if !matches!(input, Input::Message(..)) {
            self.note(|cluster| format!("{:?} {node}: {input:?}", cluster.now));
        }
        let (result, said) = self.picture.members[node.index()].feed(self.now, input);
        hold!(Checks::ALL => SoundIsTaken, result.is_ok(), "{node} refuses a sound input: {result:?}");
        self.take_said(node, said)
    }

    /// Takes the outputs of `node`'s engine, without checking invariants.
    fn take_said(&mut self, node: NodeId, said: Recorder<i64>) -> Result<(), Violation> {
        for (to, message) in said.sent {
            hold!(self.picture.setup.checks => NothingToTheLost, !self.picture.losses.knows(node, to), "{node} writes to {to}, which it has lost");
            invariants::check_bytes(&self.picture, node, &message)?;
            self.picture.network.send(node, to, message);
        }
        let told = self.picture.members[node.index()].take_told();
        self.picture.told.extend(told.into_iter().map(|told| (node, told)));
        self.picture.members[node.index()].refresh();
        let dropped = self.picture.network.take_dropped();
        self.picture.losses.note(&dropped);
        let mut unresponsive = Vec::new();
        for event in said.events {
            match event {
                Event::Done { op, values } => self.done(op, &values)?,
                Event::Failed { op, error } => self.failed(node, op, &error)?,
                Event::Missing { .. } => {}
                Event::Unresponsive { node: peer } => unresponsive.push(peer),
                event => panic!("{node} says {event:?}, which the cluster does not know"),
            }
        }
        self.give_up_unresponsive(node, unresponsive)?;
        self.follow_meetings()
    }

    /// Ends a step of `node`: updates its rows and checks all invariants.
    fn finish_step(&mut self, node: NodeId) -> Result<(), Violation> {
        self.picture.members[node.index()].refresh_if_outdated();
        self.step += 1;
        let result = invariants::check(&self.picture, node);
        let picture = &self.picture;
        let hot = picture.setup.hot_keys(node);
        let arrived = hot.filter(|key| invariants::is_local(picture, node, *key));
        let arrived: Vec<(NodeId, Key)> = arrived.map(|key| (node, key)).collect();
        let set_up: Vec<(NodeId, Key)> = invariants::set_up(picture).collect();
        self.picture.arrived.extend(arrived);
        self.picture.set_up.extend(set_up);
        self.picture.told.clear();
        self.picture.heard = self.all_keys().map(|key| self.heard_at_home(key)).collect();
        result
    }

    fn drain_quietly(&mut self, node: NodeId) -> Result<(), Violation> {
        let said = self.picture.members[node.index()].feed_dirty();
        self.take_said(node, said)
    }

    /// Makes `node` vanish at once. Of its messages in flight to each other node, the first
    /// `arriving(node, count)` still arrive. All messages to it are gone.
    pub fn vanish(&mut self, node: NodeId, mut arriving: impl FnMut(NodeId, usize) -> usize) {
        self.note(|cluster| format!("{:?} {node} vanishes", cluster.now));
        for other in self.nodes().filter(|other| *other != node) {
            let count = self.picture.network.queue(node, other).count();
            let keep = if self.picture.losses.is_gone(other) { 0 } else { arriving(other, count) };
            self.picture.network.cut(node, other, keep);
            self.picture.network.cut(other, node, 0);
        }
        self.picture.network.close(node);
        let untouched =
            |key: &Key| self.picture.setup.home(*key) == node && self.is_untouched(*key);
        let owned =
            self.keys().filter(|key| self.state(node, *key) == State::Main || untouched(key));
        let owned: Vec<Key> = owned.collect();
        self.picture.losses.note_gone(node, owned);
        self.picture.losses.note(&self.picture.network.take_dropped());
        self.picture.members[node.index()].vanish();
        self.picture.signalled.retain(|(signaller, _)| *signaller != node);
        let open: Vec<OpId> =
            self.picture.calls.open().filter(|(_, who)| who.0 == node).map(|(op, _)| op).collect();
        for op in open {
            self.give_up(op);
        }
    }

    /// Reports to `survivor` that `node`, which has vanished, is lost. Its messages still in flight
    /// are too late.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn tell_lost(&mut self, survivor: NodeId, node: NodeId) -> Result<(), Violation> {
        self.picture.network.forsake(node, survivor);
        self.picture.losses.note(&self.picture.network.take_dropped());
        self.picture.losses.note_told(survivor, node);
        self.drain_quietly(survivor)?;
        self.feed(survivor, Input::PeerLost(node))?;
        self.finish_step(survivor)
    }

    /// Makes `node` vanish, if it has not yet, and notifies all survivors.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn lose(&mut self, node: NodeId) -> Result<(), Violation> {
        if !self.picture.losses.is_gone(node) {
            self.vanish(node, |_, count| count);
        }
        for (survivor, gone) in self.untold() {
            if gone == node {
                self.tell_lost(survivor, gone)?;
            }
        }
        Ok(())
    }

    /// Lets time pass until `node` checks its peers, if a check is scheduled. As a driver does,
    /// first reports links with messages in flight.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn look(&mut self, node: NodeId) -> Result<(), Violation> {
        for peer in self.nodes().filter(|peer| *peer != node) {
            let travels = |from, to| self.picture.network.queue(from, to).next().is_some();
            if travels(node, peer) || travels(peer, node) {
                self.note_heard(node, peer)?;
            }
        }
        self.look_behind(node)
    }

    /// Reports to `node` that messages still travel between it and `peer`.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn note_heard(&mut self, node: NodeId, peer: NodeId) -> Result<(), Violation> {
        self.feed(node, Input::Heard(peer))
    }

    /// Like [`Cluster::look`], for a node that was stopped and has not read the messages that
    /// arrived meanwhile.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn look_behind(&mut self, node: NodeId) -> Result<(), Violation> {
        if let Some(due) = self.picture.members[node.index()].node.engine().next_look_at() {
            self.now = self.now.max(due);
        }
        self.timeout(node)
    }

    /// Lets all nodes check their peers `looks` times, with all messages delivered in between.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn look_around(&mut self, looks: usize) -> Result<(), Violation> {
        for _ in 0..looks {
            self.deliver_all()?;
            for node in self.living() {
                self.look(node)?;
                self.round(node)?;
            }
        }
        self.deliver_all()
    }

    /// Checks that every waiting node has noticed a node that has stopped answering.
    ///
    /// # Errors
    /// If one has not.
    pub fn check_noticed(&self) -> Result<(), Violation> {
        invariants::check_noticed(&self.picture)
    }

    /// Delivers a message of a lost node: it must change nothing and blame no node.
    fn deliver_late(
        &mut self,
        to: NodeId,
        from: NodeId,
        message: Message,
    ) -> Result<(), Violation> {
        let text = self.describe(&message);
        // Before some messages, from any sender, a driver hands over dirty keys of workers.
        let said = self.picture.members[to.index()].feed_dirty();
        self.take_said(to, said)?;
        let before = self.memory_of(to);
        let (result, said) =
            self.picture.members[to.index()].feed(self.now, Input::Message(from, message));
        hold!(self.picture.setup.checks => LateBlamesNobody, result.is_ok(), "{to} blames {from}, which it has lost, for {text}: {result:?}");
        hold!(self.picture.setup.checks => LateSaysNothing, said.is_silent(), "{to} answers {from}, which it has lost: {said:?}");
        let after = self.memory_of(to);
        hold!(self.picture.setup.checks => LateChangesNothing, before == after, "{to} has lost {from}, and yet {text} changes it");
        Ok(())
    }

    /// Gives up `peers`, which `node` calls unresponsive.
    fn give_up_unresponsive(&mut self, node: NodeId, peers: Vec<NodeId>) -> Result<(), Violation> {
        for peer in peers {
            let is_gone = self.picture.losses.is_gone(peer);
            hold!(self.picture.setup.checks => AnsweringIsSpared, is_gone, "{node} calls {peer} unresponsive, which answers");
            if is_gone {
                self.tell_lost(node, peer)?;
            }
        }
        Ok(())
    }

    /// Returns the members, the messages between them, and the record of events.
    #[must_use]
    pub fn picture(&self) -> &Picture {
        &self.picture
    }

    /// Extracts one node, for inputs that a cluster would not feed.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn into_member(mut self, node: NodeId) -> Member {
        self.picture.members.swap_remove(node.index())
    }

    /// Returns the number of arrivals of each entry kind in each state.
    #[must_use]
    pub fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// Returns the virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Calls `tell` with every step in words, before it is done.
    pub fn tell_steps(&mut self, tell: impl FnMut(&str) + 'static) {
        self.tell = Some(Box::new(tell));
    }

    fn note(&mut self, line: impl FnOnce(&Self) -> String) {
        if let Some(mut tell) = self.tell.take() {
            tell(&line(self));
            self.tell = Some(tell);
        }
    }
}

impl Deref for Cluster {
    type Target = Picture;

    fn deref(&self) -> &Picture {
        &self.picture
    }
}

/// Returns the signal of a worker.
fn intent_of(who: NodeWorker, id: SignalId, keys: &[Key], clocks: core::ops::Range<u64>) -> Intent {
    let clocks = Clock(clocks.start)..Clock(clocks.end);
    Intent { worker: who.1, id, keys: keys.to_vec(), clocks }
}

/// The least time between two rounds of a node.
const ROUND_NANOS: u64 = 500_000;
/// Rounds without anything to do after which a cluster is at rest.
const CALM_ROUNDS: usize = 3;
/// Rounds after which a cluster that is not at rest never will be.
const SETTLE_ROUNDS_MAX: usize = 3_000;
/// Sweeps over all links after which messages are taken to go on forever.
const DELIVERIES_MAX: usize = 10_000;
