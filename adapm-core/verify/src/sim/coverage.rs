//! Counts of faults by the situations that they struck: a simulation whose faults always strike
//! idle nodes proves nothing.

use core::fmt;

/// A situation of a node that a fault may strike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(
    missing_docs,
    reason = "the first five are the states of a key, the others say what is under way"
)]
pub enum Fact {
    KeyNone,
    KeyRequested,
    KeyReplica,
    KeyMain,
    KeyReleasing,
    /// A round is open: answers are in flight.
    RoundOpen,
    /// A main copy is in flight to the node.
    RelocationHere,
    /// A main copy is in flight from the node.
    RelocationAway,
    /// Updates of the node's replicas are in flight.
    DeltaOut,
    /// A refresh for the node is in flight.
    RefreshHere,
    PullWaits,
    PushWaits,
    SetWaits,
    LocalizeWaits,
    WaitSyncWaits,
    BarrierWaits,
    QuiesceWaits,
    SnapshotWaits,
    LeaveWaits,
    /// Packets of the node are unacknowledged.
    Unacknowledged,
    /// A link of the node has no room, and messages wait for it.
    NoRoom,
}

impl Fact {
    /// All facts.
    pub const ALL: [Self; 21] = [
        Self::KeyNone,
        Self::KeyRequested,
        Self::KeyReplica,
        Self::KeyMain,
        Self::KeyReleasing,
        Self::RoundOpen,
        Self::RelocationHere,
        Self::RelocationAway,
        Self::DeltaOut,
        Self::RefreshHere,
        Self::PullWaits,
        Self::PushWaits,
        Self::SetWaits,
        Self::LocalizeWaits,
        Self::WaitSyncWaits,
        Self::BarrierWaits,
        Self::QuiesceWaits,
        Self::SnapshotWaits,
        Self::LeaveWaits,
        Self::Unacknowledged,
        Self::NoRoom,
    ];
}

/// A set of facts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Facts(u32);

impl Facts {
    /// Adds a fact if it holds.
    pub fn note(&mut self, fact: Fact, holds: bool) {
        self.0 |= u32::from(holds) << fact as u32;
    }

    /// Returns true if the fact is in the set.
    #[must_use]
    pub fn contains(self, fact: Fact) -> bool {
        self.0 >> fact as u32 & 1 == 1
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The kind of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "named as the faults are")]
pub enum FaultKind {
    Reset,
    OneWay,
    Partition,
    Pause,
    SlowLink,
    Hole,
    Slow,
    Repeat,
    Lie,
    Vanish,
    Mute,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Reset,
        Self::OneWay,
        Self::Partition,
        Self::Pause,
        Self::SlowLink,
        Self::Hole,
        Self::Slow,
        Self::Repeat,
        Self::Lie,
        Self::Vanish,
        Self::Mute,
    ];
}

/// Counts of faults by the facts that held: a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage {
    counts: [[u64; Fact::ALL.len()]; FaultKind::ALL.len()],
    struck: [u64; FaultKind::ALL.len()],
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            counts: [[0; Fact::ALL.len()]; FaultKind::ALL.len()],
            struck: [0; FaultKind::ALL.len()],
        }
    }
}

impl Coverage {
    /// Counts a fault that struck while these facts held.
    pub fn record(&mut self, fault: FaultKind, facts: Facts) {
        self.struck[fault as usize] += 1;
        for fact in Fact::ALL {
            self.counts[fault as usize][fact as usize] += u64::from(facts.contains(fact));
        }
    }

    /// Returns the number of times that the fault struck while the fact held.
    #[must_use]
    pub fn count(&self, fault: FaultKind, fact: Fact) -> u64 {
        self.counts[fault as usize][fact as usize]
    }

    /// Returns the number of times that the fault struck.
    #[must_use]
    pub fn struck(&self, fault: FaultKind) -> u64 {
        self.struck[fault as usize]
    }

    /// Returns the number of faults of all kinds.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.struck.iter().sum()
    }

    /// Adds another table.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in
            self.counts.as_flattened_mut().iter_mut().zip(other.counts.as_flattened())
        {
            *mine += theirs;
        }
        for (mine, theirs) in self.struck.iter_mut().zip(&other.struck) {
            *mine += theirs;
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:15}", "")?;
        for kind in FaultKind::ALL {
            write!(f, "{:>11}", format!("{kind:?}"))?;
        }
        write!(f, "\n{:15}", "(struck)")?;
        for kind in FaultKind::ALL {
            write!(f, "{:>11}", self.struck(kind))?;
        }
        for fact in Fact::ALL {
            write!(f, "\n{:15}", format!("{fact:?}"))?;
            for kind in FaultKind::ALL {
                write!(f, "{:>11}", self.count(kind, fact))?;
            }
        }
        Ok(())
    }
}
