//! The systems that are a policy, by name: the one list for runtime, tests and command line.
//!
//! Not here: systems that are a layer above the parameter manager.

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

use crate::policy::{Adaptive, Classic, Full, Immediate, Lapse, NoRelocation, NoReplication, Policy};

/// A parameter manager of the papers, printed by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[non_exhaustive]
pub enum System {
    /// Adaptive technique and timing (AdaPM §4).
    #[default]
    Adapm,
    /// Replication only (AdaPM §5.5).
    AdapmNoRelocation,
    /// Relocation only (AdaPM §5.5).
    AdapmNoReplication,
    /// Adaptive technique, timing exactly by Algorithm 1 (AdaPM §4.2).
    AdapmPoisson,
    /// Adaptive technique, no timing (AdaPM §5.8).
    AdapmImmediate,
    /// Static partitioning (AdaPM §A.2).
    Classic,
    /// Static full replication (AdaPM §A.1).
    Full,
    /// Relocation by localize (Lapse §3).
    Lapse,
}

/// The policy of a [`System`].
pub type SystemPolicy = Box<dyn Policy + Send>;

/// A name that no system has; compare [`System::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownSystem;

impl System {
    /// All systems.
    pub const ALL: [Self; 8] = [
        Self::Adapm,
        Self::AdapmNoRelocation,
        Self::AdapmNoReplication,
        Self::AdapmPoisson,
        Self::AdapmImmediate,
        Self::Classic,
        Self::Full,
        Self::Lapse,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adapm => "adapm",
            Self::AdapmNoRelocation => "adapm-no-relocation",
            Self::AdapmNoReplication => "adapm-no-replication",
            Self::AdapmPoisson => "adapm-poisson",
            Self::AdapmImmediate => "adapm-immediate",
            Self::Classic => "classic",
            Self::Full => "full",
            Self::Lapse => "lapse",
        }
    }

    /// Whether a policy of this system ever lets two copies of a key exist while no worker localizes.
    #[must_use]
    pub const fn replicates(self) -> bool {
        matches!(
            self,
            Self::Adapm | Self::AdapmNoRelocation | Self::AdapmPoisson | Self::AdapmImmediate | Self::Full
        )
    }

    /// A policy for one engine of a node with `workers` workers.
    #[must_use]
    pub fn policy(self, workers: usize) -> SystemPolicy {
        match self {
            Self::Adapm => Box::new(Adaptive::new(workers)),
            Self::AdapmNoRelocation => Box::new(NoRelocation::new(workers)),
            Self::AdapmNoReplication => Box::new(NoReplication::new(workers)),
            Self::AdapmPoisson => Box::new(Adaptive::poisson(workers)),
            Self::AdapmImmediate => Box::new(Immediate),
            Self::Classic => Box::new(Classic),
            Self::Full => Box::new(Full),
            Self::Lapse => Box::new(Lapse),
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for System {
    type Err = UnknownSystem;

    fn from_str(name: &str) -> Result<Self, UnknownSystem> {
        Self::ALL.into_iter().find(|system| system.name() == name).ok_or(UnknownSystem)
    }
}

impl fmt::Display for UnknownSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such system: use one of")?;
        for (index, system) in System::ALL.into_iter().enumerate() {
            write!(f, "{} {system}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownSystem {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::clock::Clock;
    use crate::id::{Key, NodeId, WorkerId};
    use crate::node_set::NodeSet;
    use crate::policy::{Placement, View};

    #[test]
    fn names_lead_back_to_systems() {
        for system in System::ALL {
            assert_eq!(system.to_string().parse(), Ok(system));
        }
        assert_eq!("adaptive".parse::<System>(), Err(UnknownSystem));
        assert!(
            UnknownSystem.to_string().starts_with("no such system: use one of adapm, adapm-no-relocation,")
        );
    }

    #[test]
    fn each_system_decides_as_its_source_says() {
        let lone =
            View { key: Key(0), requester: NodeId(1), holders: &NodeSet::new(), owner_has_intent: false };
        let contended = View { owner_has_intent: true, ..lone };
        let early = Clock(1_000_000);
        for system in System::ALL {
            let mut policy = system.policy(1);
            let decisions = (policy.place(&lone), policy.place(&contended));
            let bound = policy.act_before(WorkerId(0), Clock(0));
            let (expected, acts_early, acts_late) = match system {
                System::Adapm | System::AdapmPoisson => {
                    ((Placement::Relocate, Placement::Replicate), false, true)
                }
                System::AdapmNoRelocation => ((Placement::Replicate, Placement::Replicate), false, true),
                System::AdapmNoReplication => ((Placement::Relocate, Placement::Relocate), false, true),
                System::AdapmImmediate => ((Placement::Relocate, Placement::Replicate), true, true),
                System::Full => ((Placement::Replicate, Placement::Replicate), true, true),
                System::Classic | System::Lapse => ((Placement::Keep, Placement::Keep), false, false),
            };
            assert_eq!(
                (decisions, early < bound, Clock(0) < bound),
                (expected, acts_early, acts_late),
                "{system}"
            );
            assert_eq!(policy.relocates_under_intent(), system == System::AdapmNoReplication, "{system}");
        }
    }
}
