//! The environment variables of a process, read through a closure so that tests need not set any,
//! and the parsing of variables and flags: the rendezvous, and settings of links.

use core::time::Duration;
use std::ffi::OsStr;
use std::path::PathBuf;

use super::error::{LauncherError, SECONDS_WANTED};
use crate::group::config::Rendezvous;
use crate::net::Kind;

/// A value, and the flag or variable that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// The name of the flag or variable.
    pub origin: &'static str,
}

/// The environment variables of a process, by name, and its parent process.
pub struct Environment<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    parent: Option<String>,
}

impl<'a> Environment<'a> {
    /// Reads variables through `variable`. `parent` uniquely names the parent process: processes
    /// whose launcher does not name the job meet by it.
    #[must_use]
    pub fn new(variable: &'a dyn Fn(&str) -> Option<String>, parent: Option<String>) -> Self {
        Self { variable, parent }
    }

    /// Returns the environment of this process.
    #[must_use]
    pub fn of_process() -> Environment<'static> {
        Environment::new(&process_variable, process_parent())
    }

    /// Returns the value of a variable; empty counts as unset, as scripts write `X=$UNSET`.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Returns true if a variable is set.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    /// Returns the whole number in a variable.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<usize>, LauncherError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| LauncherError::NotANumber { name, value })
    }

    /// Returns the whole number in a variable, with its origin.
    pub(super) fn sourced_number(
        &self,
        name: &'static str,
    ) -> Result<Option<Sourced<usize>>, LauncherError> {
        Ok(self.number(name)?.map(|value| Sourced { value, origin: name }))
    }

    /// Returns the folder of temporary files.
    pub(super) fn temporary_folder(&self) -> String {
        self.text("TMPDIR").unwrap_or_else(|| "/tmp".to_owned())
    }

    /// Returns the parent process, as a word that no other process ever has.
    pub(super) fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }
}

/// Reads a variable of this process. Invalid UTF-8 becomes replacement characters, for error
/// messages.
fn process_variable(name: &str) -> Option<String> {
    std::env::var_os(name).as_deref().map(OsStr::to_string_lossy).map(Into::into)
}

/// Returns this process's parent: its id, and its start time where the system reports it, as ids
/// are reused.
fn process_parent() -> Option<String> {
    let parent = std::os::unix::process::parent_id();
    let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).ok();
    // The name of the program, in parentheses, may hold anything; field 22 is the start time, field
    // 2 the name.
    let started =
        stat.as_deref().and_then(|stat| stat.rsplit_once(')')?.1.split_whitespace().nth(19));
    Some(started.map_or_else(|| parent.to_string(), |started| format!("{parent}-{started}")))
}

/// Parses `HOST:PORT` or `file:PATH`.
pub(super) fn read_rendezvous(
    origin: &'static str,
    text: String,
) -> Result<Sourced<Rendezvous>, LauncherError> {
    if let Some(path) = text.strip_prefix("file:").filter(|path| !path.is_empty()) {
        return Ok(Sourced { value: Rendezvous::File(PathBuf::from(path)), origin });
    }
    let well_formed = text.rsplit_once(':').is_some_and(|(host, port)| {
        let bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
        let named = !host.is_empty() && !host.contains([':', '/', '[', ']']);
        let plain =
            !host.contains(|character: char| character.is_whitespace() || character.is_control());
        (bracketed || named) && plain && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if well_formed && text.contains('%') {
        return Err(LauncherError::Zone { origin, value: text });
    }
    if !well_formed {
        return Err(LauncherError::Rendezvous { origin, value: text });
    }
    Ok(Sourced { value: Rendezvous::Address(text), origin })
}

/// Returns `host:port`, with the brackets that an IPv6 address needs.
#[must_use]
pub fn join_host(host: &str, port: u16) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Returns the path, within the temporary folder, of the file by which the processes of a job meet.
pub(super) fn file_name(launcher: &str, job: &str) -> PathBuf {
    let kept = |character: char| character.is_ascii_alphanumeric() || "._-@".contains(character);
    let job: String = job.chars().take(NAME_MAX).map(|c| if kept(c) { c } else { '_' }).collect();
    PathBuf::from(format!("adapm-{launcher}-{job}")).join("rendezvous")
}

/// Returns the time after which a node counts as lost, if a flag or variable sets it.
pub(super) fn dead_after(
    flag: Option<Duration>,
    environment: &Environment<'_>,
) -> Result<Option<Duration>, LauncherError> {
    match (flag, environment.text("ADAPM_DEAD_AFTER")) {
        (None, Some(value)) => {
            let time = seconds(&value);
            time.map(Some)
                .map_err(|_| LauncherError::NotSeconds { name: "ADAPM_DEAD_AFTER", value })
        }
        (flag, _) => Ok(flag),
    }
}

/// Returns the kind of links.
pub(super) fn link_kind(
    flag: Option<Kind>,
    environment: &Environment<'_>,
) -> Result<Kind, LauncherError> {
    match (flag, environment.text("ADAPM_TRANSPORT")) {
        (Some(kind), _) => Ok(kind),
        (None, None) => Ok(Kind::default()),
        (None, Some(value)) => {
            let known = Kind::available().find(|kind| kind.scheme() == value);
            known.ok_or(LauncherError::Transport { value })
        }
    }
}

/// Parses a duration of at least a millisecond and at most a day. Smaller ones could round to 0 ns.
///
/// # Errors
/// The values to give instead.
pub fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds =
        text.parse::<f64>().ok().filter(|seconds| (SECONDS_MIN..=SECONDS_MAX).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or(SECONDS_WANTED)
}

/// Returns a number for a name, the same everywhere (FNV-1a); it only keeps runs apart.
pub(super) fn digest(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Characters of a job's name that fit into a file name.
const NAME_MAX: usize = 100;

const SECONDS_MIN: f64 = 0.001;
const SECONDS_MAX: f64 = 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_too_short_to_count_is_refused_like_none_and_like_what_is_no_time() {
        for text in [
            "1e-300", "1e-10", "0", "-0", "-1", "0.000999", "86400.1", "1e300", "inf", "nan", "",
            "5s",
        ] {
            assert_eq!(seconds(text), Err(SECONDS_WANTED), "{text}");
        }
        for (text, millis) in [("0.001", 1), ("5", 5_000), ("1e2", 100_000), ("86400", 86_400_000)]
        {
            assert_eq!(seconds(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }
}
