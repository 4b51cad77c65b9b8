//! Full replication (AdaPM §A.1).

use crate::clock::Clock;
use crate::id::WorkerId;
use crate::policy::{Placement, Policy, Supply, View};

/// Static full replication: each node signals intent for every key and the whole run, which is acted on at once (AdaPM §A.1).
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
