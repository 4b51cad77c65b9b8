//! A policy for random schedules, with random answers.

use adapm_core::clock::Clock;
use adapm_core::id::WorkerId;
use adapm_core::policy::{Placement, Policy, View};

use crate::rng::Rng;

/// A policy with random decisions: it must not break any invariant.
#[derive(Clone, Debug)]
pub struct RandomPolicy {
    rng: Rng,
    under_intent: bool,
}

impl RandomPolicy {
    /// Creates the policy of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let under_intent = rng.chance(50);
        Self { rng, under_intent }
    }
}

impl Policy for RandomPolicy {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        self.rng.choose(&[Placement::Keep, Placement::Relocate, Placement::Replicate])
    }

    fn act_before(&mut self, _worker: WorkerId, clock: Clock) -> Clock {
        match self.rng.within(0..3) {
            0 => Clock(0),
            1 => Clock::INFINITY,
            _ => clock + self.rng.within(0..60) as u64,
        }
    }

    fn relocates_under_intent(&self) -> bool {
        self.under_intent
    }
}
