//! What runs print, of one process or several at once.

use std::process::{Child, Command};
use std::thread;

use serde_json::Value;

use crate::harness::{Ran, finish, run};

/// Returns the words of a launch with these flags of its own.
pub(crate) fn launch<'a>(flags: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["launch"], flags, &["--"], command].concat()
}

/// Starts all `commands`, then collects what they did.
pub(crate) fn together(commands: Vec<Command>) -> Vec<Ran> {
    let children: Vec<Child> =
        commands.into_iter().map(|mut command| command.spawn().expect("it starts")).collect();
    // All at once: one that waits for another must not be waited for first.
    let waits: Vec<_> =
        children.into_iter().map(|child| thread::spawn(move || finish(child))).collect();
    waits.into_iter().map(|wait| wait.join().expect("it ends")).collect()
}

/// Returns the lines of stdout.
#[track_caller]
pub(crate) fn objects(ran: &Ran) -> Vec<Value> {
    let object = |line| serde_json::from_str(line).expect("a line of stdout is an object");
    ran.stdout.lines().map(object).collect()
}

/// Runs to an end without a fault.
#[track_caller]
pub(crate) fn succeeded(args: &[&str]) -> Ran {
    let ran = run(args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stderr.contains("error"), "{ran:?}");
    ran
}

/// Returns the last object that a run prints.
#[track_caller]
pub(crate) fn object(args: &[&str]) -> Value {
    objects(&succeeded(args)).pop().expect("an object")
}

#[track_caller]
pub(crate) fn holds(text: &str, words: &str) {
    assert!(text.contains(words), "no {words:?} in {text}");
}
