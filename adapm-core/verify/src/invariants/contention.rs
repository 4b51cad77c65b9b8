//! Invariant 5: the policies `adapm*` never relocate while, to the owner's knowledge, two or more nodes have active intent.
//!
//! A relocation that a worker asked for by localize is its own decision: pairs of node and key that were ever localized
//! are not judged.

use adapm_core::slot::State;

use crate::cluster::Cluster;
use crate::member::Told;
use crate::violation::{Violation, hold};

pub(super) fn check(cluster: &Cluster) -> Result<(), Violation> {
    if !cluster.setup.adaptive {
        return Ok(());
    }
    for &(owner, told) in &cluster.told {
        let Told::Relocation(key, to, _) = told else { continue };
        if cluster.localized.contains(&(to, key)) {
            continue;
        }
        let interested = cluster.row(owner, key).view.intent_count;
        hold!(cluster.setup.checks => OwnIntentHeeded, interested == 0, "{key} leaves {owner}, which has active intent, for {to}");
        let holder = cluster.nodes().find(|node| *node != to && cluster.state(*node, key) == State::Replica);
        hold!(cluster.setup.checks => HoldersHeeded, holder.is_none(), "{key} leaves {owner} for {to} while {holder:?} holds a replica");
    }
    Ok(())
}
