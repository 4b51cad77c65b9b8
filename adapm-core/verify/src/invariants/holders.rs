//! Invariant 3: owner and holders agree about who holds a replica, but for what is on its way between them.

use adapm_core::id::{Key, NodeId};
use adapm_core::slot::State;

use crate::cluster::Cluster;
use crate::flight::Kind;
use crate::violation::{Violation, hold};

pub(super) fn check(cluster: &Cluster) -> Result<(), Violation> {
    for key in cluster.keys() {
        match cluster.owner(key) {
            Some(owner) => check_owned(cluster, key, owner)?,
            None => check_moving(cluster, key)?,
        }
        check_orphans(cluster, key)?;
    }
    Ok(())
}

fn check_owned(cluster: &Cluster, key: Key, owner: NodeId) -> Result<(), Violation> {
    let view = &cluster.row(owner, key).view;
    for node in cluster.nodes().filter(|node| *node != owner) {
        let state = cluster.state(node, key);
        let known = view.holders.contains(&node);
        if cluster.losses().is_gone(node) {
            let forgotten = !known || !cluster.losses().knows(owner, node);
            hold!(cluster.setup.checks => LostHolderForgotten, forgotten, "owner {owner} has lost {node}, and keeps it as a holder of {key}");
            continue;
        }
        hold!(
            cluster.setup.checks => HolderKnown,
            known || state != State::Replica,
            "{node} holds a replica of {key} unknown to owner {owner}"
        );
        let granted = cluster.is_aloft(Kind::GrantReplica, key, owner, node);
        let expected = state == State::Replica || state == State::Releasing || granted;
        hold!(
            cluster.setup.checks => HolderReal,
            !known || expected,
            "owner {owner} takes {node} for a holder of {key}, which is {state:?} there"
        );
        let releasing = cluster.is_aloft(Kind::Release, key, node, owner);
        let answered = known && state == State::Releasing && !releasing && !granted;
        hold!(
            cluster.setup.checks => ReleaseHeeded,
            !answered,
            "owner {owner} has read the release of {key} by {node}, and keeps it as a holder"
        );
    }
    let stray = view.stale.iter().find(|node| !view.holders.contains(node));
    hold!(cluster.setup.checks => StaleIsHolder, stray.is_none(), "owner {owner} marks {stray:?} stale for {key}, which is no holder");
    let watched = view.word.is_watched();
    hold!(
        cluster.setup.checks => WatchedHasHolders,
        watched != view.holders.is_empty(),
        "{key} has holders {:?} and watched is {watched}",
        view.holders
    );
    Ok(())
}

/// What a lost owner granted is gone where its loss is known.
fn check_orphans(cluster: &Cluster, key: Key) -> Result<(), Violation> {
    for node in cluster.living() {
        let word = cluster.row(node, key).view.word;
        let owner = word.location().map_or(cluster.setup.home(key), |location| location.node);
        let orphan = word.state() == State::Replica && cluster.losses().knows(node, owner);
        hold!(cluster.setup.checks => NoOrphan, !orphan, "{node} has lost {owner}, and keeps its replica of {key}");
    }
    Ok(())
}

/// The main copy moves only when no node other than the receiver holds a replica.
fn check_moving(cluster: &Cluster, key: Key) -> Result<(), Violation> {
    let grant = cluster.air.about(key).iter().find(|aloft| aloft.entry.kind.is_ownership());
    let Some(receiver) = grant.map(|aloft| aloft.to) else { return Ok(()) };
    for node in cluster.nodes().filter(|node| *node != receiver) {
        let state = cluster.state(node, key);
        hold!(cluster.setup.checks => NoHolderLeftBehind, state != State::Replica, "{key} moves to {receiver} while {node} holds a replica");
    }
    Ok(())
}
