//! The adapm command line: `demo`, `train kge`, `eval kge`.
//!
//! A verb a file ([`demo`], [`train`], [`eval`]); what they share: [`args`] what can be asked for, [`progress`] what is shown
//! while a run goes, [`report`] the tables, [`json`] the same for programs, [`failure`] how it ends badly, [`interrupt`] how
//! it ends early. Tables go to stdout, progress and errors to stderr; with `--json` stdout holds JSON lines only.

mod args;
mod demo;
mod eval;
mod failure;
mod format;
mod input;
mod interrupt;
mod json;
#[expect(dead_code, reason = "a process finds its place before it joins others, which comes with the group")]
mod launcher;
mod output;
mod progress;
mod report;
mod table;
mod train;
mod verdict;

use std::process::ExitCode;

use crate::args::{Cli, EvalTask, Given, TrainTask, Verb};
use crate::failure::Failure;
use crate::interrupt::Interrupt;

fn main() -> ExitCode {
    let (cli, given) = match Cli::from_command_line() {
        Ok(parsed) => parsed,
        Err(error) => return failure::usage(&error),
    };
    match run(&cli, &given) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: &Cli, given: &Given) -> Result<(), Failure> {
    let interrupt = Interrupt::install().map_err(Failure::Signals)?;
    match &cli.verb {
        None => demo::run(&args::DemoArgs::default_values(), &interrupt),
        Some(Verb::Demo(args)) => demo::run(args, &interrupt),
        Some(Verb::Train { task: TrainTask::Kge(args) }) => train::run(args, given, &interrupt),
        Some(Verb::Eval { task: EvalTask::Kge(args) }) => eval::run(args, given, &interrupt),
    }
}
