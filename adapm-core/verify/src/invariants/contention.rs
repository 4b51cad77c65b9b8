//! Invariant 5: the policies `adapm*` never relocate while, to the owner's knowledge, two or more
//! nodes have active intent.
//!
//! A relocation that a worker asked for by localize is its own decision: pairs of node and key that
//! were ever localized are not checked.

use adapm_core::slot::State;

use crate::member::Told;
use crate::picture::Picture;
use crate::violation::{Violation, hold};

pub(super) fn check(picture: &Picture) -> Result<(), Violation> {
    if !picture.setup.adaptive {
        return Ok(());
    }
    for &(owner, told) in &picture.told {
        let Told::Relocation(key, to, _) = told else { continue };
        if picture.localized.contains(&(to, key)) {
            continue;
        }
        let interested = picture.row(owner, key).view.intent_count;
        hold!(picture.setup.checks => OwnIntentHeeded, interested == 0, "{key} leaves {owner}, which has active intent, for {to}");
        let holder =
            picture.nodes().find(|node| *node != to && picture.state(*node, key) == State::Replica);
        hold!(picture.setup.checks => HoldersHeeded, holder.is_none(), "{key} leaves {owner} for {to} while {holder:?} holds a replica");
    }
    Ok(())
}
