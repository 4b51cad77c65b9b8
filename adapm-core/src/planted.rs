//! Mistakes planted on purpose, at least one per invariant of the protocol (section 8), to prove that the suites find them.
//!
//! A [`Bug`] is a run-time value: the engine asks for it where the mistake would be made, and the question is compiled to
//! `false` without the feature `planted`. A planted bug is realistic, that is, somebody could commit it, and it does not
//! trip an assertion before the checker of its invariant has seen the damage. A link session asks for a [`LinkBug`] likewise.
//!
//! Not here: what finds them (`adapm-verify`).

use core::fmt;

/// Declares the bugs in the order of [`Bug::ALL`]: each with the invariant that it breaks and what the mistake is.
macro_rules! bugs {
    ($($bug:ident breaks $invariant:literal: $mistake:literal;)+) => {
        /// A planted mistake. The number of the invariant that it breaks is [`Bug::invariant`].
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Bug {
            $(#[doc = $mistake] $bug,)+
        }

        impl Bug {
            /// All bugs: one for each invariant, in their order, then more.
            pub const ALL: [Self; [$(Self::$bug),+].len()] = [$(Self::$bug),+];

            /// The invariant that the bug breaks: 1 to 12.
            #[must_use]
            pub fn invariant(self) -> u8 {
                match self {
                    $(Self::$bug => $invariant,)+
                }
            }

            /// What the mistake is, in one sentence.
            #[must_use]
            pub fn mistake(self) -> &'static str {
                match self {
                    $(Self::$bug => $mistake,)+
                }
            }
        }
    };
}

bugs! {
    KeepMainCopy breaks 1: "The old owner grants ownership but leaves its own main copy in place.";
    DropDeltaOnRelease breaks 2: "A release leaves without the delta taken with it.";
    ForgetHolder breaks 3: "An owner grants a replica without noting the holder.";
    SkipStale breaks 4: "A delta changes a main copy without marking the other holders stale.";
    HideOwnIntent breaks 5: "An owner hides its own active intent from the policy, so a key leaves a node that needs it.";
    ForgetParked breaks 6: "Own operations parked for a copy on its way are dropped when the copy arrives.";
    OlderResidence breaks 7: "An old owner tells the home the counter before the relocation.";
    RefreshOverPending breaks 8: "A refresh overwrites a replica without adding what it has not sent yet.";
    ReverseParked breaks 9: "Parked operations of own workers run newest first.";
    LeakSideEntry breaks 10: "The side entry of a key stays when nothing goes on in the key any more.";
    SkipForeignDelta breaks 11: "A delta for a key that is not owned here is skipped in silence instead of refused.";
    BelieveAnyForward breaks 12: "Whoever passes an intent or localize on is believed that its origin has asked.";
    RelocateUnderHolders breaks 3: "A localize moves a main copy although another node holds a replica of it.";
    HandOverUnderHolders breaks 3: "A hand-over is carried out although another node has become a holder since it was decided.";
    KeepReleased breaks 3: "An owner that reads a release keeps the holder.";
    KeepStale breaks 3: "A holder that is gone stays marked stale.";
    HandOverUnread breaks 2: "A hand-over takes the replica for current although the owner's workers have changed the main copy.";
    SendDeltaTwice breaks 2: "A delta stays in its replica when it is sent, and so is sent again.";
    ApplyAtStaleOwner breaks 2: "A node that is not the owner any more acknowledges another node's push to what it has given away.";
    ParkAndTurnAway breaks 2: "At the bound of parking a push is parked, and its sender is asked to try again all the same.";
    DropSet breaks 2: "The set of a holder is answered but not installed.";
    IgnoreSyncMark breaks 4: "An owner answers a marked request without folding first, so a `wait_sync` ends too early.";
    QuiesceWhileBusy breaks 4: "A node reports to a quiesce that nothing waits there, so the quiesce ends too early.";
    LoseDirtyMark breaks 4: "A push leaves no dirty mark in the word of its copy.";
    LoseDirtyEntry breaks 4: "A copy becomes dirty, and the worker's dirty queue loses the key.";
    SettleOnce breaks 4: "A quiesce ends after its first wave, when pushes are in the main copies, but not in all replicas yet.";
    MarkPastDue breaks 4: "An owner answers a mark as if all were told, though some of what was due then waits for room.";
    MarkPastLate breaks 4: "A request is marked for a `wait_sync` although changes for its receiver are still put off.";
    WaitForLaterChanges breaks 6: "An owner answers a mark only when nothing is due any more, so a `wait_sync` waits for as long as others write.";
    ForgetLate breaks 6: "What is put off until a peer has answered is never said.";
    ForgetForwardCounter breaks 6: "An entry is forwarded without the counter of the fact by which it is forwarded.";
    HideHolders breaks 5: "An owner hides the holders from the policy and believes its answer.";
    ForgetParkedEntries breaks 6: "Entries of other nodes parked for a grant are dropped when the grant arrives.";
    BarrierEarly breaks 6: "The coordinator lets a barrier pass while one node is still missing.";
    EndTwice breaks 6: "A set on a replica is reported twice when it is installed.";
    TrustLatestFact breaks 7: "A home believes the fact that arrived last instead of the one with the higher counter.";
    AnswerFromReplica breaks 8: "A holder answers another node's pull from its replica.";
    SkipSetter breaks 8: "A set that came from a holder marks all holders stale but that one.";
    AcknowledgeEarly breaks 9: "A push is acknowledged when its message leaves, not when it is applied.";
    AcknowledgeSetEarly breaks 9: "A set is acknowledged when its message leaves, not when it is applied.";
    ForgetRelease breaks 10: "A replica stays when the last intent has expired.";
    LeakCopy breaks 10: "The memory of a main copy is kept after it has left.";
    MarkStaleAgain breaks 10: "A holder that is stale already is noted once more with every change.";
    HandOversUncounted breaks 10: "The hand-overs of a response take no room in it.";
    BelieveAnyGrant breaks 12: "A grant is taken from any node, whoever can have been reached.";
    BelieveAnyRetry breaks 12: "A Retry is believed of any node, whether the entry can have reached it or not.";
    BelieveAnyResidence breaks 12: "A home believes any node that says where a key went, not its recorded owner alone.";
    BelieveAnyAnswer breaks 12: "An answer is taken from any node, whoever can have been reached.";
    CountRefused breaks 11: "A message is counted as applied before it is looked at.";
    AnswerRefused breaks 11: "A request that is refused is answered all the same.";
    BlameUnasked breaks 6: "A peer counts as unresponsive that owes no answer.";
    DeafToAnswers breaks 6: "What a peer sends is no sign that it answers.";
    CountAbsence breaks 6: "A node that was stopped counts the pause as silence of its peers.";
    ForgetForwarded breaks 6: "After a loss, operations whose message left for a survivor are not failed, although it may have forwarded them to the lost node.";
    AwaitLost breaks 6: "A round goes on waiting for the answer of a peer that was lost.";
    WriteToLost breaks 6: "Messages are still written to a lost peer.";
    NameHopAsLost breaks 6: "An operation that cannot be done after a loss names the node it would have asked, lost or not.";
    KeepOrphan breaks 3: "A replica is kept although its owner is lost.";
    KeepLostHolder breaks 3: "An owner keeps a lost peer among the holders of its keys.";
    HeedLost breaks 11: "A late message of a lost peer is applied.";
    BlameLateAnswer breaks 11: "An answer that nobody waits for, as that of a survivor to what has failed already, is called a breach of the protocol.";
    NeverAskIdle breaks 6: "A node that waits watches only peers that owe it an answer, and asks no other whether it answers.";
}

impl Bug {
    /// Number of invariants; that many bugs stand first in [`Bug::ALL`], one for each.
    pub const INVARIANTS: usize = 12;

    /// Whether it needs a lost peer to show.
    #[must_use]
    pub fn needs_loss(self) -> bool {
        self >= Self::ForgetForwarded
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Declares the bugs of a link session: each with what the mistake is.
macro_rules! link_bugs {
    ($($bug:ident: $mistake:literal;)+) => {
        /// A mistake planted in a link session.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum LinkBug {
            $(#[doc = $mistake] $bug,)+
        }

        impl LinkBug {
            /// All bugs.
            pub const ALL: [Self; [$(Self::$bug),+].len()] = [$(Self::$bug),+];

            /// What the mistake is, in one sentence.
            #[must_use]
            pub fn mistake(self) -> &'static str {
                match self {
                    $(Self::$bug => $mistake,)+
                }
            }
        }
    };
}

link_bugs! {
    RepeatDelivery: "A packet that comes again is handed on again.";
    ForgetUnacknowledged: "On a new pipe the session goes on behind what it wrote to the old one, whatever had arrived.";
    AcknowledgeAhead: "Packets acknowledge one more than has arrived, as if the next were as good as here.";
    IgnoreWindow: "The window is not looked at.";
    ForgetRoom: "Nobody is told that there is room again.";
    DrainEarly: "A goodbye counts as received when it is said.";
    ResumeCountsAsLife: "A new pipe counts as a sign of life.";
    DeafToBytes: "Bytes do not count as life, only whole packets.";
    IgnoreStall: "A peer lives as long as it is heard of, whether or not it acknowledges.";
    ForgetParts: "On a new pipe the parts of a frame that had come are forgotten.";
    IgnorePace: "Packets are written as fast as the pipe takes them.";
}

impl fmt::Display for LinkBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn there_is_a_bug_per_invariant() {
        assert!(Bug::ALL[..12].iter().map(|bug| bug.invariant()).eq(1..=12));
    }

    #[test]
    fn bugs_that_need_a_loss_stand_last() {
        let losses: Vec<Bug> = Bug::ALL.into_iter().filter(|bug| bug.needs_loss()).collect();
        assert_eq!(losses, Bug::ALL[Bug::ALL.len() - 9..]);
    }
}
