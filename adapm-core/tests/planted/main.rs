//! Proof that a green run means something: every planted bug is found, and the page lists by which
//! tests and how soon.
//!
//! Each bug runs through the random schedules with only its own invariant checked, so no other
//! checker helps. Other effects of a bug (a failed assertion of the engine, a cluster that never
//! comes to rest) do not count. Then the suites of stories run with the bug, and the row lists the
//! tests that fail.
//!
//! Likewise for the checkers: each finds its bug when all others are off.
//!
//! The table is in `docs/testing.md`; `ADAPM_BLESS=1 cargo test -p adapm-core --test planted`
//! writes it there.

mod checkers;
mod finding;
mod page;
mod stories;

#[path = "../engine/behaviour.rs"]
mod behaviour;
#[path = "../link_stories.rs"]
mod link_stories;
#[path = "../engine/loss.rs"]
mod loss;
#[path = "../paper/main.rs"]
mod paper;
#[path = "../scenarios.rs"]
mod scenarios;
#[path = "../engine/unresponsive.rs"]
mod unresponsive;

use std::io::Write;

use adapm_verify::{Bug, Check, Checks};

use crate::finding::{Row, datagram_rows, detect, link_rows, protocol_rows};

#[test]
fn every_planted_bug_is_found() {
    let mut rows = protocol_rows(&Bug::ALL, |bug| Checks::only(bug.invariant()));
    rows.extend(link_rows());
    stories::fill(&mut rows);
    rows.extend(datagram_rows());
    let table = finding::table(&rows);
    // Past the capture of the test runner: the counts must be visible in every run.
    std::io::stdout().write_all(table.as_bytes()).expect("standard output takes the table");
    if let Err(missing) = finding::verdict(&rows) {
        panic!("{missing}\n{table}");
    }
    page::compare("planted bugs", &page::table(&rows));
}

/// Each named checker finds its planted bug when all others are off, and no checker is missing.
#[test]
fn each_checker_finds_its_planted_bug_alone() {
    assert_eq!(checkers::idle(), [], "checkers that do not find their bug");
    let witnesses = checkers::WITNESSES.iter().map(|(check, _)| *check);
    let mut named: Vec<Check> = witnesses.chain(checkers::ECHOES).collect();
    named.sort_unstable();
    assert_eq!(named, Check::ALL);
}

/// The count comes from the checkers: with those of one invariant off, it lacks the bug that breaks
/// it.
#[test]
fn planted_count_falls_when_a_detection_is_off() {
    let off = Bug::SkipStale;
    let bugs = &Bug::ALL[..Bug::INVARIANTS];
    let checks = |bug: Bug| if bug == off { Checks::NONE } else { Checks::only(bug.invariant()) };
    let verdict = finding::verdict(&protocol_rows(bugs, checks));
    assert_eq!(verdict, Err(String::from("12 of 13 planted bugs found: not SkipStale")));
}

#[test]
fn no_planted_bug_is_found_without_a_checker() {
    for bug in Bug::ALL {
        let hidden = (0..20).all(|seed| detect(seed, Some(bug), Checks::NONE).is_none());
        assert!(hidden, "{bug} is found without a checker");
    }
}

#[test]
fn without_a_planted_bug_nothing_is_found() {
    for invariant in 1..=13 {
        for seed in 0..100 {
            let detected = detect(seed, None, Checks::only(invariant));
            assert_eq!(detected, None, "seed {seed}, only invariant {invariant} checked");
        }
    }
}

/// Returns the median of the numbers of schedules that the bugs needed.
fn median(rows: &[Row]) -> u64 {
    let mut seeds: Vec<u64> = rows.iter().filter_map(|row| row.seeds).collect();
    seeds.sort_unstable();
    seeds.get(seeds.len() / 2).copied().unwrap_or(0)
}
