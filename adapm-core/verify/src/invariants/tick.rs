//! Invariant 13: workers are no further apart than the bound, and read nothing older than that.

use std::collections::BTreeSet;

use adapm_core::clock::Tick;
use adapm_core::policy::{Bound, By};

use crate::oracle::{AccessId, AccessKind, NodeWorker};
use crate::picture::Picture;
use crate::violation::{Violation, hold};

/// Checks, when a worker passes `tick`, that no worker that has not ended is too far behind.
pub(crate) fn check_passed(
    picture: &Picture,
    who: NodeWorker,
    tick: Tick,
) -> Result<(), Violation> {
    let Some(Bound { ticks, .. }) = picture.setup.bound else { return Ok(()) };
    let behind = picture.workers().find(|other| picture.oracle.tick(*other) < tick.before(ticks));
    hold!(
        picture.setup.checks => TickTogether,
        behind.is_none() || picture.losses.any(),
        "{who:?} passes {tick}, more than {ticks} ahead of {behind:?}"
    );
    Ok(())
}

/// Checks that a read contains all pushes, of all workers, made early enough, but for the changes
/// of other nodes that a replica may lack. What a node has pushed at one tick may all be one
/// change, so what is missing is counted by node and tick.
pub(super) fn check_read(picture: &Picture, read: AccessId) -> Result<(), Violation> {
    let Some(Bound { ticks, by }) = picture.setup.bound else { return Ok(()) };
    let oracle = &picture.oracle;
    if oracle.was_set(read.key) || picture.losses.any() {
        return Ok(());
    }
    let access = &oracle.accesses(read.key)[read.index];
    // What expires is not refreshed, and lacks nothing all the same, as what is read remotely. A
    // key that is not hot on the node is, unless it came to be held there by a localize.
    let node = access.worker.0;
    let is_held =
        picture.setup.is_hot_at(node, read.key) || picture.localized.contains(&(node, read.key));
    let may_lag = by == By::Refresh && (picture.setup.hot.is_none() || is_held);
    let lag = if may_lag { picture.setup.lag as usize } else { 0 };
    let AccessKind::Pull(seen) = access.kind else { return Ok(()) };
    let before = access.tick.before(ticks);
    let mut lacks = BTreeSet::new();
    for other in oracle.accesses(read.key).iter().filter(|other| other.tick < before) {
        let AccessKind::Push(digit) = other.kind else { continue };
        let is_missing = seen.pushes >> digit & 1 == 0 && !other.failed;
        if is_missing {
            lacks.insert((other.worker.0, other.tick));
        }
        let is_own = other.worker.0 == access.worker.0;
        hold!(
            picture.setup.checks => TickSees,
            lacks.len() <= lag && !(is_missing && is_own),
            "{:?} at {} misses p{digit} of {}, made by {:?} at {}, and more than {lag} changes: {seen}",
            access.worker,
            access.tick,
            read.key,
            other.worker,
            other.tick
        );
    }
    Ok(())
}

/// Checks that at rest no worker waits at a tick that it may pass.
pub(super) fn check_at_rest(picture: &Picture) -> Result<(), Violation> {
    let Some(Bound { ticks, .. }) = picture.setup.bound else { return Ok(()) };
    let least = picture.workers().map(|who| picture.oracle.tick(who)).min().unwrap_or_default();
    let stuck = picture.calls.ticks().find(|(_, tick)| least >= tick.before(ticks));
    hold!(
        picture.setup.checks => TickPassed,
        stuck.is_none() || picture.losses.any(),
        "{stuck:?} is at rest and waits, although all workers have reached {least}"
    );
    Ok(())
}
