//! Schedules from seeds: phase 1 is hardship (any step, any order), phase 2 drains the cluster and checks it at rest.
//!
//! Everything about a run follows from its seed: nodes, workers, keys, system, bounds and every step.

mod losses;
mod rare;
mod signals;
mod unresponsive;

use std::sync::Arc;

use adapm_core::engine::OpId;
use adapm_core::id::{ChannelId, Key, NodeId, WorkerId};
use adapm_core::layout::Layout;
use adapm_core::policy::{System, SystemPolicy};
use adapm_core::wire::message::{Body, Message};

use crate::air::Pairs;
use crate::cluster::Cluster;
use crate::invariants::refusal;
use crate::oracle::Who;
use crate::rng::Rng;
use crate::setup::Setup;
use crate::violation::Violation;

pub use crate::random_policy::RandomPolicy;

/// Steps of the first phase of a run that counts.
pub const STEPS: usize = 200;

/// The cluster of a seed: at least 3 nodes, 2 workers a node, 8 keys.
#[must_use]
pub fn setup(seed: u64) -> Setup {
    let mut rng = Rng::new(seed ^ SETUP_SALT);
    let nodes = rng.within(3..5);
    let workers = rng.within(2..4);
    let at = rng.within(0..System::ALL.len() + 2);
    let system = System::ALL.get(at).copied();
    let mut setup = Setup::new(system.unwrap_or_default(), nodes, workers, 8);
    if system.is_none() {
        setup.policy =
            Arc::new(move |node| Box::new(RandomPolicy::new(seed ^ u64::from(node.0))) as SystemPolicy);
        (setup.adaptive, setup.sequential) = (false, false);
    }
    setup.location_caches = rng.chance(67);
    setup.block_bytes_max = rng.choose(&[4 << 20, 128, 16]);
    setup.parked_max = rng.choose(&[1 << 16, 1, 0]);
    let sparse = rng.chance(25);
    let channels = rng.choose(&[1, 1, 1, 2]);
    // At least 8 keys in each channel.
    let keys = if channels == 1 { 4 } else { 10 };
    let extents = [(keys, 5), (keys, 3)];
    let layout = if sparse { Layout::sparse(&extents) } else { Layout::dense(&extents) };
    setup.layout = layout.expect("a cluster has keys");
    setup.channel = (ChannelId(rng.within(0..channels) as u16), channels);
    setup.grants_max = rng.choose(&[512, 2, 1]);
    setup.requests_max = rng.choose(&[1 << 16, 3, 1]);
    let looks = Rng::new(seed ^ LOOK_SALT).chance(50);
    setup.unresponsive_nanos = Some(UNRESPONSIVE_NANOS).filter(|_| looks);
    setup
}

/// The cluster of a seed, in which one or two nodes vanish.
#[must_use]
pub fn setup_with_losses(seed: u64) -> Setup {
    let mut setup = setup(seed);
    setup.losses = Rng::new(seed ^ LOSS_SALT).within(1..3);
    setup
}

/// The cluster of a seed, in which signals are taken back; in every second one, nodes vanish too.
#[must_use]
pub fn setup_with_take_backs(seed: u64) -> Setup {
    let mut setup = if seed.is_multiple_of(2) { setup(seed) } else { setup_with_losses(seed) };
    setup.takes_back = true;
    setup
}

/// Runs the schedule of `seed` in `setup` with `steps` steps of hardship; what was met is added to `pairs`.
///
/// # Errors
/// The first violation.
pub fn run(setup: Setup, seed: u64, steps: usize, pairs: &mut Pairs) -> Result<(), Violation> {
    let mut schedule = Schedule::new(setup, seed);
    let result = schedule.hardship(steps).and_then(|()| schedule.drain());
    pairs.merge(schedule.cluster.pairs());
    result
}

/// Runs the schedule of `seed` and calls `tell` with each step in words.
///
/// # Errors
/// The first violation.
pub fn tell(
    setup: Setup,
    seed: u64,
    steps: usize,
    tell: impl FnMut(&str) + 'static,
) -> Result<(), Violation> {
    let mut schedule = Schedule::new(setup, seed);
    schedule.cluster.tell_steps(tell);
    schedule.hardship(steps).and_then(|()| schedule.drain())
}

struct Schedule {
    cluster: Cluster,
    rng: Rng,
    keys: Vec<Key>,
    sets: bool,
    localizes: bool,
    /// Whether workers signal before every round.
    eager: bool,
    /// The way on which messages wait longest.
    slow: (NodeId, NodeId),
    /// Keys that everybody wants, and how many percent of the accesses go to them.
    hot: (usize, u64),
}

impl Schedule {
    fn new(setup: Setup, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let cluster = Cluster::new(setup);
        let keys = cluster.keys().collect();
        let (sets, localizes, eager) = (rng.chance(40), rng.chance(60), rng.chance(40));
        let hot = (rng.within(1..4), rng.choose(&[40, 60, 90]));
        let slow = (NodeId(0), NodeId(1));
        Self { cluster, rng, keys, sets, localizes, eager, slow, hot }
    }

    fn hardship(&mut self, steps: usize) -> Result<(), Violation> {
        for _ in 0..steps {
            self.step()?;
        }
        Ok(())
    }

    /// Barrier, quiesce, end, leave: at rest after each. After a loss all of them fail.
    fn drain(&mut self) -> Result<(), Violation> {
        self.find_unresponsive()?;
        self.tell_all()?;
        // Intents expire before all meet, or last until all end.
        if self.rng.chance(50) {
            for who in self.live() {
                self.cluster.advance_clock(who, 1_000);
            }
        }
        self.cluster.settle()?;
        self.meet_unpaused()?;
        self.meet_late()?;
        self.cluster.settle()?;
        self.all_call(Cluster::quiesce)?;
        self.cluster.settle()?;
        self.all_call(Cluster::end)?;
        self.cluster.settle()?;
        for node in self.cluster.living() {
            self.cluster.leave((node, WorkerId(0)))?;
        }
        self.cluster.settle()
    }

    fn step(&mut self) -> Result<(), Violation> {
        if self.lose()? {
            return Ok(());
        }
        match self.rng.within(0..100) {
            0..38 => self.deliver(),
            38..58 => self.access(),
            58..67 => self.signal(),
            67..80 => {
                let who = self.worker();
                let clocks = if self.rng.chance(10) { 30 } else { self.rng.within(1..5) as u64 };
                self.cluster.advance_clock(who, clocks);
                Ok(())
            }
            80..92 => {
                let node = self.node();
                if self.eager {
                    self.signal_again(node)?;
                }
                self.cluster.round(node)
            }
            92..94 => {
                let node = self.node();
                self.cluster.drain(node)
            }
            94..97 => {
                let (from, to) = self.two_nodes();
                let message = refusal::bad_message(&self.cluster, &mut self.rng, from, to);
                // What is impossible otherwise may be late after a loss.
                if self.cluster.setup().checks.contains(11) && !self.cluster.losses().any() {
                    self.cluster.feed_bad(from, to, message)
                } else {
                    Ok(())
                }
            }
            97 => self.end_one(),
            98 => self.barrier(),
            _ => self.timeout_early(),
        }
    }

    fn deliver(&mut self) -> Result<(), Violation> {
        let loaded = self.cluster.air().loaded();
        if loaded.is_empty() {
            let node = self.node();
            return self.cluster.round(node);
        }
        let (from, to) = self.choose_way(&loaded);
        let nanos = self.rng.within(0..200_000) as u64;
        self.cluster.advance_time(nanos);
        self.cluster.deliver(from, to)?;
        // A driver asks its engine for a round whenever something has happened.
        if self.rng.chance(20) { self.cluster.round(to) } else { Ok(()) }
    }

    /// Ways take turns in being slow, so that messages overtake each other on a third node.
    fn choose_way(&mut self, loaded: &[(NodeId, NodeId)]) -> (NodeId, NodeId) {
        if self.rng.chance(5) {
            let telling = self.telling_ways(loaded);
            self.slow = if telling.is_empty() { self.two_nodes() } else { self.rng.choose(&telling) };
        }
        let way = self.rng.choose(loaded);
        if way == self.slow && self.rng.chance(95) {
            let others: Vec<_> = loaded.iter().copied().filter(|way| *way != self.slow).collect();
            return if others.is_empty() { way } else { self.rng.choose(&others) };
        }
        way
    }

    /// Ways on which a fact is under way to a home.
    fn telling_ways(&self, loaded: &[(NodeId, NodeId)]) -> Vec<(NodeId, NodeId)> {
        let tells = |message: &Message| matches!(*message.body, Body::Residence(_));
        let telling = |way: &(NodeId, NodeId)| self.cluster.air().queue(way.0, way.1).any(tells);
        loaded.iter().copied().filter(telling).collect()
    }

    fn access(&mut self) -> Result<(), Violation> {
        if self.rng.chance(15) && self.push_under_holders()? {
            return Ok(());
        }
        if self.rng.chance(50) && self.push_behind_a_move()? {
            return Ok(());
        }
        if self.rng.chance(30) && self.move_ahead_of_a_fact()? {
            return Ok(());
        }
        let Some(who) = self.free_worker() else { return self.deliver() };
        let keys = self.some_keys();
        let op = match self.rng.within(0..100) {
            0..40 => self.cluster.pull(who, &keys),
            40..80 => self.cluster.push(who, &keys),
            80..88 if self.sets => {
                let settable: Vec<Key> = self.keys.iter().copied().filter(|key| key.0 % 4 == 1).collect();
                let among = if self.rng.chance(70) { 1 } else { settable.len() };
                let key = self.rng.choose(&settable[..among]);
                self.cluster.set(who, &[key])
            }
            88..96 if self.localizes => self.cluster.localize(who, &keys),
            96..98 => self.cluster.wait_sync(who),
            _ => self.cluster.pull(who, &keys[..1]),
        }?;
        if self.rng.chance(50) {
            self.cluster.block(who, op);
        }
        Ok(())
    }

    fn end_one(&mut self) -> Result<(), Violation> {
        match self.free_worker() {
            Some(who) if self.rng.chance(20) => self.cluster.end(who).map(|_| ()),
            _ => self.deliver(),
        }
    }

    /// All live workers meet, one after the other, if none of them waits for something else.
    fn barrier(&mut self) -> Result<(), Violation> {
        let blocked = self.live().into_iter().any(|who| !self.is_free(who));
        if blocked || self.rng.chance(50) {
            return self.deliver();
        }
        let call = if self.rng.chance(50) { Cluster::barrier } else { Cluster::quiesce };
        let mut late = self.live();
        while !late.is_empty() {
            let who = late.swap_remove(self.rng.within(0..late.len()));
            let op = call(&mut self.cluster, who)?;
            self.cluster.block(who, op);
            if self.rng.chance(30) {
                self.deliver()?;
            }
        }
        Ok(())
    }

    fn timeout_early(&mut self) -> Result<(), Violation> {
        let node = self.node();
        self.cluster.timeout(node)
    }

    fn all_call(&mut self, call: fn(&mut Cluster, Who) -> Result<OpId, Violation>) -> Result<(), Violation> {
        self.live().into_iter().try_for_each(|who| call(&mut self.cluster, who).map(|_| ()))
    }

    fn live(&self) -> Vec<Who> {
        let ended = |who: &Who| self.cluster.member(who.0).workers[who.1.index()].ended;
        self.cluster.workers().filter(|who| !ended(who)).collect()
    }

    fn is_free(&self, who: Who) -> bool {
        self.cluster.member(who.0).workers[who.1.index()].blocked.is_none()
    }

    fn free_worker(&mut self) -> Option<Who> {
        let free: Vec<Who> = self.live().into_iter().filter(|who| self.is_free(*who)).collect();
        if free.is_empty() { None } else { Some(self.rng.choose(&free)) }
    }

    fn worker(&mut self) -> Who {
        let gone = |who: &Who| self.cluster.losses().is_gone(who.0);
        let workers: Vec<Who> = self.cluster.workers().filter(|who| !gone(who)).collect();
        self.rng.choose(&workers)
    }

    fn node(&mut self) -> NodeId {
        let nodes: Vec<NodeId> = self.cluster.living().collect();
        self.rng.choose(&nodes)
    }

    fn two_nodes(&mut self) -> (NodeId, NodeId) {
        let nodes = self.cluster.setup().nodes;
        let from = self.rng.within(0..nodes);
        let to = (from + self.rng.within(1..nodes)) % nodes;
        (NodeId(from as u16), NodeId(to as u16))
    }

    /// One to three keys, most of them among the few that everybody wants; rarely one of them twice.
    fn some_keys(&mut self) -> Vec<Key> {
        let count = self.rng.within(1..4);
        let mut keys: Vec<Key> = Vec::new();
        for _ in 0..count {
            let (hot, percent) = self.hot;
            let among = if self.rng.chance(percent) { hot } else { self.keys.len() };
            let key = self.rng.choose(&self.keys[..among]);
            if !keys.contains(&key) || self.rng.chance(20) {
                keys.push(key);
            }
        }
        keys
    }
}

const SETUP_SALT: u64 = 0x5e70_95a1_7000_0001;
/// Much longer than a schedule takes before it drains.
const UNRESPONSIVE_NANOS: u64 = 1_000_000_000;
const LOSS_SALT: u64 = 0x1055_95a1_7000_0002;
const LOOK_SALT: u64 = 0x100c_95a1_7000_0003;
