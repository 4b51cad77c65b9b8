//! Systems that are a policy, by name: the one list for runtime, tests and command line.
//!
//! Not here: the keys that NuPS and Parallax replicate, which the driver chooses before the run.

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

use crate::policy::{
    Adaptive, Classic, Full, Immediate, Lapse, NoRelocation, NoReplication, Nups, Parallax, Policy,
    Supply,
};

/// Declares the systems: each with its name on the command line, a short summary, and its policy
/// for a node with a given number of workers.
macro_rules! systems {
    ($($(#[$attribute:meta])* $system:ident $name:literal $summary:literal $workers:pat => $policy:expr;)+) => {
        /// A parameter manager of the papers, printed by its name.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[non_exhaustive]
        pub enum System {
            $($(#[$attribute])* $system,)+
        }

        impl System {
            /// All systems.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$system),+];

            /// Returns the name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$system => $name,)+
                }
            }

            /// Returns a short summary for help screens.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$system => $summary,)+
                }
            }

            /// Returns a policy for one engine of a node with `workers` workers.
            #[must_use]
            pub fn policy(self, workers: usize) -> SystemPolicy {
                match self {
                    $(Self::$system => {
                        let $workers = workers;
                        Box::new($policy)
                    })+
                }
            }
        }
    };
}

systems! {
    /// Adaptive technique and timing (AdaPM §4).
    #[default]
    Adapm "adapm" "adaptive technique and timing" workers => Adaptive::new(workers);
    /// Replication only (AdaPM §5.5).
    AdapmNoRelocation "adapm-no-relocation" "replication only" workers => NoRelocation::new(workers);
    /// Relocation only (AdaPM §5.5).
    AdapmNoReplication "adapm-no-replication" "relocation only" workers => NoReplication::new(workers);
    /// Adaptive technique, timing exactly by Algorithm 1 (AdaPM §4.2).
    AdapmPoisson "adapm-poisson" "timing by the paper's Algorithm 1" workers => Adaptive::poisson(workers);
    /// Adaptive technique, no timing (AdaPM §5.8).
    AdapmImmediate "adapm-immediate" "acts on intent at once" _ => Immediate;
    /// Static partitioning (AdaPM §A.2).
    Classic "classic" "static partition, no copies" _ => Classic;
    /// Static full replication (AdaPM §A.1).
    Full "full" "every node holds a replica of everything" _ => Full;
    /// Relocation by localize (Lapse §3).
    Lapse "lapse" "relocation only, by `localize`" _ => Lapse;
    /// Hot keys replicated, the others relocated by localize (AdaPM §A.5).
    Nups "nups" "hot keys replicated, the others by `localize`" _ => Nups;
    /// Hot keys replicated, the others in a static partition (AdaPM Table 1).
    Parallax "parallax" "hot keys replicated, the others static" _ => Parallax;
}

/// The policy of a [`System`].
pub type SystemPolicy = Box<dyn Policy + Send>;

/// An unknown name of a system; see [`System::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no such system: use one of {}", System::ALL.map(System::name).join(", "))]
pub struct UnknownSystem;

impl System {
    /// Returns the mechanism that brings copies to the nodes that use them.
    #[must_use]
    pub fn supply(self) -> Supply {
        self.policy(1).supply()
    }

    /// Returns true if workers and loaders localize keys before access.
    #[must_use]
    pub fn localizes(self) -> bool {
        self.supply().localizes()
    }

    /// Returns true if hot keys are chosen before the run.
    #[must_use]
    pub fn has_hot_keys(self) -> bool {
        self.supply().has_hot_keys()
    }

    /// Returns true if two copies of a key may exist while no worker localizes.
    #[must_use]
    pub fn replicates(self) -> bool {
        self.policy(1).replicates()
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

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::clock::Clock;
    use crate::id::{Key, NodeId, WorkerId};
    use crate::policy::{Placement, View};

    #[test]
    fn names_lead_back_to_systems() {
        for system in System::ALL {
            assert_eq!(system.to_string().parse(), Ok(system));
        }
        assert_eq!("adaptive".parse::<System>(), Err(UnknownSystem));
        assert!(
            UnknownSystem
                .to_string()
                .starts_with("no such system: use one of adapm, adapm-no-relocation,")
        );
    }

    #[test]
    fn each_system_decides_as_its_source_says() {
        let lone = View::new(Key(0), NodeId(1));
        let contended = lone.with_owner_intent(true);
        let early = Clock(1_000_000);
        for system in System::ALL {
            let mut policy = system.policy(1);
            let decisions = (policy.place(&lone), policy.place(&contended));
            let bound = policy.act_before(WorkerId(0), Clock(0));
            let (expected, acts_early, acts_late) = match system {
                System::Adapm | System::AdapmPoisson => {
                    ((Placement::Relocate, Placement::Replicate), false, true)
                }
                System::AdapmNoRelocation => {
                    ((Placement::Replicate, Placement::Replicate), false, true)
                }
                System::AdapmNoReplication => {
                    ((Placement::Relocate, Placement::Relocate), false, true)
                }
                System::AdapmImmediate => ((Placement::Relocate, Placement::Replicate), true, true),
                System::Full | System::Nups | System::Parallax => {
                    ((Placement::Replicate, Placement::Replicate), true, true)
                }
                System::Classic | System::Lapse => {
                    ((Placement::Keep, Placement::Keep), false, false)
                }
            };
            assert_eq!(
                (decisions, early < bound, Clock(0) < bound),
                (expected, acts_early, acts_late),
                "{system}"
            );
            assert_eq!(
                policy.relocates_under_intent(Key(0)),
                system == System::AdapmNoReplication,
                "{system}"
            );
            let (supply, replicates) = match system {
                System::Classic => (Supply::Nothing, false),
                System::Lapse => (Supply::Localize, false),
                System::Full => (Supply::Everything, true),
                System::Nups => (Supply::HotAndLocalize, true),
                System::Parallax => (Supply::Hot, true),
                System::AdapmNoReplication => (Supply::Intent, false),
                _ => (Supply::Intent, true),
            };
            assert_eq!((system.supply(), system.replicates()), (supply, replicates), "{system}");
            assert_eq!(
                (system.localizes(), system.has_hot_keys(), supply.lasts_the_run()),
                match system {
                    System::Lapse => (true, false, false),
                    System::Full => (false, false, true),
                    System::Nups => (true, true, true),
                    System::Parallax => (false, true, true),
                    _ => (false, false, false),
                },
                "{system}"
            );
        }
    }
}
