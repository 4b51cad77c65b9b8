//! Invariant 5 where the technique of a key is chosen before the run (NuPS §3, AdaPM §A.5,
//! HET-GMP §5.2): a hot key is local on every node on which it is hot, from its arrival there to
//! the end of the node's last worker.
//!
//! The replicas of a lost owner are given up: nothing is checked after a loss.

use adapm_core::id::{Key, NodeId};
use adapm_core::slot::State;

use crate::picture::Picture;
use crate::violation::{Violation, hold};

/// Checks that `node`, of the last step, keeps the hot keys that it has got.
pub(super) fn check(picture: &Picture, node: NodeId) -> Result<(), Violation> {
    if picture.losses.any() || !works(picture, node) {
        return Ok(());
    }
    let given_up = picture
        .setup
        .hot_keys(node)
        .find(|key| picture.arrived.contains(&(node, *key)) && !is_local(picture, node, *key));
    hold!(picture.setup.checks => HotKeyStays, given_up.is_none(), "{node} had a copy of hot {given_up:?} and has none");
    Ok(())
}

pub(super) fn check_at_rest(picture: &Picture) -> Result<(), Violation> {
    if picture.losses.any() {
        return Ok(());
    }
    for node in picture.nodes().filter(|node| works(picture, *node)) {
        let absent = picture.setup.hot_keys(node).find(|key| !is_local(picture, node, *key));
        hold!(picture.setup.checks => HotKeyEverywhere, absent.is_none(), "{node} is at rest without a copy of hot {absent:?}");
    }
    Ok(())
}

/// Returns true if `node` has a local copy of `key`.
pub(crate) fn is_local(picture: &Picture, node: NodeId, key: Key) -> bool {
    matches!(picture.state(node, key), State::Main | State::Replica)
        || (picture.is_untouched(key) && picture.setup.home(key) == node)
}

/// Returns true if a worker of the node has not ended.
fn works(picture: &Picture, node: NodeId) -> bool {
    picture.member(node).workers.iter().any(|worker| !worker.ended)
}
