//! Invariant 6: every operation completes, no barrier before all have called it, and hops are bounded (protocol, section 5).

use adapm_core::engine::OpId;

use crate::cluster::Cluster;
use crate::member::Told;
use crate::oracle::Who;
use crate::violation::{Violation, hold};

/// Hops are at most the main copy's counter when the entry is served minus the counter the entry first left with.
pub(super) fn check_hops(cluster: &Cluster) -> Result<(), Violation> {
    for &(owner, told) in &cluster.told {
        let Told::Served(key, origin, hops) = told else { continue };
        // If the owner gave the key away since, its word has the next counter: one more than when it served.
        let counter = cluster.row(owner, key).view.word.counter().0;
        let left = cluster.air.first_left(origin, key).map_or(0, |counter| counter.0);
        // A home that has given nothing away forwards once: its record has the counter 0 that the entry left with.
        let bound = counter.saturating_sub(left).max(u64::from(left == 0));
        hold!(
            cluster.setup.checks => Hops,
            u64::from(hops) <= bound,
            "{key} for {origin} is served at {owner} after {hops} hops; it left with r{left} and is at r{counter}"
        );
    }
    Ok(())
}

impl Cluster {
    /// When a barrier ends, every worker that has not ended has called it.
    pub(crate) fn check_met(&self, barrier: OpId, number: usize) -> Result<(), Violation> {
        let ended = |who: &Who| self.member(who.0).workers[who.1.index()].ended;
        let mut missing = self.workers().filter(|who| !ended(who) && self.calls.barriers(*who) < number);
        let missing = missing.next();
        hold!(
            self.setup.checks => BarrierMet,
            missing.is_none(),
            "{barrier:?}, barrier {number}, ends before {missing:?} has called it"
        );
        Ok(())
    }
}
