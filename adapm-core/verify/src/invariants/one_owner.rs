//! Invariant 1: every key has exactly one owner, or exactly one ownership grant in flight. One whose main copy is gone with
//! a lost node has none, and never gets another. In a sparse layout the home owns what nobody has touched.

use adapm_core::slot::State;

use crate::cluster::Cluster;
use crate::violation::{Violation, hold};

pub(super) fn check(cluster: &Cluster) -> Result<(), Violation> {
    for key in cluster.keys() {
        let owners = cluster.nodes().filter(|node| cluster.state(*node, key) == State::Main).count();
        let grants = cluster.air.about(key).iter().filter(|aloft| aloft.entry.kind.is_ownership()).count();
        let owners = owners + usize::from(cluster.is_untouched(key));
        let expected = usize::from(!cluster.losses.is_doomed(key));
        hold!(
            cluster.setup.checks => OneOwner,
            owners + grants == expected,
            "{key} has {owners} owners and {grants} ownership grants in flight"
        );
    }
    Ok(())
}
