//! A node that lies: it has the token, runs a real engine, and injects messages that no engine
//! sends (protocol, *What a message is checked against*).
//!
//! Whatever it sends, no honest node is blamed; and keys with which it has had nothing to do, as
//! neither home nor owner nor holder, stay sound: one owner, each push once, no operation waits
//! forever. Its pushes are believed, so it only pushes zeros here.
//!
//! Engines over reference stores in lockstep, as in [`crate::cluster`], but without its checkers: a
//! liar would violate them with every step.

mod lie;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use adapm_core::clock::Clock;
use adapm_core::config::NodeConfig;
use adapm_core::engine::{Event, Input, Intent, Op, OpBody, OpId, SignalId};
use adapm_core::error::{InputError, OpError};
use adapm_core::id::{Key, NodeId, WorkerId};
use adapm_core::layout::Layout;
use adapm_core::policy::System;
use adapm_core::slot::State;
use adapm_core::store::Store;
use adapm_core::time::Instant;
use adapm_core::transport::Frame;
use adapm_core::wire::message::{Body, GrantKind, Grants};
use adapm_core::wire::{self, Message};

use crate::planted::{self, Driver, Fault};
use crate::rng::Rng;
use crate::violation::{Violation, hold};
use crate::{Bug, Checks, Recorder};

pub use lie::Lie;

/// The outcome of one or more runs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Number of runs.
    pub runs: u64,
    /// Number of lies sent.
    pub lies: u64,
    /// Runs in which the liar was named; from then on it is lost.
    pub named: u64,
    /// Keys with which it had nothing to do, at the end of each run, whose owner and value were
    /// checked.
    pub keys: u64,
    /// Operations on such keys that were checked to have ended.
    pub ops: u64,
}

impl Outcome {
    /// Adds the outcome of other runs.
    pub fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.lies += other.lies;
        self.named += other.named;
        self.keys += other.keys;
        self.ops += other.ops;
    }
}

/// Runs the schedule of `seed` under `system`, in which one node repeatedly sends `lie`, if any.
/// `bug` is planted in all nodes; `checks` are active.
///
/// # Errors
/// A violation at the other nodes.
pub fn run(
    system: System,
    seed: u64,
    lie: Option<Lie>,
    bug: Option<Bug>,
    checks: Checks,
) -> Result<Outcome, Violation> {
    let mut world = World::new(system, seed, bug, checks);
    for step in 0..STEPS {
        world.step()?;
        if let Some(lie) = lie.filter(|_| step > QUIET_STEPS && world.rng.chance(LIES_PERCENT))
            && !world.is_lost
        {
            world.tell(lie);
        }
    }
    world.settle()?;
    world.judge()
}

/// An operation of an honest node.
struct Call {
    keys: Vec<Key>,
    is_push: bool,
    is_done: bool,
    has_failed: bool,
}

/// Four nodes, one of which lies.
pub(super) struct World {
    rng: Rng,
    checks: Checks,
    engines: Vec<Driver>,
    /// The mistake planted around each engine.
    faults: Vec<Option<Fault>>,
    liar: NodeId,
    now: Instant,
    clocks: Vec<Clock>,
    network: BTreeMap<(NodeId, NodeId), VecDeque<Message>>,
    /// Operations of honest nodes.
    calls: BTreeMap<(NodeId, OpId), Call>,
    ops: u64,
    /// Keys with which the liar has to do.
    touched: BTreeSet<Key>,
    /// Its messages, and those that it received lately.
    said: Vec<(NodeId, Message)>,
    heard: Vec<(NodeId, Message)>,
    /// The alteration of its engine's messages.
    manner: Option<Lie>,
    is_lost: bool,
    lies: u64,
}

impl World {
    fn new(system: System, seed: u64, bug: Option<Bug>, checks: Checks) -> Self {
        let layout = Layout::dense(&[(KEYS, 1)]).expect("there are keys");
        let mut rng = Rng::new(seed);
        let parked_max = rng.choose(&[0, 2, 64]);
        let location_caches = rng.chance(75);
        let liar = NodeId(rng.within(0..NODES) as u16);
        let engine = |node| {
            let mut config = NodeConfig::new(node, NODES, 1);
            (config.parked_max, config.location_caches) = (parked_max, location_caches);
            config.secret = [seed, u64::from(node.0)];
            let zero = Arc::new(|_: Key, _: &mut [i64]| {});
            let (engine, fault) = planted::engine(config, &layout, system.policy(1), zero, bug);
            (Driver::new(engine), fault)
        };
        let (engines, faults) = nodes().map(engine).unzip();
        Self {
            engines,
            faults,
            rng,
            checks,
            liar,
            now: Instant::ZERO,
            clocks: vec![Clock(0); NODES],
            network: BTreeMap::new(),
            calls: BTreeMap::new(),
            ops: 0,
            touched: keys().filter(|key| Layout::home(*key, NODES) == liar).collect(),
            said: Vec::new(),
            heard: Vec::new(),
            manner: None,
            is_lost: false,
            lies: 0,
        }
    }

    /// Makes one node act, and delivers some messages.
    fn step(&mut self) -> Result<(), Violation> {
        self.now = self.now.plus_nanos(100_000 + self.rng.within(0..400_000) as u64);
        let node = NodeId(self.rng.within(0..NODES) as u16);
        let lies = node == self.liar;
        if !(lies && self.is_lost) {
            match self.rng.within(0..10) {
                0 | 1 => self.signal(node)?,
                2 | 3 if !lies => self.operate(node, 2)?,
                4 if !lies => self.operate(node, 0)?,
                5 if !lies && self.rng.chance(30) => self.operate(node, 1)?,
                6 => self.clocks[node.index()].0 += 1,
                _ => self.wake(node)?,
            }
        }
        for _ in 0..self.rng.within(0..5) {
            let (from, to) = (self.rng.within(0..NODES) as u16, self.rng.within(0..NODES) as u16);
            self.deliver(NodeId(from), NodeId(to))?;
        }
        Ok(())
    }

    fn signal(&mut self, node: NodeId) -> Result<(), Violation> {
        let mut keys = self.some_keys(3);
        if node == self.liar {
            // The liar wants few of the keys, so that it has nothing to do with most.
            keys.retain(|key| key.0 % 4 == 3);
        }
        let clock = self.clocks[node.index()];
        let clocks = clock..Clock(clock.0 + 3);
        let intent = Intent { worker: WorkerId(0), id: SignalId(0), keys, clocks };
        self.feed(node, Input::Intent(intent))
    }

    /// Begins a pull (0), localize (1) or push (2).
    fn operate(&mut self, node: NodeId, what: usize) -> Result<(), Violation> {
        let keys = self.some_keys(2);
        self.ops += 1;
        let (id, worker) = (OpId(self.ops), WorkerId(0));
        let body = match what {
            0 => OpBody::Pull { keys: keys.clone() },
            1 => OpBody::Localize { keys: keys.clone() },
            _ => OpBody::Push { keys: keys.clone(), updates: vec![1; keys.len()] },
        };
        self.calls.insert(
            (node, id),
            Call { keys, is_push: what == 2, is_done: false, has_failed: false },
        );
        self.feed(node, Input::Op(Op { id, worker, body }))
    }

    fn wake(&mut self, node: NodeId) -> Result<(), Violation> {
        let clocks = [self.clocks[node.index()]];
        self.feed(node, Input::Timeout(&clocks))
    }

    fn deliver(&mut self, from: NodeId, to: NodeId) -> Result<bool, Violation> {
        let queue = self.network.get_mut(&(from, to));
        let Some(message) = queue.and_then(VecDeque::pop_front) else { return Ok(false) };
        if to == self.liar {
            self.heard.push((from, message.clone()));
            if self.heard.len() > HEARD_MAX {
                self.heard.remove(0);
            }
            if self.is_lost || self.manner == Some(Lie::Mute) {
                return Ok(true);
            }
        }
        self.feed(to, Input::Message(from, message))?;
        Ok(true)
    }

    fn feed(&mut self, node: NodeId, input: Input<'_, i64>) -> Result<(), Violation> {
        let honest = node != self.liar;
        let text = if honest { format!("{input:?}") } else { String::new() };
        let mut said = Recorder::default();
        let engine = &mut self.engines[node.index()];
        let verdict = match &mut self.faults[node.index()] {
            Some(fault) => fault.feed(engine, self.now, input, &mut said),
            None => engine.feed(self.now, input, &mut said),
        };
        match verdict {
            Err(InputError::Peer(error)) if honest => {
                let text: String = text.chars().take(TEXT_MAX).collect();
                hold!(self.checks => HonestIsSpared, error.peer == self.liar, "{node} says that {error}, {} lies: {text}", self.liar);
                self.take_said(node, said)?;
                return self.give_up();
            }
            Err(InputError::Caller(error)) if honest => {
                panic!("a sound call of {node} is refused: {error}")
            }
            _ => {}
        }
        self.take_said(node, said)
    }

    fn take_said(&mut self, node: NodeId, said: Recorder<i64>) -> Result<(), Violation> {
        for (to, message) in said.sent {
            self.send(node, to, message);
        }
        for event in said.events {
            match event {
                Event::Done { op, .. } => {
                    self.calls.entry((node, op)).and_modify(|call| call.is_done = true);
                }
                Event::Failed { op, error } => {
                    let named = error == OpError::lost(self.liar);
                    hold!(self.checks => HonestIsSpared, named || node == self.liar, "{node} says that {error}, {} lies", self.liar);
                    self.calls.entry((node, op)).and_modify(|call| call.has_failed = true);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn send(&mut self, from: NodeId, to: NodeId, message: Message) {
        let mut frame = Frame::default();
        wire::encode(message, &mut frame);
        let mut message = wire::decode(&mut frame).expect("what was encoded can be decoded");
        if from == self.liar {
            if self.is_lost || !self.alter(to, &mut message) {
                return;
            }
            self.said.push((to, message.clone()));
        } else if to == self.liar {
            self.touch(&message);
        }
        self.network.entry((from, to)).or_default().push_back(message);
    }

    /// Sends `message` from the liar.
    fn say(&mut self, to: NodeId, message: Message) {
        self.lies += 1;
        self.said.push((to, message.clone()));
        self.network.entry((self.liar, to)).or_default().push_back(message);
    }

    /// Records keys that an honest node gives the liar.
    fn touch(&mut self, message: &Message) {
        let mut granted = |grants: &Grants| {
            let kinds = grants.at.keys.iter().zip(&grants.kinds);
            self.touched
                .extend(kinds.filter(|(_, kind)| **kind != GrantKind::Remote).map(|(key, _)| *key));
        };
        match &*message.body {
            Body::Grant(grants) => granted(grants),
            Body::SyncResponse(response) => granted(&response.grants),
            _ => {}
        }
    }

    /// Makes all others lose the liar, which is named.
    fn give_up(&mut self) -> Result<(), Violation> {
        if self.is_lost {
            return Ok(());
        }
        self.is_lost = true;
        for node in self.honest() {
            self.feed(node, Input::PeerLost(self.liar))?;
        }
        Ok(())
    }

    /// Runs on until nothing is left to do; includes the liar's engine unless it is lost or mute.
    fn settle(&mut self) -> Result<(), Violation> {
        for _ in 0..SETTLE_ROUNDS {
            self.now = self.now.plus_nanos(2_000_000);
            for node in nodes() {
                if node != self.liar || !(self.is_lost || self.manner == Some(Lie::Mute)) {
                    self.clocks[node.index()].0 += 1;
                    self.wake(node)?;
                }
            }
            for from in nodes() {
                for to in nodes() {
                    while self.deliver(from, to)? {}
                }
            }
        }
        Ok(())
    }

    /// Checks everything that must hold at the end.
    fn judge(&mut self) -> Result<Outcome, Violation> {
        let mut outcome = Outcome {
            runs: 1,
            lies: self.lies,
            named: u64::from(self.is_lost),
            ..Outcome::default()
        };
        let untouched = |key: &Key| !self.touched.contains(key);
        let (mut begun, mut acknowledged) =
            (BTreeMap::<Key, i64>::new(), BTreeMap::<Key, i64>::new());
        for ((node, op), call) in &self.calls {
            if call.is_push {
                call.keys.iter().for_each(|key| *begun.entry(*key).or_default() += 1);
                if call.is_done {
                    call.keys.iter().for_each(|key| *acknowledged.entry(*key).or_default() += 1);
                }
            }
            if call.keys.iter().all(untouched) {
                let (liar, keys) = (self.liar, &call.keys);
                hold!(self.checks => LieHoldsUpNothing, call.is_done || call.has_failed, "{op:?} of {node} on {keys:?} does not end, {liar} lies");
                outcome.ops += 1;
            }
        }
        for key in keys().filter(untouched) {
            outcome.keys += 1;
            let states: Vec<State> = nodes().map(|node| self.state(node, key)).collect();
            let owners: Vec<NodeId> =
                nodes().filter(|node| states[node.index()] == State::Main).collect();
            let [owner] = *owners.as_slice() else {
                hold!(self.checks => LieSpoilsNothing, false, "{key} has owners {owners:?}, {} lies: {states:?}", self.liar);
                continue;
            };
            let copy = |node: NodeId, of_delta: bool| {
                let store = self.engines[node.index()].engine().store();
                store.with_slot(key, |slot| if of_delta { slot.delta[0] } else { slot.value[0] })
            };
            let holders =
                self.honest().into_iter().filter(|node| states[node.index()] == State::Replica);
            let sum = copy(owner, false) + holders.map(|node| copy(node, true)).sum::<i64>();
            let least = acknowledged.get(&key).copied().unwrap_or(0);
            let most = begun.get(&key).copied().unwrap_or(0);
            // Operations of a node that has lost another may fail and take effect nevertheless.
            let is_sound = if self.is_lost { (least..=most).contains(&sum) } else { sum == most };
            hold!(self.checks => LieSpoilsNothing, is_sound, "{key} has {sum} pushes of {most}, {least} of them acknowledged, {} lies", self.liar);
        }
        Ok(outcome)
    }

    fn state(&self, node: NodeId, key: Key) -> State {
        self.engines[node.index()].engine().inspect(key).packed.state()
    }

    fn honest(&self) -> Vec<NodeId> {
        nodes().filter(|node| *node != self.liar).collect()
    }

    /// Returns one or more keys, ascending.
    fn some_keys(&mut self, most: usize) -> Vec<Key> {
        let count = self.rng.within(1..most + 1);
        let keys: BTreeSet<Key> =
            (0..count).map(|_| Key(self.rng.within(0..KEYS as usize) as u64)).collect();
        keys.into_iter().collect()
    }
}

fn nodes() -> impl Iterator<Item = NodeId> {
    (0..NODES as u16).map(NodeId)
}

fn keys() -> impl Iterator<Item = Key> {
    (0..KEYS).map(Key)
}

/// Returns the row of a table for runs with `lie`.
#[must_use]
pub fn row(lie: Option<Lie>, outcome: &Outcome) -> String {
    let name = lie.map_or_else(|| String::from("(no lie)"), |lie| lie.to_string());
    let Outcome { runs, lies, named, keys, ops } = outcome;
    format!("{name:22} {runs:>6} {lies:>8} {named:>6} {keys:>8} {ops:>8}")
}

/// Returns the head of the table.
#[must_use]
pub fn head() -> String {
    format!("{:22} {:>6} {:>8} {:>6} {:>8} {:>8}", "lie", "runs", "told", "named", "keys", "ops")
}

const NODES: usize = 4;
const KEYS: u64 = 16;
/// Number of steps of a schedule, and of its start without lies.
const STEPS: usize = 300;
const QUIET_STEPS: usize = 40;
const LIES_PERCENT: u64 = 12;
/// Rounds after which pending operations will wait forever.
const SETTLE_ROUNDS: usize = 60;
/// Number of messages that the liar remembers.
const HEARD_MAX: usize = 40;
/// Number of characters of an input that fit a line.
const TEXT_MAX: usize = 300;
