//! A whole cluster in one thread: the test chooses every step, and every invariant is checked after each.
//!
//! Nodes are real engines over reference stores; workers use the fast path as the runtime's do; messages wait in one queue
//! per sender and receiver until the test delivers the first of one. Time is virtual. Nothing is random here
//! ([`super::random`]), and nothing is read from a text ([`super::script`]).
//!
//! A step that breaks an invariant returns a [`Violation`].

use std::collections::BTreeSet;

use adapm_core::clock::Clock;
use adapm_core::engine::{Event, Input, Intent, Reason, SignalId};
use adapm_core::error::InputError;
use adapm_core::id::{Counter, Key, NodeId};
use adapm_core::stats::Stats;
use adapm_core::time::Instant;
use adapm_core::wire::Message;

use crate::air::{Air, Pairs};
use crate::call::Calls;
use crate::check::Checks;
use crate::invariants;
use crate::loss::Losses;
use crate::member::{Member, Row, Told};
use crate::oracle::{Oracle, Who};
use crate::recorder::Recorder;
use crate::setup::Setup;
use crate::violation::{Violation, hold};

/// Hears what happens, in words.
pub(super) type Tell = Box<dyn FnMut(&str)>;

/// Nodes in lockstep.
pub struct Cluster {
    pub(super) setup: Setup,
    pub(super) members: Vec<Member>,
    pub(super) air: Air,
    pub(super) oracle: Oracle,
    pub(super) calls: Calls,
    /// What the engine of the last step told, with its node.
    pub(super) told: Vec<(NodeId, Told)>,
    /// Nodes that ever localized a key: for them it may leave an owner with intent.
    pub(super) localized: BTreeSet<(NodeId, Key)>,
    /// Intents signalled and perhaps not yet expired: what invariant 10 allows a node to remember.
    pub(super) signalled: Vec<(NodeId, Intent)>,
    /// The counter under which each key's home knew its owner after the last step.
    pub(super) heard: Vec<Counter>,
    pub(super) losses: Losses,
    pub(super) step: u64,
    /// Hears every step in words.
    pub(super) tell: Option<Tell>,
    pub(super) now: Instant,
    pub(super) pairs: Pairs,
}

impl Cluster {
    /// A cluster in which nothing has happened.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let keys = setup.layout.keys().end.0;
        let value_lens: Vec<usize> = (0..keys).map(|key| setup.value_len(Key(key))).collect();
        Self {
            members: (0..setup.nodes).map(|node| Member::new(&setup, NodeId(node as u16))).collect(),
            air: Air::new(&setup.layout, setup.nodes, setup.codec),
            oracle: Oracle::new(&value_lens).judged_by(setup.checks),
            calls: Calls::default(),
            told: Vec::new(),
            localized: BTreeSet::new(),
            signalled: Vec::new(),
            heard: vec![Counter::default(); value_lens.len()],
            losses: Losses::default(),
            step: 0,
            tell: None,
            now: Instant::ZERO,
            pairs: Pairs::default(),
            setup,
        }
    }

    /// Delivers the first message from `from` to `to`; whether there was one.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn deliver(&mut self, from: NodeId, to: NodeId) -> Result<bool, Violation> {
        let Some((message, entries)) = self.air.take(from, to) else { return Ok(false) };
        if self.losses.knows(to, from) {
            self.deliver_late(to, from, message)?;
            return Ok(true);
        }
        for entry in &entries {
            self.pairs.record(self.row(to, entry.key).state(), entry.kind);
        }
        self.note(|cluster| format!("{:?} {from} -> {to}: {}", cluster.now, cluster.describe(&message)));
        self.feed(to, Input::Message(from, message))?;
        self.finish_step(to)?;
        Ok(true)
    }

    /// Lets time pass.
    pub fn advance_time(&mut self, nanos: u64) {
        self.now = self.now.plus_nanos(nanos);
    }

    /// Tells `node` the time and its workers' clocks: a round begins if one is due.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn timeout(&mut self, node: NodeId) -> Result<(), Violation> {
        let clocks = self.members[node.index()].clocks();
        self.feed(node, Input::Timeout(&clocks))?;
        self.finish_step(node)
    }

    /// Lets enough time pass for a round of `node` to be due, then [`Cluster::timeout`].
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn round(&mut self, node: NodeId) -> Result<(), Violation> {
        let earliest = self.now.plus_nanos(ROUND_NANOS);
        let member = &self.members[node.index()];
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

    /// Signals an intent of a worker.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn intent(&mut self, who: Who, keys: &[Key], clocks: core::ops::Range<u64>) -> Result<(), Violation> {
        self.intent_as(who, SignalId::default(), keys, clocks)
    }

    /// As [`Cluster::intent`], under a name.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn intent_as(
        &mut self,
        who: Who,
        id: SignalId,
        keys: &[Key],
        clocks: core::ops::Range<u64>,
    ) -> Result<(), Violation> {
        let clocks = Clock(clocks.start)..Clock(clocks.end);
        let intent = Intent { worker: who.1, id, keys: keys.to_vec(), clocks };
        self.signalled.push((who.0, intent.clone()));
        self.feed(who.0, Input::Intent(intent))?;
        self.finish_step(who.0)
    }

    /// What a worker signalled last that may not have expired.
    #[must_use]
    pub fn latest_intent(&self, who: Who) -> Option<&Intent> {
        let of_worker = |(node, intent): &&(NodeId, Intent)| (*node, intent.worker) == who;
        self.signalled.iter().rev().find(of_worker).map(|(_, intent)| intent)
    }

    /// Takes an intent of a worker back.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn take_back(
        &mut self,
        who: Who,
        id: SignalId,
        keys: &[Key],
        clocks: core::ops::Range<u64>,
    ) -> Result<(), Violation> {
        let clocks = Clock(clocks.start)..Clock(clocks.end);
        let intent = Intent { worker: who.1, id, keys: keys.to_vec(), clocks };
        self.feed(who.0, Input::TakeBack(intent))?;
        self.finish_step(who.0)
    }

    /// Raises the clock of a worker by `clocks`; its node hears of it with its next timeout.
    pub fn advance_clock(&mut self, who: Who, clocks: u64) {
        let worker = &mut self.members[who.0.index()].workers[who.1.index()];
        worker.clock = worker.clock + clocks;
    }

    /// Delivers, and lets time pass, until nothing is left to do: everything sent is applied everywhere.
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
                    return invariants::check_at_rest(self);
                }
            } else {
                calm = 0;
            }
            self.now = self.now.plus_nanos(ROUND_NANOS);
            for node in self.living() {
                if let Some(until) = self.members[node.index()].node.until() {
                    self.now = self.now.max(until);
                }
                self.timeout(node)?;
            }
        }
        let waiting: Vec<_> = self.living().filter(|node| !self.engine_is_at_rest(*node)).collect();
        hold!(Checks::ALL => ComesToRest, false, "the cluster does not come to rest: {waiting:?} have something waiting");
        Ok(())
    }

    /// Checks everything that must hold when nothing is left to do.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check_at_rest(&mut self) -> Result<(), Violation> {
        invariants::check_at_rest(self)
    }

    /// Delivers every message, and those sent meanwhile, link by link.
    ///
    /// # Errors
    /// If that breaks an invariant, or messages breed messages forever (6).
    pub fn deliver_all(&mut self) -> Result<(), Violation> {
        for _ in 0..DELIVERIES_MAX {
            let loaded = self.air.loaded();
            if loaded.is_empty() {
                return Ok(());
            }
            for (from, to) in loaded {
                self.deliver(from, to)?;
            }
        }
        hold!(Checks::ALL => ComesToRest, false, "messages go on forever: {:?}", self.air.loaded());
        Ok(())
    }

    /// Feeds a message that `from` cannot have sent: `node` must refuse it, blame `from`, and change nothing.
    ///
    /// # Errors
    /// Invariant 11 if it does otherwise.
    pub fn feed_bad(&mut self, from: NodeId, node: NodeId, message: Message) -> Result<(), Violation> {
        let text = format!("{:?}", message.body);
        let before = self.memory_of(node);
        let (result, said) = self.members[node.index()].feed(self.now, Input::Message(from, message));
        let blamed = match &result {
            Err(InputError::Peer(error)) => Some(error.peer),
            Ok(()) | Err(_) => None,
        };
        hold!(self.setup.checks => BadIsBlamed, blamed == Some(from), "{node} answers {text} of {from} with {result:?}");
        let after = self.memory_of(node);
        hold!(self.setup.checks => BadChangesNothing, before == after, "{node} refuses {text} of {from} and yet is changed by it");
        hold!(self.setup.checks => BadSaysNothing, said.is_silent(), "{node} refuses {text} of {from} and yet says {said:?}");
        Ok(())
    }

    /// All that an input without effect must leave as it was.
    pub(super) fn memory_of(&mut self, node: NodeId) -> (Vec<Row>, usize, Stats) {
        let member = &mut self.members[node.index()];
        member.refresh();
        (member.rows.clone(), member.node.engine().side_entries(), *member.node.engine().stats())
    }

    /// Feeds an input to the engine and collects what it says; no invariant is checked yet.
    pub(super) fn feed(&mut self, node: NodeId, input: Input<'_, i64>) -> Result<(), Violation> {
        if !matches!(input, Input::Message(..)) {
            self.note(|cluster| format!("{:?} {node}: {input:?}", cluster.now));
        }
        let (result, said) = self.members[node.index()].feed(self.now, input);
        hold!(Checks::ALL => SoundIsTaken, result.is_ok(), "{node} refuses a sound input: {result:?}");
        self.take_said(node, said)
    }

    /// Takes what the engine of `node` says; no invariant is checked yet.
    fn take_said(&mut self, node: NodeId, said: Recorder<i64>) -> Result<(), Violation> {
        for (to, message) in said.sent {
            hold!(self.setup.checks => NothingToTheLost, !self.losses.knows(node, to), "{node} writes to {to}, which it has lost");
            self.check_bytes(node, &message)?;
            self.air.send(node, to, message);
        }
        let told = self.members[node.index()].take_told();
        self.told.extend(told.into_iter().map(|told| (node, told)));
        self.members[node.index()].refresh();
        let dropped = self.air.take_dropped();
        self.losses.note(&dropped);
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
        self.give_up_unresponsive(node, unresponsive)
    }

    /// Ends a step of `node`: looks at what it has and checks all invariants.
    pub(super) fn finish_step(&mut self, node: NodeId) -> Result<(), Violation> {
        self.members[node.index()].refresh_if_outdated();
        self.step += 1;
        let result = invariants::check(self, node);
        self.told.clear();
        self.heard = self.all_keys().map(|key| invariants::heard(self, key)).collect();
        result
    }

    pub(super) fn drain_quietly(&mut self, node: NodeId) -> Result<(), Violation> {
        let said = self.members[node.index()].feed_dirty();
        self.take_said(node, said)
    }

    /// Whether nothing is on its way, no node has anything waiting, and every operation is done.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.air.is_empty()
            && self.calls.unfinished() == 0
            && self.living().all(|node| self.engine_is_at_rest(node))
    }

    fn engine_is_at_rest(&self, node: NodeId) -> bool {
        let member = &self.members[node.index()];
        member.node.engine().is_at_rest() && member.workers.iter().all(|worker| worker.dirty.is_empty())
    }
}

/// The least time between two rounds of a node.
const ROUND_NANOS: u64 = 500_000;
/// Rounds without anything to do after which a cluster is at rest.
const CALM_ROUNDS: usize = 3;
/// Rounds after which a cluster that is not at rest never will be.
const SETTLE_ROUNDS_MAX: usize = 3_000;
/// Sweeps over all links after which messages are taken to go on forever.
const DELIVERIES_MAX: usize = 10_000;
