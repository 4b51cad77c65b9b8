//! How a verb ends badly: one line on stderr that says what, where and what to do, and an exit
//! code.
//!
//! 2: the command line or its input is wrong. 1: the run failed. 75: another process was lost or
//! did not join; starting again may help. 128 + signal: a signal ended it (130 after Ctrl-C).

use std::error::Error as _;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use adapm_core::NodeId;
use adapm_core::error::OpError;
use adapm_runtime::{BuildError, RunError};
use adapm_tasks::data::DataError;
use adapm_tasks::files::{self, OutputError};
use adapm_tasks::measure::bench::BenchError;
use adapm_tasks::measure::simulate::SimulateError;
use adapm_tasks::run::{CheckpointError, ConfigError, Split, TaskError, Wanted};
use adapm_tasks::wv::CorpusError;
use adapm_transport::group::GroupError;
use adapm_transport::group::launcher::{LauncherError, SecretError};
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::{Cli, Given};
use crate::format;
use crate::launch::error::LaunchError;
use crate::measure::bench::child::ChildError;
use crate::measure::trace::error::TraceFailure;
use crate::recipe::UnknownRecipe;
use crate::terminal::Stream;
use crate::token::TokenError;

/// Why a verb could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The library's reason.
    #[error("{}", of_task(.0))]
    Task(#[from] TaskError),
    /// A flag has a value that it cannot have: the flag with the value as it was typed, and what to
    /// give instead.
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
    Recipe(UnknownRecipe),
    /// Several nodes or workers without a manager.
    #[error(
        "--system none is one node with one worker: leave out --nodes and --workers, or choose a system"
    )]
    NoManager,
    /// The data has nothing in this part.
    #[error("the data has no {0} part to evaluate (--split); give another part, or data with one")]
    NoPart(Split),
    /// Data is of no task that can be told.
    #[error("no telling which task {0} is data of; give --task kge, mf or wv")]
    UnknownTask(PathBuf),
    /// A folder has its parts, so no seed splits it.
    #[error(
        "{0} is a folder, whose parts no seed chooses; leave --data-seed out, or give one file"
    )]
    SeedOfFolder(PathBuf),
    /// Two flags name one file that is to be written.
    #[error("cannot write {path} ({}): it is the file of {}, too; give another file", flags[0], flags[1])]
    SameFile { path: PathBuf, flags: [&'static str; 2] },
    /// Data of this name is unknown: the library's reason, what may have been meant, and what there
    /// is.
    #[error("{error}{}", meant(near.as_deref(), names))]
    UnknownData { error: DataError, near: Option<String>, names: Vec<String> },
    /// A file that was to be written cannot be.
    #[error("cannot write {path} ({flag}): {error}")]
    Unwritable { flag: &'static str, path: PathBuf, error: OutputError },
    /// A file that was to be written is one that was read.
    #[error("cannot write {path} ({flag}): it was read as {input}; give another file")]
    Overwrites { flag: &'static str, path: PathBuf, input: PathBuf },
    /// A file could not be written in the end, and is elsewhere, or nowhere.
    #[error("{}; {}", .0, elsewhere(.1.as_deref()))]
    Elsewhere(Box<Failure>, Option<PathBuf>),
    /// A pipe cannot be the data of several processes.
    #[error(
        "{path} ({flag}) cannot be the data of several processes: give a file that each can read"
    )]
    SharedPipe { flag: &'static str, path: PathBuf },
    /// Nobody takes what is printed.
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
    /// Who started this process left half of what is needed.
    #[error("{}", .0.with_flags())]
    Launcher(#[from] LauncherError),
    /// The other processes did not come, or are gone.
    #[error("{0}")]
    Group(GroupError),
    /// A verb that measures between processes has no other.
    #[error(
        "there is no other process to measure the way to: run adapm launch --nodes 2 -- check-net, or \
         give --node, --nodes and --rendezvous to each"
    )]
    NoProcesses,
    /// Something failed between the processes; the exit code and the reason.
    #[error("{1}")]
    Between(u8, String),
    /// The secret cannot be used.
    #[error("{0}")]
    Token(#[from] TokenError),
    /// A cluster could not be simulated.
    #[error("{0}")]
    Simulate(SimulateError),
    /// A trace cannot be shown, or begun.
    #[error("{0}")]
    Trace(#[from] TraceFailure),
    /// What calls cost could not be measured.
    #[error("{0}")]
    Bench(BenchError),
    /// A program that was started to be measured told nothing.
    #[error("{0}")]
    Child(ChildError),
    /// Data is odd, as was told.
    #[error("data is odd")]
    Odd,
    /// A signal ended the run; the exit code it asks for.
    #[error("interrupted")]
    Interrupted(u8),
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
    /// Prints the line, if there is one to print, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if let Self::Usage { error, words } = self {
            return usage(error, words.iter().map(|word| word.to_string_lossy().into_owned()));
        }
        if !self.is_silent() {
            print_line(&self.to_string());
        }
        ExitCode::from(self.exit_code())
    }

    /// The same in words of the command line, where the library speaks of fields of its
    /// configurations.
    pub(crate) fn by_flag(self, given: &Given) -> Self {
        match self {
            Self::Task(TaskError::Config(ConfigError::Value { field, value, wanted })) => {
                Self::Choice { choice: given.flag_of(field, &value), wanted }
            }
            Self::Task(TaskError::Data(error)) => Self::Data(error),
            other => other,
        }
    }

    /// Whether another process is gone, or has failed, and nothing is wrong here.
    pub(crate) fn is_loss(&self) -> bool {
        self.exit_code() == LOST
    }

    /// The node whose process has told that it cannot go on, if that ends this one.
    pub(crate) fn culprit(&self) -> Option<NodeId> {
        match self {
            Self::Task(
                TaskError::Build(BuildError::Process { node, .. })
                | TaskError::Run(RunError::Process { node, .. }),
            ) => Some(*node),
            _ => None,
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Choice { .. }
            | Self::Data(_)
            | Self::Corpus(_)
            | Self::Recipe(_)
            | Self::NoManager
            | Self::NoPart(_)
            | Self::SeedOfFolder(_)
            | Self::UnknownTask(_)
            | Self::SameFile { .. }
            | Self::UnknownData { .. }
            | Self::Unwritable { .. }
            | Self::Overwrites { .. }
            | Self::SharedPipe { .. }
            | Self::Usage { .. }
            | Self::Launcher(_)
            | Self::Trace(_)
            | Self::Token(_) => 2,
            Self::Launch(error) => error.exit_code(),
            Self::Task(error) => task_exit_code(error),
            Self::Group(error) => group_exit_code(error),
            Self::Between(code, _) => *code,
            Self::NoProcesses => 2,
            Self::Simulate(SimulateError::Failed(_)) => 1,
            Self::Simulate(_) => 2,
            Self::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Elsewhere(..)
            | Self::Odd
            | Self::Stdout(_)
            | Self::Signals(_)
            | Self::Bench(_)
            | Self::Child(_) => 1,
            Self::Interrupted(code) => *code,
        }
    }

    /// Whether all has been told, or nobody is left to be told.
    fn is_silent(&self) -> bool {
        match self {
            // As of other tools: who reads no further, as `head`, has what it wants.
            Self::Stdout(error) => error.kind() == io::ErrorKind::BrokenPipe,
            other => matches!(other, Self::Odd | Self::Interrupted(_)),
        }
    }
}

/// What the library says of a run, with the flag that its parameters are read for.
fn of_task(error: &TaskError) -> String {
    match error {
        TaskError::Checkpoint(CheckpointError::Io { path, error }) => {
            files::unreadable(path, Some("--load"), *error)
        }
        error => error.to_string(),
    }
}

/// The data that may have been meant by a name, else all there is.
fn meant(near: Option<&str>, names: &[String]) -> String {
    match (near, names) {
        (Some(near), _) => format!("; did you mean {near}?"),
        (None, []) => String::new(),
        (None, names) => format!(": {}", names.join(", ")),
    }
}

/// Where a file is that could not be written to its place.
fn elsewhere(path: Option<&Path>) -> String {
    match path {
        Some(path) => format!("it is in {} instead", path.display()),
        None => "nor could it be written to the working folder, $HOME or /tmp".to_owned(),
    }
}

/// What is wrong with data, with the flags that choose how it is read.
fn of_data(error: &DataError) -> String {
    let flag = match error {
        DataError::OpenKe { .. } => " (--column-order htr)",
        DataError::OtherOrder { .. } => " (--column-order)",
        _ => "",
    };
    format!("{error}{flag}")
}

/// What is wrong with a text, with the flag that may help.
fn of_corpus(error: &CorpusError) -> String {
    match error {
        CorpusError::Text(error) => of_data(error),
        CorpusError::TooFewWords { .. } | CorpusError::NoContext { .. } => {
            format!("{error} (--min-count)")
        }
        _ => error.to_string(),
    }
}

fn task_exit_code(error: &TaskError) -> u8 {
    match error {
        TaskError::Config(_)
        | TaskError::Data(_)
        | TaskError::Checkpoint(_)
        | TaskError::Memory(_)
        | TaskError::Mismatch { .. } => 2,
        TaskError::Build(error) => match error {
            BuildError::Group(error) => group_exit_code(error),
            BuildError::Process { .. } => LOST,
            BuildError::Run(error) => run_exit_code(error),
            BuildError::Listen { .. }
            | BuildError::Network { .. }
            | BuildError::Thread(_)
            | BuildError::Panicked { .. } => 1,
            _ => 2,
        },
        TaskError::Run(error) => run_exit_code(error),
        TaskError::Access(OpError::PeerLost { .. }) | TaskError::Elsewhere { .. } => LOST,
        TaskError::Group(error) => group_exit_code(error),
        _ => 1,
    }
}

fn run_exit_code(error: &RunError) -> u8 {
    match error {
        RunError::Group(error) => group_exit_code(error),
        RunError::PeerLost { .. }
        | RunError::Process { .. }
        | RunError::Op(OpError::PeerLost { .. }) => LOST,
        _ => 1,
    }
}

fn group_exit_code(error: &GroupError) -> u8 {
    match error {
        GroupError::Missing { .. }
        | GroupError::Unreached { .. }
        | GroupError::PeerLost(_)
        | GroupError::GivenUp { .. }
        | GroupError::Isolated { .. }
        | GroupError::Left { .. } => LOST,
        GroupError::Differs { .. }
        | GroupError::NodeOutOfRange { .. }
        | GroupError::Address { .. }
        | GroupError::File { .. }
        | GroupError::Network { .. } => 2,
        _ => 1,
    }
}

/// Prints what clap has to say of `words`, which do not name the program: help as it is, errors as
/// one line.
pub(crate) fn usage(error: &clap::Error, words: impl Iterator<Item = String>) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Help that nobody reads is no failure.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let words: Vec<String> = words.collect();
    if let Some(text) = without_dashes(&words) {
        print_line(&text);
        return ExitCode::from(2);
    }
    let said = impossible(error).unwrap_or_else(|| joined(&error.render().to_string()));
    let command = Cli::command();
    let (mut deepest, mut help) = (&command, "adapm".to_owned());
    for word in &words {
        let Some(verb) = deepest.find_subcommand(word) else { break };
        (deepest, help) = (verb, format!("{help} {word}"));
    }
    print_line(&format!("{said}; see `{help} --help`"));
    ExitCode::from(2)
}

/// What to write instead of a `launch` whose command has no `--` before it.
fn without_dashes(words: &[String]) -> Option<String> {
    let (launch, words) = words.split_first()?;
    let is_verb = |word: &String| ["train", "eval", "check-net"].contains(&word.as_str());
    let at = words.iter().position(is_verb)?;
    if launch != "launch" || words.iter().any(|word| word == "--") {
        return None;
    }
    let (flags, command) = words.split_at(at);
    let line = [&["adapm".to_owned(), launch.clone()], flags, &["--".to_owned()], command]
        .concat()
        .join(" ");
    Some(format!("put -- before the command: {line}"))
}

/// What is wrong with the value of a flag, in the words of [`Failure::Choice`]; `None` if something
/// else is wrong.
fn impossible(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let flag = text(ContextKind::InvalidArg)?.split(' ').next()?;
    let (value, source) = (text(ContextKind::InvalidValue)?, error.source()?);
    let wanted = match source.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow) => "give a smaller whole number".to_owned(),
        Some(_) => "give a whole number".to_owned(),
        None if source.is::<ParseFloatError>() => "give a number".to_owned(),
        None => in_words(&source.to_string(), value),
    };
    Some(format!("{flag} {value}: {wanted}"))
}

/// A reason of clap's or of ours: `7 is not in 0..=5` becomes what to give.
fn in_words(reason: &str, value: &str) -> String {
    let range = reason.strip_prefix(value).and_then(|rest| rest.strip_prefix(" is not in "));
    match range.and_then(|range| range.split_once("..=")) {
        Some((min, max)) => format!("give a whole number from {min} to {max}"),
        None => reason.to_owned(),
    }
}

/// The paragraphs of an error without the usage below it, joined to one line.
fn joined(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let lines = text.lines().map(str::trim);
    let said =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    said.filter(|line| !line.is_empty()).fold(String::new(), |mut joined, line| {
        if !joined.is_empty() {
            let continues = joined.ends_with(':') || line.starts_with('[') || line.starts_with('<');
            joined.push_str(if continues { " " } else { "; " });
        }
        joined + line
    })
}

/// Prints `error: TEXT` as one line, whatever names of files are in it.
fn print_line(text: &str) {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let error = console::style("error:").red().bold().for_stderr();
    let mut line = format!("{error} {line}");
    if Stream::Stderr.is_attended() {
        // One line for programs; a terminal would break it within words.
        line = format::wrapped(&line, Stream::Stderr.width());
    }
    // Nobody is left to be told if stderr is closed.
    let _ = writeln!(io::stderr(), "{line}");
}

/// A node was lost or did not join: whoever starts all again may have more luck.
const LOST: u8 = 75;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_become_one_line_without_usage() {
        let text = "error: unexpected argument '--nod' found\n\n  tip: a similar argument exists: '--nodes'\n\n\
                    Usage: adapm train kge\n\nFor more information, try '--help'.\n";
        assert_eq!(
            joined(text),
            "unexpected argument '--nod' found; tip: a similar argument exists: '--nodes'"
        );
        let text = "error: required arguments were not provided:\n  --load <FILE>\n\nUsage: adapm";
        assert_eq!(joined(text), "required arguments were not provided: --load <FILE>");
        let text = "error: invalid value 'x'\n  [possible values: a, b]\n";
        assert_eq!(joined(text), "invalid value 'x' [possible values: a, b]");
    }
}
