//! Systems without adaptive decisions: a classic parameter server (AdaPM §A.2), full replication
//! (AdaPM §A.1) and Lapse (VLDB'20).

use crate::clock::Clock;
use crate::id::WorkerId;
use crate::policy::{Placement, Policy, Supply, View};

/// Static partitioning: no copies, nothing moves, intent is ignored (AdaPM §A.2, Lapse §2.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Classic;

impl Policy for Classic {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Keep
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        Clock(0)
    }

    fn supply(&self) -> Supply {
        Supply::Nothing
    }

    fn replicates(&self) -> bool {
        false
    }
}

/// Static full replication: each node signals intent for every key for the whole run, acted on at
/// once (AdaPM §A.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Full;

impl Policy for Full {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Replicate
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        Clock::INFINITY
    }

    fn supply(&self) -> Supply {
        Supply::Everything
    }
}

/// Relocation on request only: intent is ignored, and workers localize, which needs no policy
/// (Lapse §3.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Lapse;

impl Policy for Lapse {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Keep
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        Clock(0)
    }

    fn supply(&self) -> Supply {
        Supply::Localize
    }

    fn replicates(&self) -> bool {
        false
    }
}
