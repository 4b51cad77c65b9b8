//! Mistakes planted on purpose, at least one per invariant of the protocol ("What must hold"), to
//! prove that the suites find them.
//!
//! Product code does not know them: a mistake changes the traffic between an engine and its
//! environment. Each is one that a developer could make in the engine, a driver, a store or a
//! policy: it does one small thing wrong and all else right, and trips no assertion before the
//! checker of its invariant has seen the damage.
//!
//! | file | place of the mistakes |
//! | --- | --- |
//! | `store` | what a store does under the latch, or returns |
//! | `policy` | what the policy receives, or decides |
//! | `fault`, `mistake` | dispatch to the others: what is fed to an engine, and what it returns |
//! | `requests`, `entries`, `collective` | messages: rounds, entries, barriers and quiesces |
//! | `belief` | messages: whose they are taken to be |
//! | `driver` | the duties of a driver |
//! | `events` | what workers are notified of |
//! | `edit` | messages taken apart and put together |
//! | `tick` | ticks: what is told of them, and when |
//! | `link` | a link session: packets, events, time |
//! | `datagram` | links over datagrams: bytes and frames |
//!
//! Run any suite with one: `ADAPM_BUG=SkipStale cargo test -p adapm-core --test paper`.

mod belief;
mod collective;
mod datagram;
mod driver;
mod edit;
mod entries;
mod events;
mod fault;
mod link;
mod mistake;
mod policy;
mod requests;
mod store;
mod tick;

use core::fmt;
use std::env;

pub use datagram::DatagramBug;
pub use fault::{Driver, Fault, engine};
pub use link::{LinkBug, PlantedSession, link_bug_from_environment};
pub use mistake::Engine;
pub use store::PlantedStore;

/// The place where a mistake is planted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// Messages that reach an engine, or leave it.
    Messages,
    /// The store.
    Store,
    /// The policy.
    Policy,
    /// The duties of a driver: inputs, their times, and refusals.
    Driver,
    /// Events for workers.
    Events,
}

/// Declares the bugs in the order of [`Bug::ALL`]: each with the invariant that it breaks, its
/// place and a description of the mistake.
macro_rules! bugs {
    ($($bug:ident breaks $invariant:literal in $place:ident: $mistake:literal;)+) => {
        /// A planted mistake. The number of the invariant that it breaks is [`Bug::invariant`].
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Bug {
            $(#[doc = $mistake] $bug,)+
        }

        impl Bug {
            /// All bugs: one for each invariant, in their order, then more.
            pub const ALL: [Self; [$(Self::$bug),+].len()] = [$(Self::$bug),+];

            /// Returns the number of the invariant that the bug breaks, 1 to 13; 0 if it breaks
            /// none and costs messages or time, which stories see.
            #[must_use]
            pub fn invariant(self) -> u8 {
                match self {
                    $(Self::$bug => $invariant,)+
                }
            }

            /// Returns the place where it is planted.
            #[must_use]
            pub fn place(self) -> Place {
                match self {
                    $(Self::$bug => Place::$place,)+
                }
            }

            /// Returns a description of the mistake, in one sentence.
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
    KeepMainCopy breaks 1 in Store: "The old owner grants ownership but leaves its own main copy in place.";
    DropDeltaOnRelease breaks 2 in Messages: "A release leaves without the delta taken with it.";
    ForgetHolder breaks 3 in Policy: "An owner grants a replica without noting the holder.";
    SkipStale breaks 4 in Messages: "A response leaves out the refresh of a key that another holder has changed.";
    HideOwnIntent breaks 5 in Policy: "An owner hides its own active intent from the policy, so a key leaves a node that needs it.";
    ForgetParked breaks 6 in Driver: "Own operations on a key in flight to the node are dropped.";
    OlderResidence breaks 7 in Messages: "An old owner tells the home the counter before the relocation.";
    RefreshOverPending breaks 8 in Store: "A refresh overwrites a replica without adding its unsent delta.";
    ReverseParked breaks 9 in Driver: "Parked operations of own workers run newest first.";
    KeepClock breaks 10 in Driver: "The clock of an ended worker stays unchanged, so that its intents never expire.";
    SkipForeignDelta breaks 11 in Messages: "A delta for a key that is not owned here is silently skipped instead of refused.";
    BelieveAnyForward breaks 12 in Messages: "An intent or localize passed on by any node counts as its origin's.";
    TellUnsettled breaks 13 in Messages: "A node tells its tick before the updates made before it are in the main copies.";
    RelocateUnderHolders breaks 3 in Messages: "A localize moves a main copy although another node holds a replica of it.";
    ReleaseForAll breaks 3 in Messages: "A release by one holder ends the holding of another one, too.";
    KeepReleased breaks 3 in Messages: "An owner that reads a release keeps the holder.";
    ForgetWatch breaks 3 in Store: "A main copy that gets its first holder is not marked as watched.";
    HandOverUnread breaks 2 in Messages: "A hand-over takes the replica for current although the main copy has changed.";
    SendDeltaTwice breaks 2 in Store: "A delta stays in its replica when it is sent, and so is sent again.";
    ApplyAtStaleOwner breaks 2 in Messages: "A former owner acknowledges another node's push to a key that it has given away.";
    ParkAndTurnAway breaks 2 in Messages: "At the bound of parking a push is parked, and its sender is asked to try again nevertheless.";
    DropSet breaks 2 in Messages: "The set of a holder is answered but not installed.";
    FreezeAtOnce breaks 2 in Events: "A node counts as frozen while it still waits for keys.";
    AskWhileFrozen breaks 2 in Driver: "A node that is frozen goes on asking for keys.";
    IgnoreSyncMark breaks 4 in Driver: "Dirty keys are not taken before a marked request, so a `wait_sync` ends too early.";
    QuiesceWhileBusy breaks 4 in Messages: "A node with pending work reports none to a quiesce, which ends too early.";
    LoseDirtyMark breaks 4 in Store: "A push sets no dirty flag in the packed state of its copy.";
    LoseDirtyEntry breaks 4 in Store: "A copy becomes dirty by a push, and the worker is not told to queue the key.";
    SettleOnce breaks 4 in Messages: "Nodes report to the second wave of a quiesce at once, before pushes are in all replicas.";
    MarkPastDue breaks 4 in Messages: "An owner answers a mark although some changes that were due then still wait for room.";
    SkipDirtyRefresh breaks 4 in Messages: "A replica ignores a refresh while it has changes of its own.";
    WaitForLaterChanges breaks 6 in Messages: "An owner answers a mark only when nothing is due any more, so a `wait_sync` waits as long as others write.";
    IgnoreRetry breaks 6 in Messages: "Entries that were turned away are not sent again.";
    ForgetForwardCounter breaks 6 in Messages: "An entry is forwarded without the counter of its location.";
    HideHolders breaks 5 in Messages: "An owner forgets the holders of a key before the policy decides about it.";
    ForgetParkedEntries breaks 6 in Messages: "Entries of other nodes that would be parked for a grant are dropped.";
    BarrierEarly breaks 6 in Messages: "The coordinator lets a barrier pass while one node is still missing.";
    EndTwice breaks 6 in Events: "A set on a replica is reported twice when it is installed.";
    TrustLatestFact breaks 7 in Messages: "A home believes the fact that arrived last instead of the one with the higher counter.";
    AnswerFromReplica breaks 8 in Messages: "A holder answers another node's pull from its replica.";
    SkipSetter breaks 8 in Messages: "A holder that has set a key is not told the value.";
    AcknowledgeEarly breaks 9 in Events: "A push is acknowledged when its message leaves, not when it is applied.";
    AcknowledgeSetEarly breaks 9 in Events: "A set is acknowledged when its message leaves, not when it is applied.";
    TakeForMain breaks 10 in Store: "A look without the latch does not show the delta of a replica, which stays when its intent has expired.";
    LeakCopy breaks 10 in Store: "The memory of a main copy is kept after it has left.";
    HandDirtyAgain breaks 10 in Driver: "Dirty keys are handed over again with every input that needs them, as the list is never emptied.";
    JoinPieces breaks 10 in Messages: "The pieces of an operation that is too large for one message are sent in one.";
    BelieveAnyGrant breaks 12 in Messages: "A grant is accepted from any node, even one that the entry cannot have reached.";
    BelieveAnyRetry breaks 12 in Messages: "A Retry is accepted from any node, even one that the entry cannot have reached.";
    BelieveAnyResidence breaks 12 in Messages: "A home believes any node about a key's new owner, not only the recorded owner.";
    BelieveAnyAnswer breaks 12 in Messages: "An answer is accepted from any node, even one that the entry cannot have reached.";
    TickBeforeDirty breaks 13 in Driver: "A tick reaches the engine before the keys that its worker has made dirty.";
    LeastOfSome breaks 13 in Messages: "Node 0 takes the least tick of those nodes only that have told it one.";
    BoundOffByOne breaks 13 in Policy: "Workers may be one tick further apart than the bound.";
    RenewAtOnce breaks 4 in Driver: "A renewal ends before its replicas are refreshed.";
    DropRenew breaks 6 in Messages: "An owner does not heed renewals.";
    LagOffByOne breaks 13 in Policy: "Replicas may lack one change more than the policy says.";
    KeepTooLong breaks 13 in Policy: "A copy that a pull has set up stays one tick longer than it may be read.";
    KeepTooBriefly breaks 5 in Policy: "Copies that a pull has set up for the rest of the run end with the bound all the same.";
    CountWaiting breaks 6 in Driver: "A worker that waits at a barrier counts with the tick that it had before.";
    FilterUnderMark breaks 4 in Messages: "A `wait_sync` is answered with those refreshes alone that the policy wants.";
    WaitForTwice breaks 0 in Policy: "Changes wait for twice as many others as they may.";
    LagOwn breaks 0 in Messages: "A holder's own changes count as changes that it lacks.";
    CountRefused breaks 11 in Driver: "A refused message counts as applied nevertheless.";
    AnswerRefused breaks 11 in Driver: "A refused request is answered nevertheless.";
    OtherHomes breaks 1 in Driver: "A node has other homes than the rest: those by hash, where the others have a table.";
    BlameUnasked breaks 6 in Events: "A peer that owes no answer counts as unresponsive at the first check without a message of it.";
    DeafToAnswers breaks 6 in Events: "Messages of a peer do not count as a sign of life.";
    CountAbsence breaks 6 in Events: "A node that was stopped counts the pause as silence of its peers.";
    HotKeyKept breaks 5 in Policy: "An owner grants no replica of one hot key.";
    HotKeyDropped breaks 5 in Driver: "A node gives its hot keys up when the first of its workers ends.";
    ColdKeyReplicated breaks 9 in Driver: "Keys that a worker localizes are signalled for the whole run as well, as if they were hot.";
    ForgetForwarded breaks 6 in Events: "After a loss, operations whose message left for a survivor are not failed, although it may have forwarded them to the lost node.";
    DeafAfterLoss breaks 6 in Messages: "A node that has learned of a loss ignores the responses of survivors.";
    WriteToLost breaks 6 in Driver: "A message that may not have reached a peer is sent once more when the peer is lost.";
    NameHopAsLost breaks 6 in Events: "An operation that cannot be done after a loss names the node it would have asked, lost or not.";
    KeepOrphan breaks 3 in Store: "A replica is kept although its owner is lost.";
    TellOneLoss breaks 3 in Driver: "An engine is told of the first loss alone, and keeps the next lost peer as a holder.";
    HeedLost breaks 11 in Messages: "A late message of a lost peer is applied.";
    BlameLateAnswer breaks 11 in Driver: "An answer that no operation waits for, such as a survivor's to a failed one, counts as a breach of the protocol.";
    IgnoreIdle breaks 6 in Events: "A peer that leaves an empty request unanswered is not called unresponsive.";
}

impl Bug {
    /// Number of invariants; as many bugs come first in [`Bug::ALL`], one for each.
    pub const INVARIANTS: usize = 13;

    /// Returns true if it needs workers that wait for each other at ticks to show.
    #[must_use]
    pub fn needs_ticks(self) -> bool {
        match self {
            Self::KeepTooBriefly | Self::CountWaiting | Self::FilterUnderMark | Self::LagOwn => {
                true
            }
            bug => bug.invariant() == 13,
        }
    }

    /// Returns true if it needs a lost peer to show.
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

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Messages => "messages",
            Self::Store => "store",
            Self::Policy => "policy",
            Self::Driver => "driver",
            Self::Events => "events",
        })
    }
}

/// Returns the bug named by the environment variable `ADAPM_BUG`: [`crate::Setup::new`] plants it
/// in every node.
///
/// # Panics
/// If the variable names neither a bug nor a [`LinkBug`].
#[must_use]
pub fn bug_from_environment() -> Option<Bug> {
    let name = env::var("ADAPM_BUG").ok().filter(|name| !name.is_empty())?;
    let named = Bug::ALL.into_iter().find(|bug| bug.to_string() == name);
    let known = named.is_some() || LinkBug::ALL.iter().any(|bug| bug.to_string() == name);
    assert!(
        known,
        "ADAPM_BUG={name}: no such bug; there are {:?} and {:?}",
        Bug::ALL,
        LinkBug::ALL
    );
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_bug_per_invariant() {
        let first = Bug::ALL[..Bug::INVARIANTS].iter().map(|bug| bug.invariant());
        assert!(first.eq(1..=13));
    }

    #[test]
    fn bugs_that_need_a_loss_stand_last() {
        let losses: Vec<Bug> = Bug::ALL.into_iter().filter(|bug| bug.needs_loss()).collect();
        assert_eq!(losses, Bug::ALL[Bug::ALL.len() - 9..]);
    }
}
