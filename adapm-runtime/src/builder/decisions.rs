//! The source of the engines' policies: a system, or a function of the user's; with a bound on how
//! far workers are apart, if one is given.

use std::ops::Range;

use adapm_core::Key;
use adapm_core::policy::{Bounded, HetGmp, Place, Policy, System, SystemPolicy};

use crate::error::BuildError;

/// The source of the engines' policies, and what is set beside it.
pub(super) struct Decisions {
    source: Source,
    /// Ticks by which a worker may be ahead of the slowest, beside what the source says.
    pub(super) bound: Option<u32>,
    /// Keys that all workers change in each step.
    pub(super) dense: Range<Key>,
}

enum Source {
    System(System),
    Custom(Box<dyn Fn(&Place) -> SystemPolicy>),
}

impl Default for Decisions {
    fn default() -> Self {
        Self { source: Source::System(System::default()), bound: None, dense: Key(0)..Key(0) }
    }
}

impl Decisions {
    /// Uses the policies of a system.
    pub(super) fn use_system(&mut self, system: System) {
        self.source = Source::System(system);
    }

    /// Uses a policy of the user's for each engine.
    pub(super) fn use_custom<P>(&mut self, policy: impl Fn(&Place) -> P + 'static)
    where
        P: Policy + Send + 'static,
    {
        self.source =
            Source::Custom(Box::new(move |place| Box::new(policy(place)) as SystemPolicy));
    }

    /// Checks that dense keys are keys before `end`.
    pub(super) fn check(&self, keys_end: Key) -> Result<(), BuildError> {
        let Range { start, end } = self.dense;
        let are_keys = start <= end && end <= keys_end;
        if are_keys { Ok(()) } else { Err(BuildError::DenseKeys { start, end, keys_end }) }
    }

    /// Returns the system, unless policies are the user's.
    pub(super) fn system(&self) -> Option<System> {
        match self.source {
            Source::System(system) => Some(system),
            Source::Custom(_) => None,
        }
    }

    /// Creates the policy of one engine.
    pub(super) fn policy(&self, place: &Place) -> SystemPolicy {
        let policy = match &self.source {
            Source::System(System::HetGmp { staleness }) => {
                Box::new(HetGmp::new(*staleness).with_fresh(self.dense.clone()))
            }
            Source::System(system) => system.policy(place.workers),
            Source::Custom(policy) => policy(place),
        };
        match self.bound {
            Some(ticks) => Box::new(Bounded { policy, ticks: ticks.into() }),
            None => policy,
        }
    }

    pub(super) fn name(&self) -> String {
        self.system().map_or_else(|| String::from("custom"), |system| system.to_string())
    }
}
