//! Invariant 7: a home forgets nothing that it has heard of an owner, and at rest it knows the owner.

use adapm_core::id::{Counter, Key, NodeId};

use crate::cluster::Cluster;
use crate::violation::{Violation, hold};

pub(super) fn check(cluster: &Cluster, node: NodeId) -> Result<(), Violation> {
    for key in cluster.keys().filter(|key| cluster.setup.home(*key) == node) {
        let (before, after) = (cluster.heard[key.0 as usize], heard(cluster, key));
        hold!(
            cluster.setup.checks => HomeNeverGoesBack,
            before <= after,
            "home {node} knew {key} at {before}, now at {after}"
        );
    }
    Ok(())
}

/// The counter under which the home of `key` knows its owner.
pub(crate) fn heard(cluster: &Cluster, key: Key) -> Counter {
    cluster.row(cluster.setup.home(key), key).view.word.counter()
}

pub(super) fn check_at_rest(cluster: &Cluster) -> Result<(), Violation> {
    for key in cluster.keys() {
        let home = cluster.setup.home(key);
        let Some(owner) = cluster.owner(key) else { continue };
        if owner == home || cluster.losses.is_gone(home) || cluster.losses.is_unrecorded(key) {
            continue;
        }
        let record = cluster.row(home, key).view.word.location();
        let believed: Option<NodeId> = record.map(|location| location.node);
        hold!(
            cluster.setup.checks => HomeKnowsOwner,
            believed == Some(owner),
            "home {home} takes {believed:?} for the owner of {key}, which is {owner}"
        );
        let counter = cluster.row(owner, key).view.word.counter();
        let known = record.map(|location| location.counter);
        hold!(cluster.setup.checks => HomeKnowsCounter, known == Some(counter), "home {home} knows {key} at {known:?}, its owner has {counter}");
    }
    Ok(())
}
