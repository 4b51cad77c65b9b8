//! Peers that stop answering in a random schedule, slow ways, and nodes that are stopped for a while.

use super::Schedule;
use crate::cluster::Cluster;
use crate::violation::Violation;

impl Schedule {
    /// Nodes that vanish are not told of here: whoever waits finds out by itself.
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

    /// Every way delivers one message between two looks; at some moment a node is stopped for long.
    fn trickle(&mut self) -> Result<(), Violation> {
        let stopped_at = self.rng.within(0..LOOKS);
        for turn in 0..TURNS_MAX {
            let loaded = self.cluster.air().loaded();
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
        }
        Ok(())
    }

    /// All nodes have something to say in each round, so that at each look an answer is owed.
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

    /// A barrier of all, for whose last callers the first one waits much longer than any peer may take to answer.
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

/// Looks within which every unresponsive peer is found: two times as many as it takes.
const LOOKS: usize = 14;
/// Turns after which what is still on its way arrives at once.
const TURNS_MAX: usize = 60;
