//! Invariant 8: per worker and key, a worker reads its own writes, reads are monotonic, and no read
//! contains later writes.

use crate::digits::Seen;
use crate::oracle::{Access, AccessId, Oracle, What};
use crate::violation::{Violation, hold};

pub(super) fn check_read(oracle: &Oracle, read: AccessId) -> Result<(), Violation> {
    let accesses = oracle.accesses(read.key);
    let access = &accesses[read.index];
    let What::Pull(seen) = access.what else { return Ok(()) };
    if oracle.was_set(read.key) {
        return check_set_read(oracle, read, access, seen);
    }
    let key = read.key;
    for (index, other) in accesses.iter().enumerate().filter(|(_, other)| other.who == access.who) {
        let earlier = index < read.index;
        match other.what {
            What::Push(digit) => {
                let contained = seen.pushes >> digit & 1 == 1;
                hold!(
                    oracle.checks => OwnWrites,
                    contained || !earlier || other.failed,
                    "{:?} misses its own p{digit} of {key}: {seen}",
                    access.who
                );
                hold!(
                    oracle.checks => NotTheFuture,
                    !contained || earlier,
                    "{:?} sees its own later p{digit} of {key}: {seen}",
                    access.who
                );
            }
            What::Pull(then) if other.done.is_some() && index != read.index => {
                let (first, second) = if earlier { (then, seen) } else { (seen, then) };
                let lost = first.pushes & !second.pushes;
                hold!(
                    oracle.checks => MonotonicReads,
                    lost == 0,
                    "{:?} has seen p{} of {key} and sees it no more: {second}",
                    access.who,
                    lost.trailing_zeros()
                );
            }
            What::Pull(_) | What::Set(_) => {}
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
    let own = accesses[..read.index].iter().rev().find_map(|other| match other.what {
        What::Set(set) if other.who == access.who && !other.failed => Some((set, other.issued)),
        _ => None,
    });
    let Some((set, issued)) = own else { return Ok(()) };
    let writer = accesses.iter().find(|other| other.what == What::Set(seen.set));
    let may_follow = writer.is_some_and(|other| other.done.is_none_or(|done| done >= issued));
    hold!(
        oracle.checks => OwnSet,
        seen.set == set || may_follow,
        "{:?} has made s{} of {} and reads {seen}",
        access.who,
        set - 1,
        read.key
    );
    Ok(())
}
