//! The story tests that fail with a planted bug.
//!
//! The suites are modules of this test, too; this program starts itself with the bug in its
//! environment and runs them.

use std::collections::BTreeSet;
use std::env;
use std::process::Command;

use crate::finding::Row;

/// The suites, by the test runner's names.
const SUITES: [&str; 6] =
    ["behaviour::", "link_stories::", "loss::", "paper::", "scenarios::", "unresponsive::"];

/// Tests of a suite that are not stories but random schedules.
const RANDOM: &str = "lapse_3_4";

/// Fills in the tests that fail with each bug.
///
/// # Panics
/// If stories fail without a bug.
pub(crate) fn fill(rows: &mut [Row]) {
    let sound = failing("");
    assert!(sound.is_empty(), "stories fail without a bug: {sound:?}");
    for row in rows {
        row.stories = failing(&row.bug);
    }
}

/// Returns the tests of the suites that fail with the bug of this name, in order; an empty name
/// means no bug.
fn failing(bug: &str) -> Vec<String> {
    let program = env::current_exe().expect("a test knows its program");
    let output = Command::new(program)
        .args(SUITES)
        .args(["--skip", RANDOM])
        .env("ADAPM_BUG", bug)
        .env_remove("ADAPM_BLESS")
        // Most of the time of a test that fails would go into naming the frames.
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("a test can start itself");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut failing = BTreeSet::new();
    let mut ran = 0;
    for line in text.lines() {
        let Some((name, result)) =
            line.strip_prefix("test ").and_then(|line| line.split_once(" ... "))
        else {
            continue;
        };
        ran += 1;
        if result.starts_with("FAILED") {
            failing.insert(name.to_string());
        }
    }
    assert!(ran > SUITES.len(), "the stories did not run with {bug}:\n{text}");
    assert_eq!(output.status.success(), failing.is_empty(), "with {bug}:\n{text}");
    failing.into_iter().collect()
}
