//! Failures of a verb: one line that names the fault, its place and what to do, and the party to
//! blame.
//!
//! Not here: exit codes and how a line is printed ([`exit`](crate::cli::exit)).

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::data::DataError;
use crate::files::{self, OutputError};
use crate::measure::bench::BenchError;
use crate::measure::simulate::SimulateError;
use crate::run::{CheckpointError, ConfigError, PartitionError, Split, TaskError, Wanted};
use crate::wv::CorpusError;
use adapm_core::NodeId;
use adapm_runtime::{BuildError, RunError};
use adapm_transport::group::GroupError;
use adapm_transport::group::launcher::{LauncherError, SecretError};

use crate::cli::config::ConfigFileError;
use crate::cli::launch::error::LaunchError;
use crate::cli::measure::bench::child::ChildError;
use crate::cli::measure::trace::error::TraceFailure;
use crate::cli::query::QueryError;
use crate::cli::recipe::UnknownRecipe;
use crate::cli::secret::TokenError;

/// The failure of a verb.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The library refused or failed a run.
    #[error("{}", of_task(.0))]
    Task(#[from] TaskError),
    /// A flag has an invalid value: the flag with the value as it was typed, and the valid values.
    #[error("{choice}: {wanted}")]
    Choice { choice: String, wanted: Wanted },
    /// Data cannot be used.
    #[error("{}", of_data(.0))]
    Data(DataError),
    /// A text, or a file beside it, cannot be used.
    #[error("{}", of_corpus(.0))]
    Corpus(#[from] CorpusError),
    /// There is no such recipe.
    #[error("{0}")]
    Recipe(#[from] UnknownRecipe),
    /// A file of settings cannot be used.
    #[error("{0}")]
    Config(#[from] ConfigFileError),
    /// A query cannot be answered.
    #[error("{0}")]
    Query(#[from] QueryError),
    /// A task cannot use what it was given.
    #[error("{0}")]
    Input(String),
    /// Questions for vectors that are not to be evaluated.
    #[error("--no-eval asks nothing: leave out --questions and --similarity, or --no-eval")]
    NothingAsked,
    /// Several nodes or workers without a parameter manager.
    #[error(
        "--system none is one node with one worker: leave out --nodes and --workers, or choose a system"
    )]
    NoManager,
    /// The data has nothing in this part.
    #[error("the data has no {0} part to evaluate (--split); give another part, or data with one")]
    NoPart(Split),
    /// The task of the data is unknown.
    #[error("no telling which task {0} is data of; give --task kge, mf, wv, ctr or gnn")]
    UnknownTask(PathBuf),
    /// A folder already has the parts train, valid and test, so it takes no `--data-seed`.
    #[error(
        "{0} is a folder, whose parts no seed chooses; leave --data-seed out, or give one file"
    )]
    SeedOfFolder(PathBuf),
    /// Two flags name one file that is to be written.
    #[error("cannot write {path} ({}): it is the file of {}, too; give another file", flags[0], flags[1])]
    SameFile { path: PathBuf, flags: [&'static str; 2] },
    /// Data of this name is unknown: the library's error, the most similar name, and all names.
    #[error("{error}{}", meant(near.as_deref(), names))]
    UnknownData { error: Box<DataError>, near: Option<String>, names: Vec<String> },
    /// A file that was to be written cannot be.
    #[error("cannot write {path} ({flag}): {error}")]
    Unwritable { flag: &'static str, path: PathBuf, error: OutputError },
    /// The folder of a run cannot be used; why, and what to do.
    #[error("cannot use the folder of the run, {path}: {reason}")]
    Folder { path: PathBuf, reason: String },
    /// A folder to check has no model.
    #[error(
        "neither best.adapm nor last.adapm is in {path}; give the folder of a run that has ended, or a file \
         written by --save"
    )]
    NoModel { path: PathBuf },
    /// Lines of a run are missing in its folder; the run is complete.
    #[error(
        "lines are missing in the folder of the run, {path}: {reason}; the models there are complete"
    )]
    Unlogged { path: PathBuf, reason: String },
    /// A file that was to be written is one that was read.
    #[error("cannot write {path} ({flag}): it was read as {input}; give another file")]
    Overwrites { flag: &'static str, path: PathBuf, input: PathBuf },
    /// A file could not be written to its place at the end of the run; the folder where it is
    /// instead, if any.
    #[error("{}; {}", .0, elsewhere(.1.as_deref()))]
    Elsewhere(Box<Failure>, Option<PathBuf>),
    /// A pipe cannot be the data of several processes.
    #[error(
        "{path} ({flag}) cannot be the data of several processes: give a file that each can read"
    )]
    SharedPipe { flag: &'static str, path: PathBuf },
    /// Stdout is closed.
    #[error("cannot write to stdout: {}", files::reason(.0))]
    Stdout(io::Error),
    /// Signals cannot be handled.
    #[error("cannot handle Ctrl-C: {}; check the limits of this process", files::reason(.0))]
    Signals(io::Error),
    /// The command after `--` of a launch is wrong; the command.
    #[error("{error}")]
    Usage { error: clap::Error, words: Vec<OsString> },
    /// Several processes could not be launched, or one of them failed.
    #[error("{0}")]
    Launch(#[from] LaunchError),
    /// The launcher of this process has set only a part of the variables that are needed.
    #[error("{}", .0.with_flags())]
    Launcher(#[from] LauncherError),
    /// The other processes did not join, or are lost.
    #[error("{0}")]
    Group(GroupError),
    /// A verb that measures between processes runs in one process only.
    #[error(
        "there is no other process to measure the way to: run adapm launch --nodes 2 -- check-net, or \
         give --node, --nodes and --rendezvous to each"
    )]
    NoProcesses,
    /// Something failed between the processes; who is to blame, and the reason.
    #[error("{1}")]
    Between(Blame, String),
    /// The secret cannot be used.
    #[error("{0}")]
    Token(#[from] TokenError),
    /// A cluster could not be simulated.
    #[error("{0}")]
    Simulate(SimulateError),
    /// A trace cannot be shown, or begun.
    #[error("{0}")]
    Trace(#[from] TraceFailure),
    /// The costs of calls could not be measured.
    #[error("{0}")]
    Bench(BenchError),
    /// A program that was started to be measured printed no result.
    #[error("{0}")]
    Child(ChildError),
    /// Runs of a comparison failed.
    #[error("{0}")]
    Compared(String),
    /// Data is odd; the details are already printed.
    #[error("data is odd")]
    Odd,
    /// A signal ended the run; the exit code of that signal.
    #[error("interrupted")]
    Interrupted(u8),
}

/// The party to blame for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The command line, or its input.
    Input,
    /// The run.
    Run,
    /// Another process, which was lost or did not join; starting again may help.
    Loss,
}

impl From<ChildError> for Failure {
    fn from(error: ChildError) -> Self {
        match error {
            ChildError::Interrupted(code) => Self::Interrupted(code),
            error => Self::Child(error),
        }
    }
}

impl From<SecretError> for Failure {
    fn from(error: SecretError) -> Self {
        Self::Token(error.into())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Task(TaskError::Config(error))
    }
}

impl Failure {
    /// Returns true if another process is gone, or has failed, and nothing is wrong here.
    pub(crate) fn is_loss(&self) -> bool {
        self.blame() == Blame::Loss
    }

    /// Returns the node whose process has told all others that it cannot go on, if that ends this
    /// one.
    pub(crate) fn culprit(&self) -> Option<NodeId> {
        match self {
            Self::Task(error) => error.culprit(),
            _ => None,
        }
    }

    /// Returns who is to blame.
    pub(crate) fn blame(&self) -> Blame {
        match self {
            Self::Choice { .. }
            | Self::Data(_)
            | Self::Corpus(_)
            | Self::Recipe(_)
            | Self::Config(_)
            | Self::Query(_)
            | Self::Input(_)
            | Self::NothingAsked
            | Self::NoManager
            | Self::NoPart(_)
            | Self::SeedOfFolder(_)
            | Self::UnknownTask(_)
            | Self::SameFile { .. }
            | Self::UnknownData { .. }
            | Self::Unwritable { .. }
            | Self::Overwrites { .. }
            | Self::Folder { .. }
            | Self::NoModel { .. }
            | Self::SharedPipe { .. }
            | Self::Usage { .. }
            | Self::Launcher(_)
            | Self::Trace(_)
            | Self::NoProcesses
            | Self::Token(_) => Blame::Input,
            Self::Task(error) => of_run(error),
            Self::Group(error) => of_group(error),
            Self::Between(blame, _) => *blame,
            Self::Simulate(SimulateError::Failed(_)) => Blame::Run,
            Self::Simulate(_) => Blame::Input,
            Self::Launch(_)
            | Self::Elsewhere(..)
            | Self::Unlogged { .. }
            | Self::Odd
            | Self::Stdout(_)
            | Self::Signals(_)
            | Self::Bench(_)
            | Self::Child(_)
            | Self::Compared(_)
            | Self::Interrupted(_) => Blame::Run,
        }
    }
}

/// Returns the text of a run's error, with the flag that names the parameters or the partition if
/// these cannot be read.
fn of_task(error: &TaskError) -> String {
    match error {
        TaskError::Checkpoint(CheckpointError::Io { path, error }) => {
            files::unreadable(path, Some("--load"), *error)
        }
        TaskError::Partition(PartitionError::Io { path, error }) => {
            files::unreadable(path, Some("--homes"), *error)
        }
        error => error.to_string(),
    }
}

/// Returns the end of a message: the most similar name, else all names.
fn meant(near: Option<&str>, names: &[String]) -> String {
    match (near, names) {
        (Some(near), _) => format!("; did you mean {near}?"),
        (None, []) => String::new(),
        (None, names) => format!(": {}", names.join(", ")),
    }
}

/// Returns the text on the place of a file that could not be written to its own.
fn elsewhere(path: Option<&Path>) -> String {
    match path {
        Some(path) => format!("it is in {} instead", path.display()),
        None => "nor could it be written to the working folder, $HOME or /tmp".to_owned(),
    }
}

/// Returns the text of an error of data, with the flags that choose how it is read.
fn of_data(error: &DataError) -> String {
    let flag = match error {
        DataError::OpenKe { .. } => " (--column-order htr)",
        DataError::OtherOrder { .. } => " (--column-order)",
        _ => "",
    };
    format!("{error}{flag}")
}

/// Returns the text of an error of a corpus, with the flag that may help.
fn of_corpus(error: &CorpusError) -> String {
    match error {
        CorpusError::Text(error) => of_data(error),
        CorpusError::TooFewWords { .. } | CorpusError::NoContext { .. } => {
            format!("{error} (--min-count)")
        }
        _ => error.to_string(),
    }
}

fn of_run(error: &TaskError) -> Blame {
    match error {
        error if error.is_loss() || error.culprit().is_some() => Blame::Loss,
        TaskError::Resume(error) if error.may_pass() => Blame::Loss,
        TaskError::Config(_)
        | TaskError::Data(_)
        | TaskError::Checkpoint(_)
        | TaskError::Resume(_)
        | TaskError::Partition(_)
        | TaskError::NoSamples
        | TaskError::Memory(_)
        | TaskError::Mismatch { .. } => Blame::Input,
        TaskError::Group(error)
        | TaskError::Run(RunError::Group(error))
        | TaskError::Build(BuildError::Group(error) | BuildError::Run(RunError::Group(error))) => {
            of_group(error)
        }
        TaskError::Build(
            BuildError::Run(_)
            | BuildError::Listen { .. }
            | BuildError::Network { .. }
            | BuildError::Thread(_)
            | BuildError::Panicked { .. },
        ) => Blame::Run,
        TaskError::Build(_) => Blame::Input,
        _ => Blame::Run,
    }
}

fn of_group(error: &GroupError) -> Blame {
    match error {
        error if error.is_loss() => Blame::Loss,
        GroupError::Differs { .. }
        | GroupError::NodeOutOfRange { .. }
        | GroupError::Address { .. }
        | GroupError::File { .. }
        | GroupError::Network { .. } => Blame::Input,
        _ => Blame::Run,
    }
}
