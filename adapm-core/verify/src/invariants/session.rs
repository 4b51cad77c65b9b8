//! Invariant 8: per worker and key, a worker reads its own writes, reads are monotonic, and no read
//! contains later writes.

use crate::digits::Seen;
use crate::oracle::{Access, AccessId, AccessKind, Oracle};
use crate::violation::{Violation, hold};

pub(super) fn check_read(oracle: &Oracle, read: AccessId) -> Result<(), Violation> {
    let accesses = oracle.accesses(read.key);
    let access = &accesses[read.index];
    let AccessKind::Pull(seen) = access.kind else { return Ok(()) };
    if oracle.was_set(read.key) {
        return check_set_read(oracle, read, access, seen);
    }
    let key = read.key;
    for (index, other) in
        accesses.iter().enumerate().filter(|(_, other)| other.worker == access.worker)
    {
        let earlier = index < read.index;
        match other.kind {
            AccessKind::Push(digit) => {
                let contained = seen.pushes >> digit & 1 == 1;
                hold!(
                    oracle.checks => OwnWrites,
                    contained || !earlier || other.failed,
                    "{:?} misses its own p{digit} of {key}: {seen}",
                    access.worker
                );
                hold!(
                    oracle.checks => NotTheFuture,
                    !contained || earlier,
                    "{:?} sees its own later p{digit} of {key}: {seen}",
                    access.worker
                );
            }
            AccessKind::Pull(then) if other.done.is_some() && index != read.index => {
                let (first, second) = if earlier { (then, seen) } else { (seen, then) };
                let lost = first.pushes & !second.pushes;
                hold!(
                    oracle.checks => MonotonicReads,
                    lost == 0,
                    "{:?} has seen p{} of {key} and sees it no more: {second}",
                    access.worker,
                    lost.trailing_zeros()
                );
            }
            AccessKind::Pull(_) | AccessKind::Set(_) => {}
        }
    }
    Ok(())
}

/// Checks, where keys are set, that a worker that has set reads its own set, or one that may have
/// come after it.
fn check_set_read(
    oracle: &Oracle,
    read: AccessId,
    access: &Access,
    seen: Seen,
) -> Result<(), Violation> {
    let accesses = oracle.accesses(read.key);
    let own = accesses[..read.index].iter().rev().find_map(|other| match other.kind {
        AccessKind::Set(set) if other.worker == access.worker && !other.failed => {
            Some((set, other.issued))
        }
        _ => None,
    });
    let Some((set, issued)) = own else { return Ok(()) };
    let writer = accesses.iter().find(|other| other.kind == AccessKind::Set(seen.set));
    let may_follow = writer.is_some_and(|other| other.done.is_none_or(|done| done >= issued));
    hold!(
        oracle.checks => OwnSet,
        seen.set == set || may_follow,
        "{:?} has made s{} of {} and reads {seen}",
        access.worker,
        set - 1,
        read.key
    );
    Ok(())
}
