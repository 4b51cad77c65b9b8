//! Random schedules for two link sessions over a pipe that breaks.
//!
//! Stories, one claim each, are in `tests/link_stories.rs`; that planted mistakes are found is
//! shown by `tests/planted`. A failure prints one line with its seed. More seeds:
//! `ADAPM_SEEDS=200000 cargo test -p adapm-core --test link`.

use std::env;
use std::panic::{self, AssertUnwindSafe};

use adapm_verify::link::random::{self, Met, STEPS};

const SEEDS: u64 = 10_000;

/// Pipes are cut at any packet, packets come again, ends send, say goodbye, fall silent: every
/// frame arrives exactly once and in order, and all other claims about a session hold after every
/// step.
#[test]
fn random_schedules_keep_every_claim() {
    let (from, to) = match number("ADAPM_SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("ADAPM_SEEDS").unwrap_or(SEEDS)),
    };
    let mut met = Met::default();
    let mut failures = 0;
    for seed in from..to {
        let run = || random::run(seed, STEPS, None, &mut met);
        let result =
            panic::catch_unwind(AssertUnwindSafe(run)).map_err(|_| String::from("panicked"));
        if let Err(failure) =
            result.and_then(|result| result.map_err(|broken| format!("{broken:?}")))
        {
            println!("ADAPM_SEED={seed} cargo test -p adapm-core --test link # {failure}");
            failures += 1;
        }
    }
    println!("{} schedules of {STEPS} steps: {met:?}", to - from);
    assert_eq!(failures, 0, "schedules that break a claim");
    if to - from >= SEEDS {
        let Met {
            delivered,
            cuts,
            pipes,
            repeats,
            refusals,
            rooms,
            lies,
            left,
            dead,
            trickles,
            cut_frames,
        } = met;
        let all = [
            delivered, cuts, pipes, repeats, refusals, rooms, lies, left, dead, trickles,
            cut_frames,
        ];
        assert!(all.iter().all(|count| *count >= 1_000), "the schedules have become tame: {met:?}");
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number")))
}
