//! The command after `--`: whether it can run as one of several processes.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use crate::args::{Cli, EvalTask, LaunchArgs, ProcessArgs, RecipeArgs, TrainTask, Verb};
use crate::eval::Evaluating;
use crate::failure::Failure;
use crate::files::Files;
use crate::launch::error::LaunchError;
use crate::train::Training;

/// A command that each process runs.
#[derive(Debug)]
pub(super) struct Inner {
    /// Without the name of the program.
    pub(super) words: Vec<OsString>,
    /// What it says itself about the time after which a node counts as lost.
    pub(super) dead_after: Option<Duration>,
}

/// Reads the command as the processes will, so that a slip is told once and at once.
pub(super) fn check(args: &LaunchArgs, nodes: usize) -> Result<Inner, Failure> {
    let mut words = args.command.clone();
    if words.first().is_some_and(|word| word == OsStr::new("adapm")) {
        words.remove(0);
    }
    let line = [OsString::from("adapm")].into_iter().chain(words.iter().cloned());
    let (cli, _) = Cli::read(line.collect())?;
    let Some((processes, own_nodes)) = processes(cli.verb.as_ref()) else {
        let verb = words.first().map_or_else(String::new, |word| word.to_string_lossy().into_owned());
        return Err(LaunchError::Verb(verb).into());
    };
    if recipe(cli.verb.as_ref()).is_some_and(RecipeArgs::lists) {
        return Err(LaunchError::List.into());
    }
    files(cli.verb.as_ref()).check_shared()?;
    if processes.node.is_some() || processes.rendezvous.is_some() {
        return Err(LaunchError::Placed.into());
    }
    if let Some(own) = own_nodes.filter(|own| *own != nodes) {
        return Err(LaunchError::OtherNodes { own, nodes }.into());
    }
    Ok(Inner { words, dead_after: processes.dead_after })
}

/// What a verb says of processes, and its `--nodes`; `None` if it knows of none.
fn processes(verb: Option<&Verb>) -> Option<(&ProcessArgs, Option<usize>)> {
    let (processes, cluster) = match verb? {
        Verb::Train { task: TrainTask::Kge(args) } => (&args.processes, &args.cluster),
        Verb::Train { task: TrainTask::Mf(args) } => (&args.processes, &args.cluster),
        Verb::Train { task: TrainTask::Wv(args) } => (&args.processes, &args.cluster),
        Verb::Eval { task: EvalTask::Kge(args) } => (&args.processes, &args.cluster),
        Verb::Eval { task: EvalTask::Mf(args) } => (&args.processes, &args.cluster),
        Verb::Eval { task: EvalTask::Wv(args) } => (&args.processes, &args.cluster),
        Verb::CheckNet(args) => return Some((&args.processes, args.nodes)),
        Verb::Demo(_)
        | Verb::Data(_)
        | Verb::Export { .. }
        | Verb::Launch(_)
        | Verb::Token(_)
        | Verb::Simulate(_)
        | Verb::Trace(_)
        | Verb::Bench(_) => return None,
    };
    Some((processes, cluster.nodes))
}

/// The files that a verb reads, in each process.
fn files(verb: Option<&Verb>) -> Files<'_> {
    match verb {
        Some(Verb::Train { task: TrainTask::Kge(args) }) => Training::files(args.as_ref()),
        Some(Verb::Train { task: TrainTask::Mf(args) }) => Training::files(args.as_ref()),
        Some(Verb::Train { task: TrainTask::Wv(args) }) => Training::files(args.as_ref()),
        Some(Verb::Eval { task: EvalTask::Kge(args) }) => Evaluating::files(args),
        Some(Verb::Eval { task: EvalTask::Mf(args) }) => Evaluating::files(args),
        Some(Verb::Eval { task: EvalTask::Wv(args) }) => Evaluating::files(args),
        _ => Files::default(),
    }
}

/// What a verb says of recipes.
fn recipe(verb: Option<&Verb>) -> Option<&RecipeArgs> {
    match verb? {
        Verb::Train { task: TrainTask::Kge(args) } => Some(&args.recipe),
        Verb::Train { task: TrainTask::Mf(args) } => Some(&args.recipe),
        Verb::Train { task: TrainTask::Wv(args) } => Some(&args.recipe),
        _ => None,
    }
}
