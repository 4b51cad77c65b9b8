//! The environment variables of a process, read through a closure, so that tests need not set any.

use std::ffi::OsStr;

use super::error::LauncherError;
use super::found::Sourced;

/// The environment variables of a process, by name, and who started it.
pub struct Environment<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    parent: Option<String>,
}

impl<'a> Environment<'a> {
    /// Reads variables through `variable`. `parent` names the process that started this one and no
    /// other: by it processes meet whose launcher does not name the job.
    #[must_use]
    pub fn new(variable: &'a dyn Fn(&str) -> Option<String>, parent: Option<String>) -> Self {
        Self { variable, parent }
    }

    /// The environment of this very process.
    #[must_use]
    pub fn of_process() -> Environment<'static> {
        Environment::new(&process_variable, process_parent())
    }

    /// Returns what a variable holds; empty counts as not set, as scripts write `X=$UNSET`.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Returns true if a variable holds anything.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    /// The whole number that a variable holds.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<usize>, LauncherError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| LauncherError::NotANumber { name, value })
    }

    /// The whole number that a variable holds, and that it came from there.
    pub(super) fn sourced_number(&self, name: &'static str) -> Result<Option<Sourced<usize>>, LauncherError> {
        Ok(self.number(name)?.map(|value| Sourced { value, origin: name }))
    }

    /// Where files of a moment go.
    pub(super) fn temporary_folder(&self) -> String {
        self.text("TMPDIR").unwrap_or_else(|| "/tmp".to_owned())
    }

    /// The process that started this one, as a word that no other process ever has.
    pub(super) fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }
}

/// A variable of this very process. What is no UTF-8 is shown with replacement characters, so that
/// it can be complained of.
fn process_variable(name: &str) -> Option<String> {
    std::env::var_os(name).as_deref().map(OsStr::to_string_lossy).map(Into::into)
}

/// This process's parent: its number, and when it was started where the system tells, as numbers
/// are given again.
fn process_parent() -> Option<String> {
    let parent = std::os::unix::process::parent_id();
    let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).ok();
    // The name of the program, in parentheses, may hold anything; 22 is the time of its start, the
    // name is 2.
    let started = stat.as_deref().and_then(|stat| stat.rsplit_once(')')?.1.split_whitespace().nth(19));
    Some(started.map_or_else(|| parent.to_string(), |started| format!("{parent}-{started}")))
}
