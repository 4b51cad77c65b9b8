//! Ablations and classic systems as policies: each changes one choice of [`super::Adaptive`] and keeps the mechanism.
//!
//! Setup steps that a system needs besides (signalling intent for everything, localizing ahead) belong to the task.

use crate::clock::Clock;
use crate::id::WorkerId;
use crate::policy::timing::ActionTimer;
use crate::policy::{Placement, Policy, View, adaptive};

/// Intents that start before this clock are acted on: none.
const NEVER: Clock = Clock(0);
/// Intents that start before this clock are acted on: all.
const AT_ONCE: Clock = Clock::INFINITY;

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
}

/// AdaPM's choice of technique without its timing: acts on a signal in the next round, however early it comes (AdaPM §5.8).
#[derive(Clone, Copy, Debug, Default)]
pub struct Immediate;

impl Policy for Immediate {
    fn place(&mut self, view: &View<'_>) -> Placement {
        adaptive::technique(view)
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        AT_ONCE
    }
}

/// Static partitioning: no copies, nothing moves, intent is ignored (AdaPM §A.2, Lapse §2.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Classic;

impl Policy for Classic {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Keep
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        NEVER
    }
}

/// Static full replication: the task signals intent for every key and the whole run, and every signal is acted on at once
/// (AdaPM §A.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Full;

impl Policy for Full {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Replicate
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        AT_ONCE
    }
}

/// Relocation on request only: intent is ignored, and localize, which asks no policy, does the work (Lapse §3.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Lapse;

impl Policy for Lapse {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Keep
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        NEVER
    }
}
