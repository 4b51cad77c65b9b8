//! Systems that are a policy, by name: the one list for runtime, tests and command line.
//!
//! Not here: the keys that NuPS and Parallax replicate, which the driver chooses before the run.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use crate::policy::{
    Adaptive, Bound, Bounded, Classic, Full, HetGmp, Immediate, Lapse, NoRelocation, NoReplication,
    Nups, Parallax, Policy, Ssp, Supply,
};

/// Declares the systems: each with its parameter and a usual value of it, if it has one, its name
/// on the command line, a short summary, and its policy for a node with a given number of workers.
macro_rules! systems {
    ($(
        $(#[$attribute:meta])*
        $system:ident $({ $(#[$about:meta])* $parameter:ident: $usual:literal })?
        $name:literal $summary:literal $workers:pat => $policy:expr;
    )+) => {
        /// A parameter manager of the papers, printed by its name: `adapm`, or `ssp:3` for one with
        /// a parameter.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[non_exhaustive]
        pub enum System {
            $($(#[$attribute])* $system $({ $(#[$about])* $parameter: u32 })?,)+
        }

        impl System {
            /// All systems; those with a parameter with a usual value of it.
            pub const ALL: [Self; [$($name),+].len()] =
                [$(Self::$system $({ $parameter: $usual })?),+];

            /// Returns the name on the command line, without the parameter.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$system { .. } => $name,)+
                }
            }

            /// Returns a short summary for help screens.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$system { .. } => $summary,)+
                }
            }

            /// Returns the name and the value of the parameter, if the system has one.
            #[must_use]
            pub const fn parameter(self) -> Option<(&'static str, u32)> {
                match self {
                    $(Self::$system $({ $parameter })? => {
                        $(if true { return Some((stringify!($parameter), $parameter)); })?
                        None
                    })+
                }
            }

            /// Returns the same system with another value of its parameter, if it has one.
            #[must_use]
            pub const fn with_parameter(self, value: u32) -> Self {
                match self {
                    $(Self::$system { .. } => Self::$system $({ $parameter: value })?,)+
                }
            }

            /// Returns a policy for one engine of a node with `workers` workers.
            #[must_use]
            pub fn policy(self, workers: usize) -> SystemPolicy {
                match self {
                    $(Self::$system $({ $parameter })? => {
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
    /// Stale synchronous parallel: a replica for some clocks, set up by access (AdaPM §A.3).
    Ssp {
        /// Clocks by which a worker may be ahead of the slowest, and a read behind the newest.
        staleness: 3
    } "ssp" "Petuum: replicas for some clocks, by access" _ => Ssp::new(staleness.into());
    /// Eager SSP: a replica for the rest of the run, set up by access (AdaPM §A.3).
    Essp {
        /// Clocks by which a worker may be ahead of the slowest, and a read behind the newest.
        staleness: 3
    } "essp" "Petuum: replicas for the whole run, by access" _ => Ssp::eager(staleness.into());
    /// A partition of samples and keys; each node replicates what it accesses most, and workers
    /// advance together (HET-GMP §5).
    HetGmp {
        /// Changes that a replica may lack when a worker begins a clock.
        staleness: 100
    } "het-gmp" "partition by accesses, replicas that may lag" _ => HetGmp::new(staleness);
    /// Bulk synchronous: a static partition whose workers advance together (OSDI'14 §3.5).
    Bsp "bsp" "static partition, workers advance together" _ => Bounded { policy: Classic, ticks: 0 };
    /// Bounded delay: a static partition whose workers are a few clocks apart (OSDI'14 §3.5).
    BoundedDelay {
        /// Clocks by which a worker may be ahead of the slowest.
        delay: 2
    } "bounded-delay" "static partition, workers some clocks apart" _ => Bounded { policy: Classic, ticks: delay.into() };
    /// Eventual consistency: a static partition whose workers do not wait (OSDI'14 §3.5).
    Eventual "eventual" "static partition, workers do not wait" _ => Classic;
}

/// The policy of a [`System`].
pub type SystemPolicy = Box<dyn Policy + Send>;

/// A text that names no system; see [`System::ALL`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSystem {
    /// No system has this name.
    #[error("no such system: use one of {}", System::ALL.map(|system| system.to_string()).join(", "))]
    Unknown,
    /// The system has a parameter, and none is given.
    #[error("{system} needs its {}: {system}:{}", .usual.0, .usual.1)]
    NoParameter {
        /// The name.
        system: &'static str,
        /// The name of the parameter and a usual value.
        usual: (&'static str, u32),
    },
    /// The parameter is not a number from 0 to 4294967295.
    #[error(
        "{system}:{given}: {} is a whole number up to {}, such as {system}:{}", .usual.0, u32::MAX, .usual.1
    )]
    Parameter {
        /// The name.
        system: &'static str,
        /// The parameter as given.
        given: String,
        /// The name of the parameter and a usual value.
        usual: (&'static str, u32),
    },
    /// The system has no parameter.
    #[error("{system} has no parameter: leave out `:{given}`")]
    Unparameterized {
        /// The name.
        system: &'static str,
        /// The parameter as given.
        given: String,
    },
}

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

    /// Returns true if hot keys are chosen before the run, the same for all nodes.
    #[must_use]
    pub fn has_hot_keys(self) -> bool {
        self.supply().has_hot_keys()
    }

    /// Returns how far workers may be apart, if they wait for each other.
    #[must_use]
    pub fn bound(self) -> Option<Bound> {
        self.policy(1).bound()
    }

    /// Returns true if two copies of a key may exist while no worker localizes.
    #[must_use]
    pub fn replicates(self) -> bool {
        self.policy(1).replicates()
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.parameter().map_or(Ok(()), |(_, value)| write!(f, ":{value}"))
    }
}

/// Reads a name, and a parameter behind a colon if the system has one.
///
/// ```
/// use adapm_core::policy::System;
///
/// assert_eq!("ssp:5".parse(), Ok(System::Ssp { staleness: 5 }));
/// let error = "ssp".parse::<System>().unwrap_err();
/// assert_eq!(error.to_string(), "ssp needs its staleness: ssp:3");
/// ```
impl FromStr for System {
    type Err = InvalidSystem;

    fn from_str(text: &str) -> Result<Self, InvalidSystem> {
        let (name, given) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        let known = Self::ALL.into_iter().find(|system| system.name() == name);
        let known = known.ok_or(InvalidSystem::Unknown)?;
        let system = known.name();
        match (known.parameter(), given) {
            (None, None) => Ok(known),
            (Some(usual), None) => Err(InvalidSystem::NoParameter { system, usual }),
            (None, Some(given)) => {
                Err(InvalidSystem::Unparameterized { system, given: given.to_string() })
            }
            (Some(usual), Some(given)) => given
                .parse()
                .map(|value| known.with_parameter(value))
                .map_err(|_| InvalidSystem::Parameter { system, given: given.to_string(), usual }),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::clock::{Clock, Tick};
    use crate::id::{Key, NodeId, WorkerId};
    use crate::policy::{Bound, By, Placement, View};

    #[test]
    fn names_lead_back_to_systems() {
        for system in System::ALL {
            assert_eq!(system.to_string().parse(), Ok(system));
        }
        let refused = |text: &str| text.parse::<System>().unwrap_err().to_string();
        assert!(
            refused("adaptive")
                .starts_with("no such system: use one of adapm, adapm-no-relocation,")
        );
        assert_eq!(refused("essp"), "essp needs its staleness: essp:3");
        assert_eq!(refused("bsp:0"), "bsp has no parameter: leave out `:0`");
        assert_eq!(
            refused("bounded-delay:-1"),
            "bounded-delay:-1: delay is a whole number up to 4294967295, such as bounded-delay:2"
        );
        assert_eq!(refused("ssp:4294967296"), refused("ssp:x").replace('x', "4294967296"));
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
                System::Full | System::Nups | System::Parallax | System::HetGmp { .. } => {
                    ((Placement::Replicate, Placement::Replicate), true, true)
                }
                System::Ssp { .. } | System::Essp { .. } => {
                    ((Placement::Replicate, Placement::Replicate), false, false)
                }
                System::Classic
                | System::Lapse
                | System::Bsp
                | System::BoundedDelay { .. }
                | System::Eventual => ((Placement::Keep, Placement::Keep), false, false),
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
                System::Classic | System::Bsp | System::BoundedDelay { .. } | System::Eventual => {
                    (Supply::Nothing, false)
                }
                System::Ssp { .. } | System::Essp { .. } => (Supply::Access, true),
                System::Lapse => (Supply::Localize, false),
                System::Full => (Supply::Everything, true),
                System::Nups => (Supply::HotAndLocalize, true),
                System::Parallax => (Supply::Hot, true),
                System::HetGmp { .. } => (Supply::Partition, true),
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
                    System::HetGmp { .. } => (false, false, true),
                    _ => (false, false, false),
                },
                "{system}"
            );
        }
    }

    #[test]
    fn each_system_bounds_workers_and_copies_as_its_source_says() {
        let least = Tick::new(2, 7);
        for system in System::ALL {
            let policy = system.policy(1);
            let by = |by| move |ticks| Some(Bound { ticks, by });
            let (expiry, refresh) = (by(By::Expiry), by(By::Refresh));
            let (bound, keep, lag) = match system {
                System::Ssp { .. } => (expiry(3), Some(Tick::new(2, 11)), u32::MAX),
                System::Essp { .. } => (refresh(3), Some(Tick::INFINITY), 0),
                System::HetGmp { .. } => (refresh(0), None, 100),
                System::Bsp => (refresh(0), None, 0),
                System::BoundedDelay { .. } => (refresh(2), None, 0),
                _ => (None, None, 0),
            };
            let found = (policy.bound(), policy.keep(least), policy.lag(Key(0)));
            assert_eq!(found, (bound, keep, lag), "{system}");
        }
    }
}
