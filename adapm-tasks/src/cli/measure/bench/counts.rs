//! Counts that repeat: messages and bytes of operations as the runtime counts them, instructions
//! and allocations as callgrind does.
//!
//! Callgrind runs this program with flags that only this file gives ([`alone`]): the operation is
//! done many times between two calls of a function at which callgrind begins a new profile, so that
//! neither building a cluster nor starting a program counts.
//!
//! Of its profiles instructions of all threads are wanted, and calls of the allocator. Format:
//! "Callgrind Format Specification" in the manual of valgrind. Names are written out once and are
//! numbers from then on.

use std::collections::HashSet;
use std::fs;
use std::hint::black_box;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::Command;

use crate::measure::bench::counts::{Operation, Sent};
use crate::measure::bench::{BenchError, Figure, Outcome, Plan};
use rustix::process::Signal;

use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::measure::bench::child::{self, ChildError};
use crate::cli::measure::bench::table;
use crate::cli::output::Output;

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

/// Does an operation, for a profiler that counts from outside.
pub(super) fn alone(
    operation: &Operation,
    times: u64,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    operation
        .perform(times, &|| counting_begins_or_ends(times))
        .map_err(|error| failure(error, interrupt))?;
    Ok(())
}

/// Marks the place at which callgrind begins a new profile.
#[inline(never)]
fn counting_begins_or_ends(times: u64) {
    // Nothing like it is elsewhere, so that it keeps its name.
    black_box(times ^ 0x5eed_c0de);
}

/// Returns the instructions, allocations, messages and bytes per unit. Figures that were not
/// counted or that differ from run to run are `None`.
fn figures(operation: &Operation, sent: Sent, profile: Option<Profile>) -> [Option<Figure>; 4] {
    let figure = |[of_call, of_key]: [&'static str; 2], count: u64| {
        let unit = if operation.unit() == "key" { of_key } else { of_call };
        Figure::new(operation.what(), unit, count as f64 / sent.units as f64)
    };
    let repeats = !operation.goes_by_time();
    let allocations = profile.and_then(|profile| profile.allocations).filter(|_| repeats);
    [
        profile
            .map(|profile| figure(["instructions/call", "instructions/key"], profile.instructions)),
        allocations.map(|count| figure(["allocations/call", "allocations/key"], count)),
        repeats.then(|| figure(["messages/call", "messages/key"], sent.messages)),
        Some(figure(["bytes/call", "bytes/key"], sent.bytes)),
    ]
}

/// The profiler, or the reason why there is none.
struct Profiler(Result<(), String>);

impl Profiler {
    fn find(interrupt: &Interrupt) -> Result<Self, Failure> {
        let mut command = Command::new(VALGRIND);
        let found = child::run(command.arg("--version"), VALGRIND, Signal::KILL, interrupt)
            .map_err(Failure::from);
        Self::unless_failed(found).map(|found| Self(found.map(drop)))
    }

    /// Profiles an operation. After the first that fails no other is tried.
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
            Err(Failure::Child(ChildError::Start { error, .. }))
                if error.kind() == ErrorKind::NotFound =>
            {
                Ok(Err("valgrind is not installed, whose callgrind counts them".to_owned()))
            }
            Err(Failure::Child(error)) => Ok(Err(error.to_string())),
            Err(failure) => Err(failure),
        }
    }
}

fn profile(operation: &Operation, times: u64, interrupt: &Interrupt) -> Result<Profile, Failure> {
    let folder = Folder::new().map_err(|error| Failure::Child(ChildError::Folder(error)))?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::Child(ChildError::start("adapm", error)))?;
    let words = ["bench", "--operation", &operation.to_string(), "--times", &times.to_string()];
    let mut command = Command::new(VALGRIND);
    command.args(flags(&folder, MARK)).arg(program).args(words);
    let name = format!("{VALGRIND} --tool=callgrind adapm {}", words.join(" "));
    // It has no processes of its own and nothing to tidy up.
    child::run(&mut command, &name, Signal::KILL, interrupt)?;
    folder.profile().ok_or(Failure::Child(ChildError::Output { command: name }))
}

/// The profile of all threads between two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) instructions: u64,
    /// Unknown if the program has no names.
    pub(super) allocations: Option<u64>,
}

/// The folder that callgrind writes to, until this is dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Returns a new folder among temporary ones.
    pub(super) fn new() -> io::Result<Self> {
        let make = |attempt| {
            let name = format!("adapm-bench-{}-{attempt}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).map(|()| Self(path))
        };
        // A process of this number may have been killed before.
        let is_new = |made: &io::Result<_>| !matches!(made, Err(error) if error.kind() == ErrorKind::AlreadyExists);
        (1..ATTEMPTS).map(make).find(is_new).unwrap_or_else(|| make(ATTEMPTS))
    }

    /// Returns the profile between the marks; the first two files are from before each.
    pub(super) fn profile(&self) -> Option<Profile> {
        read(&fs::read_to_string(self.0.join("profile.2")).ok()?)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed lies among temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Flags that begin a new profile wherever a function is called whose name contains `mark`.
pub(super) fn flags(folder: &Folder, mark: &str) -> [String; 4] {
    [
        "--tool=callgrind".to_owned(),
        "--quiet".to_owned(),
        format!("--dump-before=*{mark}*"),
        format!("--callgrind-out-file={}", folder.0.join("profile").display()),
    ]
}

/// Parses a profile.
fn read(text: &str) -> Option<Profile> {
    let mut allocators = HashSet::new();
    let (mut instructions, mut allocations, mut has_names) = (None, 0, false);
    let mut callee = "";
    for line in text.lines() {
        let Some((field, value)) = line.split_once(['=', ':']) else { continue };
        match field {
            "fn" | "cfn" => {
                let (number, name) = value.split_once(' ').unwrap_or((value, ""));
                has_names |= !name.is_empty() && !name.starts_with("0x") && name != "???";
                if ALLOCATORS.contains(&name) {
                    allocators.insert(number);
                }
                callee = number;
            }
            "calls" if allocators.contains(callee) => {
                allocations += value.split_once(' ')?.0.parse::<u64>().ok()?;
            }
            "totals" => instructions = Some(value.trim().parse().ok()?),
            _ => {}
        }
    }
    Some(Profile { instructions: instructions?, allocations: has_names.then_some(allocations) })
}

/// Returns the failure of a measurement; a signal goes before what it caused.
pub(super) fn failure(error: BenchError, interrupt: &Interrupt) -> Failure {
    match (error, interrupt.exit_code()) {
        (BenchError::Stopped, Some(code)) => Failure::Interrupted(code),
        (error, _) => Failure::Bench(error),
    }
}

const NAME: &str = "counts";

const VALGRIND: &str = "valgrind";

/// Part of the name of [`counting_begins_or_ends`], however names are written.
const MARK: &str = "counting_begins_or_ends";

/// By what the command allocates.
const ALLOCATORS: &[&str] = if cfg!(feature = "mimalloc") {
    &["mi_malloc_aligned", "mi_zalloc_aligned", "mi_realloc_aligned"]
} else {
    &["malloc", "calloc", "realloc", "posix_memalign"]
};

/// Names tried for a folder.
const ATTEMPTS: u32 = 100;

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::verbs::{Cli, Verb};

    #[test]
    fn what_callgrind_runs_is_a_command_line_that_is_understood() {
        for operation in Operation::all(&Plan::default()) {
            let name = operation.to_string();
            let cli = Cli::try_parse_from(["adapm", "bench", "--operation", &name, "--times", "7"]);
            let Some(Verb::Bench(args)) = cli.expect("it is understood").verb else {
                panic!("another verb")
            };
            assert_eq!((args.operation, args.times), (Some(operation), 7));
        }
    }

    fn profile(lines: &[&str]) -> String {
        let head = ["version: 1", "part: 2", "positions: line", "events: Ir", "summary: 1200", ""];
        [&head, lines, &["", "totals: 1200"]].concat().join("\n")
    }

    #[test]
    fn calls_of_the_allocator_are_allocations() {
        let allocator = ALLOCATORS[0];
        let first = format!("cfn=(3) {allocator}");
        let lines = [
            "fl=(1) channel.rs",
            "fn=(1) adapm_runtime::channel",
            "16 400",
            "cob=(2)",
            &first,
            "calls=5 20",
            "16 250",
            "cfn=(4) free",
            "calls=9 30",
            "17 90",
            "fn=(4)",
            "9 50",
            "cfn=(3)",
            "calls=2 20",
            "12 60",
            "fn=(3)",
            "3 410",
        ];
        assert_eq!(
            read(&profile(&lines)),
            Some(Profile { instructions: 1_200, allocations: Some(7) })
        );
    }

    #[test]
    fn a_program_without_names_tells_instructions_only() {
        let lines = ["fn=(1) 0x00000000001234f0", "16 400", "cfn=(2) ???", "calls=5 20", "16 250"];
        assert_eq!(
            read(&profile(&lines)),
            Some(Profile { instructions: 1_200, allocations: None })
        );
        assert_eq!(read("no profile"), None);
    }

    #[test]
    fn each_folder_is_a_new_one() {
        let folders = [(); 2].map(|()| Folder::new().expect("temporary files can be written"));
        assert_ne!(folders[0].0, folders[1].0);
        let paths = folders.map(|folder| folder.0.clone());
        assert!(paths.iter().all(|path| !path.exists()));
    }
}
