//! Counts that repeat: messages and bytes of operations as the runtime counts them, instructions and allocations as callgrind does.
//!
//! Callgrind runs this program with flags that only this file gives ([`alone`]): the operation is done many times between two calls
//! of a function at which callgrind begins a new profile, so that neither building a cluster nor starting a program counts.

use std::hint::black_box;
use std::io::ErrorKind;
use std::process::Command;

use adapm_tasks::measure::bench::counts::{Operation, Sent};
use adapm_tasks::measure::bench::{Figure, Outcome, Plan};
use rustix::process::Signal;

use super::callgrind::{self, Folder, Profile};
use super::{child, failure, table};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::measure::bench::child::ChildError;
use crate::output::Output;

/// Counts all operations and shows what came out.
pub(super) fn measure(plan: &Plan, interrupt: &Interrupt, output: Output) -> Result<(), Failure> {
    output.text(&table::counts_heading(output))?;
    let mut profiler = Profiler::find(interrupt)?;
    profiler.tell_if_gone(output)?;
    for operation in Operation::all(plan) {
        if let Some(code) = interrupt.exit_code() {
            return Err(Failure::Interrupted(code));
        }
        let times = operation.times(plan.is_quick);
        let sent = operation.perform(times, &|| {}).map_err(|error| failure(error, interrupt))?;
        let profile = profiler.profile(&operation, times, interrupt, output)?;
        let figures = figures(&operation, sent, profile);
        for figure in figures.iter().flatten() {
            output.object(&table::Row::new(NAME, &Outcome::Measured(figure.clone())))?;
        }
        output.text(&table::counts_line(&operation.what(), operation.unit(), &figures, output))?;
    }
    Ok(())
}

/// Does an operation, for somebody who counts from outside.
pub(super) fn alone(operation: &Operation, times: u64, interrupt: &Interrupt) -> Result<(), Failure> {
    operation
        .perform(times, &|| counting_begins_or_ends(times))
        .map_err(|error| failure(error, interrupt))?;
    Ok(())
}

/// Where callgrind begins a new profile.
#[inline(never)]
fn counting_begins_or_ends(times: u64) {
    // Nothing like it is elsewhere, so that it keeps its name.
    black_box(times ^ 0x5eed_c0de);
}

/// Instructions, allocations, messages and bytes of one unit, of which those are left out that nobody counts or that do not repeat.
fn figures(operation: &Operation, sent: Sent, profile: Option<Profile>) -> [Option<Figure>; 4] {
    let figure = |[of_call, of_key]: [&'static str; 2], count: u64| {
        let unit = if operation.unit() == "key" { of_key } else { of_call };
        Figure::new(operation.what(), unit, count as f64 / sent.units as f64)
    };
    let repeats = !operation.goes_by_time();
    let allocations = profile.and_then(|profile| profile.allocations).filter(|_| repeats);
    [
        profile.map(|profile| figure(["instructions/call", "instructions/key"], profile.instructions)),
        allocations.map(|count| figure(["allocations/call", "allocations/key"], count)),
        repeats.then(|| figure(["messages/call", "messages/key"], sent.messages)),
        Some(figure(["bytes/call", "bytes/key"], sent.bytes)),
    ]
}

/// Who counts instructions, or why nobody does.
struct Profiler(Result<(), String>);

impl Profiler {
    fn find(interrupt: &Interrupt) -> Result<Self, Failure> {
        let mut command = Command::new(VALGRIND);
        let found = child::run(command.arg("--version"), VALGRIND, Signal::KILL, interrupt);
        Self::unless_failed(found).map(|found| Self(found.map(drop)))
    }

    /// What an operation takes. After the first that fails no other is tried.
    fn profile(
        &mut self,
        operation: &Operation,
        times: u64,
        interrupt: &Interrupt,
        output: Output,
    ) -> Result<Option<Profile>, Failure> {
        if self.0.is_err() {
            return Ok(None);
        }
        match Self::unless_failed(profile(operation, times, interrupt))? {
            Ok(profile) => Ok(Some(profile)),
            Err(why) => {
                self.0 = Err(why);
                self.tell_if_gone(output).map(|()| None)
            }
        }
    }

    fn tell_if_gone(&self, output: Output) -> Result<(), Failure> {
        let Err(why) = &self.0 else { return Ok(()) };
        let what = "instructions and allocations";
        output.text(&table::skipped(what, why, output))?;
        let outcome = Outcome::Skipped { what: what.to_owned(), why: why.clone() };
        output.object(&table::Row::new(NAME, &outcome))
    }

    /// A program that fails costs two columns; what else goes wrong ends all.
    fn unless_failed<T>(result: Result<T, Failure>) -> Result<Result<T, String>, Failure> {
        match result {
            Ok(done) => Ok(Ok(done)),
            Err(Failure::Child(ChildError::Start { error, .. })) if error.kind() == ErrorKind::NotFound => {
                Ok(Err("valgrind is not installed, whose callgrind counts them".to_owned()))
            }
            Err(Failure::Child(error)) => Ok(Err(error.to_string())),
            Err(failure) => Err(failure),
        }
    }
}

fn profile(operation: &Operation, times: u64, interrupt: &Interrupt) -> Result<Profile, Failure> {
    let folder = Folder::new().map_err(|error| Failure::Child(ChildError::Folder(error)))?;
    let program =
        std::env::current_exe().map_err(|error| Failure::Child(ChildError::start("adapm", error)))?;
    let words = ["bench", "--operation", &operation.to_string(), "--times", &times.to_string()];
    let mut command = Command::new(VALGRIND);
    command.args(callgrind::flags(&folder, MARK)).arg(program).args(words);
    let name = format!("{VALGRIND} --tool=callgrind adapm {}", words.join(" "));
    // It has no processes of its own and nothing to tidy up.
    child::run(&mut command, &name, Signal::KILL, interrupt)?;
    folder.profile().ok_or(Failure::Child(ChildError::Output { command: name }))
}

const NAME: &str = "counts";

const VALGRIND: &str = "valgrind";

/// Part of the name of [`counting_begins_or_ends`], however names are written.
const MARK: &str = "counting_begins_or_ends";

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Verb};

    #[test]
    fn what_callgrind_runs_is_a_command_line_that_is_understood() {
        for operation in Operation::all(&Plan::default()) {
            let name = operation.to_string();
            let cli = Cli::try_parse_from(["adapm", "bench", "--operation", &name, "--times", "7"]);
            let Some(Verb::Bench(args)) = cli.expect("it is understood").verb else { panic!("another verb") };
            assert_eq!((args.operation, args.times), (Some(operation), 7));
        }
    }
}
