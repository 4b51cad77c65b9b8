//! AdaPM's own policy: adaptive choice of technique (AdaPM §4.1, AdaPM §B.2.4) and adaptive action
//! timing (AdaPM §4.2), which also observes the variation of rounds ([`crate::policy::timing`]).
//! Also its ablations, each of which changes one choice of [`Adaptive`] and keeps the mechanism
//! (AdaPM §5.5, AdaPM §5.8).

use crate::clock::Clock;
use crate::id::{Key, WorkerId};
use crate::policy::timing::ActionTimer;
use crate::policy::{Patience, Placement, Policy, View};

/// The policy of AdaPM: relocate while exactly one node has active intent, replicate while several
/// have, act just in time.
///
/// | active intent | decision |
/// | --- | --- |
/// | at the requester only | relocate to it |
/// | at the owner, or at holders, too | replicate to the requester |
/// | nowhere | not asked: the key stays where it is |
#[derive(Clone, Debug)]
pub struct Adaptive {
    timer: ActionTimer,
}

impl Adaptive {
    /// Creates the policy for a node with `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { timer: ActionTimer::observing(workers) }
    }

    /// Creates the policy with the timing of the paper's Algorithm 1, which takes clocks per round
    /// to be Poisson distributed.
    #[must_use]
    pub fn poisson(workers: usize) -> Self {
        Self { timer: ActionTimer::new(workers) }
    }
}

/// Returns the decision of AdaPM §4.1: a node that holds a replica has active intent, or has just
/// lost it and will report so.
pub(super) fn technique(view: &View<'_>) -> Placement {
    if view.holders.is_empty() && !view.owner_has_intent {
        Placement::Relocate
    } else {
        Placement::Replicate
    }
}

impl Policy for Adaptive {
    fn place(&mut self, view: &View<'_>) -> Placement {
        technique(view)
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        self.timer.act_before(worker, clock)
    }

    fn patience(&self) -> Option<Patience> {
        Some(Patience::USUAL)
    }
}

/// Selective replication only: main copies stay at home (AdaPM §5.5).
#[derive(Clone, Debug)]
pub struct NoRelocation {
    timer: ActionTimer,
}

impl NoRelocation {
    /// Creates the policy for a node with `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { timer: ActionTimer::observing(workers) }
    }
}

impl Policy for NoRelocation {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Replicate
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        self.timer.act_before(worker, clock)
    }

    fn patience(&self) -> Option<Patience> {
        Some(Patience::USUAL)
    }
}

/// Relocation only: nodes with concurrent intent take turns, one for each signal (AdaPM §5.5).
#[derive(Clone, Debug)]
pub struct NoReplication {
    timer: ActionTimer,
}

impl NoReplication {
    /// Creates the policy for a node with `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { timer: ActionTimer::observing(workers) }
    }
}

impl Policy for NoReplication {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Relocate
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        self.timer.act_before(worker, clock)
    }

    fn relocates_under_intent(&self, _key: Key) -> bool {
        true
    }

    fn replicates(&self) -> bool {
        false
    }
}

/// AdaPM's choice of technique without its timing: acts on a signal in the next round, however
/// early it comes (AdaPM §5.8).
#[derive(Clone, Copy, Debug, Default)]
pub struct Immediate;

impl Policy for Immediate {
    fn place(&mut self, view: &View<'_>) -> Placement {
        technique(view)
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        Clock::INFINITY
    }

    fn patience(&self) -> Option<Patience> {
        Some(Patience::USUAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NodeId;
    use crate::node_set::NodeSet;

    #[test]
    fn relocates_exactly_if_nobody_else_is_interested() {
        let mut policy = Adaptive::new(1);
        let nobody = NodeSet::new();
        let somebody = [NodeId(2)].into_iter().collect();
        for (holders, owner_has_intent, placement) in [
            (&nobody, false, Placement::Relocate),
            (&nobody, true, Placement::Replicate),
            (&somebody, false, Placement::Replicate),
            (&somebody, true, Placement::Replicate),
        ] {
            let view = View::new(Key(0), NodeId(1))
                .with_holders(holders)
                .with_owner_intent(owner_has_intent);
            assert_eq!(policy.place(&view), placement, "{view:?}");
        }
    }
}
