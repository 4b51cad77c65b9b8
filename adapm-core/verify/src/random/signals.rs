//! Signals of a random schedule: ahead, late, again and again, and taken back.

use adapm_core::engine::SignalId;
use adapm_core::id::NodeId;

use super::Schedule;
use crate::violation::Violation;

impl Schedule {
    pub(super) fn signal(&mut self) -> Result<(), Violation> {
        let who = self.worker();
        if self.cluster.member(who.0).workers[who.1.index()].ended {
            return Ok(());
        }
        if self.cluster.setup().takes_back && self.rng.chance(20) {
            return self.take_back();
        }
        let clock = self.cluster.member(who.0).workers[who.1.index()].clock.0;
        let ahead =
            if self.rng.chance(30) { self.rng.within(0..60) as u64 } else { self.rng.within(0..4) as u64 };
        let start = clock + ahead;
        let end = start + 1 + self.rng.within(0..6) as u64;
        // Now and then all of them: what that brings, and ends, comes up at once.
        let keys = if self.rng.chance(10) { self.keys.clone() } else { self.some_keys() };
        let id = SignalId(self.rng.within(0..3) as u64);
        self.cluster.intent_as(who, id, &keys, start..end)
    }

    /// Where keys are relocated only, they go to and fro as fast as they are signaled.
    pub(super) fn signal_again(&mut self, node: NodeId) -> Result<(), Violation> {
        let Some(who) = self.live().into_iter().find(|who| who.0 == node) else { return Ok(()) };
        let clock = self.cluster.member(node).workers[who.1.index()].clock.0;
        let keys = self.some_keys();
        self.cluster.intent(who, &keys, clock..clock + 3)
    }

    /// One of the latest signals is not meant any more, or some of its keys; now and then one that was never given.
    fn take_back(&mut self) -> Result<(), Violation> {
        let who = self.worker();
        let of_worker =
            |(node, intent): &&(NodeId, adapm_core::engine::Intent)| (*node, intent.worker) == who;
        let latest: Vec<_> = self.cluster.signalled.iter().rev().filter(of_worker).take(4).cloned().collect();
        if latest.is_empty() {
            return Ok(());
        }
        let (_, intent) = &latest[self.rng.within(0..latest.len())];
        let mut keys = intent.keys.clone();
        if self.rng.chance(50) {
            keys.truncate(1);
        }
        let clocks = intent.clocks.start.0..intent.clocks.end.0 + u64::from(self.rng.chance(10));
        self.cluster.take_back(who, intent.id, &keys, clocks)
    }
}
