//! Steps for situations that chance seldom finds: pushes while holders have a copy or a key is
//! between two owners, facts that overtake each other, peers that stop answering, slow links, nodes
//! that are stopped for a while, and a quiesce while one node has no round.

use adapm_core::engine::OpId;
use adapm_core::id::{Key, NodeId};
use adapm_core::slot::State;

use super::Schedule;
use crate::check::Checks;
use crate::cluster::Cluster;
use crate::oracle::NodeWorker;
use crate::violation::{Violation, hold};

impl Schedule {
    /// Pushes to a key that is between two owners, by way of the home, which may know the new one
    /// and pass that on at once, perhaps before the key arrives. Returns false if there is no such
    /// key.
    pub(super) fn push_behind_a_move(&mut self) -> Result<bool, Violation> {
        let moving: Vec<Key> =
            self.cluster.keys().filter(|key| self.cluster.owner(*key).is_none()).collect();
        if moving.is_empty() {
            return Ok(false);
        }
        let key = self.rng.choose(&moving);
        let away = |who: &NodeWorker| self.cluster.state(who.0, key) == State::None;
        let free: Vec<NodeWorker> =
            self.live().into_iter().filter(|who| self.is_free(*who) && away(who)).collect();
        if free.is_empty() {
            return Ok(false);
        }
        let who = self.rng.choose(&free);
        self.cluster.push(who, &[key])?;
        let home = self.cluster.setup().home(key);
        let asked = |node: &NodeId| self.cluster.state(*node, key) == State::Requested;
        let asking: Vec<NodeId> = self.cluster.living().filter(asked).collect();
        // Two on each link: the fact about the key, or a message before it.
        for _ in 0..2 {
            let ways = self.cluster.network().loaded();
            for (from, to) in ways.into_iter().filter(|(_, to)| *to == home) {
                self.cluster.deliver(from, to)?;
            }
        }
        for to in asking.into_iter().filter(|to| *to != home).flat_map(|to| [to; 2]) {
            self.cluster.deliver(home, to)?;
        }
        Ok(true)
    }

    /// Makes a third node want a key whose home has not learned of its last move. Returns false if
    /// there is no such key.
    pub(super) fn move_ahead_of_a_fact(&mut self) -> Result<bool, Violation> {
        let lagging = |key: Key| {
            let (owner, home) = (self.cluster.owner(key)?, self.cluster.setup().home(key));
            let told = self.cluster.row(home, key).view.packed.counter();
            let behind = owner != home && told < self.cluster.row(owner, key).view.packed.counter();
            behind.then_some((key, [owner, home]))
        };
        let lagging: Vec<_> = self.cluster.keys().filter_map(lagging).collect();
        if lagging.is_empty() {
            return Ok(false);
        }
        let (key, not) = self.rng.choose(&lagging);
        let third: Vec<NodeWorker> =
            self.live().into_iter().filter(|who| !not.contains(&who.0)).collect();
        if third.is_empty() {
            return Ok(false);
        }
        let who = self.rng.choose(&third);
        if self.localizes && self.is_free(who) {
            self.cluster.localize(who, &[key])?;
        } else {
            let clock = self.cluster.member(who.0).workers[who.1.index()].clock.0;
            self.cluster.intent(who, &[key], clock..clock + 3)?;
        }
        self.cluster.round(who.0)?;
        Ok(true)
    }

    /// Runs a barrier of all that the last worker reaches some ticks after the others: who waits
    /// there holds nobody up.
    pub(super) fn meet_apart(&mut self) -> Result<(), Violation> {
        let Some(bound) = self.cluster.setup().bound else { return Ok(()) };
        let mut live = self.live();
        if self.cluster.losses().any() || live.len() < 2 || self.rng.chance(60) {
            return Ok(());
        }
        let last = live.swap_remove(self.rng.within(0..live.len()));
        for who in live {
            self.cluster.barrier(who)?;
        }
        for _ in 0..=bound.ticks {
            let op = self.cluster.tick(last)?;
            for _ in 0..TICK_ROUNDS_MAX {
                self.cluster.deliver_all()?;
                for node in self.cluster.living() {
                    self.cluster.round(node)?;
                }
            }
            hold!(self.cluster.setup().checks => TickPassed, self.cluster.is_done(op), "{last:?} waits at a tick for workers that wait at a barrier");
        }
        self.cluster.barrier(last)?;
        self.cluster.settle()
    }

    /// Runs a `wait_sync` of one worker, or a quiesce of all, while every node goes on changing all
    /// its copies and one localizes.
    pub(super) fn meet_unpaused(&mut self) -> Result<(), Violation> {
        let live = self.live();
        if self.cluster.losses().any() || live.is_empty() || self.rng.chance(60) {
            return Ok(());
        }
        for who in &live {
            let clock = self.cluster.member(who.0).workers[who.1.index()].clock.0;
            self.cluster.intent(*who, &self.keys, clock..clock + 3)?;
        }
        let ops: Vec<OpId> = if self.rng.chance(50) {
            vec![self.cluster.wait_sync(self.rng.choose(&live))?]
        } else {
            live.iter().map(|who| self.cluster.quiesce(*who)).collect::<Result<_, _>>()?
        };
        for _ in 0..UNPAUSED_ROUNDS_MAX {
            if ops.iter().all(|op| self.cluster.is_done(*op)) {
                return self.cluster.settle();
            }
            if self.localizes {
                let key = self.rng.choose(&self.keys);
                self.cluster.localize(self.rng.choose(&live), &[key])?;
            }
            for who in &live {
                self.cluster.touch(*who);
            }
            for node in self.cluster.living() {
                self.cluster.round(node)?;
            }
            self.deliver_what_is_on_its_way()?;
        }
        hold!(Checks::ALL => EndsUnderWrites, false, "{ops:?} do not end while others go on");
        Ok(())
    }

    /// Runs a quiesce of all with pushes of one worker to keys that all nodes hold. One node has a
    /// round at its beginning and no other in the steps in which it usually ends, so that late
    /// changes at their owner reach this node only by the waves.
    pub(super) fn meet_between_rounds(&mut self) -> Result<(), Violation> {
        let live = self.live();
        if live.is_empty() || self.cluster.losses().any() {
            return self.all_call(Cluster::quiesce);
        }
        for who in &live {
            let clock = self.cluster.member(who.0).workers[who.1.index()].clock.0;
            self.cluster.intent(*who, &self.keys, clock..clock + 3)?;
        }
        self.cluster.settle()?;
        self.cluster.push(self.rng.choose(&live), &self.keys)?;
        self.all_call(Cluster::quiesce)?;
        let lazy = self.node();
        let mut rounds_of_lazy = 0;
        for _ in 0..BETWEEN_ROUNDS {
            let loaded = self.cluster.network().loaded();
            if loaded.is_empty() || self.rng.chance(20) {
                let node = self.node();
                rounds_of_lazy += usize::from(node == lazy);
                if node != lazy || rounds_of_lazy == 1 {
                    self.cluster.round(node)?;
                }
            } else {
                let (from, to) = self.rng.choose(&loaded);
                self.cluster.deliver(from, to)?;
            }
        }
        Ok(())
    }

    /// Runs a snapshot of all while loaders go on signalling: keys move until all nodes are frozen.
    /// One link is slow, so that what it carries is late.
    pub(super) fn copy_while_keys_move(&mut self) -> Result<(), Violation> {
        let live = self.live();
        if self.cluster.losses().any() || live.is_empty() || self.rng.chance(75) {
            return Ok(());
        }
        let ops =
            live.iter().map(|who| self.cluster.snapshot(*who)).collect::<Result<Vec<_>, _>>()?;
        self.slow = self.two_nodes();
        for _ in 0..COPY_STEPS {
            if self.rng.chance(30) {
                let who = self.rng.choose(&live);
                self.cluster.advance_clock(who, 1);
                let clock = self.cluster.member(who.0).workers[who.1.index()].clock.0;
                let key = self.rng.choose(&self.keys);
                self.cluster.intent(who, &[key], clock..clock + 1)?;
                self.cluster.round(who.0)?;
                continue;
            }
            let loaded = self.cluster.network().loaded();
            if !loaded.is_empty() {
                let (from, to) = self.choose_way(&loaded);
                self.cluster.deliver(from, to)?;
            }
            let waits = |who: &NodeWorker| !self.is_free(*who);
            if ops.iter().all(|op| self.cluster.is_done(*op)) && !live.iter().any(waits) {
                break;
            }
        }
        self.cluster.settle()
    }

    /// Delivers all messages in flight, but not those that follow from them: otherwise none would
    /// wait for the next turn.
    fn deliver_what_is_on_its_way(&mut self) -> Result<(), Violation> {
        for (from, to) in self.cluster.network().loaded() {
            for _ in 0..self.cluster.network().queue(from, to).count() {
                self.cluster.deliver(from, to)?;
            }
        }
        Ok(())
    }

    /// Pushes at an owner to a key that is held elsewhere. Returns false if there is no such key.
    pub(super) fn push_under_holders(&mut self) -> Result<bool, Violation> {
        let keys = || self.cluster.keys().filter_map(|key| Some((key, self.cluster.owner(key)?)));
        let held =
            |(key, owner): &(Key, NodeId)| !self.cluster.row(*owner, *key).view.holders.is_empty();
        let held: Vec<(Key, NodeId)> = keys().filter(held).collect();
        if held.is_empty() {
            return Ok(false);
        }
        // A hand-over is due where the owner does not want a key any more and one node holds it.
        let due = |(key, owner): &(Key, NodeId)| {
            let view = &self.cluster.row(*owner, *key).view;
            view.holders.len() == 1 && view.intent_count == 0
        };
        let due: Vec<(Key, NodeId)> = held.iter().copied().filter(due).collect();
        let among = if !due.is_empty() && self.rng.chance(50) { &due } else { &held };
        let (key, owner) = self.rng.choose(among);
        let free: Vec<NodeWorker> =
            self.live().into_iter().filter(|who| who.0 == owner && self.is_free(*who)).collect();
        if free.is_empty() {
            return Ok(false);
        }
        let who = self.rng.choose(&free);
        self.cluster.push(who, &[key])?;
        let holders = self.cluster.row(owner, key).view.holders.clone();
        if !holders.is_empty() && self.rng.chance(60) {
            let holder = self.rng.choose(&holders);
            self.catch_up(holder)?;
        }
        Ok(true)
    }

    /// Makes the holder's node ask at once, before the owner's next round; sometimes because a
    /// worker waits for the push.
    fn catch_up(&mut self, holder: NodeId) -> Result<(), Violation> {
        let free = self.live().into_iter().find(|who| who.0 == holder && self.is_free(*who));
        let Some(who) = free else { return Ok(()) };
        if self.rng.chance(50) {
            return self.cluster.round(holder);
        }
        let op = self.cluster.wait_sync(who)?;
        if self.rng.chance(50) {
            self.cluster.block(who, op);
        }
        self.cluster.round(holder)
    }

    /// Lets waiting nodes find vanished ones by themselves.
    pub(super) fn find_unresponsive(&mut self) -> Result<(), Violation> {
        if self.cluster.setup().unresponsive_nanos.is_none() {
            return Ok(());
        }
        while self.cluster.losses().gone().len() < self.cluster.setup().losses {
            self.vanish();
        }
        self.trickle()?;
        self.keep_busy()?;
        if self.cluster.losses().any() {
            self.cluster.look_around(LOOKS)?;
            self.cluster.check_noticed()?;
        }
        Ok(())
    }

    /// Delivers one message per link between two checks; at some moment a node is stopped for long.
    /// Sometimes workers take part in a snapshot meanwhile, one after the other.
    fn trickle(&mut self) -> Result<(), Violation> {
        let live = self.live();
        let snaps = self.rng.chance(30) && live.iter().all(|who| self.is_free(*who));
        let mut late = if snaps { live } else { Vec::new() };
        let stopped_at = self.rng.within(0..LOOKS);
        for turn in 0..TURNS_MAX {
            let loaded = self.cluster.network().loaded();
            if loaded.is_empty() {
                break;
            }
            if turn == stopped_at {
                let node = self.node();
                let nanos = self.cluster.setup().unresponsive_nanos.unwrap_or_default();
                self.cluster.advance_time(10 * nanos);
                self.cluster.look_behind(node)?;
            }
            for (from, to) in loaded {
                self.cluster.deliver(from, to)?;
            }
            for node in self.cluster.living() {
                self.cluster.look(node)?;
                self.cluster.round(node)?;
            }
            if self.rng.chance(50)
                && let Some(who) = late.pop()
            {
                self.cluster.snapshot(who)?;
            }
        }
        late.into_iter().try_for_each(|who| self.cluster.snapshot(who).map(drop))
    }

    /// Gives all nodes something to send in each round, so that at each check an answer is owed.
    fn keep_busy(&mut self) -> Result<(), Violation> {
        let live = self.live();
        for who in &live {
            let clock = self.cluster.member(who.0).workers[who.1.index()].clock.0;
            self.cluster.intent(*who, &self.keys, clock..clock + 3)?;
        }
        for _ in 0..LOOKS {
            self.cluster.deliver_all()?;
            for who in &live {
                self.cluster.touch(*who);
            }
            for node in self.cluster.living() {
                self.cluster.round(node)?;
                self.cluster.look(node)?;
            }
        }
        Ok(())
    }

    /// Runs a barrier of all in which the first caller waits for the last ones much longer than any
    /// peer may take to answer.
    pub(super) fn meet_late(&mut self) -> Result<(), Violation> {
        let mut late = self.live().into_iter();
        if self.cluster.setup().unresponsive_nanos.is_some()
            && let Some(first) = late.next()
        {
            self.cluster.barrier(first)?;
            self.cluster.look_around(LOOKS)?;
        }
        late.try_for_each(|who| Cluster::barrier(&mut self.cluster, who).map(drop))
    }
}

/// Number of rounds after which a worker that waits at a tick goes on, if it may.
const TICK_ROUNDS_MAX: usize = 20;
/// Number of steps in which a snapshot usually ends.
const COPY_STEPS: usize = 300;
/// Number of steps in which a quiesce usually ends.
const BETWEEN_ROUNDS: usize = 150;
/// Number of rounds after which an operation that has not ended while others go on never will.
const UNPAUSED_ROUNDS_MAX: usize = 1_000;
/// Number of checks within which every unresponsive peer is found: twice as many as it takes.
const LOOKS: usize = 14;
/// Number of turns after which messages still in flight arrive at once.
const TURNS_MAX: usize = 60;
