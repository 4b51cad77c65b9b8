//! Invariant 2: every push is counted exactly once, wherever it is.
//!
//! At every step, the main copy (here or granted and in flight), the deltas of all replicas and the
//! updates in flight are summed. A push acknowledged to its worker must be in that sum once; a push
//! still waiting in an engine may be missing, and none may be there twice. At rest all are in the
//! main copy.

use adapm_core::engine::OpId;
use adapm_core::id::Key;
use adapm_core::slot::State;
use adapm_core::value::accumulate;

use crate::digits;
use crate::picture::Picture;
use crate::violation::{Violation, hold};

pub(super) fn check(picture: &Picture) -> Result<(), Violation> {
    for key in picture.keys() {
        // A set erases older pushes: the rest is checked at rest.
        if picture.oracle.pushes(key) == 0 || picture.oracle.was_set(key) {
            continue;
        }
        if picture.losses.is_doomed(key) {
            continue;
        }
        let mut sum = vec![0; picture.setup.value_len(key)];
        add_copies(picture, key, &mut sum);
        add_flight(picture, key, &mut sum);
        let pushes = match digits::pushes(&sum) {
            Ok(pushes) => pushes,
            Err(unsound) => {
                hold!(picture.setup.checks => PushOnce, false, "{key} counts a push twice: {unsound:?}");
                continue;
            }
        };
        let lost = owed(picture, key) & !pushes;
        hold!(picture.setup.checks => PushKept, lost == 0, "{key} has lost push p{}", lost.trailing_zeros());
    }
    Ok(())
}

fn add_copies(picture: &Picture, key: Key, sum: &mut [i64]) {
    for node in picture.nodes() {
        let row = picture.row(node, key);
        match row.state() {
            State::Main => accumulate(sum, &row.value),
            State::Replica => accumulate(sum, &row.delta),
            State::None | State::Requested | State::Releasing => {}
        }
    }
}

fn add_flight(picture: &Picture, key: Key, sum: &mut [i64]) {
    for in_flight in picture.network.about(key) {
        if in_flight.entry.kind.is_update() {
            accumulate(sum, &in_flight.entry.value);
        } else if in_flight.entry.kind.is_ownership() {
            accumulate(sum, &picture.granted_value(in_flight.to, &in_flight.entry));
        }
    }
}

pub(super) fn check_at_rest(picture: &Picture) -> Result<(), Violation> {
    for key in picture.keys() {
        let Some(seen) = picture.judged_main(key)? else { continue };
        if !picture.losses.any() {
            picture.oracle.check_final(key, seen)?;
        } else if !picture.oracle.was_set(key) {
            let lost = owed(picture, key) & !seen.pushes;
            hold!(picture.setup.checks => KeptAtRest, lost == 0, "{key} has lost push p{}, which a survivor made", lost.trailing_zeros());
        }
    }
    Ok(())
}

/// Checks, when a quiesce ends, that every operation issued before the call has ended, and its
/// pushes are everywhere.
pub(crate) fn check_quiet(
    picture: &Picture,
    quiesce: OpId,
    pushes: &[u128],
) -> Result<(), Violation> {
    let waiting =
        picture.calls.open().find(|(op, _)| *op < quiesce && !picture.calls.is_collective(*op));
    hold!(picture.setup.checks => QuiesceEnded, waiting.is_none(), "{quiesce:?}, a quiesce, ends before {waiting:?}");
    for key in picture.keys().filter(|key| !picture.oracle.was_set(*key)) {
        let made = pushes[key.0 as usize];
        let made = if picture.losses.any() { made & owed(picture, key) } else { made };
        if let Some(main) = picture.judged_main(key)? {
            let lost = made & !main.pushes;
            hold!(
                picture.setup.checks => QuiesceKept,
                lost == 0,
                "a quiesce ends before p{} of {key} has arrived",
                lost.trailing_zeros()
            );
        }
        for node in picture.nodes().filter(|node| picture.state(*node, key) == State::Replica) {
            let lost = made & !picture.oracle.decode(key, &picture.row(node, key).value)?.pushes;
            hold!(
                picture.setup.checks => QuiesceSeen,
                lost == 0,
                "a quiesce ends before p{} of {key} is at {node}",
                lost.trailing_zeros()
            );
        }
    }
    Ok(())
}

/// Checks, when the last worker has copied its part of a snapshot, that the copies are the main
/// copies. Where a worker has ended, or a node is lost, none is complete.
pub(crate) fn check_cut(picture: &Picture) -> Result<(), Violation> {
    if picture.cut.workers() < picture.workers().count() {
        return Ok(());
    }
    for key in picture.keys().filter(|key| !picture.is_untouched(*key)) {
        let (copies, main) = (picture.cut.copies(key), picture.judged_main(key)?);
        hold!(
            picture.setup.checks => CutWhole,
            matches!(copies, [copy] if Some(*copy) == main),
            "a snapshot has {copies:?} of {key}, which is {main:?}"
        );
    }
    Ok(())
}

/// Returns the pushes that must be somewhere: all that are done, except those of vanished nodes.
fn owed(picture: &Picture, key: Key) -> u128 {
    let gone = picture.losses.gone().iter().map(|node| picture.oracle.pushes_of(*node, key));
    gone.fold(picture.oracle.acknowledged(key), |owed, pushes| owed & !pushes)
}
