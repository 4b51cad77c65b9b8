//! Invariant 1: every key has exactly one owner, or exactly one ownership grant in flight. A key
//! whose main copy is gone with a lost node has none, and never gets another. In a sparse layout
//! the home owns untouched keys.

use adapm_core::slot::State;

use crate::picture::Picture;
use crate::violation::{Violation, hold};

pub(super) fn check(picture: &Picture) -> Result<(), Violation> {
    for key in picture.keys() {
        let owners =
            picture.nodes().filter(|node| picture.state(*node, key) == State::Main).count();
        let grants = picture
            .network
            .about(key)
            .iter()
            .filter(|in_flight| in_flight.entry.kind.is_ownership())
            .count();
        let owners = owners + usize::from(picture.is_untouched(key));
        let expected = usize::from(!picture.losses.is_doomed(key));
        hold!(
            picture.setup.checks => OneOwner,
            owners + grants == expected,
            "{key} has {owners} owners and {grants} ownership grants in flight"
        );
    }
    Ok(())
}
