//! Invariant 3: owner and holders agree about who holds a replica, except for entries in flight
//! between them.

use adapm_core::id::{Key, NodeId};
use adapm_core::slot::State;

use crate::flight::Kind;
use crate::picture::Picture;
use crate::violation::{Violation, hold};

pub(super) fn check(picture: &Picture) -> Result<(), Violation> {
    for key in picture.keys() {
        match picture.owner(key) {
            Some(owner) => check_owned(picture, key, owner)?,
            None => check_moving(picture, key)?,
        }
        check_orphans(picture, key)?;
    }
    Ok(())
}

fn check_owned(picture: &Picture, key: Key, owner: NodeId) -> Result<(), Violation> {
    let view = &picture.row(owner, key).view;
    for node in picture.nodes().filter(|node| *node != owner) {
        let state = picture.state(node, key);
        let known = view.holders.contains(&node);
        if picture.losses().is_gone(node) {
            let forgotten = !known || !picture.losses().knows(owner, node);
            hold!(picture.setup.checks => LostHolderForgotten, forgotten, "owner {owner} has lost {node}, and keeps it as a holder of {key}");
            continue;
        }
        hold!(
            picture.setup.checks => HolderKnown,
            known || state != State::Replica,
            "{node} holds a replica of {key} unknown to owner {owner}"
        );
        let granted = picture.is_in_flight(Kind::GrantReplica, key, owner, node);
        let expected = state == State::Replica || state == State::Releasing || granted;
        hold!(
            picture.setup.checks => HolderReal,
            !known || expected,
            "owner {owner} takes {node} for a holder of {key}, which is {state:?} there"
        );
        let releasing = picture.is_in_flight(Kind::Release, key, node, owner);
        let answered = known && state == State::Releasing && !releasing && !granted;
        hold!(
            picture.setup.checks => ReleaseHeeded,
            !answered,
            "owner {owner} has read the release of {key} by {node}, and keeps it as a holder"
        );
    }
    let stray = view.stale.iter().find(|node| !view.holders.contains(node));
    hold!(picture.setup.checks => StaleIsHolder, stray.is_none(), "owner {owner} marks {stray:?} stale for {key}, which is no holder");
    let watched = view.packed.is_watched();
    hold!(
        picture.setup.checks => WatchedHasHolders,
        watched != view.holders.is_empty(),
        "{key} has holders {:?} and watched is {watched}",
        view.holders
    );
    Ok(())
}

/// Checks that replicas of a lost owner are gone where its loss is known.
fn check_orphans(picture: &Picture, key: Key) -> Result<(), Violation> {
    for node in picture.living() {
        let packed = picture.row(node, key).view.packed;
        let owner = packed.location().map_or(picture.setup.home(key), |location| location.node);
        let orphan = packed.state() == State::Replica && picture.losses().knows(node, owner);
        hold!(picture.setup.checks => NoOrphan, !orphan, "{node} has lost {owner}, and keeps its replica of {key}");
    }
    Ok(())
}

/// Checks that the main copy moves only when no node other than the receiver holds a replica.
fn check_moving(picture: &Picture, key: Key) -> Result<(), Violation> {
    let grant =
        picture.network.about(key).iter().find(|in_flight| in_flight.entry.kind.is_ownership());
    let Some(receiver) = grant.map(|in_flight| in_flight.to) else { return Ok(()) };
    for node in picture.nodes().filter(|node| *node != receiver) {
        let state = picture.state(node, key);
        hold!(picture.setup.checks => NoHolderLeftBehind, state != State::Replica, "{key} moves to {receiver} while {node} holds a replica");
    }
    Ok(())
}
