//! Why nothing was launched, or why it ended badly, for people.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use adapm_tasks::files;
use adapm_transport::threads::Refusal;

use crate::launch::ending::Ending;

/// Why nothing was launched, or why it ended badly.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    /// A verb that knows nothing of other processes.
    #[error(
        "'{0}' does not run on several processes: after --, give train kge, eval kge, the same of mf or \
         wv, or check-net"
    )]
    Verb(String),
    /// The command lists recipes.
    #[error("recipes are listed by one process: leave out adapm launch")]
    List,
    /// The command names a place that is the launcher's to give.
    #[error("--node and --rendezvous are the launcher's to give: leave them out after --")]
    Placed,
    /// The command counts other nodes than the launcher.
    #[error("--nodes is {own} after -- but {nodes} processes are launched: give it before -- only")]
    OtherNodes { own: usize, nodes: usize },
    /// Not enough hosts, or names that are none.
    #[error("'{0}' in --hosts is no name of a host: give HOST or USER@HOST")]
    Host(String),
    /// Colons or brackets in what is no IPv6 address.
    #[error(
        "'{0}' in --hosts is no IPv6 address: give HOST without a port (--port is that of the meeting), \
         or an address like [fd00::1]"
    )]
    HostColon(String),
    /// An address that means another link on each host.
    #[error(
        "'{0}' in --hosts has a zone, which means another link on each host: give an address of the \
         first host that is the same everywhere, like [fd00::1], or a name"
    )]
    Zone(String),
    /// The others could not reach the first host by this name.
    #[error("'{0}' in --hosts: give the name by which the other hosts reach the first")]
    LoopbackHost(String),
    /// The system refuses what a run needs.
    #[error("cannot get {what}: {}", files::reason(error))]
    System { what: &'static str, error: io::Error },
    /// No folder for temporary files can be made.
    #[error("cannot create a folder in {}: {}", temporary(), files::reason(.0))]
    Folder(io::Error),
    /// A process did not start.
    #[error(
        "cannot start node n{node} with {}: {}; nothing was left running",
        Path::new(program).display(), files::reason(error)
    )]
    Start { node: usize, program: OsString, error: io::Error },
    /// The system allows no further process.
    #[error("node n{node}: {refusal}; nothing was left running")]
    Refused { node: usize, refusal: Refusal },
    /// A process failed.
    #[error("{0}")]
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

/// The folder of temporary files, and what chose it: `/nosuch (TMPDIR)`.
pub(crate) fn temporary() -> String {
    let folder = std::env::temp_dir();
    let by = if std::env::var_os("TMPDIR").is_some() { " (TMPDIR)" } else { "" };
    format!("{}{by}", folder.display())
}
