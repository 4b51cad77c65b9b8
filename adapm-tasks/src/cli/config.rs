//! The settings of a run as a TOML file: read for `--config`, written for `--print-config`.
//!
//! A key is the name of a flag, so that a file and a command line are checked alike. The words of a
//! file stand after those of a recipe and before the flags given by hand: the last one counts.
//! Settings are what a run computes with: its data, cluster, model, training and evaluation. Not
//! among them: where its processes are, and what it writes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command};
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::files;
use crate::nearest::nearest;
use adapm_transport::error::SystemError;

/// The settings of a file.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    entries: Vec<Entry>,
    /// Flags whose entries were left out.
    left_out: Vec<String>,
}

#[derive(Debug)]
struct Entry {
    /// The name of a flag, without dashes.
    flag: String,
    line: usize,
    /// As on a command line.
    value: String,
}

/// A file of settings that cannot be used. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigFileError {
    /// The file cannot be read.
    #[error("{}", files::unreadable(.0, Some("--config"), *.1))]
    Unreadable(PathBuf, SystemError),
    /// The file is no TOML.
    #[error("{path}:{line}: {reason}; settings are lines such as `dim = 128` (--config)")]
    Syntax { path: PathBuf, line: usize, reason: String },
    /// The settings are those of another task.
    #[error(
        "{path}:{line}: these are settings of {found}, not of {task}; give a file of {task}, or train {found}"
    )]
    OtherTask { path: PathBuf, line: usize, found: String, task: String },
    /// No flag has this name, or it is no setting.
    #[error("{path}:{line}: {key} is no setting of a run{hint}")]
    Unknown { path: PathBuf, line: usize, key: String, hint: String },
    /// The value is of a type that no flag has.
    #[error(
        "{path}:{line}: {key} is {found}; give a number, a text in quotes, true or false, or a list"
    )]
    Type { path: PathBuf, line: usize, key: String, found: &'static str },
    /// The value is not one that the flag can have.
    #[error("{path}:{line}: {reason}")]
    Value { path: PathBuf, line: usize, reason: String },
}

impl ConfigFile {
    /// Reads the settings of a task, whose flags `command` has.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is no TOML, or holds keys that are no settings of the task.
    pub(crate) fn read(
        path: &Path,
        task: &str,
        command: &Command,
    ) -> Result<Self, ConfigFileError> {
        let text = fs::read_to_string(path)
            .map_err(|error| ConfigFileError::Unreadable(path.to_owned(), error.into()))?;
        let line_of = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
        let table = DeTable::parse(&text).map_err(|error| ConfigFileError::Syntax {
            path: path.to_owned(),
            line: error.span().map_or(1, |span| line_of(span.start)),
            reason: error.message().lines().collect::<Vec<_>>().join(", "),
        })?;
        let (own, settings): (Vec<_>, Vec<_>) =
            table.get_ref().iter().partition(|(key, _)| key.get_ref() == TASK);
        // First: settings of another task have other names, which are no slips.
        for (key, value) in own {
            let found = value.get_ref().as_str().unwrap_or("another task").to_owned();
            if found != task {
                let (path, line) = (path.to_owned(), line_of(key.span().start));
                return Err(ConfigFileError::OtherTask {
                    path,
                    line,
                    found,
                    task: task.to_owned(),
                });
            }
        }
        let mut entries = Vec::new();
        for (key, value) in settings {
            let (path, line) = (path.to_owned(), line_of(key.span().start));
            let key: &str = key.get_ref();
            if is_of_each_run(key, command) {
                continue;
            }
            let Some(flag) = settings_of(command).find(|flag| flag.get_long() == Some(key)) else {
                let (key, hint) = (key.to_owned(), hint(key, command));
                return Err(ConfigFileError::Unknown { path, line, key, hint });
            };
            match word(value.get_ref()) {
                Ok(value) => entries.push(Entry { flag: key.to_owned(), line, value }),
                Err(found) => {
                    return Err(ConfigFileError::Type { path, line, key: key.to_owned(), found });
                }
            }
            if is_switch(flag) && !matches!(value.get_ref(), DeValue::Boolean(_)) {
                let reason = format!("{key} is yes or no; give true or false");
                return Err(ConfigFileError::Value { path, line, reason });
            }
        }
        entries.sort_by_key(|entry| entry.line);
        Ok(Self { path: path.to_owned(), entries, left_out: Vec::new() })
    }

    /// Returns the task whose settings a file has, empty if it does not say that.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub(crate) fn task_of(path: &Path) -> Result<String, ConfigFileError> {
        let text = fs::read_to_string(path)
            .map_err(|error| ConfigFileError::Unreadable(path.to_owned(), error.into()))?;
        let table = DeTable::parse(&text).ok();
        let task = table.as_ref().and_then(|table| table.get_ref().get(TASK));
        let task = task.and_then(|task| task.get_ref().as_str()).unwrap_or_default();
        Ok(task.to_owned())
    }

    /// Returns the same file without what it says of `flags`.
    pub(crate) fn without(mut self, flags: &[&str]) -> Self {
        let left_out = self.entries.extract_if(.., |entry| flags.contains(&entry.flag.as_str()));
        self.left_out = left_out.map(|entry| entry.flag).collect();
        self
    }

    /// Returns the flags whose entries were left out.
    pub(crate) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Returns the settings as words of a command line.
    pub(crate) fn words(&self, command: &Command) -> Vec<OsString> {
        self.entries.iter().filter_map(|entry| entry.word(command)).collect()
    }

    /// Returns true if it sets one of `flags`.
    pub(crate) fn has_any(&self, flags: &[&str]) -> bool {
        self.entries.iter().any(|entry| flags.contains(&entry.flag.as_str()))
    }

    /// Returns the setting of `flag` as it stands in the file, with its place: `run.toml:3: dim 0`.
    pub(crate) fn setting(&self, flag: &str) -> Option<String> {
        let entry = self.entries.iter().find(|entry| entry.flag == flag)?;
        Some(format!("{}:{}: {flag} {}", self.path.display(), entry.line, entry.value))
    }

    /// Returns the error of the first setting for whose word `refusal` has a reason.
    pub(crate) fn refused(
        &self,
        command: &Command,
        refusal: impl Fn(OsString) -> Option<String>,
    ) -> Option<ConfigFileError> {
        self.entries.iter().find_map(|entry| {
            let reason = refusal(entry.word(command)?)?;
            Some(ConfigFileError::Value { path: self.path.clone(), line: entry.line, reason })
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Entry {
    /// Returns the word of a command line; `None` for a switch that is off.
    fn word(&self, command: &Command) -> Option<OsString> {
        let flag = settings_of(command).find(|flag| flag.get_long() == Some(&self.flag))?;
        match (is_switch(flag), self.value.as_str()) {
            (true, "true") => Some(format!("--{}", self.flag).into()),
            (true, _) => None,
            (false, value) => Some(format!("--{}={value}", self.flag).into()),
        }
    }
}

/// Writes settings, given or not, as a file for `--config`: in the order of the help.
pub(crate) fn to_toml(task: &str, values: &BTreeMap<String, Value>, command: &Command) -> String {
    let mut text = format!("{HEAD}{task}, which --config reads.\n");
    let _ = writeln!(text, "{TASK} = {}", quoted(task));
    let mut heading = None;
    for flag in settings_of(command) {
        let name = flag.get_long().unwrap_or_default();
        let Some(value) = values.get(name) else { continue };
        if flag.get_help_heading() != heading {
            heading = flag.get_help_heading();
            let _ = write!(text, "\n# {}\n", heading.unwrap_or_default());
        }
        let _ = writeln!(text, "{name} = {}", toml_value(value));
    }
    text
}

/// Returns true if a flag of this name is a setting of a run.
pub(crate) fn has_setting(command: &Command, flag: &str) -> bool {
    settings_of(command).any(|other| other.get_long() == Some(flag))
}

/// Returns true if the flag is a setting of a run.
fn is_setting(flag: &Arg) -> bool {
    flag.get_long().is_some()
        && flag.get_help_heading().is_some_and(|heading| HEADINGS.contains(&heading))
}

fn settings_of(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|flag| is_setting(flag))
}

/// Returns true for a setting that the verb itself gives to each run, as `compare` does: a file of
/// one run has it, and it does not count.
fn is_of_each_run(key: &str, command: &Command) -> bool {
    let hidden = format!("run-{key}");
    let is_hidden = |flag: &Arg| flag.get_long() == Some(&hidden);
    ["nodes", "system"].contains(&key) && command.get_arguments().any(is_hidden)
}

/// Returns true for a flag without a value.
fn is_switch(flag: &Arg) -> bool {
    let takes_value = flag.get_num_args().is_some_and(|values| values.takes_values());
    matches!(flag.get_action(), ArgAction::SetTrue) && !takes_value
}

fn hint(key: &str, command: &Command) -> String {
    let dashed = key.replace('_', "-");
    let is_flag = |flag: &&Arg| flag.get_long() == Some(&dashed);
    if command.get_arguments().any(|flag| is_flag(&flag) && !is_setting(flag)) {
        return format!("; give --{dashed} on the command line");
    }
    let names = settings_of(command).filter_map(Arg::get_long).map(str::to_owned).collect();
    match nearest(&dashed, names) {
        (Some(near), _) => format!("; did you mean {near}?"),
        (None, names) => format!("; there are {}, and others", names.join(", ")),
    }
}

/// Returns a value as a word of a command line.
///
/// # Errors
///
/// The type, if no flag has such values.
fn word(value: &DeValue<'_>) -> Result<String, &'static str> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        // As it is written, without what only TOML allows.
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Integer(_) => Err("a number that is not decimal"),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Boolean(value) => Ok(value.to_string()),
        DeValue::Array(values) => {
            let words: Result<Vec<String>, _> =
                values.iter().map(|value| word(value.get_ref())).collect();
            Ok(words?.join(","))
        }
        DeValue::Datetime(_) => Err("a date"),
        DeValue::Table(_) => Err("a table"),
    }
}

fn toml_value(value: &Value) -> String {
    match value {
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(toml_value).collect();
            format!("[{}]", values.join(", "))
        }
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The start of every file of settings that is written.
pub(crate) const HEAD: &str = "# Settings of a training run of ";

/// The key that names the task.
const TASK: &str = "task";

/// Headings of the help under which the settings of a run stand.
const HEADINGS: [&str; 5] = ["Data", "Cluster", "Model", "Training", "Evaluation"];
