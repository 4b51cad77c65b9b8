//! Systems without adaptive decisions: a classic parameter server (AdaPM §A.2), full replication
//! (AdaPM §A.1), Lapse (VLDB'20), and those that choose the technique of each key before the run:
//! NuPS (SIGMOD'22, AdaPM §A.5) and Parallax (AdaPM Table 1).
//!
//! None of them knows its hot keys: only these are signalled, so a policy that replicates what is
//! signalled decides for them alone.

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

/// Hot keys replicated on all nodes for the whole run, the others relocated on request: only hot
/// keys are signalled, acted on at once; workers localize the others, which needs no policy
/// (AdaPM §A.5, NuPS §3).
#[derive(Clone, Copy, Debug, Default)]
pub struct Nups;

impl Policy for Nups {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Replicate
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        Clock::INFINITY
    }

    fn supply(&self) -> Supply {
        Supply::HotAndLocalize
    }
}

/// Hot keys replicated on all nodes for the whole run, the others in a static partition: only hot
/// keys are signalled, acted on at once (AdaPM Table 1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Parallax;

impl Policy for Parallax {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Replicate
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        Clock::INFINITY
    }

    fn supply(&self) -> Supply {
        Supply::Hot
    }
}
