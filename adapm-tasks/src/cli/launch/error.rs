//! Errors of `launch`, before or after processes were started: the process that failed first, and
//! the exit code of the launcher.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::{fmt, io};

use crate::files;
use adapm_transport::threads::SpawnError;

/// An error of `launch`, before or after processes were started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    /// A verb that does not run as several processes.
    #[error(
        "'{0}' does not run on several processes: after --, give train kge, eval kge, the same of mf or \
         wv, check-net, or a program of your own by its path, such as ./own_task"
    )]
    Verb(String),
    /// A verb of tasks without one of this program's.
    #[error(
        "`adapm {verb}` needs a task, and {} is none: after --, give `{verb} kge`, `{verb} mf` or `{verb} wv`, or a \
         program of your own by its path before `{verb}`, such as ./own_task",
        word.as_ref().map_or("nothing".to_owned(), |word| format!("'{word}'"))
    )]
    Task { verb: String, word: Option<String> },
    /// The command lists recipes.
    #[error("recipes are listed by one process: leave out adapm launch")]
    List,
    /// There is nothing to go on from.
    #[error(
        "--restarts starts a run again from its last checkpoint: give `train` with --out FOLDER after --"
    )]
    NoFolder,
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
    Refused { node: usize, refusal: SpawnError },
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

/// Returns the folder of temporary files, and what chose it: `/nosuch (TMPDIR)`.
pub(crate) fn temporary() -> String {
    let folder = std::env::temp_dir();
    let by = if std::env::var_os("TMPDIR").is_some() { " (TMPDIR)" } else { "" };
    format!("{}{by}", folder.display())
}

/// The end of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It did what it was asked for.
    Done,
    /// A signal asked it to stop, and it did so in good order.
    Stopped(u8),
    /// It lost another node, or did not meet it: the reason is elsewhere.
    LostOthers,
    /// It failed with an exit code.
    Failed(u8),
    /// A signal ended it.
    Killed(u8),
}

impl End {
    pub(super) fn of(status: ExitStatus) -> Self {
        let small = |number: i32| u8::try_from(number).unwrap_or(1);
        if let Some(signal) = status.signal() {
            return Self::Killed(small(signal));
        }
        match status.code().map_or(1, small) {
            0 => Self::Done,
            LOST_OTHERS => Self::LostOthers,
            code @ (129 | 130 | 143) => Self::Stopped(code - 128),
            code => Self::Failed(code),
        }
    }

    /// Returns true if the others must be seen to end soon. One that stopped in good order leaves
    /// them time to save what they have.
    pub(super) fn is_failure(self) -> bool {
        !matches!(self, Self::Done | Self::Stopped(_))
    }

    /// Returns true if a signal asked the process to stop, and it did.
    pub(super) fn is_stop(self) -> bool {
        matches!(self, Self::Stopped(_))
    }

    fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Stopped(signal) | Self::Killed(signal) => 128 + (signal & 127),
            Self::LostOthers => LOST_OTHERS,
            Self::Failed(code) => code,
        }
    }
}

/// The reason why a run of several processes ended badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    node: usize,
    end: End,
    /// The others had to be ended.
    forced: bool,
}

impl Ending {
    /// Returns the reason among `ends`, which are in the order in which they were seen, without
    /// those that were forced. `None` if all is well.
    pub(super) fn of(ends: &[(usize, End)], forced: bool) -> Option<Self> {
        let first = |wanted: &dyn Fn(End) -> bool| ends.iter().find(|(_, end)| wanted(*end));
        let cause = first(&|end| matches!(end, End::Failed(_) | End::Killed(_)))
            .or_else(|| first(&|end| matches!(end, End::Stopped(_))))
            .or_else(|| first(&|end| end == End::LostOthers))?;
        Some(Self { node: cause.0, end: cause.1, forced })
    }

    /// Returns true if nothing but a signal to stop has caused the end.
    pub(super) fn is_stop(&self) -> bool {
        self.end.is_stop()
    }

    /// Returns the node that failed first.
    pub(super) fn node(&self) -> usize {
        self.node
    }

    /// Returns how it ended.
    pub(super) fn end(&self) -> End {
        self.end
    }

    pub(crate) fn exit_code(&self) -> u8 {
        self.end.exit_code()
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, end, forced } = self;
        match end {
            End::Done => write!(f, "node n{node} ended")?,
            End::Stopped(signal) => write!(f, "node n{node} was stopped by signal {signal}")?,
            End::LostOthers => {
                write!(f, "node n{node} lost another node or did not meet all; start again")?
            }
            End::Failed(code) => {
                write!(f, "node n{node} ended with exit code {code}, see its lines above")?
            }
            End::Killed(signal) => write!(f, "node n{node} was killed by signal {signal}")?,
        }
        f.write_str(if *forced { "; the others had to be ended" } else { "; the others ended" })
    }
}

/// The exit code of a process that lost another or did not meet all.
const LOST_OTHERS: u8 = 75;

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(code: i32) -> End {
        End::of(ExitStatus::from_raw(code << 8))
    }

    fn killed(signal: i32) -> End {
        End::of(ExitStatus::from_raw(signal))
    }

    #[test]
    fn the_reason_is_the_first_that_is_no_consequence() {
        for (ends, text, code) in [
            (
                vec![(2, killed(9)), (0, exited(75)), (1, exited(75))],
                "node n2 was killed by signal 9; the others ended",
                137,
            ),
            (
                vec![(0, exited(75)), (2, exited(1))],
                "node n2 ended with exit code 1, see its lines above; the others ended",
                1,
            ),
            (
                vec![(1, exited(2)), (0, exited(2))],
                "node n1 ended with exit code 2, see its lines above; the others ended",
                2,
            ),
            (
                vec![(1, exited(75)), (0, exited(75))],
                "node n1 lost another node or did not meet all; start again; the others ended",
                75,
            ),
            (
                vec![(0, exited(0)), (3, exited(143)), (1, exited(75))],
                "node n3 was stopped by signal 15; the others ended",
                143,
            ),
            (
                vec![(3, exited(130)), (1, killed(11))],
                "node n1 was killed by signal 11; the others ended",
                139,
            ),
        ] {
            let ending = Ending::of(&ends, false).expect("a reason");
            assert_eq!((ending.to_string().as_str(), ending.exit_code()), (text, code), "{ends:?}");
        }
        assert_eq!(Ending::of(&[(0, exited(0)), (1, exited(0))], false), None);
        let forced = Ending::of(&[(1, exited(1))], true).expect("a reason");
        assert!(forced.to_string().ends_with("; the others had to be ended"));
    }

    #[test]
    fn stopping_in_good_order_hurries_nobody() {
        assert!(!exited(0).is_failure() && !exited(130).is_failure() && !exited(143).is_failure());
        assert!(exited(1).is_failure() && exited(75).is_failure() && killed(15).is_failure());
    }
}
