//! A policy for random schedules, with random answers.

use adapm_core::clock::Clock;
use adapm_core::id::{Key, WorkerId};
use adapm_core::policy::{Patience, Placement, Policy, View};

use crate::rng::Rng;

/// A policy with random decisions: it must not break any invariant.
#[derive(Clone, Debug)]
pub struct RandomPolicy {
    rng: Rng,
    /// One bit for each key, modulo 64.
    under_intent: u64,
    patience: Option<Patience>,
}

impl RandomPolicy {
    /// Creates the policy of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let bits = rng.bits();
        // No key, all keys, or some.
        let under_intent = match bits % 4 {
            0 => 0,
            1 => u64::MAX,
            _ => bits,
        };
        let (updates, micros) = ((bits >> 8) % 100, (bits >> 16) % 40_000);
        let patience = Patience { updates: updates as u32, nanos: 1_000 * micros };
        Self { rng, under_intent, patience: (bits >> 2 & 1 == 0).then_some(patience) }
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

    fn relocates_under_intent(&self, key: Key) -> bool {
        self.under_intent >> (key.0 % 64) & 1 != 0
    }

    fn patience(&self) -> Option<Patience> {
        self.patience
    }
}
