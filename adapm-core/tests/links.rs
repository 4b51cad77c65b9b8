//! Links over datagrams that get lost, repeated, reordered and cut, by seeds.
//!
//! A failure prints one line with its seed. More seeds:
//! `ADAPM_SEEDS=10000 cargo test -p adapm-core --test links`.

use std::env;
use std::panic::{self, AssertUnwindSafe};

use adapm_verify::DatagramBug;
use adapm_verify::link::Claim;
use adapm_verify::link::mesh::{self, MeshCounts};

const SEEDS: u64 = 300;

/// Three nodes send to each other; one may vanish, the others leave: every frame arrives once and
/// in order, goodbyes arrive, only those that are gone are lost, and what is kept is bounded.
#[test]
fn lossy_networks_keep_every_claim() {
    let (from, to) = match number("ADAPM_SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("ADAPM_SEEDS").unwrap_or(SEEDS)),
    };
    let mut counts = MeshCounts::default();
    let mut failures = 0;
    for seed in from..to {
        let result = panic::catch_unwind(AssertUnwindSafe(|| mesh::run(seed, None)));
        match result {
            Ok(Ok(run)) => counts.merge(&run),
            Ok(Err(broken)) => {
                println!("ADAPM_SEED={seed} cargo test -p adapm-core --test links # {broken:?}");
                failures += 1;
            }
            Err(_) => {
                println!("ADAPM_SEED={seed} cargo test -p adapm-core --test links # panicked");
                failures += 1;
            }
        }
    }
    println!("{} meshes: {counts:?}", to - from);
    assert_eq!(failures, 0, "meshes that break a claim");
    if to - from >= SEEDS {
        let MeshCounts { delivered, refused, network, stale, vanished, lost, failed, .. } = counts;
        let many = [delivered, network.lost, network.repeated, network.reordered, network.cut];
        assert!(
            many.iter().all(|count| *count >= 1_000),
            "the meshes have become tame: {counts:?}"
        );
        let some = [refused, stale, vanished, lost, failed];
        assert!(some.iter().all(|count| *count >= 50), "the meshes have become tame: {counts:?}");
    }
}

#[test]
fn a_seed_decides_everything() {
    assert_eq!(mesh::run(3, None), mesh::run(3, None));
    assert_ne!(mesh::run(3, None), mesh::run(4, None));
}

#[test]
fn planted_mistakes_are_found_by_the_claim_that_they_break() {
    for bug in DatagramBug::ALL {
        let broken = (0..20).find_map(|seed| mesh::run(seed, Some(bug)).err());
        let broken = broken.unwrap_or_else(|| panic!("{bug} is not found"));
        assert_eq!(broken.claim, Claim::broken_by_datagrams(bug), "{bug}: {broken:?}");
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number")))
}
