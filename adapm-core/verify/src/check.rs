//! The checkers by name: the claim of each, the invariant that it watches, and sets of them to
//! switch them on and off.
//!
//! `tests/planted` shows that each finds a planted bug on its own.

use core::fmt;

/// Declares the checkers: each with its invariant and its claim.
macro_rules! checks {
    ($($check:ident watches $invariant:literal: $claim:literal;)+) => {
        /// A checker of the lockstep cluster.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Check {
            $(#[doc = $claim] $check,)+
        }

        impl Check {
            /// All checkers, by invariant.
            pub const ALL: [Self; [$(Self::$check),+].len()] = [$(Self::$check),+];

            /// Returns the number of the invariant that it watches, 1 to 13.
            #[must_use]
            pub const fn invariant(self) -> u8 {
                match self {
                    $(Self::$check => $invariant,)+
                }
            }

            /// Returns its claim, in one sentence.
            #[must_use]
            pub fn claim(self) -> &'static str {
                match self {
                    $(Self::$check => $claim,)+
                }
            }
        }
    };
}

checks! {
    OneOwner watches 1: "Every key has exactly one owner, or one ownership grant in flight.";
    PushOnce watches 2: "After every step no push is counted twice.";
    PushKept watches 2: "After every step every acknowledged push is somewhere.";
    KeptAtRest watches 2: "At rest every push is in the main copy.";
    SetKept watches 2: "At rest a key that was set holds a completed set.";
    LastSetKept watches 2: "At rest no set is missing that came after the present one.";
    KeptBehindSet watches 2: "At rest no push is missing that came after the last set.";
    ValueSound watches 2: "A value that is read could have been written.";
    CutWhole watches 2: "When all nodes are frozen and have copied their main copies, there is one copy of each.";
    QuiesceKept watches 2: "When a quiesce ends, the pushes made before are in the main copies.";
    LostHolderForgotten watches 3: "An owner that has learned of a loss keeps no lost holder.";
    HolderKnown watches 3: "A node with a replica is among the owner's holders.";
    HolderReal watches 3: "A holder has a replica, a grant in flight, or a release unanswered.";
    ReleaseHeeded watches 3: "A release that was read has ended the holding.";
    StaleIsHolder watches 3: "Only holders are marked stale.";
    WatchedHasHolders watches 3: "A main copy is watched exactly if it has holders.";
    NoOrphan watches 3: "No replica is kept of a key whose owner is known to be lost.";
    NoHolderLeftBehind watches 3: "A main copy moves only if no node but the receiver holds a replica.";
    ReplicasEqual watches 4: "At rest every replica equals its main copy.";
    ReplicasClean watches 4: "At rest no replica has unsent updates.";
    SyncSent watches 4: "When a `wait_sync` ends, the node's pushes are in the main copies.";
    SyncSeen watches 4: "When a `wait_sync` ends, the node's replicas have the content that the main copies had.";
    RenewSeen watches 4: "When a renewal ends, the replicas have the content that the main copies had.";
    QuiesceSeen watches 4: "When a quiesce ends, the pushes made before are in all replicas.";
    OwnIntentHeeded watches 5: "The adaptive policies relocate no key that its owner needs.";
    HoldersHeeded watches 5: "The adaptive policies relocate no key that another node holds.";
    HotKeyStays watches 5: "A node that has got a copy of a hot key keeps one while it has a worker.";
    HotKeyEverywhere watches 5: "At rest every node with a worker has a copy of each hot key.";
    SetUpOnce watches 5: "Where pulls set up replicas for the rest of the run, a node gets one of each key, once.";
    ComesToRest watches 6: "A cluster left alone ends all operations and comes to rest.";
    NothingToTheLost watches 6: "No message is sent to a node that is known to be lost.";
    QuiesceEnded watches 6: "When a quiesce ends, the operations issued before have ended.";
    EndsUnderWrites watches 6: "A `wait_sync` or quiesce ends while workers continue writing and localizing.";
    Hops watches 6: "An entry is not forwarded more often than its key has moved.";
    BarrierMet watches 6: "When a barrier ends, every live worker has called it.";
    TickPassed watches 6: "At rest no worker waits at a tick that it may pass.";
    EndsOnce watches 6: "An operation ends once.";
    FailsForLoss watches 6: "An operation fails only for a loss that the node has learned of.";
    BereavedEnds watches 6: "Once a node has learned of a loss, no operation waits there.";
    BereavedRound watches 6: "Once a node has learned of a loss, no round waits for the lost node.";
    UnresponsiveNoticed watches 6: "A node that waits for others notices one that has stopped answering.";
    AnsweringIsSpared watches 6: "A node calls no answering peer unresponsive.";
    HomeNeverGoesBack watches 7: "A home that has learned of a relocation does not replace it by an earlier one.";
    HomeKnowsOwner watches 7: "At rest every home knows the owner.";
    HomeKnowsCounter watches 7: "At rest every home knows the relocation counter.";
    OwnWrites watches 8: "A worker reads its own pushes.";
    NotTheFuture watches 8: "A worker does not read its own later pushes.";
    MonotonicReads watches 8: "A worker's later reads of a key include its earlier reads.";
    OwnSet watches 8: "A worker reads its own set, or a later one.";
    OneCopy watches 9: "Without replication a key has one copy.";
    ProgramOrder watches 9: "Without replication a read lies between its worker's earlier and later pushes.";
    OneChain watches 9: "Without replication any two reads of a key have an order.";
    RealTime watches 9: "Without replication a read includes everything done before it began.";
    WritersInOrder watches 9: "Without replication the pushes of a worker become visible in its order.";
    SetReplaced watches 9: "Without replication no read returns a set that was replaced before.";
    Linear watches 9: "Without replication one order of all operations explains all reads of a key that is set.";
    EntriesBounded watches 10: "After every step a node's memory for protocol state is bounded by its own activity.";
    NoStrayValue watches 10: "A node keeps no value of a key without a local copy.";
    NoUnwantedReplica watches 10: "At rest no replica is kept without intent.";
    MessagesBounded watches 10: "No message exceeds the bytes that its configuration allows, in head and values.";
    EntriesAtRest watches 10: "At rest nothing is kept except for live intents and shared copies.";
    BadIsBlamed watches 11: "An impossible message is refused, and its sender named.";
    BadChangesNothing watches 11: "A refused message changes nothing.";
    BadSaysNothing watches 11: "A refused message is not answered.";
    SoundIsTaken watches 11: "A sound input is not refused.";
    LateBlamesNobody watches 11: "A late message of a lost node is no breach.";
    LateSaysNothing watches 11: "A late message of a lost node is not answered.";
    LateChangesNothing watches 11: "A late message of a lost node changes nothing.";
    HonestIsSpared watches 12: "Whatever a node sends, no honest node is blamed, by a node or in an error.";
    LieSpoilsNothing watches 12: "Keys that a node has had nothing to do with are sound whatever it sends: one owner, each push once.";
    LieHoldsUpNothing watches 12: "No operation on such a key waits for a lying node.";
    TickTogether watches 13: "A worker passes a tick only when no live worker is further behind than the bound.";
    TickSees watches 13: "A read contains every push made before the tick that is the bound before its worker's.";
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A set of active checkers: by default all.
///
/// A few report conditions in which a run cannot continue; these end the run even if they are off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checks(u128);

impl Checks {
    /// All checkers.
    pub const ALL: Self = Self(u128::MAX);

    /// No checker.
    pub const NONE: Self = Self(0);

    /// Returns the checkers of the invariant with this number, 1 to 13.
    #[must_use]
    pub const fn only(invariant: u8) -> Self {
        Self(MASKS[invariant as usize])
    }

    /// Returns the set of this checker alone.
    #[must_use]
    pub const fn just(check: Check) -> Self {
        Self(1 << check as u64)
    }

    /// Returns the set without this checker.
    #[must_use]
    pub const fn without(self, check: Check) -> Self {
        Self(self.0 & !Self::just(check).0)
    }

    /// Returns true if the checker is on.
    #[must_use]
    pub const fn has(self, check: Check) -> bool {
        self.0 & Self::just(check).0 != 0
    }

    /// Returns true if any checker of the invariant is on.
    #[must_use]
    pub const fn contains(self, invariant: u8) -> bool {
        self.0 & Self::only(invariant).0 != 0
    }
}

/// The checkers of each invariant, as bits.
const MASKS: [u128; 14] = {
    let mut masks = [0; 14];
    let mut at = 0;
    while at < Check::ALL.len() {
        masks[Check::ALL[at].invariant() as usize] |= 1 << at;
        at += 1;
    }
    masks
};
