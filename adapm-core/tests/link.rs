//! Random schedules for two link sessions over a pipe that breaks, and proof that planted mistakes are found.
//!
//! Stories, one claim each, are in `tests/link_stories.rs`. A failure prints one line with its seed. More seeds:
//! `ADAPM_SEEDS=200000 cargo test -p adapm-core --test link`.

use std::env;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};

use adapm_core::testing::link::random::{self, Met, STEPS};
use adapm_core::testing::link::{Broken, LinkBug};

const SEEDS: u64 = 10_000;

/// Schedules after which a bug counts as not found.
const BUG_SEEDS_MAX: u64 = 500;

/// Pipes are cut at any packet, packets come again, ends send, say goodbye, fall silent: every frame arrives exactly once
/// and in order, and whatever else a session promises holds after every step.
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
        let result = panic::catch_unwind(AssertUnwindSafe(run)).map_err(|_| String::from("panicked"));
        if let Err(failure) = result.and_then(|result| result.map_err(|broken| format!("{broken:?}"))) {
            println!("ADAPM_SEED={seed} cargo test -p adapm-core --test link # {failure}");
            failures += 1;
        }
    }
    println!("{} schedules of {STEPS} steps: {met:?}", to - from);
    assert_eq!(failures, 0, "schedules that break a claim");
    if to - from >= SEEDS {
        let Met { delivered, cuts, pipes, repeats, refusals, rooms, lies, left, dead } = met;
        let all = [delivered, cuts, pipes, repeats, refusals, rooms, lies, left, dead];
        assert!(all.iter().all(|count| *count >= 1_000), "the schedules have become tame: {met:?}");
    }
}

#[test]
fn every_planted_bug_is_found() {
    let mut table = format!("{:22} {:13} {:>5}  what it said\n", "planted bug", "claim", "seeds");
    let mut found = 0;
    for bug in LinkBug::ALL {
        let detected = (0..BUG_SEEDS_MAX).find_map(|seed| Some((seed, detect(seed, bug)?)));
        let (seeds, what) = match detected {
            Some((seed, broken)) => (seed + 1, broken.what.to_string()),
            None => (BUG_SEEDS_MAX, String::from("not found")),
        };
        found += usize::from(what != "not found");
        let (bug, claim) = (format!("{bug:?}"), format!("{:?}", bug.claim()));
        table += &format!("{bug:22} {claim:13} {seeds:>5}  {what}\n");
    }
    table += &format!("{found} of {} bugs planted in a session found\n", LinkBug::ALL.len());
    std::io::stdout().write_all(table.as_bytes()).expect("standard output takes the table");
    assert_eq!(found, LinkBug::ALL.len(), "\n{table}");
}

/// What breaks first in the schedule of `seed`, if that is what the bug is about.
fn detect(seed: u64, bug: LinkBug) -> Option<Broken> {
    let broken = random::run(seed, STEPS, Some(bug), &mut Met::default()).err()?;
    (broken.claim == bug.claim()).then_some(broken)
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number")))
}
