//! The planted bug that each checker finds when all others are off.

use adapm_verify::{Bug, Check, Checks};

use crate::finding::detect;

/// A bug that each checker finds alone. The other checkers repeat a stronger one ([`ECHOES`]).
pub(crate) const WITNESSES: [(Check, Bug); 66] = [
    (Check::OneOwner, Bug::KeepMainCopy),
    (Check::PushOnce, Bug::SendDeltaTwice),
    (Check::PushKept, Bug::DropDeltaOnRelease),
    (Check::KeptAtRest, Bug::DropDeltaOnRelease),
    (Check::SetKept, Bug::DropSet),
    (Check::LastSetKept, Bug::DropSet),
    (Check::KeptBehindSet, Bug::DropDeltaOnRelease),
    (Check::ValueSound, Bug::SendDeltaTwice),
    (Check::CutWhole, Bug::AskWhileFrozen),
    (Check::QuiesceKept, Bug::DropDeltaOnRelease),
    (Check::LostHolderForgotten, Bug::TellOneLoss),
    (Check::HolderKnown, Bug::ForgetHolder),
    (Check::HolderReal, Bug::KeepReleased),
    (Check::ReleaseHeeded, Bug::KeepReleased),
    (Check::WatchedHasHolders, Bug::ForgetWatch),
    (Check::NoOrphan, Bug::KeepOrphan),
    (Check::NoHolderLeftBehind, Bug::RelocateUnderHolders),
    (Check::ReplicasEqual, Bug::SkipStale),
    (Check::ReplicasClean, Bug::LoseDirtyMark),
    (Check::SyncSent, Bug::LoseDirtyMark),
    (Check::SyncSeen, Bug::LoseDirtyEntry),
    (Check::RenewSeen, Bug::RenewAtOnce),
    (Check::QuiesceSeen, Bug::QuiesceWhileBusy),
    (Check::OwnIntentHeeded, Bug::HideOwnIntent),
    (Check::HoldersHeeded, Bug::HideHolders),
    (Check::HotKeyStays, Bug::HotKeyDropped),
    (Check::HotKeyEverywhere, Bug::HotKeyKept),
    (Check::SetUpOnce, Bug::KeepTooBriefly),
    (Check::ComesToRest, Bug::ForgetParked),
    (Check::NothingToTheLost, Bug::WriteToLost),
    (Check::EndsUnderWrites, Bug::WaitForLaterChanges),
    (Check::Hops, Bug::ForgetForwardCounter),
    (Check::BarrierMet, Bug::BarrierEarly),
    (Check::EndsOnce, Bug::EndTwice),
    (Check::FailsForLoss, Bug::NameHopAsLost),
    (Check::BereavedEnds, Bug::ForgetForwarded),
    (Check::BereavedRound, Bug::DeafAfterLoss),
    (Check::UnresponsiveNoticed, Bug::IgnoreIdle),
    (Check::AnsweringIsSpared, Bug::BlameUnasked),
    (Check::HomeNeverGoesBack, Bug::TrustLatestFact),
    (Check::HomeKnowsOwner, Bug::OlderResidence),
    (Check::HomeKnowsCounter, Bug::OlderResidence),
    (Check::OwnWrites, Bug::RefreshOverPending),
    (Check::OwnSet, Bug::SkipSetter),
    (Check::OneCopy, Bug::ColdKeyReplicated),
    (Check::ProgramOrder, Bug::ReverseParked),
    (Check::RealTime, Bug::AcknowledgeEarly),
    (Check::WritersInOrder, Bug::ApplyAtStaleOwner),
    (Check::Linear, Bug::AcknowledgeSetEarly),
    (Check::EntriesBounded, Bug::HandDirtyAgain),
    (Check::NoStrayValue, Bug::LeakCopy),
    (Check::NoUnwantedReplica, Bug::TakeForMain),
    (Check::MessagesBounded, Bug::JoinPieces),
    (Check::EntriesAtRest, Bug::KeepClock),
    (Check::BadIsBlamed, Bug::SkipForeignDelta),
    (Check::BadSaysNothing, Bug::SkipForeignDelta),
    (Check::BadChangesNothing, Bug::CountRefused),
    (Check::SoundIsTaken, Bug::BlameLateAnswer),
    (Check::LateBlamesNobody, Bug::HeedLost),
    (Check::LateChangesNothing, Bug::HeedLost),
    (Check::HonestIsSpared, Bug::BlameLateAnswer),
    (Check::LieSpoilsNothing, Bug::BelieveAnyRetry),
    (Check::LieHoldsUpNothing, Bug::BelieveAnyResidence),
    (Check::TickPassed, Bug::CountWaiting),
    (Check::TickTogether, Bug::LeastOfSome),
    (Check::TickSees, Bug::TellUnsettled),
];

/// Checkers for which no planted bug is known that they find alone; the page says why they are
/// kept.
pub(crate) const ECHOES: [Check; 7] = [
    Check::StaleIsHolder,
    Check::QuiesceEnded,
    Check::NotTheFuture,
    Check::MonotonicReads,
    Check::OneChain,
    Check::SetReplaced,
    Check::LateSaysNothing,
];

/// Returns the checkers that do not find their bug alone.
pub(crate) fn idle() -> Vec<Check> {
    let finds = |(check, bug): &(Check, Bug)| {
        (0..SEEDS_MAX).any(|seed| detect(seed, Some(*bug), Checks::just(*check)).is_some())
    };
    WITNESSES.iter().filter(|witness| !finds(witness)).map(|(check, _)| *check).collect()
}

/// Number of schedules after which a bug counts as not found.
const SEEDS_MAX: u64 = 500;
