//! Numbers of channels for the clusters of a suite, drawn from a seed, so that calls are split by
//! channel in all suites.
//!
//! `ADAPM_SEED=7 cargo test -p adapm-runtime` draws others. A failing test shows its draws.

use std::cell::Cell;

/// Draws 1 to 4 channels for the next cluster of this test. Of four in a row, each has another
/// number; every fourth has 4.
pub(crate) fn draw() -> usize {
    let index = CASES.replace(CASES.get() + 1);
    let channels = drawn(seed(), index);
    println!("cluster {index} of this test, ADAPM_SEED={}: {channels} channels", seed());
    channels
}

/// Returns the number of channels of the cluster with that index in its test.
fn drawn(seed: u64, index: u64) -> usize {
    // Differs by test, so that tests with a single cluster cover all numbers too.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default().bytes();
    let test = test.fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    1 + (test.wrapping_add(index) % 4) as usize
}

fn seed() -> u64 {
    let Ok(text) = std::env::var("ADAPM_SEED") else { return 0 };
    text.parse().expect("ADAPM_SEED is a number")
}

thread_local! {
    /// Number of clusters of this thread's test so far.
    static CASES: Cell<u64> = const { Cell::new(0) };
}

#[test]
fn one_cluster_in_four_has_four_channels() {
    for seed in 0..100 {
        let mut four: Vec<usize> = (seed..seed + 4).map(|index| drawn(seed, index)).collect();
        four.sort_unstable();
        assert_eq!(four, [1, 2, 3, 4]);
    }
    assert_eq!((0..4).map(|_| draw()).sum::<usize>(), 1 + 2 + 3 + 4);
}
