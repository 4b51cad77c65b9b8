//! What the parameter manager costs on this machine, each figure beside its floor, measured in turns in one run.
//!
//! A floor is what the figure would be without a parameter manager: the same rows of one flat array, the same bytes over the same
//! kind of socket. Ratios of what was measured in one run mean something on a noisy machine; single times do not.
//!
//! | group | what is measured | its floor |
//! | --- | --- | --- |
//! | [`Group::Access`] | pull and push of local keys by one worker | copying and adding the same random rows of a flat array |
//! | [`Group::Workers`] | how pull and push scale from one worker to two | how the flat array scales |
//! | [`Group::Signals`] | signalling intent, advancing the clock | pushing the keys to a `Vec`, adding to an atomic |
//! | [`Group::Remote`] | synchronous pull and push of another node's keys, and many at once | as many bytes there and back over a socket, with a hand-over to a thread and back |
//! | [`Group::Moves`] | relocation; replicas that both nodes write | |
//! | [`Group::Rest`] | messages and time of a processor while nothing happens | none |
//! | [`Group::Memory`] | bytes of a main copy, a replica, an absent key | |
//!
//! The reference column is the predecessor, AdaPM in C++, as measured once on a machine of this kind, with 2 cores: it says how
//! far a ratio carries, and cannot be run again here.
//!
//! Not here: whole training runs, which `adapm bench` starts as processes of their own.

mod access;
mod echo;
mod memory;
mod moves;
mod remote;
mod rest;
mod rows;
mod signals;
mod turns;
mod workers;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use adapm_core::error::OpError;
use adapm_runtime::{BuildError, RunError};
use adapm_transport::net::{Kind, NetError};

/// Measurements that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Group {
    /// Local access by one worker.
    Access,
    /// Local access by two workers.
    Workers,
    /// Intent and clock.
    Signals,
    /// Access to keys of another node.
    Remote,
    /// Relocation and replicas.
    Moves,
    /// What goes on while nothing happens.
    Rest,
    /// Bytes of copies.
    Memory,
}

impl Group {
    /// All groups, in the order in which they are measured.
    pub const ALL: [Self; 7] =
        [Self::Access, Self::Workers, Self::Signals, Self::Remote, Self::Moves, Self::Rest, Self::Memory];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Access => "access",
            Self::Workers => "workers",
            Self::Signals => "signals",
            Self::Remote => "remote",
            Self::Moves => "moves",
            Self::Rest => "rest",
            Self::Memory => "memory",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How much to measure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Small sizes only: minutes instead of a quarter of an hour. Defaults to false.
    pub is_quick: bool,
    /// Links between nodes, besides those within a process. Defaults to all that are built in.
    pub kinds: Vec<Kind>,
}

impl Default for Plan {
    fn default() -> Self {
        Self { is_quick: false, kinds: Kind::ALL.to_vec() }
    }
}

/// What was measured, in its unit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figure {
    /// What it is, in a few words.
    pub what: String,
    /// Its unit, and that of floor and goal.
    pub unit: &'static str,
    /// The median of what was measured.
    pub value: f64,
    /// The median of the floor, measured in turns with it.
    pub floor: Option<f64>,
    /// What is to be reached.
    pub goal: Option<Goal>,
    /// What the predecessor in C++ reached on a machine of this kind, one number or several.
    pub reference: Option<&'static str>,
}

impl Figure {
    /// A figure without a floor, a goal and a reference.
    #[must_use]
    pub fn new(what: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self { what: what.into(), unit, value, floor: None, goal: None, reference: None }
    }

    /// With this floor.
    #[must_use]
    pub fn beside(self, floor: f64) -> Self {
        Self { floor: Some(floor), ..self }
    }

    /// With this goal.
    #[must_use]
    pub fn towards(self, goal: Goal) -> Self {
        Self { goal: Some(goal), ..self }
    }

    /// With what the predecessor reached.
    #[must_use]
    pub fn after(self, reference: &'static str) -> Self {
        Self { reference: Some(reference), ..self }
    }

    /// How many times the floor it is.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        self.floor.map(|floor| self.value / floor)
    }

    /// Whether the goal is reached; `None` without one.
    #[must_use]
    pub fn is_reached(&self) -> Option<bool> {
        self.goal.map(|goal| match goal {
            Goal::AtMost(bound) => self.value <= bound,
            Goal::AtLeast(bound) => self.value >= bound,
        })
    }
}

/// A bound that a figure is to keep, in its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Less is better.
    AtMost(f64),
    /// More is better.
    AtLeast(f64),
}

/// What came of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A figure.
    Measured(Figure),
    /// None, as this machine lacks what it needs.
    Skipped {
        /// What would have been measured.
        what: String,
        /// What is missing.
        why: String,
    },
}

/// Why measuring ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum BenchError {
    /// It was stopped.
    Stopped,
    /// A cluster could not be built.
    Build(BuildError),
    /// A cluster failed.
    Run(RunError),
    /// An operation failed.
    Op(OpError),
    /// There are no links of a kind.
    Net(NetError),
    /// The operating system refused a socket.
    Socket(std::io::Error),
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::Build(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Op(error) => error.fmt(f),
            Self::Net(error) => error.fmt(f),
            Self::Socket(error) => write!(f, "cannot open a socket on this host to compare with: {error}"),
        }
    }
}

impl std::error::Error for BenchError {}

macro_rules! errors {
    ($($variant:ident: $source:ty),+) => {
        $(impl From<$source> for BenchError {
            fn from(error: $source) -> Self {
                Self::$variant(error)
            }
        })+
    };
}

errors!(Build: BuildError, Run: RunError, Op: OpError, Net: NetError, Socket: std::io::Error);

/// Measures a group; `tell` hears of each outcome as soon as it is known.
///
/// # Errors
///
/// What the machine refuses, or [`BenchError::Stopped`] soon after `stop` is set.
pub fn measure(
    group: Group,
    plan: &Plan,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Outcome),
) -> Result<(), BenchError> {
    let mut desk = Desk { plan, stop, tell };
    match group {
        Group::Access => access::measure(&mut desk),
        Group::Workers => workers::measure(&mut desk),
        Group::Signals => signals::measure(&mut desk),
        Group::Remote => remote::measure(&mut desk),
        Group::Moves => moves::measure(&mut desk),
        Group::Rest => rest::measure(&mut desk),
        Group::Memory => memory::measure(&mut desk),
    }
}

/// Where measurements of a group hand in their figures.
struct Desk<'a> {
    plan: &'a Plan,
    stop: &'a AtomicBool,
    tell: &'a mut dyn FnMut(Outcome),
}

impl Desk<'_> {
    /// A figure, told at once.
    fn add(&mut self, figure: Figure) -> Result<(), BenchError> {
        (self.tell)(Outcome::Measured(figure));
        self.check()
    }

    /// Whether there is memory for a measurement that needs `bytes`; if not, tells that it is skipped.
    fn has_room(&mut self, what: &str, bytes: usize) -> bool {
        let Some(room) = memory::available() else { return true };
        // Half is left to everybody else.
        let fits = bytes <= room / 2;
        if !fits {
            let gib = |bytes: usize| bytes as f64 / f64::from(1 << 30);
            let why = format!(
                "needs {:.1} GiB and at most half of the {:.1} GiB available are taken",
                gib(bytes),
                gib(room)
            );
            (self.tell)(Outcome::Skipped { what: what.to_owned(), why });
        }
        fits
    }

    fn check(&self) -> Result<(), BenchError> {
        if self.stop.load(Ordering::Relaxed) { Err(BenchError::Stopped) } else { Ok(()) }
    }
}
