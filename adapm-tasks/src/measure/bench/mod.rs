//! The costs of the parameter manager on this machine, each figure beside its floor, measured in
//! turns in one run.
//!
//! A floor is what the figure would be without a parameter manager: the same rows of one flat
//! array, the same bytes over the same kind of socket. Ratios of what was measured in one run mean
//! something on a noisy machine; single times do not.
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
//! The reference column is the predecessor, AdaPM in C++, as measured once on a machine of this
//! kind, with 2 cores: it says how far a ratio carries, and cannot be run again here.
//!
//! Times vary; what repeats is counted: [`counts`] has the messages and bytes of the same
//! operations, and does them alone for a profiler of instructions.
//!
//! Not here: whole training runs, which `adapm bench` starts as processes of their own.

mod access;
pub mod counts;
mod figure;
mod memory;
mod moves;
mod remote;
mod rows;
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
    /// Bytes of copies.
    Memory,
}

impl Group {
    /// All groups, in the order in which they are measured.
    pub const ALL: [Self; 7] = [
        Self::Access,
        Self::Workers,
        Self::Signals,
        Self::Remote,
        Self::Moves,
        Self::Rest,
        Self::Memory,
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
/// What the machine refuses, or [`BenchError::Stopped`] soon after `stop` is set.
pub fn measure(
    group: Group,
    plan: &Plan,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Outcome),
) -> Result<(), BenchError> {
    let desk = &mut Desk { plan, stop, tell };
    match group {
        Group::Access => access::measure(desk),
        Group::Workers => workers::measure(desk),
        Group::Signals => access::measure_signals(desk),
        Group::Remote => remote::measure(desk),
        Group::Moves => moves::measure(desk),
        Group::Rest => memory::measure_rest(desk),
        Group::Memory => memory::measure(desk),
    }
}
