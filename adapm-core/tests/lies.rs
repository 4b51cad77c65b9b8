//! Members that lie: whatever one node sends, no other node is blamed, and keys that it had nothing
//! to do with stay sound (protocol, *What a message is checked against*).
//!
//! Every kind of lie under every system, each with its own seeds. A failure prints one line with
//! the lie, the system and the seed. More seeds: `ADAPM_SEEDS=300 cargo test -p adapm-core --test
//! lies`.

use std::env;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use adapm_core::policy::System;
use adapm_verify::lies::{self, Lie, Outcome};
use adapm_verify::{Checks, bug_from_environment};

/// Number of seeds of each lie under each system.
const SEEDS: u64 = 40;
const THREADS: usize = 2;

#[test]
fn no_lie_harms_what_the_liar_had_nothing_to_do_with() {
    let seeds = number("ADAPM_SEEDS").unwrap_or(SEEDS);
    let first = number("ADAPM_FIRST_SEED").unwrap_or(0);
    let only = env::var("ADAPM_LIE").ok();
    let kinds: Vec<Option<Lie>> = Lie::ALL.into_iter().map(Some).chain([None]).collect();
    let kinds: Vec<Option<Lie>> = match &only {
        Some(only) => kinds
            .into_iter()
            .filter(|lie| lie.is_some_and(|lie| lie.to_string() == *only))
            .collect(),
        None => kinds,
    };
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(&lie) = kinds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let row = run_all(lie, first..first + seeds);
                    rows.lock()
                        .expect("no thread panics")
                        .push((kinds.iter().position(|kind| *kind == lie), row));
                }
            });
        }
    });
    let mut rows = rows.into_inner().expect("no thread panics");
    rows.sort_by_key(|(at, _)| *at);
    let mut failures = Vec::new();
    let mut total = Outcome::default();
    let mut table = format!("{}\n", lies::head());
    for (at, (outcome, failed)) in rows {
        let lie = kinds[at.expect("a row has its lie")];
        if failed.is_empty() {
            assert!(outcome.keys > 0 && outcome.ops > 0, "{lie:?}: nothing was checked");
            let is_silent = matches!(lie, None | Some(Lie::Mute | Lie::Drop));
            assert_eq!(outcome.lies == 0, is_silent, "{lie:?}: {} lies told", outcome.lies);
        }
        table += &format!("{}\n", lies::row(lie, &outcome));
        total.add(outcome);
        failures.extend(failed);
    }
    table += &format!(
        "{} runs of {} kinds of lie under {} systems, {seeds} seeds each: {} lies told, {} honest nodes blamed; {} keys\n\
         with which the liar had nothing to do and {} operations on such keys checked, {} runs with a fault\n",
        total.runs,
        Lie::ALL.len(),
        System::ALL.len(),
        total.lies,
        failures.iter().filter(|failure| failure.contains("HonestIsSpared")).count(),
        total.keys,
        total.ops,
        failures.len()
    );
    // Past the capture of the test runner: the counts must be visible in every run.
    std::io::stdout().write_all(table.as_bytes()).expect("standard output takes the table");
    assert!(
        failures.is_empty(),
        "{} runs fail:\n{}",
        failures.len(),
        failures[..failures.len().min(40)].join("\n")
    );
}

/// Runs all seeds of a lie. Returns the outcome, and the lines of those that failed.
fn run_all(lie: Option<Lie>, seeds: std::ops::Range<u64>) -> (Outcome, Vec<String>) {
    let (mut sum, mut failures) = (Outcome::default(), Vec::new());
    for system in System::ALL {
        for seed in seeds.clone() {
            match lies::run(system, seed, lie, bug_from_environment(), Checks::ALL) {
                Ok(outcome) => sum.add(outcome),
                Err(violation) => {
                    let check = violation.check;
                    failures.push(format!("{lie:?}, {system}, seed {seed}: {check}: {violation}"));
                }
            }
        }
    }
    (sum, failures)
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number")))
}
