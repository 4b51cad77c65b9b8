//! Mistakes planted on purpose, one per invariant of the protocol (section 8), to prove that the suites find them.
//!
//! A [`Bug`] is a run-time value: the engine asks for it where the mistake would be made, and the question is compiled to
//! `false` without the feature `testing`. A planted bug is realistic, that is, somebody could commit it, and it does not
//! trip an assertion before the checker of its invariant has seen the damage.

use core::fmt;

/// A planted mistake. The number of the invariant that it breaks is [`Bug::invariant`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Bug {
    /// Invariant 1: the old owner grants ownership but leaves its own main copy in place, so the key has two owners.
    KeepMainCopy,
    /// Invariant 2: a release leaves without the delta taken with it, so the last updates of the replica are lost.
    DropDeltaOnRelease,
    /// Invariant 3: an owner grants a replica without noting the holder.
    ForgetHolder,
    /// Invariant 4: a delta changes a main copy without marking the other holders stale.
    SkipStale,
    /// Invariant 5: an owner hides its own active intent from the policy, so a key leaves a node that needs it.
    HideOwnIntent,
    /// Invariant 6: operations parked for a copy on its way are dropped when the copy arrives, and never end.
    ForgetParked,
    /// Invariant 7: an old owner tells the home the counter before the relocation, so the home keeps its older record.
    OlderResidence,
    /// Invariant 8: a refresh overwrites a replica without adding what it has not sent yet, so a worker misses its own push.
    RefreshOverPending,
    /// Invariant 9: parked operations of own workers run newest first, so program order is lost.
    ReverseParked,
    /// Invariant 10: the side entry of a key stays when nothing goes on in the key any more.
    LeakSideEntry,
    /// Invariant 11: a delta for a key that is not owned here is skipped in silence instead of refused.
    SkipForeignDelta,
}

impl Bug {
    /// All bugs, in the order of their invariants.
    pub const ALL: [Self; 11] = [
        Self::KeepMainCopy,
        Self::DropDeltaOnRelease,
        Self::ForgetHolder,
        Self::SkipStale,
        Self::HideOwnIntent,
        Self::ForgetParked,
        Self::OlderResidence,
        Self::RefreshOverPending,
        Self::ReverseParked,
        Self::LeakSideEntry,
        Self::SkipForeignDelta,
    ];

    /// The invariant that the bug breaks: 1 to 11.
    #[must_use]
    pub fn invariant(self) -> u8 {
        self as u8 + 1
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_bug_per_invariant() {
        assert!(Bug::ALL.iter().map(|bug| bug.invariant()).eq(1..=11));
    }
}
