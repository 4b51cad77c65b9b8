//! Lapse (VLDB'20).

use crate::clock::Clock;
use crate::id::WorkerId;
use crate::policy::{Placement, Policy, Supply, View};

/// Relocation on request only: intent is ignored, and localize, which asks no policy, does the work (Lapse §3.2).
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
