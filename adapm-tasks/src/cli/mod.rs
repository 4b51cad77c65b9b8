//! The adapm command line: `demo`, `train`, `eval`, `predict` and `export` of each task, `data`,
//! `launch`, `token`, `check-net`, `simulate`, `trace`, `bench`.
//!
//! A verb a file (`demo`, `train`, `eval`, `predict`, `export`, `data`, `launch`, `token`), those
//! that measure in a folder (`measure`); a file for what is a task's own (`kge`, `mf`, `wv`); what
//! they share: `args` what can be asked for, `query` what is asked of a model, `config` and
//! `recipe` where settings come from, `progress` what is shown while a run goes, `painter` its bar,
//! `terminal` who looks at it, `report` the tables, `json` the same for programs, `failure` how it
//! ends badly, `exit` with which code, `interrupt` how it ends early. Plans, epochs and tables go
//! to stdout, bars and errors to stderr; with `--json` stdout holds JSON lines only.

mod args;
mod config;
mod data;
mod demo;
mod epoch;
mod eval;
mod exit;
mod export;
mod failure;
mod files;
mod format;
mod input;
mod interrupt;
mod json;
mod kge;
mod launch;
mod launched;
mod measure;
mod mf;
mod output;
mod painter;
mod predict;
mod processes;
mod progress;
mod query;
mod recipe;
mod report;
mod secret;
mod table;
mod terminal;
mod token;
mod train;
mod wv;

use std::process::ExitCode;

use crate::cli::args::{Cli, DemoArgs, EvalTask, Given, PredictTask, TrainTask, Verb};
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;

/// Runs the command of this process's arguments, to its end.
///
/// Handles the signals that end a process from here on. What is wrong is one line on stderr, and
/// the exit code says to whom it is due: 0, or a reader of stdout that has enough; 1, the run; 2,
/// the command line or its input; 75, another process, and starting again may help; 128 + n, signal
/// n (130 after Ctrl-C).
#[must_use]
pub fn main() -> ExitCode {
    let read = Cli::read(std::env::args_os().collect());
    let run = |(cli, given): (Cli, Given)| {
        run(&cli, &given).map_err(|failure| exit::by_flag(failure, &given))
    };
    match read.and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => exit::report(&failure),
    }
}

fn run(cli: &Cli, given: &Given) -> Result<(), Failure> {
    if let Some(Verb::Launch(args)) = &cli.verb {
        // It passes signals on instead of ending by them.
        return launch::run(args);
    }
    let interrupt = &Interrupt::install().map_err(Failure::Signals)?;
    match &cli.verb {
        None => demo::run(&DemoArgs::default_values(), interrupt),
        Some(Verb::Demo(args)) => demo::run(args, interrupt),
        Some(Verb::Launch(args)) => launch::run(args),
        Some(Verb::Data(args)) => data::run(args, interrupt),
        Some(Verb::Token(args)) => token::run(args),
        Some(Verb::CheckNet(args)) => measure::check_net::run(args, interrupt),
        Some(Verb::Simulate(args)) => measure::simulate::run(args, interrupt),
        Some(Verb::Trace(args)) => measure::trace::run(args, interrupt),
        Some(Verb::Bench(args)) => measure::bench::run(args, interrupt),
        Some(Verb::Predict { task: PredictTask::Kge(args) }) => predict::run(args, interrupt),
        Some(Verb::Predict { task: PredictTask::Mf(args) }) => predict::run(args, interrupt),
        Some(Verb::Predict { task: PredictTask::Wv(args) }) => predict::run(args, interrupt),
        Some(Verb::Export { task }) => export::run(task, interrupt),
        Some(Verb::Train { task: TrainTask::Kge(args) }) => {
            train::run(args.as_ref(), given, interrupt)
        }
        Some(Verb::Train { task: TrainTask::Mf(args) }) => {
            train::run(args.as_ref(), given, interrupt)
        }
        Some(Verb::Train { task: TrainTask::Wv(args) }) => {
            train::run(args.as_ref(), given, interrupt)
        }
        Some(Verb::Eval { task: EvalTask::Kge(args) }) => eval::run(args, given, interrupt),
        Some(Verb::Eval { task: EvalTask::Mf(args) }) => eval::run(args, given, interrupt),
        Some(Verb::Eval { task: EvalTask::Wv(args) }) => eval::run(args, given, interrupt),
    }
}
