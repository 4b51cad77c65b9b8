//! Invariant 5 where a pull sets up a replica for the rest of the run (ESSP, AdaPM §A.3): a node
//! gets one of each key, once, so there are at most as many set-ups as nodes times keys.
//!
//! Replicas that are refreshed never end by ticks; those that expire come again (SSP).

use std::collections::BTreeSet;

use adapm_core::id::{Key, NodeId};
use adapm_core::policy::{Bound, By};

use crate::member::Told;
use crate::picture::Picture;
use crate::violation::{Violation, hold};

/// Checks that no replica set up in the last step had been set up before.
pub(super) fn check(picture: &Picture) -> Result<(), Violation> {
    if !picture.setup.keeps || !matches!(picture.setup.bound, Some(Bound { by: By::Refresh, .. })) {
        return Ok(());
    }
    let mut met = BTreeSet::new();
    for (node, key) in set_up(picture) {
        let again = picture.set_up.contains(&(node, key)) || !met.insert((node, key));
        hold!(picture.setup.checks => SetUpOnce, !again, "{node} gets a replica of {key} again, which it has had before");
    }
    Ok(())
}

/// Returns the replicas set up in the last step, each with its node.
pub(crate) fn set_up(picture: &Picture) -> impl Iterator<Item = (NodeId, Key)> + '_ {
    picture.told.iter().filter_map(|(_, told)| match *told {
        Told::ReplicaSetUp(key, holder) => Some((holder, key)),
        _ => None,
    })
}
