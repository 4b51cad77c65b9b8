//! The error of a run that needs more memory than there is, with its parts.
//!
//! Not here: measuring either ([`memory`](crate::run::memory)).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes that a process needs at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Need {
    /// Main copies and, where a system has them of all keys, replicas.
    pub(crate) parameters: u64,
    /// Replicas of hot keys.
    pub(crate) hot: u64,
    /// The copy of the best parameters.
    pub(crate) best: u64,
    /// The copy of a checkpoint while it is written.
    pub(crate) checkpoint: u64,
    /// Counts for a partition, which is made before there are parameters.
    pub(crate) partition: u64,
    /// In memory already.
    pub(crate) data: u64,
}

/// More memory is needed than there is. Its text is one line: what, how much of it is for what, and
/// what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this run needs at least {}{}: {}, data and program {}; {} are available{}; {}",
    Gigabytes(need.total()),
    said_if(*processes > 1, || format!(" in its {processes} processes here")),
    need.parts(),
    Gigabytes(need.data),
    Gigabytes(available.bytes),
    available.bound.place(),
    need.advice()
)]
pub struct Shortage {
    pub(crate) need: Need,
    /// Processes of the run on this machine.
    pub(crate) processes: usize,
    pub(crate) available: Available,
}

/// Bytes that can be taken, those that this process has included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Available {
    pub(crate) bytes: u64,
    /// The bound of these bytes.
    pub(crate) bound: Bound,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Machine,
    ControlGroup(String),
    AddressSpace,
}

impl Need {
    /// Bytes in all.
    pub(crate) fn total(self) -> u64 {
        let parts =
            [self.parameters, self.hot, self.best, self.checkpoint, self.partition, self.data];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// What is needed beside data and program.
    fn parts(self) -> String {
        if self.partition > 0 {
            return format!("its partition {}", Gigabytes(self.partition));
        }
        let hot = || format!(", replicas of hot keys {}", Gigabytes(self.hot));
        let best = || format!(", the best of them {}", Gigabytes(self.best));
        let copy = || format!(", the copy of a checkpoint {}", Gigabytes(self.checkpoint));
        let (hot, best) = (said_if(self.hot > 0, hot), said_if(self.best > 0, best));
        let copy = said_if(self.checkpoint > 0, copy);
        format!("parameters {}{hot}{best}{copy}", Gigabytes(self.parameters))
    }

    fn advice(self) -> &'static str {
        if self.partition > 0 {
            return "use `adapm partition` on a larger machine and give its file as --homes";
        }
        if self.hot > self.parameters {
            return "have fewer hot keys (--replicate, --replicate-factor, --replicate-keys or --homes)";
        }
        "use a smaller --dim, or nodes on more machines"
    }
}

/// Returns the words that are said only of several processes, or of a copy.
fn said_if(is_said: bool, words: impl FnOnce() -> String) -> String {
    if is_said { words() } else { String::new() }
}

impl Bound {
    /// Returns the place of the bound, as it follows `7900 MB are available`.
    fn place(&self) -> String {
        match self {
            Self::Machine => " on this machine".to_owned(),
            Self::ControlGroup(path) => format!(" (limit of the control group {path})"),
            Self::AddressSpace => " (limit of address space, ulimit -v)".to_owned(),
        }
    }
}

/// `13.1 GB`, `7900 MB`: two sizes that differ a little are not to look the same.
struct Gigabytes(u64);

impl fmt::Display for Gigabytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..9_999_500_000 => write!(f, "{:.0} MB", self.0 as f64 / 1e6),
            _ => write!(f, "{:.1} GB", self.0 as f64 / 1e9),
        }
    }
}
