//! A random schedule: any step, any order, then the cluster is drained; nodes may vanish, and
//! survivors learn of it one after the other.

mod rare;

use adapm_core::engine::{OpId, SignalId};
use adapm_core::id::{Key, NodeId, WorkerId};
use adapm_core::wire::message::{Body, Message};

use crate::cluster::Cluster;
use crate::invariants::refusal;
use crate::oracle::NodeWorker;
use crate::rng::Rng;
use crate::setup::Setup;
use crate::violation::Violation;

/// A cluster, and the choices for it.
pub(super) struct Schedule {
    cluster: Cluster,
    rng: Rng,
    keys: Vec<Key>,
    sets: bool,
    localizes: bool,
    /// True if workers signal before every round.
    eager: bool,
    /// The link on which messages wait longest.
    slow: (NodeId, NodeId),
    /// Number of keys that all workers want, and the percentage of accesses to them.
    hot: (usize, u64),
}

impl Schedule {
    pub(super) fn new(setup: Setup, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let cluster = Cluster::new(setup);
        let keys = cluster.keys().collect();
        let (sets, localizes, eager) = (rng.chance(40), rng.chance(60), rng.chance(40));
        // Such systems never move main copies, and a copy that a localize holds would not go.
        let localizes = localizes && !cluster.setup().keeps;
        let hot = (rng.within(1..4), rng.choose(&[40, 60, 90]));
        let slow = (NodeId(0), NodeId(1));
        Self { cluster, rng, keys, sets, localizes, eager, slow, hot }
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(super) fn tell_steps(&mut self, tell: impl FnMut(&str) + 'static) {
        self.cluster.tell_steps(tell);
    }

    pub(super) fn hardship(&mut self, steps: usize) -> Result<(), Violation> {
        for _ in 0..steps {
            self.step()?;
        }
        Ok(())
    }

    /// Drains the cluster: barrier, quiesce, end, leave, at rest after each. After a loss all of
    /// them fail.
    pub(super) fn drain(&mut self) -> Result<(), Violation> {
        self.find_unresponsive()?;
        self.tell_all()?;
        // Intents expire before the workers meet, or last until the end.
        if self.rng.chance(50) {
            for who in self.live() {
                self.cluster.advance_clock(who, 1_000);
            }
        }
        if self.cluster.setup().bound.is_some() {
            self.cluster.catch_up()?;
        }
        self.cluster.settle()?;
        self.meet_apart()?;
        self.meet_unpaused()?;
        self.copy_while_keys_move()?;
        self.meet_late()?;
        self.cluster.settle()?;
        self.meet_between_rounds()?;
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
            67..80 if self.cluster.setup().bound.is_some() => self.tick(),
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
                // After a loss, otherwise impossible messages may just be late.
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
        let loaded = self.cluster.network().loaded();
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

    /// Chooses the slow link: links take turns, so that messages overtake each other on a third
    /// node.
    fn choose_way(&mut self, loaded: &[(NodeId, NodeId)]) -> (NodeId, NodeId) {
        if self.rng.chance(5) {
            let telling = self.telling_ways(loaded);
            self.slow =
                if telling.is_empty() { self.two_nodes() } else { self.rng.choose(&telling) };
        }
        let way = self.rng.choose(loaded);
        if way == self.slow && self.rng.chance(95) {
            let others: Vec<_> = loaded.iter().copied().filter(|way| *way != self.slow).collect();
            return if others.is_empty() { way } else { self.rng.choose(&others) };
        }
        way
    }

    /// Returns the links with a fact in flight to a home.
    fn telling_ways(&self, loaded: &[(NodeId, NodeId)]) -> Vec<(NodeId, NodeId)> {
        let tells = |message: &Message| matches!(*message.body, Body::Residence(_));
        let telling =
            |way: &(NodeId, NodeId)| self.cluster.network().queue(way.0, way.1).any(tells);
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
                let settable: Vec<Key> =
                    self.keys.iter().copied().filter(|key| key.0 % 4 == 1).collect();
                let among = if self.rng.chance(70) { 1 } else { settable.len() };
                let key = self.rng.choose(&settable[..among]);
                self.cluster.set(who, &[key])
            }
            88..96 if self.localizes => self.cluster.localize(who, &keys),
            90..96 if self.cluster.setup().lag > 0 => self.cluster.renew(who, &keys),
            96..98 => self.cluster.wait_sync(who),
            98 => self.cluster.renew(who, &keys),
            _ => self.cluster.pull(who, &keys[..1]),
        }?;
        if self.rng.chance(50) {
            self.cluster.block(who, op);
        }
        Ok(())
    }

    /// Lets a worker reach its next tick.
    fn tick(&mut self) -> Result<(), Violation> {
        let Some(who) = self.free_worker() else { return self.deliver() };
        self.cluster.advance_clock(who, 1);
        self.cluster.tick(who).map(drop)
    }

    fn end_one(&mut self) -> Result<(), Violation> {
        match self.free_worker() {
            Some(who) if self.rng.chance(20) => self.cluster.end(who).map(|_| ()),
            _ => self.deliver(),
        }
    }

    /// Makes all live workers call a barrier, one after the other, if none of them waits for
    /// something else.
    fn barrier(&mut self) -> Result<(), Violation> {
        let blocked = self.live().into_iter().any(|who| !self.is_free(who));
        if blocked || self.rng.chance(50) {
            return self.deliver();
        }
        let call = if self.rng.chance(50) {
            Cluster::barrier
        } else if self.rng.chance(50) {
            Cluster::quiesce
        } else {
            Cluster::snapshot
        };
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

    pub(super) fn all_call(
        &mut self,
        call: fn(&mut Cluster, NodeWorker) -> Result<OpId, Violation>,
    ) -> Result<(), Violation> {
        self.live().into_iter().try_for_each(|who| call(&mut self.cluster, who).map(|_| ()))
    }

    fn live(&self) -> Vec<NodeWorker> {
        let ended = |who: &NodeWorker| self.cluster.member(who.0).workers[who.1.index()].ended;
        self.cluster.workers().filter(|who| !ended(who)).collect()
    }

    fn is_free(&self, who: NodeWorker) -> bool {
        self.cluster.member(who.0).workers[who.1.index()].blocked.is_none()
    }

    fn free_worker(&mut self) -> Option<NodeWorker> {
        let free: Vec<NodeWorker> =
            self.live().into_iter().filter(|who| self.is_free(*who)).collect();
        if free.is_empty() { None } else { Some(self.rng.choose(&free)) }
    }

    fn worker(&mut self) -> NodeWorker {
        let gone = |who: &NodeWorker| self.cluster.losses().is_gone(who.0);
        let workers: Vec<NodeWorker> = self.cluster.workers().filter(|who| !gone(who)).collect();
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

    /// Returns one to three keys, most of them among the few that all workers want; rarely one of
    /// them twice.
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

    fn signal(&mut self) -> Result<(), Violation> {
        let who = self.worker();
        if self.cluster.member(who.0).workers[who.1.index()].ended {
            return Ok(());
        }
        if self.cluster.setup().takes_back && self.rng.chance(20) {
            return self.take_back();
        }
        let clock = self.cluster.member(who.0).workers[who.1.index()].clock.0;
        let ahead = if self.rng.chance(30) {
            self.rng.within(0..60) as u64
        } else {
            self.rng.within(0..4) as u64
        };
        let start = clock + ahead;
        let end = start + 1 + self.rng.within(0..6) as u64;
        // Sometimes all of them, so that all consequences come up at once.
        let keys = if self.rng.chance(10) { self.keys.clone() } else { self.some_keys() };
        let id = SignalId(self.rng.within(0..3) as u64);
        self.cluster.intent_as(who, id, &keys, start..end)
    }

    /// Signals again: with relocation only, keys go to and fro as fast as they are signaled.
    fn signal_again(&mut self, node: NodeId) -> Result<(), Violation> {
        let Some(who) = self.live().into_iter().find(|who| who.0 == node) else { return Ok(()) };
        let clock = self.cluster.member(node).workers[who.1.index()].clock.0;
        let keys = self.some_keys();
        self.cluster.intent(who, &keys, clock..clock + 3)
    }

    /// Takes back one of the latest signals, or some of its keys; sometimes one that was never
    /// given.
    fn take_back(&mut self) -> Result<(), Violation> {
        let who = self.worker();
        let latest: Vec<_> = self.cluster.intents_of(who).take(4).cloned().collect();
        if latest.is_empty() || self.cluster.setup().hot.is_some() {
            return Ok(());
        }
        let intent = &latest[self.rng.within(0..latest.len())];
        let mut keys = intent.keys.clone();
        if self.rng.chance(50) {
            keys.truncate(1);
        }
        let clocks = intent.clocks.start.0..intent.clocks.end.0 + u64::from(self.rng.chance(10));
        self.cluster.take_back(who, intent.id, &keys, clocks)
    }

    /// Notifies all survivors of all losses; then nothing waits for others any more.
    fn tell_all(&mut self) -> Result<(), Violation> {
        let losses = self.cluster.setup().losses;
        while self.cluster.losses().gone().len() < losses {
            self.vanish();
        }
        while let Some((node, gone)) = self.cluster.untold().pop() {
            self.cluster.tell_lost(node, gone)?;
        }
        for who in self.live() {
            for key in self.keys.clone().into_iter().filter(|_| losses > 0) {
                self.cluster.pull(who, &[key])?;
                self.cluster.push(who, &[key])?;
                self.cluster.localize(who, &[key])?;
            }
        }
        Ok(())
    }

    /// Makes a node vanish, or notifies a survivor of it. Returns false if there was nothing to do.
    fn lose(&mut self) -> Result<bool, Violation> {
        let losses = self.cluster.setup().losses;
        if losses == 0 {
            return Ok(false);
        }
        let gone = self.cluster.losses().gone().len();
        if gone < losses && self.rng.chance(1) {
            self.vanish();
            return Ok(true);
        }
        let untold = self.cluster.untold();
        if untold.is_empty() || !self.rng.chance(5) {
            return Ok(false);
        }
        let (node, gone) = self.rng.choose(&untold);
        self.cluster.tell_lost(node, gone).map(|()| true)
    }

    fn vanish(&mut self) {
        let node = self.node();
        let all = self.rng.chance(30);
        let rng = &mut self.rng;
        self.cluster.vanish(node, |_, count| if all { count } else { rng.within(0..count + 1) });
    }
}
