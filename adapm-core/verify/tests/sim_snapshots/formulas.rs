//! What each system costs at a clock, by the description of its mechanism, is what it costs in
//! [`Pattern::Regular`]: there all keys are shared by all nodes, and each node writes at a time of
//! its own, so that what a write causes is over before the next.
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
//! | a tick: each node tells node 0, which tells all | 2 `(N - 1)` | |
//! | replicas settled behind a tick | 2 `P` | |
//! | replicas set up, once in `s` ticks | 2 `P / s` | `R / s` |
//!
//! A replica set up under SSP serves `s` ticks: the tick that all are known to have reached when
//! it is asked for is one behind that of the worker that asks. With `s` 0 it is the same, and the
//! replica serves one tick.

use adapm_core::policy::System;
use adapm_core::stats::ValueBytes;

use crate::pattern::{KEYS_OF_A_NODE, NODES, Pattern};
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
    deltas: u64,
    refreshed: u64,
    set_up: u64,
    written: u64,
    read: u64,
}

const NOTHING: Clocks =
    Clocks { messages: 0, deltas: 0, refreshed: 0, set_up: 0, written: 0, read: 0 };

impl Clocks {
    /// Returns the costs of `CLOCKS` clocks under `system`, after those in which replicas are set
    /// up.
    fn measured(system: System) -> Self {
        let [before, after] = [SETTLING, SETTLING + CLOCKS]
            .map(|clocks| cost(Pattern::Regular, system, Setting { clocks, ..Setting::default() }));
        let messages = after.messages - before.messages;
        let values = |of: fn(&ValueBytes) -> u64| {
            let bytes = |cost: &Cost| of(&cost.value_bytes);
            (bytes(&after) - bytes(&before)) / size_of::<i64>() as u64
        };
        assert_eq!(values(|bytes| bytes.relocations), 0, "{system}");
        Self {
            messages,
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

/// HET-GMP §5.3: a replica is refreshed once it lacks more than `s` changes of others. Whether the
/// owner has to announce that depends on whether the holder is about to ask.
#[test]
fn replicas_of_het_gmp_are_refreshed_once_in_s_changes() {
    let deltas = Clocks { messages: 2 * P, deltas: R, ..NOTHING };
    for staleness in [0, 2, 100] {
        let system = System::HetGmp { staleness };
        let (measured, least) = (Clocks::measured(system), Clocks::of(&[deltas, TICK, SETTLED]));
        let times = CLOCKS * (N - 1) / (u64::from(staleness) + 1);
        let refreshing = measured.messages - least.messages;
        assert!((P * times..=3 * P * times).contains(&refreshing), "{system}: {measured:?}");
        let expected = Clocks { refreshed: R * times, messages: measured.messages, ..least };
        assert_eq!(measured, expected, "{system}");
    }
}

/// Clocks after which all is set up.
const SETTLING: u64 = 202;
/// A multiple of the clocks in which a system does the same again.
const CLOCKS: u64 = 303;
