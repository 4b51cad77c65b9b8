//! The systems that are compared: those of the project that fit the model.

use core::fmt;
use core::ops::Range;
use core::str::FromStr;

use adapm_core::policy::{
    HetGmp, InvalidSystem, Placement, Policy as _, Supply, SystemPolicy, View,
};
use adapm_core::{Clock, Key, NodeId, WorkerId};
use adapm_runtime::System;

use super::Task;

/// A system that can be modelled.
///
/// Static full replication is not among them: its nodes would have to hold every key of models of
/// millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Contender {
    /// A system of the project. Under NuPS keys with at least a hundred times the mean frequency
    /// are replicated on every node for good, all others are localized
    /// [`Contender::localize_ahead`] steps before they are accessed: the paper's NuPS synchronizes
    /// replicas by the clock on the wall, and tunes both choices per task. Under HET-GMP the same
    /// keys are replicated, and keys with locality lie where they are accessed: what a partition
    /// comes to.
    System(System),
}

/// A text that names no modelled system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidContender {
    /// It names no system.
    #[error(transparent)]
    System(#[from] InvalidSystem),
    /// It names one that is not modelled.
    #[error(
        "not modelled: use one of {}",
        Contender::all().map(|contender| contender.to_string()).collect::<Vec<_>>().join(", ")
    )]
    NotModelled,
}

impl Contender {
    /// Returns all of them: every system that is modelled. What is eventually consistent is the
    /// classic server.
    pub fn all() -> impl Iterator<Item = Self> {
        System::ALL.into_iter().map(Self::System).filter(|contender| contender.is_modelled())
    }

    fn is_modelled(self) -> bool {
        let Self::System(system) = self;
        system.supply() != Supply::Everything && system != System::Eventual
    }

    /// Those of a comparison on `task`, if nothing else is asked for: those that the paper ran on
    /// it. Without replication, batches of ctr and gnn wait for hot keys all the time, and take
    /// minutes to simulate.
    #[must_use]
    pub fn compared(task: Task) -> Vec<Self> {
        let systems: &[System] = match task {
            Task::Kge | Task::Wv | Task::Mf => &[
                System::Adapm,
                System::AdapmNoRelocation,
                System::AdapmNoReplication,
                System::Classic,
                System::Nups,
            ],
            Task::Ctr | Task::Gnn => &[System::Adapm, System::AdapmNoRelocation, System::Classic],
        };
        systems.iter().copied().map(Self::System).collect()
    }

    /// By how much its slice is shorter than others': what accesses remotely costs more to
    /// simulate, and soon does so evenly.
    #[must_use]
    pub(super) fn haste(self) -> u64 {
        match self {
            Self::System(System::AdapmNoReplication) => 4,
            contender if !contender.samples_locally() => 25,
            _ => 1,
        }
    }

    /// Returns true if workers wait for each other at clocks.
    #[must_use]
    pub fn ticks(self) -> bool {
        let Self::System(system) = self;
        system.bound().is_some()
    }

    /// Returns true if workers signal intent.
    #[must_use]
    pub fn signals(self) -> bool {
        let Self::System(system) = self;
        system.supply() == Supply::Intent
    }

    /// Returns the number of steps before an access at which a worker localizes, if it does.
    #[must_use]
    pub fn localize_ahead(self) -> Option<u64> {
        let Self::System(system) = self;
        system.localizes().then_some(8)
    }

    /// Returns true if frequent keys are held by every node for good.
    #[must_use]
    pub fn has_hot_keys(self) -> bool {
        let Self::System(system) = self;
        system.has_hot_keys() || system.supply() == Supply::Partition
    }

    /// Returns true if main copies move to where they are accessed, or a partition puts them there:
    /// keys with locality then lie there after the first epoch.
    #[must_use]
    pub fn settles(self) -> bool {
        let lone = View::new(Key(0), NodeId(1));
        let Self::System(system) = self;
        let moves = system.localizes() || system.supply() == Supply::Partition;
        moves || system.policy(1).place(&lone) == Placement::Relocate
    }

    /// Returns true if negatives are drawn among local keys; else naively (AdaPM App. C).
    #[must_use]
    pub fn samples_locally(self) -> bool {
        let Self::System(system) = self;
        system.supply() == Supply::Intent || system.localizes()
    }

    /// Returns the policy of a node whose workers have reached `clock` by steps of `clocks` clocks,
    /// at most one a round: what the action timer (AdaPM Alg. 1) knows by then. `dense`: keys of
    /// which HET-GMP's replicas lack nothing.
    #[must_use]
    pub fn policy(
        self,
        workers: usize,
        (clock, clocks): (Clock, u64),
        dense: Range<Key>,
    ) -> SystemPolicy {
        let Self::System(system) = self;
        let mut policy = match system {
            System::HetGmp { staleness } => Box::new(HetGmp::new(staleness).with_fresh(dense)),
            _ => system.policy(workers),
        };
        for passed in (0..=clock.0).step_by(clocks.max(1) as usize) {
            for worker in 0..workers {
                let worker = WorkerId(u16::try_from(worker).expect("worker ids are 16 bits wide"));
                let _ = policy.act_before(worker, Clock(passed));
            }
        }
        policy
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::System(system) = self;
        system.fmt(f)
    }
}

impl FromStr for Contender {
    type Err = InvalidContender;

    fn from_str(name: &str) -> Result<Self, InvalidContender> {
        let contender = Self::System(name.parse()?);
        contender.is_modelled().then_some(contender).ok_or(InvalidContender::NotModelled)
    }
}
