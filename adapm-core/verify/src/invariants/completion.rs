//! Invariant 6: every operation completes, no barrier before all have called it, and hops are
//! bounded (protocol, "Routing").

use adapm_core::engine::{OpId, Reason};
use adapm_core::id::NodeId;

use crate::member::Told;
use crate::oracle::NodeWorker;
use crate::picture::Picture;
use crate::violation::{Violation, hold};

/// Checks that hops are at most the main copy's counter when the entry is served minus the counter
/// the entry first left with.
pub(super) fn check_hops(picture: &Picture) -> Result<(), Violation> {
    for &(owner, told) in &picture.told {
        let Told::Served(key, origin, hops) = told else { continue };
        // If the owner gave the key away since, its packed state has the next counter: one more
        // than when it served.
        let counter = picture.row(owner, key).view.packed.counter().0;
        let left = picture.network.first_left(origin, key).map_or(0, |counter| counter.0);
        // A home that has given nothing away forwards once: its record has the counter 0 that the
        // entry left with.
        let bound = counter.saturating_sub(left).max(u64::from(left == 0));
        hold!(
            picture.setup.checks => Hops,
            u64::from(hops) <= bound,
            "{key} for {origin} is served at {owner} after {hops} hops; it left with r{left} and is at r{counter}"
        );
    }
    Ok(())
}

/// Checks, when a barrier ends, that every worker that has not ended has called it.
pub(crate) fn check_met(picture: &Picture, barrier: OpId, number: usize) -> Result<(), Violation> {
    let ended = |who: &NodeWorker| picture.member(who.0).workers[who.1.index()].ended;
    let mut missing =
        picture.workers().filter(|who| !ended(who) && picture.calls.barriers(*who) < number);
    let missing = missing.next();
    hold!(
        picture.setup.checks => BarrierMet,
        missing.is_none(),
        "{barrier:?}, barrier {number}, ends before {missing:?} has called it"
    );
    Ok(())
}

/// Checks, after a step of a node that knows of a loss, that nothing waits there, neither operation
/// nor round.
pub(super) fn check_bereaved(picture: &Picture, node: NodeId) -> Result<(), Violation> {
    if !picture.losses.is_told(node) {
        return Ok(());
    }
    let open = picture.calls.open().find(|(_, who)| who.0 == node);
    hold!(picture.setup.checks => BereavedEnds, open.is_none(), "{node} has lost {:?}, and {open:?} still waits", picture.losses.gone());
    let awaited = picture
        .nodes()
        .filter(|peer| !picture.losses.knows(node, *peer))
        .any(|peer| picture.network.unanswered(node, peer) > 0);
    let waits = matches!(picture.members[node.index()].node.reason(), Reason::Round { .. });
    hold!(picture.setup.checks => BereavedRound, awaited || !waits, "the round of {node} waits for a node that is lost");
    Ok(())
}

/// Checks that every waiting node has noticed a node that has stopped answering.
pub(crate) fn check_noticed(picture: &Picture) -> Result<(), Violation> {
    let is_told = |node: NodeId| picture.losses.is_told(node);
    let unaware = picture.calls.open().find(|(_, who)| !is_told(who.0));
    hold!(
        picture.setup.checks => UnresponsiveNoticed,
        unaware.is_none(),
        "{unaware:?} waits, and its node has not noticed that {:?} do not answer",
        picture.losses.gone()
    );
    Ok(())
}
