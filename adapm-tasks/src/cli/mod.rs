//! The adapm command line: `demo`, `train`, `tune`, `eval`, `predict`, `export` and `partition` of
//! each task, `check`, `data`, `launch`, `token`, `check-net`, `simulate`, `trace`, `bench`,
//! `compare`.
//!
//! A verb a file (`demo`, `train`, `tune`, `eval`, `predict`, `export`, `partition`, `check`,
//! `data`, `launch`, `token`), those that measure in a folder (`measure`); what they share:
//! `program` what is a task's own, `args` what can be asked for, `query` what is asked of a model,
//! `config` and `recipe` where settings come from, `progress` what is shown while a run goes,
//! `folder` what stays of it, `painter` its bar, `terminal` who looks at it, `report` the tables,
//! `json` the same for programs, `failure` how it ends badly, `exit` with which code, `interrupt`
//! how it ends early. Plans, epochs and tables go to stdout, bars and errors to stderr; with
//! `--json` stdout holds JSON lines only.

pub(crate) mod args;
mod check;
mod command;
mod config;
mod data;
mod demo;
pub(crate) mod epoch;
mod eval;
mod exit;
mod export;
pub(crate) mod failure;
pub(crate) mod files;
mod folder;
pub(crate) mod format;
pub(crate) mod input;
mod interrupt;
mod json;
mod launch;
mod launched;
mod measure;
mod output;
mod painter;
mod partition;
mod predict;
mod processes;
pub(crate) mod program;
mod progress;
mod query;
mod recipe;
mod report;
mod secret;
pub(crate) mod table;
mod terminal;
mod token;
mod train;
mod tune;
mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory as _;

pub use crate::cli::epoch::{Figures, Labels};
pub use crate::cli::files::{Files, Outputs};
pub use crate::cli::program::{
    Error, EvalArgs, EvalReportOf, Model, Plan, Program, ReportOf, Source, TrainArgs,
};

use crate::cli::args::predict::PredictTask;
use crate::cli::args::{DemoArgs, Given};
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::verbs::{Cli, OwnCli, OwnVerb, PartitionTask, TuneSystem, Verb};

/// Runs the command of this process's arguments, to its end.
///
/// Handles the signals that end a process from here on. What is wrong is one line on stderr, and
/// the exit code says to whom it is due: 0, or a reader of stdout that has enough; 1, the run; 2,
/// the command line or its input; 75, another process, and starting again may help; 128 + n, signal
/// n (130 after Ctrl-C).
#[must_use]
pub fn main() -> ExitCode {
    let read = Cli::read(std::env::args_os().collect());
    ended(read, run, &Cli::command())
}

/// Runs a task of one's own as a program: `train` and `eval` with all that tasks have here. The
/// same as [`main`] otherwise.
///
/// ```text
///   own_task train --data FILE --nodes 4 --save own.model
///   own_task eval --load own.model --data FILE --json
///   adapm launch --nodes 4 -- ./own_task train --data FILE     each node as a process
/// ```
#[must_use]
pub fn main_of<P: Program>() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let run = |cli: &OwnCli<P>, given: &Given| {
        let interrupt = &Interrupt::install().map_err(Failure::Signals)?;
        match &cli.verb {
            OwnVerb::Train(args) => train::run(args.as_ref(), given, interrupt),
            OwnVerb::Eval(args) => eval::run(args.as_ref(), given, interrupt),
        }
    };
    let name = words.first().map_or_else(String::new, |word| word.to_string_lossy().into_owned());
    ended(OwnCli::<P>::read(words), run, &OwnCli::<P>::command().bin_name(name))
}

/// Does what was read from the command line, reports how that failed, and gives the exit code.
fn ended<C>(
    read: Result<(C, Given), Failure>,
    run: impl FnOnce(&C, &Given) -> Result<(), Failure>,
    command: &clap::Command,
) -> ExitCode {
    let run = |(cli, given): (C, Given)| {
        run(&cli, &given).map_err(|failure| exit::by_flag(failure, &given))
    };
    match read.and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => exit::report(&failure, command),
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
        Some(Verb::Check(args)) => check::run(args, interrupt),
        Some(Verb::Data(args)) => data::run(args, interrupt),
        Some(Verb::Token(args)) => token::run(args),
        Some(Verb::CheckNet(args)) => measure::check_net::run(args, interrupt),
        Some(Verb::Simulate(args)) => measure::simulate::run(args, interrupt),
        Some(Verb::Trace(args)) => measure::trace::run(args, interrupt),
        Some(Verb::Compare { task }) => measure::compare::run(task, given, interrupt),
        Some(Verb::Bench(args)) => measure::bench::run(args, interrupt),
        Some(Verb::Predict { task: PredictTask::Kge(args) }) => predict::run(args, interrupt),
        Some(Verb::Predict { task: PredictTask::Mf(args) }) => predict::run(args, interrupt),
        Some(Verb::Predict { task: PredictTask::Wv(args) }) => predict::run(args, interrupt),
        Some(Verb::Predict { task: PredictTask::Ctr(args) }) => predict::ctr::run(args, interrupt),
        Some(Verb::Predict { task: PredictTask::Gnn(args) }) => predict::gnn::run(args, interrupt),
        Some(Verb::Export { task }) => export::run(task, interrupt),
        Some(Verb::Tune { system: TuneSystem::Nups { task } }) => {
            command::tune(task, given, interrupt)
        }
        Some(Verb::Partition { task }) => match task {
            PartitionTask::Kge(args) => partition::run(args, interrupt),
            PartitionTask::Mf(args) => partition::run(args, interrupt),
            PartitionTask::Wv(args) => partition::run(args, interrupt),
            PartitionTask::Ctr(args) => partition::run(args, interrupt),
            PartitionTask::Gnn(args) => partition::run(args, interrupt),
        },
        Some(Verb::Train { task }) => command::train_of(task).run(given, interrupt),
        Some(Verb::Eval { task }) => command::eval_of(task).run(given, interrupt),
    }
}
