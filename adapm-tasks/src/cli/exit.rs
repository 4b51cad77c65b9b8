//! Exit codes, and the one line on stderr of a verb that ends badly.
//!
//! 2: the command line or its input is wrong. 1: the run failed. 75: another process was lost or
//! did not join; starting again may help. 128 + signal: a signal ended it (130 after Ctrl-C).

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::run::{ConfigError, TaskError};
use clap::Command;
use clap::error::ErrorKind;

use crate::cli::args::{Given, in_one_line};
use crate::cli::failure::{Blame, Failure};
use crate::cli::format;
use crate::cli::terminal::Stream;

/// Prints the line of a failure of `command`, if there is one to print, and gives the exit code.
pub(crate) fn report(failure: &Failure, command: &Command) -> ExitCode {
    if let Failure::Usage { error, words } = failure {
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        return usage(error, words, command);
    }
    if !is_silent(failure) {
        print_line(&failure.to_string());
    }
    ExitCode::from(code(failure))
}

/// Puts a failure in words of the command line, where the library speaks of fields of its
/// configurations.
pub(crate) fn by_flag(failure: Failure, given: &Given) -> Failure {
    match failure {
        Failure::Task(TaskError::Config(ConfigError::Value { field, value, wanted })) => {
            Failure::Choice { choice: given.flag_of(field, &value), wanted }
        }
        Failure::Task(TaskError::Data(error)) => Failure::Data(error),
        other => other,
    }
}

fn code(failure: &Failure) -> u8 {
    match failure {
        Failure::Launch(error) => error.exit_code(),
        Failure::Interrupted(code) => *code,
        Failure::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        other => match other.blame() {
            Blame::Input => 2,
            Blame::Run => 1,
            Blame::Loss => LOST,
        },
    }
}

/// Returns true if all has been printed, or there is no reader left.
fn is_silent(failure: &Failure) -> bool {
    match failure {
        // As of other tools: who reads no further, as `head`, has what it wants.
        Failure::Stdout(error) => error.kind() == io::ErrorKind::BrokenPipe,
        other => matches!(other, Failure::Odd | Failure::Interrupted(_)),
    }
}

/// Prints what clap has to say of `words`, which do not name the program: help as it is, errors as
/// one line.
pub(crate) fn usage(
    error: &clap::Error,
    words: impl Iterator<Item = String>,
    command: &Command,
) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // It is no failure if the help cannot be printed.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(2);
    }
    let words: Vec<String> = words.collect();
    if let Some(text) = without_dashes(&words) {
        print_line(&text);
        return ExitCode::from(2);
    }
    let said = in_one_line(error);
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let (mut deepest, mut help) = (command, name.to_owned());
    for word in &words {
        let Some(verb) = deepest.find_subcommand(word) else { break };
        (deepest, help) = (verb, format!("{help} {word}"));
    }
    print_line(&format!("{said}; see `{help} --help`"));
    ExitCode::from(2)
}

/// Suggests what to write instead of a `launch` whose command has no `--` before it.
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

/// Prints `error: TEXT` as one line, whatever names of files are in it.
fn print_line(text: &str) {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let error = console::style("error:").red().bold().for_stderr();
    let mut line = format!("{error} {line}");
    if Stream::Stderr.is_attended() {
        // One line for programs; a terminal would break it within words.
        line = format::wrapped(&line, Stream::Stderr.width());
    }
    // If stderr is closed, the line cannot be reported anywhere.
    let _ = writeln!(io::stderr(), "{line}");
}

/// A node was lost or did not join: starting all again may help.
const LOST: u8 = 75;
