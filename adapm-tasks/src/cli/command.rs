//! A verb of a task that can be one of several processes: what is done, whatever the task is.

use crate::cli::args::{Given, ProcessArgs, SettingsArgs};
use crate::cli::failure::Failure;
use crate::cli::files::Files;
use crate::cli::interrupt::Interrupt;
use crate::cli::program::{EvalArgs, Program, TrainArgs};
use crate::cli::verbs::{EvalTask, TrainTask, Verb};
use crate::cli::{eval, train, tune};
use crate::run::Config as _;

/// A verb of a task, with its flags.
pub(crate) trait Command {
    /// Does what is asked for.
    fn run(&self, given: &Given, interrupt: &Interrupt) -> Result<(), Failure>;

    /// Checks that flags go together.
    fn check(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns the flags about processes, and `--nodes`.
    fn processes(&self) -> (&ProcessArgs, Option<usize>);

    /// Returns the files that each process reads.
    fn files(&self) -> Files<'_>;

    /// Returns the flags about where settings come from.
    fn settings(&self) -> Option<&SettingsArgs> {
        None
    }
}

/// Returns the task's verb; `None` if it is a verb of none.
pub(crate) fn of(verb: &Verb) -> Option<&dyn Command> {
    match verb {
        Verb::Train { task } => Some(train_of(task)),
        Verb::Eval { task } => Some(eval_of(task)),
        _ => None,
    }
}

/// Returns the training of a task.
pub(crate) fn train_of(task: &TrainTask) -> &dyn Command {
    match task {
        TrainTask::Kge(args) => args.as_ref(),
        TrainTask::Mf(args) => args.as_ref(),
        TrainTask::Wv(args) => args.as_ref(),
        TrainTask::Ctr(args) => args.as_ref(),
        TrainTask::Gnn(args) => args.as_ref(),
    }
}

/// Tunes NuPS for a task.
pub(crate) fn tune(task: &TrainTask, given: &Given, interrupt: &Interrupt) -> Result<(), Failure> {
    match task {
        TrainTask::Kge(args) => tune::run(args, given, interrupt),
        TrainTask::Mf(args) => tune::run(args, given, interrupt),
        TrainTask::Wv(args) => tune::run(args, given, interrupt),
        TrainTask::Ctr(args) => tune::run(args, given, interrupt),
        TrainTask::Gnn(args) => tune::run(args, given, interrupt),
    }
}

/// Returns the evaluation of a task.
pub(crate) fn eval_of(task: &EvalTask) -> &dyn Command {
    match task {
        EvalTask::Kge(args) => args.as_ref(),
        EvalTask::Mf(args) => args.as_ref(),
        EvalTask::Wv(args) => args.as_ref(),
        EvalTask::Ctr(args) => args.as_ref(),
        EvalTask::Gnn(args) => args.as_ref(),
    }
}

impl<P: Program> Command for TrainArgs<P> {
    fn run(&self, given: &Given, interrupt: &Interrupt) -> Result<(), Failure> {
        train::run(self, given, interrupt)
    }

    fn check(&self) -> Result<(), Failure> {
        P::check_flags(self).map_err(|error| *error.0)
    }

    fn processes(&self) -> (&ProcessArgs, Option<usize>) {
        (&self.processes, self.config.cluster().nodes)
    }

    fn files(&self) -> Files<'_> {
        P::files(&self.flags)
    }

    fn settings(&self) -> Option<&SettingsArgs> {
        Some(&self.settings)
    }
}

impl<P: Program> Command for EvalArgs<P> {
    fn run(&self, given: &Given, interrupt: &Interrupt) -> Result<(), Failure> {
        eval::run(self, given, interrupt)
    }

    fn processes(&self) -> (&ProcessArgs, Option<usize>) {
        (&self.processes, self.cluster.nodes)
    }

    fn files(&self) -> Files<'_> {
        eval::files(self)
    }
}
