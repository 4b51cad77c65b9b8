//! Invariant 7: a home forgets nothing that it has learned of an owner, and at rest it knows the
//! owner.

use adapm_core::id::NodeId;

use crate::picture::Picture;
use crate::violation::{Violation, hold};

pub(super) fn check(picture: &Picture, node: NodeId) -> Result<(), Violation> {
    for key in picture.keys().filter(|key| picture.setup.home(*key) == node) {
        let (before, after) = (picture.heard[key.0 as usize], picture.heard_at_home(key));
        hold!(
            picture.setup.checks => HomeNeverGoesBack,
            before <= after,
            "home {node} knew {key} at {before}, now at {after}"
        );
    }
    Ok(())
}

pub(super) fn check_at_rest(picture: &Picture) -> Result<(), Violation> {
    for key in picture.keys() {
        let home = picture.setup.home(key);
        let Some(owner) = picture.owner(key) else { continue };
        if owner == home || picture.losses.is_gone(home) || picture.losses.is_unrecorded(key) {
            continue;
        }
        let record = picture.row(home, key).view.packed.location();
        let believed: Option<NodeId> = record.map(|location| location.node);
        hold!(
            picture.setup.checks => HomeKnowsOwner,
            believed == Some(owner),
            "home {home} takes {believed:?} for the owner of {key}, which is {owner}"
        );
        let counter = picture.row(owner, key).view.packed.counter();
        let known = record.map(|location| location.counter);
        hold!(picture.setup.checks => HomeKnowsCounter, known == Some(counter), "home {home} knows {key} at {known:?}, its owner has {counter}");
    }
    Ok(())
}
