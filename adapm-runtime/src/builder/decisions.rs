//! The source of the engines' policies: a system, or a function of the user's; with a bound on how
//! far workers are apart, if one is given.

use adapm_core::policy::{Bounded, Place, Policy, System, SystemPolicy};

/// The source of the engines' policies.
pub(super) enum Decisions {
    System(System),
    Custom(Box<dyn Fn(&Place) -> SystemPolicy>),
}

impl Decisions {
    /// Uses a policy of the user's for each engine.
    pub(super) fn custom<P>(policy: impl Fn(&Place) -> P + 'static) -> Self
    where
        P: Policy + Send + 'static,
    {
        Self::Custom(Box::new(move |place| Box::new(policy(place)) as SystemPolicy))
    }

    /// Creates the policy of one engine, with a bound if one is given.
    pub(super) fn policy(&self, bound: Option<u32>, place: &Place) -> SystemPolicy {
        let policy = match self {
            Self::System(system) => system.policy(place.workers),
            Self::Custom(policy) => policy(place),
        };
        match bound {
            Some(ticks) => Box::new(Bounded { policy, ticks: ticks.into() }),
            None => policy,
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::System(system) => system.to_string(),
            Self::Custom(_) => String::from("custom"),
        }
    }
}
