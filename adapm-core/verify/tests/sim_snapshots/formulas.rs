//! What each system costs at a clock, by the description of its mechanism, is what it costs in
//! [`Pattern::Regular`]: there all keys are shared by all nodes, and each node writes at a time of
//! its own, so that what a write causes is over before the next. In [`Pattern::Turns`] each node
//! reads at that time, too.
//!
//! Messages and values in this table are of one clock of all nodes, with `N` nodes,
//! `P = N (N - 1)` pairs of a node and another that owns keys, `K` keys, and `R = K (N - 1)` pairs
//! of a key and a node that does not own it.
//!
//! | part | messages | values |
//! | --- | --- | --- |
//! | remote reads and writes | 2 `P` and 2 `P` | `R` read, `R` written |
//! | replicas' changes, to the owner | 2 `P` | `R` deltas |
//! | refreshes, to who has not written: announced, asked for, sent | 3 `P (N - 1)` | `R (N - 1)` |
//! | of these behind a check, which asks anyway | 1 for each | |
//! | a tick: each node tells node 0, which tells all | 2 `(N - 1)` | |
//! | replicas settled behind a tick | 2 `P` | |
//! | replicas set up, once in `s` ticks | 2 `P / s` | `R / s` |
//! | keys moved from their home: asked for, sent | 2 for each turn and home | those of the home |
//! | keys moved by way of it, which passes on, answers, and is told | 5 for each | those of the home |
//!
//! A replica set up under SSP serves `s` ticks: the tick that all are known to have reached when
//! it is asked for is one behind that of the worker that asks. With `s` 0 it is the same, and the
//! replica serves one tick.

use adapm_core::policy::System;
use adapm_core::stats::ValueBytes;

use crate::pattern::{KEYS, KEYS_OF_A_NODE, NODES, Pattern};
use crate::run::{Cost, Setting, cost};

const N: u64 = NODES as u64;
const P: u64 = N * (N - 1);
const R: u64 = N * KEYS_OF_A_NODE as u64 * (N - 1);

const REMOTELY: Clocks = Clocks { messages: 4 * P, read: R, written: R, ..NOTHING };
const REPLICATED: Clocks =
    Clocks { messages: 2 * P + 3 * P * (N - 1), deltas: R, refreshed: R * (N - 1), ..NOTHING };
const TICK: Clocks = Clocks { messages: 2 * (N - 1), ..NOTHING };
const SETTLED: Clocks = Clocks { messages: 2 * P, ..NOTHING };

/// Costs of some clocks; values by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clocks {
    messages: u64,
    moved: u64,
    deltas: u64,
    refreshed: u64,
    set_up: u64,
    written: u64,
    read: u64,
}

const NOTHING: Clocks =
    Clocks { messages: 0, moved: 0, deltas: 0, refreshed: 0, set_up: 0, written: 0, read: 0 };

impl Clocks {
    /// Returns the costs of `CLOCKS` clocks under `system`, after those in which replicas are set
    /// up.
    fn measured(system: System) -> Self {
        Self::measured_on(Pattern::Regular, system, Setting::default().hot)
    }

    /// Returns the same for another pattern, with keys hot that are accessed more than `hot` times
    /// as often as the mean.
    fn measured_on(pattern: Pattern, system: System, hot: u64) -> Self {
        let [before, after] = [SETTLING, SETTLING + CLOCKS]
            .map(|clocks| cost(pattern, system, Setting { clocks, hot, ..Setting::default() }));
        let messages = after.messages - before.messages;
        let values = |of: fn(&ValueBytes) -> u64| {
            let bytes = |cost: &Cost| of(&cost.value_bytes);
            (bytes(&after) - bytes(&before)) / size_of::<i64>() as u64
        };
        Self {
            messages,
            moved: values(|bytes| bytes.relocations),
            deltas: values(|bytes| bytes.deltas),
            refreshed: values(|bytes| bytes.refreshes),
            set_up: values(|bytes| bytes.replicas),
            written: values(|bytes| bytes.operations),
            read: values(|bytes| bytes.answers),
        }
    }

    /// Returns the costs of as many clocks as [`measured`](Self::measured), of which each costs all
    /// `parts`.
    fn of(parts: &[Self]) -> Self {
        let sum = |of: fn(&Self) -> u64| CLOCKS * parts.iter().map(of).sum::<u64>();
        Self {
            messages: sum(|part| part.messages),
            moved: sum(|part| part.moved),
            deltas: sum(|part| part.deltas),
            refreshed: sum(|part| part.refreshed),
            set_up: sum(|part| part.set_up),
            written: sum(|part| part.written),
            read: sum(|part| part.read),
        }
    }
}

#[test]
fn a_static_partition_costs_two_messages_for_each_read_and_write_of_an_owner() {
    for system in [System::Classic, System::Eventual] {
        assert_eq!(Clocks::measured(system), Clocks::of(&[REMOTELY]), "{system}");
    }
}

/// OSDI'14 §3.5: however far apart workers may be.
#[test]
fn a_bound_costs_each_node_two_messages_a_tick() {
    for system in [System::Bsp, System::BoundedDelay { delay: 2 }] {
        assert_eq!(Clocks::measured(system), Clocks::of(&[REMOTELY, TICK]), "{system}");
    }
}

/// AdaPM §A.2, AdaPM §A.5: what is replicated for the whole run costs the same under all systems.
#[test]
fn replicas_cost_two_messages_for_changes_and_three_for_refreshes() {
    for system in [System::Full, System::Nups, System::Parallax, System::Adapm] {
        assert_eq!(Clocks::measured(system), Clocks::of(&[REPLICATED]), "{system}");
    }
}

/// Lapse and NuPS (AdaPM §A.4, AdaPM §A.5): of keys that are not hot there is one copy, which
/// moves. Nodes take turns, so that each believes the keys at the next node, to which it gave them.
#[test]
fn keys_that_move_cost_two_messages_from_the_home_and_five_by_way_of_it() {
    let of_a_home = KEYS_OF_A_NODE as u64;
    let from_home = Clocks { messages: 2, moved: of_a_home, ..NOTHING };
    let by_home = Clocks { messages: 5, moved: of_a_home, ..NOTHING };
    // The next node, as a home, knows the owner; of other keys it knows the node after it, which
    // turns down what has come by two hops. These are asked for again, at their homes.
    let turned_down = Clocks { messages: 2, ..NOTHING };
    let others = vec![by_home; NODES - 2];
    let turn = [vec![from_home; 2], others, vec![turned_down]].concat();
    let expected = Clocks::of(&vec![turn; NODES].concat());
    for system in [System::Lapse, System::Nups] {
        assert_eq!(Clocks::measured_on(Pattern::Turns, system, KEYS), expected, "{system}");
    }
}

/// AdaPM Table 1: as under a static partition, if no key is hot.
#[test]
fn cold_keys_of_parallax_are_read_and_written_at_their_homes() {
    for pattern in [Pattern::Regular, Pattern::Turns] {
        let measured = Clocks::measured_on(pattern, System::Parallax, KEYS);
        assert_eq!(measured, Clocks::of(&[REMOTELY]), "{pattern:?}");
    }
}

/// AdaPM §A.3: nothing is refreshed, and replicas are set up again.
#[test]
fn replicas_of_ssp_are_set_up_again_and_settle_at_ticks() {
    let deltas = Clocks { messages: 2 * P, deltas: R, ..NOTHING };
    for staleness in [0, 1, 3] {
        let system = System::Ssp { staleness };
        let set_up = CLOCKS / u64::from(staleness.max(1));
        let mut expected = Clocks::of(&[deltas, TICK, SETTLED]);
        // With a staleness of 0 replicas are given up behind the tick that all have reached, each
        // clock, and not with the changes that settle: by requests of their own.
        let given_up = if staleness == 0 { CLOCKS } else { 0 };
        expected.messages += 2 * P * (set_up + given_up);
        expected.set_up = R * set_up;
        assert_eq!(Clocks::measured(system), expected, "{system}");
    }
}

/// AdaPM §A.3: as full replication, once all is read, and ticks.
#[test]
fn replicas_of_essp_cost_as_those_of_full_replication_and_settle_at_ticks() {
    let system = System::Essp { staleness: 3 };
    let expected = Clocks::of(&[REPLICATED, TICK, SETTLED]);
    assert_eq!(Clocks::measured(system), expected, "{system}");
}

/// HET-GMP §5.3: a replica is refreshed once it lacks more than `s` changes of others: by three
/// messages. Of these the last node of a clock causes one only: once its tick is there all others
/// check their replicas, and so ask by themselves.
#[test]
fn replicas_of_het_gmp_are_refreshed_once_in_s_changes() {
    let deltas = Clocks { messages: 2 * P, deltas: R, ..NOTHING };
    let last = N - 1;
    for staleness in [0, 2, 100] {
        let system = System::HetGmp { staleness };
        let mut expected = Clocks::of(&[deltas, TICK, SETTLED]);
        for holder in 0..N {
            let writers = (0..SETTLING + CLOCKS).flat_map(|clock| {
                (0..N).filter(move |writer| *writer != holder).map(move |writer| (clock, writer))
            });
            let every = usize::try_from(staleness).expect("a small number") + 1;
            let refreshing = writers.skip(every - 1).step_by(every);
            for (_, writer) in refreshing.filter(|(clock, _)| *clock >= SETTLING) {
                let checks = writer == last && holder != last;
                expected.messages += (N - 1) * if checks { 1 } else { 3 };
                expected.refreshed += (N - 1) * KEYS_OF_A_NODE as u64;
            }
        }
        assert_eq!(Clocks::measured(system), expected, "{system}");
    }
}

/// Clocks after which all is set up.
const SETTLING: u64 = 202;
/// A multiple of the clocks in which a system does the same again.
const CLOCKS: u64 = 303;
