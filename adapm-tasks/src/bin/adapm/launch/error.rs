//! Why nothing was launched, or why it ended badly, for people.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;

use adapm_tasks::files;
use adapm_transport::threads::Refusal;

use crate::launch::ending::Ending;

/// Why nothing was launched, or why it ended badly.
#[derive(Debug)]
pub(crate) enum LaunchError {
    /// A verb that knows nothing of other processes.
    Verb(String),
    /// The command lists recipes.
    List,
    /// The command names a place that is the launcher's to give.
    Placed,
    /// The command counts other nodes than the launcher.
    OtherNodes { own: usize, nodes: usize },
    /// Not enough hosts, or names that are none.
    Host(String),
    /// Colons or brackets in what is no IPv6 address.
    HostColon(String),
    /// An address that means another link on each host.
    Zone(String),
    /// The others could not reach the first host by this name.
    LoopbackHost(String),
    /// The system refuses what a run needs.
    System { what: &'static str, error: io::Error },
    /// No folder for temporary files can be made.
    Folder(io::Error),
    /// A process did not start.
    Start { node: usize, program: OsString, error: io::Error },
    /// The system allows no further process.
    Refused { node: usize, refusal: Refusal },
    /// A process failed.
    Ended(Ending),
}

impl LaunchError {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::System { .. } | Self::Folder(_) | Self::Start { .. } | Self::Refused { .. } => 1,
            Self::Ended(ending) => ending.exit_code(),
            _ => 2,
        }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verb(verb) => {
                write!(
                    f,
                    "'{verb}' does not run on several processes: after --, give train kge, eval kge, the same of mf or wv, or check-net"
                )
            }
            Self::List => f.write_str("recipes are listed by one process: leave out adapm launch"),
            Self::Placed => {
                f.write_str("--node and --rendezvous are the launcher's to give: leave them out after --")
            }
            Self::OtherNodes { own, nodes } => {
                write!(
                    f,
                    "--nodes is {own} after -- but {nodes} processes are launched: give it before -- only"
                )
            }
            Self::Host(host) => write!(f, "'{host}' in --hosts is no name of a host: give HOST or USER@HOST"),
            Self::HostColon(host) => write!(
                f,
                "'{host}' in --hosts is no IPv6 address: give HOST without a port (--port is that of the meeting), or an \
                 address like [fd00::1]"
            ),
            Self::Zone(host) => write!(
                f,
                "'{host}' in --hosts has a zone, which means another link on each host: give an address of the first host \
                 that is the same everywhere, like [fd00::1], or a name"
            ),
            Self::LoopbackHost(host) => {
                write!(f, "'{host}' in --hosts: give the name by which the other hosts reach the first")
            }
            Self::System { what, error } => write!(f, "cannot get {what}: {}", files::reason(error)),
            Self::Folder(error) => {
                write!(f, "cannot create a folder in {}: {}", temporary(), files::reason(error))
            }
            Self::Start { node, program, error } => {
                let program = PathBuf::from(program);
                write!(
                    f,
                    "cannot start node n{node} with {}: {}; nothing was left running",
                    program.display(),
                    files::reason(error)
                )
            }
            Self::Refused { node, refusal } => {
                write!(f, "node n{node}: {refusal}; nothing was left running")
            }
            Self::Ended(ending) => ending.fmt(f),
        }
    }
}

/// The folder of temporary files, and what chose it: `/nosuch (TMPDIR)`.
pub(crate) fn temporary() -> String {
    let folder = std::env::temp_dir();
    let by = if std::env::var_os("TMPDIR").is_some() { " (TMPDIR)" } else { "" };
    format!("{}{by}", folder.display())
}
