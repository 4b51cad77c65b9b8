//! Invariant 9 where keys are set: with replication off there must be one order of all operations
//! on a key that explains every read and the final value, and keeps program order and real time.
//!
//! A search over orders (Wing and Gong) with two short cuts: reads that fit are taken at once, as
//! they change nothing, and no state is entered twice. Histories of a schedule are short; longer
//! ones are left undecided.

use std::collections::BTreeSet;

use adapm_core::id::Key;

use crate::digits::Seen;
use crate::oracle::{Access, AccessKind};
use crate::picture::Picture;
use crate::violation::{Violation, hold};

/// The length of the longest history that is searched.
const ACCESSES_MAX: usize = 128;
/// Number of states after which a search gives up undecided.
const STATES_MAX: usize = 50_000;

pub(super) fn check_at_rest(picture: &Picture) -> Result<(), Violation> {
    let checked = |key: &Key| picture.oracle.was_set(*key) && picture.setup.is_sequential(*key);
    for key in picture.keys().filter(checked) {
        if let Some(end) = picture.judged_main(key)? {
            let explained = is_linear(picture.oracle.accesses(key), end);
            hold!(
                picture.setup.checks => Linear,
                explained,
                "no order of the operations on {key} explains what was read and ends in {end}"
            );
        }
    }
    Ok(())
}

/// Returns true if an order of `accesses`, all of which are done, explains their reads and ends in
/// `end`, or if undecided.
#[must_use]
pub fn is_linear(accesses: &[Access], end: Seen) -> bool {
    if accesses.len() > ACCESSES_MAX {
        return true;
    }
    let search = Search { accesses, before: predecessors(accesses), end };
    let mut seen = BTreeSet::new();
    let mut open = vec![search.take_reads(State::default())];
    while let Some(state) = open.pop() {
        if !seen.insert((state.taken, state.value.set, state.value.pushes)) {
            continue;
        }
        if search.is_end(&state) || seen.len() > STATES_MAX {
            return true;
        }
        open.extend(search.writes(&state));
    }
    false
}

/// Returns for each access those that must come before it, as a bit set.
fn predecessors(accesses: &[Access]) -> Vec<u128> {
    let precedes = |earlier: usize, later: usize| {
        let (a, b) = (&accesses[earlier], &accesses[later]);
        (a.worker == b.worker && earlier < later) || a.done.is_some_and(|done| done < b.issued)
    };
    let all = || 0..accesses.len();
    let mask = |later| {
        all().filter(|earlier| precedes(*earlier, later)).fold(0, |mask, at| mask | 1 << at)
    };
    all().map(mask).collect()
}

struct Search<'a> {
    accesses: &'a [Access],
    before: Vec<u128>,
    end: Seen,
}

/// The accesses taken so far, and the value that they leave.
#[derive(Clone, Copy, Default)]
struct State {
    taken: u128,
    value: Seen,
}

impl Search<'_> {
    fn is_end(&self, state: &State) -> bool {
        state.taken.count_ones() as usize == self.accesses.len() && state.value == self.end
    }

    fn is_next(&self, state: &State, at: usize) -> bool {
        state.taken >> at & 1 == 0 && self.before[at] & !state.taken == 0
    }

    /// Takes every read that can come next and fits.
    fn take_reads(&self, mut state: State) -> State {
        loop {
            let fits = |at: &usize| {
                self.is_next(&state, *at)
                    && self.accesses[*at].kind == AccessKind::Pull(state.value)
            };
            match (0..self.accesses.len()).find(fits) {
                Some(at) => state.taken |= 1 << at,
                None => return state,
            }
        }
    }

    /// Returns the states after each write that can come next.
    fn writes<'b>(&'b self, state: &'b State) -> impl Iterator<Item = State> + 'b {
        (0..self.accesses.len()).filter(|at| self.is_next(state, *at)).filter_map(|at| {
            let value = match self.accesses[at].kind {
                AccessKind::Pull(_) => return None,
                AccessKind::Push(digit) => {
                    Seen { pushes: state.value.pushes | 1 << digit, ..state.value }
                }
                AccessKind::Set(set) => Seen { set, pushes: 0 },
            };
            Some(self.take_reads(State { taken: state.taken | 1 << at, value }))
        })
    }
}

#[cfg(test)]
mod tests {
    use adapm_core::id::{NodeId, WorkerId};

    use super::*;

    fn access(node: u16, kind: AccessKind, issued: u64, done: u64) -> Access {
        Access {
            worker: (NodeId(node), WorkerId(0)),
            kind,
            issued,
            tick: adapm_core::clock::Tick::default(),
            done: Some(done),
            failed: false,
        }
    }

    fn seen(set: u32, pushes: u128) -> Seen {
        Seen { set, pushes }
    }

    #[test]
    fn overlapping_writes_may_come_in_any_order() {
        let history = [
            access(0, AccessKind::Set(1), 0, 9),
            access(1, AccessKind::Push(0), 1, 8),
            access(2, AccessKind::Pull(seen(1, 1)), 10, 11),
        ];
        assert!(is_linear(&history, seen(1, 1)));
        let erased = [
            history[0].clone(),
            history[1].clone(),
            access(2, AccessKind::Pull(seen(1, 0)), 10, 11),
        ];
        assert!(is_linear(&erased, seen(1, 0)));
        assert!(!is_linear(&erased, seen(1, 1)), "the push cannot come after the last read");
    }

    #[test]
    fn a_read_of_what_was_replaced_is_noticed() {
        let history = [
            access(0, AccessKind::Set(1), 0, 1),
            access(0, AccessKind::Set(2), 2, 3),
            access(1, AccessKind::Pull(seen(1, 0)), 4, 5),
        ];
        assert!(!is_linear(&history, seen(2, 0)));
    }

    #[test]
    fn program_order_holds_for_asynchronous_operations() {
        let history =
            [access(0, AccessKind::Push(0), 0, 9), access(0, AccessKind::Pull(seen(0, 0)), 1, 8)];
        assert!(!is_linear(&history, seen(0, 1)));
        let others =
            [access(0, AccessKind::Push(0), 0, 9), access(1, AccessKind::Pull(seen(0, 0)), 1, 8)];
        assert!(is_linear(&others, seen(0, 1)));
    }
}
