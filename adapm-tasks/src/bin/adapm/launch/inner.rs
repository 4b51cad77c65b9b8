//! The command after `--`: whether it can run as one of several processes.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::args::{Cli, EvalTask, LaunchArgs, ProcessArgs, TrainTask, Verb};
use crate::failure::Failure;
use crate::launch::error::LaunchError;

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
    let usage = |error| Failure::Usage { error, words: words.clone() };
    let matches = Cli::command().try_get_matches_from(line).map_err(usage)?;
    let cli = Cli::from_arg_matches(&matches).map_err(usage)?;
    let Some((processes, own_nodes)) = processes(cli.verb.as_ref()) else {
        let verb = words.first().map_or_else(String::new, |word| word.to_string_lossy().into_owned());
        return Err(LaunchError::Verb(verb).into());
    };
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
    match verb? {
        Verb::Train { task: TrainTask::Kge(args) } => Some((&args.processes, args.cluster.nodes)),
        Verb::Eval { task: EvalTask::Kge(args) } => Some((&args.processes, args.cluster.nodes)),
        Verb::CheckNet(args) => Some((&args.processes, args.nodes)),
        Verb::Demo(_) | Verb::Launch(_) | Verb::Simulate(_) | Verb::Trace(_) => None,
    }
}
