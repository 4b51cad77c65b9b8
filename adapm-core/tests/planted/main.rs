//! Green must mean something: every planted bug is found, by the checker of the invariant that it breaks.
//!
//! Each bug runs through the random schedules with only its own invariant checked, so no other checker can lend a hand.
//! What a bug does besides (a failed assertion of the engine, a cluster that never comes to rest) does not count.

use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use adapm_core::testing::air::Pairs;
use adapm_core::testing::random::{self, STEPS};
use adapm_core::testing::{Bug, Checks, Violation};

/// Schedules after which a bug counts as not found.
const SEEDS_MAX: u64 = 5_000;

#[test]
fn every_planted_bug_is_found() {
    let mut table =
        format!("{:20} {:>9}  {:10} {:>5}  what it said\n", "planted bug", "invariant", "suite", "seeds");
    let (first, further) = Bug::ALL.split_at(Bug::INVARIANTS);
    let found_first = find(first, &mut table);
    let found_further = find(further, &mut table);
    table += &format!("{found_first} of {} planted bugs found, one per invariant\n", first.len());
    table += &format!("{found_further} of {} further planted bugs found\n", further.len());
    // Past the capture of the test runner: the counts are to be seen in every run.
    std::io::stdout().write_all(table.as_bytes()).expect("standard output takes the table");
    assert_eq!((found_first, found_further), (first.len(), further.len()), "\n{table}");
}

/// Runs each bug until its own checker finds it, writes a row each, and counts those found.
fn find(bugs: &[Bug], table: &mut String) -> usize {
    let mut found = 0;
    for bug in bugs {
        let checks = Checks::only(bug.invariant());
        let detection = (0..SEEDS_MAX).find_map(|seed| Some((seed, detect(seed, Some(*bug), checks)?)));
        let (suite, seeds, what) = match detection {
            Some((seed, violation)) => ("properties", seed + 1, violation.what.to_string()),
            None => ("not found", SEEDS_MAX, String::new()),
        };
        found += usize::from(suite != "not found");
        *table += &format!("{:20} {:>9}  {suite:10} {seeds:>5}  {what}\n", bug.to_string(), bug.invariant());
    }
    found
}

#[test]
fn without_a_bug_nothing_is_found() {
    for invariant in 1..=11 {
        for seed in 0..100 {
            let detected = detect(seed, None, Checks::only(invariant));
            assert_eq!(detected, None, "seed {seed}, only invariant {invariant} checked");
        }
    }
}

/// With its checker turned off a bug stays hidden: the count above comes from the checkers.
#[test]
fn a_bug_is_hidden_from_a_checker_that_is_off() {
    for bug in Bug::ALL {
        let hidden = (0..20).all(|seed| detect(seed, Some(bug), Checks::NONE).is_none());
        assert!(hidden, "{bug} is found without a checker");
    }
}

/// What the checker of one invariant says of the schedule of `seed`, if it finds anything.
fn detect(seed: u64, bug: Option<Bug>, checks: Checks) -> Option<Violation> {
    hush_panics();
    let loss = bug.map_or(seed % 2 == 1, Bug::needs_loss);
    let mut setup = if loss { random::setup_with_losses(seed) } else { random::setup(seed) };
    (setup.bug, setup.checks, setup.codec) = (bug, checks, false);
    let run = || random::run(setup, seed, STEPS, &mut Pairs::default());
    let violation = panic::catch_unwind(AssertUnwindSafe(run)).ok()?.err()?;
    checks.contains(violation.invariant).then_some(violation)
}

/// An engine with a bug fails its own assertions now and then: these stories are not wanted.
fn hush_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let of_this_test = info.location().is_some_and(|at| at.file().ends_with("planted.rs"));
            if of_this_test {
                loud(info);
            }
        }));
    });
}
