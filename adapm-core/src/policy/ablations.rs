//! AdaPM's ablations as policies: each changes one choice of [`super::Adaptive`] and keeps the mechanism (AdaPM §5.5, AdaPM §5.8).

use crate::clock::Clock;
use crate::id::WorkerId;
use crate::policy::timing::ActionTimer;
use crate::policy::{Placement, Policy, View, adaptive};

/// Selective replication only: main copies stay at home (AdaPM §5.5).
#[derive(Clone, Debug)]
pub struct NoRelocation {
    timer: ActionTimer,
}

impl NoRelocation {
    /// The policy for a node with `workers` workers.
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
}

/// Relocation only: nodes with concurrent intent take turns, one for each signal (AdaPM §5.5).
#[derive(Clone, Debug)]
pub struct NoReplication {
    timer: ActionTimer,
}

impl NoReplication {
    /// The policy for a node with `workers` workers.
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

    fn relocates_under_intent(&self) -> bool {
        true
    }

    fn replicates(&self) -> bool {
        false
    }
}

/// AdaPM's choice of technique without its timing: acts on a signal in the next round, however early it comes (AdaPM §5.8).
#[derive(Clone, Copy, Debug, Default)]
pub struct Immediate;

impl Policy for Immediate {
    fn place(&mut self, view: &View<'_>) -> Placement {
        adaptive::technique(view)
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        Clock::INFINITY
    }
}
