//! A classic parameter server (AdaPM §A.2).

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
