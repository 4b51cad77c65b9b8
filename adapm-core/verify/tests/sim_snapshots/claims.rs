//! The papers' claims on how systems compare, on the same runs.

use adapm_core::config::NodeConfig;
use adapm_core::policy::System;

use crate::pattern::{NODES, Pattern};
use crate::run::{Cost, Setting, cost};

fn by_default(pattern: Pattern, system: System) -> Cost {
    cost(pattern, system, Setting::default())
}

/// AdaPM §E: an extreme hot spot has replicas on all nodes, and its main copy stays.
#[test]
fn hot_spots_are_replicated_and_stay_where_they_are() {
    let adapm = by_default(Pattern::HotSpot, System::Adapm);
    assert!(adapm.replicas_held() > 0.9 * 8.0 * 3.0, "of 8 keys 3 nodes hold replicas: {adapm:?}");
    assert!(
        adapm.relocations <= 16,
        "a key moves when the first node wants it, and hardly later: {adapm:?}"
    );
    assert!(adapm.local_share() > 0.99, "{adapm:?}");
}

/// AdaPM §4.1, AdaPM §5.5: with locality in the accesses each key moves once to where it is needed.
#[test]
fn with_locality_nothing_is_sent_once_all_keys_are_where_they_are_needed() {
    let once = by_default(Pattern::Locality, System::Adapm);
    let longer =
        cost(Pattern::Locality, System::Adapm, Setting { clocks: 1_200, ..Setting::default() });
    assert_eq!(longer.replicas, 0, "nobody shares a key: {longer:?}");
    assert!(longer.relocations <= 1_024, "a key moves at most once: {longer:?}");
    let more = longer.bytes - once.bytes;
    assert!(
        more * 10 < once.bytes,
        "{more} bytes for 800 clocks more, {} for the first 400",
        once.bytes
    );
}

/// AdaPM Table 2: without relocation more is communicated, most of all where there is locality.
#[test]
fn without_relocation_more_is_sent() {
    let factor = |pattern| {
        let without = by_default(pattern, System::AdapmNoRelocation);
        without.bytes as f64 / by_default(pattern, System::Adapm).bytes as f64
    };
    let [uniform, locality] = [Pattern::Uniform, Pattern::Locality].map(factor);
    assert!(uniform > 1.1, "{uniform}");
    assert!(locality > 2.0 && locality > uniform, "{locality}, {uniform}");
}

/// AdaPM Table 2: where there is something to relocate, replicas are fewer and less stale.
#[test]
fn without_relocation_replicas_are_more_and_staler() {
    for pattern in [Pattern::Uniform, Pattern::Shifting] {
        let without = by_default(pattern, System::AdapmNoRelocation);
        let adapm = by_default(pattern, System::Adapm);
        assert!(
            without.staleness_nanos > adapm.staleness_nanos,
            "{pattern:?}: {without:?} {adapm:?}"
        );
        assert!(
            without.replicas_held() > 2.0 * adapm.replicas_held(),
            "{pattern:?}: {without:?} {adapm:?}"
        );
    }
}

/// AdaPM §5.5: relocation alone makes nodes wait for each other at a hot spot.
#[test]
fn without_replication_workers_wait_at_hot_spots() {
    let without = by_default(Pattern::HotSpot, System::AdapmNoReplication);
    let adapm = by_default(Pattern::HotSpot, System::Adapm);
    assert!(without.local_share() < 0.9, "{without:?}");
    assert!(without.nanos > 2 * adapm.nanos, "{without:?} {adapm:?}");
}

/// AdaPM Figure 8: acting at once holds replicas longer the earlier intent is signalled; learning
/// when to act does not.
#[test]
fn acting_at_once_holds_replicas_longer_when_intent_is_signalled_early() {
    let held = |system, ahead| {
        let cost = cost(Pattern::Uniform, system, Setting { ahead, ..Setting::default() });
        cost.replicas_held()
    };
    let [early, late] = [200, 20].map(|ahead| held(System::AdapmImmediate, ahead));
    assert!(early > 2.0 * late, "{early} when early, {late} when late");
    let learned = held(System::Adapm, 200);
    assert!(early > 2.0 * learned, "{early} at once, {learned} when due");
}

/// Lapse §2, AdaPM §A.1: in a static partition a key is local with the probability of being
/// assigned to the node.
#[test]
fn under_classic_a_share_of_one_nth_is_local() {
    for pattern in [Pattern::Uniform, Pattern::Locality] {
        let classic = by_default(pattern, System::Classic);
        let expected = 1.0 / NODES as f64;
        assert!((classic.local_share() - expected).abs() < 0.04, "{pattern:?}: {classic:?}");
        assert_eq!((classic.relocations, classic.replicas, classic.waited), (0, 0, 0));
    }
}

/// AdaPM §A.2: full replication serves every read locally, and synchronizes copies that no node
/// needs.
#[test]
fn full_replication_reads_locally_and_sends_more() {
    for pattern in [Pattern::Uniform, Pattern::Locality] {
        let (full, adapm) = (by_default(pattern, System::Full), by_default(pattern, System::Adapm));
        assert_eq!(full.local_share(), 1.0, "{pattern:?}: {full:?}");
        assert!(full.bytes > 2 * adapm.bytes, "{pattern:?}: {full:?} {adapm:?}");
    }
}

/// NuPS §3, AdaPM §A.5 (A1): what is replicated for the whole run is always local. In each round of
/// a node one message asks each of the others that owns hot keys, and one answers; nothing else is
/// sent.
#[test]
fn hot_keys_are_always_local_and_cost_two_messages_per_owner_and_round() {
    for system in [System::Nups, System::Parallax] {
        let cost = by_default(Pattern::HotSpot, system);
        assert_eq!((cost.waited, cost.remote, cost.relocations), (0, 0, 0), "{system}: {cost:?}");
        let held = HOT_KEYS * (NODES as f64 - 1.0);
        assert!((cost.replicas_held() - held).abs() < 0.5, "{system}: {cost:?}");
        let full = by_default(Pattern::HotSpot, System::Full);
        assert!(cost.messages <= full.messages && cost.bytes <= full.bytes, "{cost:?} {full:?}");
        let rounds = cost.nanos as f64 / NodeConfig::ROUND_NANOS as f64;
        let pairs = (NODES * (NODES - 1)) as f64;
        assert!(cost.messages as f64 <= 2.0 * pairs * (rounds + 1.0), "{system}: {cost:?}");
    }
}

/// AdaPM Table 1: where no key is hot, NuPS is Lapse and Parallax a static partition, message by
/// message.
#[test]
fn without_hot_keys_nups_is_lapse_and_parallax_is_classic() {
    for pattern in [Pattern::Uniform, Pattern::Locality, Pattern::Shifting] {
        for (mixed, pure) in [(System::Nups, System::Lapse), (System::Parallax, System::Classic)] {
            let (mixed, pure) = (by_default(pattern, mixed), by_default(pattern, pure));
            assert_eq!(mixed, pure, "{pattern:?}");
        }
    }
}

/// NuPS §1 (A3): with hot keys replicated less is remote than in a static partition.
#[test]
fn nups_reads_less_remotely_than_classic() {
    for pattern in Pattern::ALL {
        let remote = |system| by_default(pattern, system).remote;
        assert!(remote(System::Nups) < remote(System::Classic), "{pattern:?}");
    }
}

/// AdaPM §5.1: AdaPM serves almost every read locally, under every access pattern.
#[test]
fn adapm_reads_locally_whatever_the_pattern() {
    for pattern in Pattern::ALL {
        let adapm = by_default(pattern, System::Adapm);
        assert!(adapm.local_share() > 0.98, "{pattern:?}: {adapm:?}");
        let classic = by_default(pattern, System::Classic);
        assert!(adapm.nanos < classic.nanos, "{pattern:?}: {adapm:?} {classic:?}");
    }
}

/// Keys that everybody accesses in [`Pattern::HotSpot`].
const HOT_KEYS: f64 = 8.0;
