//! Invariant 9: with replication off, all operations on a key are sequentially consistent,
//! synchronous and asynchronous (Lapse §3.4, Theorems 1 and 2); synchronous ones even in real time.
//!
//! For additive pushes this is a linear-time check: the values of reads form a chain, a read that
//! includes a push includes all earlier pushes of the same worker, and a read includes everything
//! acknowledged before it began. Program order of reads is invariant 8.

use adapm_core::id::{Key, NodeId};
use adapm_core::slot::State;

use crate::digits::Seen;
use crate::oracle::{Access, AccessId, AccessKind, NodeWorker, Oracle};
use crate::picture::Picture;
use crate::violation::{Violation, hold};

/// Checks that `node`, of the last step, holds no replica and knows of none.
pub(super) fn check_copies(picture: &Picture, node: NodeId) -> Result<(), Violation> {
    let doubled = |key: &Key| {
        let view = &picture.row(node, *key).view;
        picture.setup.is_sequential(*key)
            && (view.packed.state() == State::Replica || !view.holders.is_empty())
    };
    let key = picture.keys().find(doubled);
    hold!(picture.setup.checks => OneCopy, key.is_none(), "{key:?} has a second copy, at {node} or known to it");
    Ok(())
}

pub(super) fn check_read(oracle: &Oracle, read: AccessId) -> Result<(), Violation> {
    let access = &oracle.accesses(read.key)[read.index];
    let AccessKind::Pull(seen) = access.kind else { return Ok(()) };
    if oracle.was_set(read.key) {
        return check_set_read(oracle, read, access, seen);
    }
    check_program_order(oracle, read, access.worker, seen)?;
    check_chain(oracle, read, seen)?;
    check_real_time(oracle, read, access, seen)?;
    check_writers(oracle, read, seen)
}

/// Checks that the read lies between its worker's earlier and later pushes.
fn check_program_order(
    oracle: &Oracle,
    read: AccessId,
    worker: NodeWorker,
    seen: Seen,
) -> Result<(), Violation> {
    for (index, other) in oracle.accesses(read.key).iter().enumerate() {
        let AccessKind::Push(digit) = other.kind else { continue };
        if other.worker == worker && !other.failed {
            let contained = seen.pushes >> digit & 1 == 1;
            let expected = index < read.index;
            hold!(
                oracle.checks => ProgramOrder,
                contained == expected,
                "{worker:?} reads {seen} of {}, against its order at p{digit}",
                read.key
            );
        }
    }
    Ok(())
}

fn check_chain(oracle: &Oracle, read: AccessId, seen: Seen) -> Result<(), Violation> {
    for (index, other) in oracle.accesses(read.key).iter().enumerate() {
        let AccessKind::Pull(then) = other.kind else { continue };
        if index == read.index || other.done.is_none() {
            continue;
        }
        let common = seen.pushes & then.pushes;
        let ordered = common == seen.pushes || common == then.pushes;
        hold!(oracle.checks => OneChain, ordered, "reads of {} have no order: {seen} and {then}", read.key);
    }
    Ok(())
}

fn check_real_time(
    oracle: &Oracle,
    read: AccessId,
    access: &Access,
    seen: Seen,
) -> Result<(), Violation> {
    for other in oracle.accesses(read.key) {
        if other.done.is_none_or(|done| done >= access.issued) {
            continue;
        }
        let required = match other.kind {
            AccessKind::Push(digit) => 1 << digit,
            AccessKind::Pull(then) => then.pushes,
            AccessKind::Set(_) => 0,
        };
        let missed = required & !seen.pushes;
        hold!(
            oracle.checks => RealTime,
            missed == 0,
            "a read of {} misses p{}, done before it: {seen}",
            read.key,
            missed.trailing_zeros()
        );
    }
    Ok(())
}

/// Checks that pushes of one worker become visible in program order.
fn check_writers(oracle: &Oracle, read: AccessId, seen: Seen) -> Result<(), Violation> {
    for worker in oracle.workers(read.key) {
        let mut missed = None;
        for other in oracle.accesses(read.key).iter().filter(|other| other.worker == worker) {
            let AccessKind::Push(digit) = other.kind else { continue };
            if seen.pushes >> digit & 1 == 0 {
                missed = missed.or(Some(digit).filter(|_| !other.failed));
            } else {
                hold!(oracle.checks => WritersInOrder, missed.is_none(), "a read of {} has p{digit} without {missed:?}: {seen}", read.key);
            }
        }
    }
    Ok(())
}

/// Checks, where keys are set, that a read never returns a set that another one had certainly
/// replaced.
fn check_set_read(
    oracle: &Oracle,
    read: AccessId,
    access: &Access,
    seen: Seen,
) -> Result<(), Violation> {
    let sets = || {
        oracle.accesses(read.key).iter().filter(|other| matches!(other.kind, AccessKind::Set(_)))
    };
    let written = match sets().find(|set| set.kind == AccessKind::Set(seen.set)) {
        Some(set) => set.done.unwrap_or(u64::MAX),
        None => 0,
    };
    let replaced = sets().find(|set| {
        let later = set.issued > written || (seen.set == 0 && set.kind != AccessKind::Set(0));
        later && set.done.is_some_and(|done| done < access.issued)
    });
    hold!(oracle.checks => SetReplaced, replaced.is_none(), "a read of {} returns {seen}, which {replaced:?} had replaced", read.key);
    Ok(())
}
