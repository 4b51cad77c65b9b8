//! Texts and names of the places where processes meet.

use std::path::PathBuf;

use super::error::LauncherError;
use super::found::Sourced;
use crate::group::config::Rendezvous;

/// Reads `HOST:PORT` or `file:PATH`.
pub(super) fn read(origin: &'static str, text: String) -> Result<Sourced<Rendezvous>, LauncherError> {
    if let Some(path) = text.strip_prefix("file:").filter(|path| !path.is_empty()) {
        return Ok(Sourced { value: Rendezvous::File(PathBuf::from(path)), origin });
    }
    let well_formed = text.rsplit_once(':').is_some_and(|(host, port)| {
        let bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
        let named = !host.is_empty() && !host.contains([':', '/', '[', ']']);
        let plain = !host.contains(|character: char| character.is_whitespace() || character.is_control());
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

/// The path below the temporary folder of the file by which the processes of a job meet.
pub(super) fn file_name(launcher: &str, job: &str) -> PathBuf {
    let kept = |character: char| character.is_ascii_alphanumeric() || "._-@".contains(character);
    let job: String = job.chars().take(NAME_MAX).map(|c| if kept(c) { c } else { '_' }).collect();
    PathBuf::from(format!("adapm-{launcher}-{job}")).join("rendezvous")
}

/// Characters of a job's name that fit into that of a file.
const NAME_MAX: usize = 100;
