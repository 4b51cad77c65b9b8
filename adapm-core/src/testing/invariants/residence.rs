//! Invariant 7: at rest every home knows the owner.

use crate::id::NodeId;
use crate::testing::cluster::Cluster;
use crate::testing::violation::{Violation, hold};

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
