//! Mistakes planted on purpose, at least one per invariant of the protocol (section 8), to prove that the suites find them.
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
    /// Invariant 3: a main copy moves although another node holds a replica of it.
    RelocateUnderHolders,
    /// Invariant 2: a hand-over takes the holder's replica for current although the owner's workers have changed the main
    /// copy since.
    HandOverUnread,
    /// Invariant 2: a delta stays in its replica when it is sent, and so is sent again.
    SendDeltaTwice,
    /// Invariant 4: an owner answers a marked request without folding first, so a `wait_sync` ends too early.
    IgnoreSyncMark,
    /// Invariant 6: an entry is forwarded without the counter of the fact by which it is forwarded, so it travels to and fro.
    ForgetForwardCounter,
    /// Invariant 4: a node reports to a quiesce that nothing waits there, so the quiesce ends too early.
    QuiesceWhileBusy,
    /// Invariant 6: when a peer is lost, operations whose message left for another node are not failed, although that node
    /// may have forwarded them to the lost one.
    ForgetForwarded,
    /// Invariant 6: a round goes on waiting for the answer of a peer that was lost.
    AwaitLost,
    /// Invariant 11: a late message of a lost peer is applied.
    HeedLost,
    /// Invariant 3: an owner keeps a lost peer among the holders of its keys.
    KeepLostHolder,
    /// Invariant 11: a survivor's answer to an operation that has failed already is called a breach of the protocol.
    BlameLateAnswer,
}

impl Bug {
    /// Number of invariants; that many bugs stand first in [`Bug::ALL`], one for each.
    pub const INVARIANTS: usize = 11;

    /// All bugs: one for each invariant, in their order, then more.
    pub const ALL: [Self; 22] = [
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
        Self::RelocateUnderHolders,
        Self::HandOverUnread,
        Self::SendDeltaTwice,
        Self::IgnoreSyncMark,
        Self::ForgetForwardCounter,
        Self::QuiesceWhileBusy,
        Self::ForgetForwarded,
        Self::AwaitLost,
        Self::HeedLost,
        Self::KeepLostHolder,
        Self::BlameLateAnswer,
    ];

    /// Whether it needs a lost peer to show.
    #[must_use]
    pub fn needs_loss(self) -> bool {
        matches!(
            self,
            Self::ForgetForwarded
                | Self::AwaitLost
                | Self::HeedLost
                | Self::KeepLostHolder
                | Self::BlameLateAnswer
        )
    }

    /// The invariant that the bug breaks: 1 to 11.
    #[must_use]
    pub fn invariant(self) -> u8 {
        match self {
            Self::KeepMainCopy => 1,
            Self::DropDeltaOnRelease | Self::HandOverUnread | Self::SendDeltaTwice => 2,
            Self::ForgetHolder | Self::RelocateUnderHolders | Self::KeepLostHolder => 3,
            Self::SkipStale | Self::IgnoreSyncMark | Self::QuiesceWhileBusy => 4,
            Self::HideOwnIntent => 5,
            Self::ForgetParked | Self::ForgetForwardCounter | Self::ForgetForwarded | Self::AwaitLost => 6,
            Self::OlderResidence => 7,
            Self::RefreshOverPending => 8,
            Self::ReverseParked => 9,
            Self::LeakSideEntry => 10,
            Self::SkipForeignDelta | Self::HeedLost | Self::BlameLateAnswer => 11,
        }
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
    fn there_is_a_bug_per_invariant() {
        assert!(Bug::ALL[..11].iter().map(|bug| bug.invariant()).eq(1..=11));
    }
}
