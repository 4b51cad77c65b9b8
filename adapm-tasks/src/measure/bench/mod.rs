//! The costs of the parameter manager on this machine. Each figure is measured in one run with its
//! floor, in turns.
//!
//! The floor of a figure is its cost without a parameter manager: the same rows of one flat array,
//! or the same bytes over the same kind of socket. Ratios of times of one run are meaningful on a
//! noisy machine; single times are not.
//!
//! | group | what is measured | its floor |
//! | --- | --- | --- |
//! | [`Group::Access`] | pull, push and update of local keys by one worker | copying, adding, stepping on the same random rows of a flat array |
//! | [`Group::Workers`] | how pull and push scale from one worker to two | how accesses to the flat array scale |
//! | [`Group::Signals`] | signalling intent, advancing the clock | pushing the keys to a `Vec`, adding to an atomic |
//! | [`Group::Remote`] | synchronous pull and push of another node's keys, and many at once | the same number of bytes there and back over a socket, with a hand-over to another thread and back |
//! | [`Group::Moves`] | relocation; replicas that both nodes write | |
//! | [`Group::Rest`] | messages and processor time of an idle cluster | none |
//! | [`Group::Memory`] | bytes of a main copy, a replica, an absent key | |
//! | [`Group::Checkpoint`] | pause and writing of a checkpoint, what it costs meanwhile, reading | pushes without one, writing and reading the same bytes |
//!
//! The reference column has the figures of the predecessor, AdaPM in C++, measured once on a
//! similar machine with 2 cores. It cannot be run again here, so compare ratios, not times.
//!
//! Times vary from run to run; counts do not: [`counts`] has the messages and bytes of the same
//! operations, and runs each alone, so that a profiler can count its instructions.
//!
//! Not here: whole training runs, which `adapm bench` starts as processes of their own.

mod access;
mod checkpoint;
pub mod counts;
mod figure;
mod memory;
mod moves;
mod remote;
mod rows;
mod steps;
mod workers;

use std::fmt;
use std::sync::atomic::AtomicBool;

use figure::Desk;

pub use figure::{BenchError, Figure, Goal, Outcome, Plan};

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
    /// Activity of a cluster at rest.
    Rest,
    /// Bytes per key of copies and absent keys.
    Memory,
    /// Pause, writing and reading of checkpoints.
    Checkpoint,
}

impl Group {
    /// All groups, in the order in which they are measured.
    pub const ALL: [Self; 8] = [
        Self::Access,
        Self::Workers,
        Self::Signals,
        Self::Remote,
        Self::Moves,
        Self::Rest,
        Self::Memory,
        Self::Checkpoint,
    ];

    /// Returns the name on the command line.
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
            Self::Checkpoint => "checkpoint",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Measures a group; `tell` is called with each outcome as soon as it is known.
///
/// # Errors
///
/// If a cluster cannot be built or fails, or the system refuses a socket; [`BenchError::Stopped`]
/// soon after `stop` is set.
pub fn measure(
    group: Group,
    plan: &Plan,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Outcome),
) -> Result<(), BenchError> {
    let desk = &mut Desk { plan, stop, tell };
    match group {
        Group::Access => {
            access::measure(desk)?;
            steps::measure(desk)
        }
        Group::Workers => workers::measure(desk),
        Group::Signals => access::measure_signals(desk),
        Group::Remote => remote::measure(desk),
        Group::Moves => moves::measure(desk),
        Group::Rest => memory::measure_rest(desk),
        Group::Memory => memory::measure(desk),
        Group::Checkpoint => checkpoint::measure(desk),
    }
}
