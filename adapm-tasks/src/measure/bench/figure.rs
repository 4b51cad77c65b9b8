//! Results of measurements: a figure with its floor and its goal, or why there is none; the plan of
//! measuring, and facts about the host.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use adapm_core::error::OpError;
use adapm_runtime::checkpoint::CheckpointError;
use adapm_runtime::{BuildError, RunError};
use adapm_transport::net::{Kind, NetError};

use crate::files;

/// A measured figure, in its unit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figure {
    /// The figure in a few words.
    pub what: String,
    /// Its unit, and that of floor and goal.
    pub unit: &'static str,
    /// The median of what was measured.
    pub value: f64,
    /// The median of the floor, measured in turns with it.
    pub floor: Option<f64>,
    /// The median of the ratios to the floor turn by turn, where a turn is so long that the
    /// machine's speed changes from one to the next.
    pub ratio_of_turns: Option<f64>,
    /// The goal.
    pub goal: Option<Goal>,
    /// The figure of the predecessor in C++ on a machine of this kind, one number or several.
    pub reference: Option<&'static str>,
}

impl Figure {
    /// Returns a figure without a floor, a goal and a reference.
    #[must_use]
    pub fn new(what: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self {
            what: what.into(),
            unit,
            value,
            floor: None,
            ratio_of_turns: None,
            goal: None,
            reference: None,
        }
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

    /// Returns the ratio to the floor.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        self.ratio_of_turns.or_else(|| self.floor.map(|floor| self.value / floor))
    }

    /// Returns true if the goal is reached, by the ratio of turns where there is one; `None`
    /// without a goal.
    #[must_use]
    pub fn is_reached(&self) -> Option<bool> {
        let by_turns = self.ratio_of_turns.zip(self.floor).map(|(ratio, floor)| ratio * floor);
        let value = by_turns.unwrap_or(self.value);
        self.goal.map(|goal| match goal {
            Goal::AtMost(bound) => value <= bound,
            Goal::AtLeast(bound) => value >= bound,
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

/// The outcome of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A figure.
    Measured(Figure),
    /// None, as this machine lacks what it needs.
    Skipped {
        /// The figure that would have been measured.
        what: String,
        /// The missing thing.
        why: String,
    },
}

/// The extent of measuring.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Small sizes only. Defaults to false.
    pub is_quick: bool,
    /// Links between nodes, besides those within a process. Defaults to all that are built in.
    pub kinds: Vec<Kind>,
}

impl Default for Plan {
    fn default() -> Self {
        Self { is_quick: false, kinds: Kind::ALL.to_vec() }
    }
}

/// The desk where measurements of a group hand in their figures.
pub(super) struct Desk<'a> {
    pub(super) plan: &'a Plan,
    pub(super) stop: &'a AtomicBool,
    pub(super) tell: &'a mut dyn FnMut(Outcome),
}

impl Desk<'_> {
    /// Adds a figure and reports it at once.
    pub(super) fn add(&mut self, figure: Figure) -> Result<(), BenchError> {
        (self.tell)(Outcome::Measured(figure));
        self.check()
    }

    /// Returns true if there is memory for a measurement that needs `bytes`; if not, reports that
    /// it is skipped.
    pub(super) fn has_room(&mut self, what: &str, bytes: usize) -> bool {
        let Some(room) = memory_available() else { return true };
        // Half is left to other processes.
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

/// An error that ends measuring early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// It was stopped.
    #[error("stopped")]
    Stopped,
    /// A cluster could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A cluster failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An operation failed.
    #[error(transparent)]
    Op(#[from] OpError),
    /// There are no links of a kind.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A checkpoint could not be written or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The operating system refused a socket.
    #[error("cannot open a socket on this host to compare with: {}", files::reason(.0))]
    Socket(#[from] std::io::Error),
}

/// Turns of each measurement that count.
pub(super) const TURNS: usize = 9;

/// Medians of nanoseconds per unit of work of `floor` and `ours`, which take turns; each does
/// `units` of it.
pub(super) fn medians(units: usize, mut floor: impl FnMut(), mut ours: impl FnMut()) -> (f64, f64) {
    let mut times = [Vec::new(), Vec::new()];
    // The first turn warms up.
    for turn in 0..=TURNS {
        let taken = [nanos_per(units, &mut floor), nanos_per(units, &mut ours)];
        if turn > 0 {
            times.iter_mut().zip(taken).for_each(|(times, taken)| times.push(taken));
        }
    }
    let [floor, ours] = times.map(median);
    (floor, ours)
}

/// Nanoseconds that a unit of `work` takes.
pub(super) fn nanos_per(units: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / units as f64
}

/// Returns the median of some numbers.
pub(super) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Bytes that can be taken without pushing others out; `None` where there are no files of Linux
/// (proc(5)), as below.
pub(super) fn memory_available() -> Option<usize> {
    field("/proc/meminfo", "MemAvailable:")
}

/// Bytes of memory that this process has.
pub(super) fn memory_resident() -> Option<usize> {
    field("/proc/self/status", "VmRSS:")
}

/// Bytes of memory that this process has had at most.
pub(super) fn memory_peak() -> Option<usize> {
    field("/proc/self/status", "VmHWM:")
}

/// Seconds of processors that this process has had so far, to a hundredth.
pub(super) fn processor_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may hold anything; then come `utime` and `stime` as
    // numbers 14 and 15.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u32>);
    let ticks = fields.next()?.ok()? + fields.next()?.ok()?;
    Some(f64::from(ticks) / TICKS_PER_SECOND)
}

/// Returns a size in a file of lines `name: number kB`, in bytes.
fn field(path: &str, name: &str) -> Option<usize> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Unit of the process times that Linux reports, whatever the frequency of its timer.
const TICKS_PER_SECOND: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_decide_where_there_are_some() {
        let figure = Figure::new("a rate", "1/s", 90.0).beside(100.0).towards(Goal::AtLeast(80.0));
        assert_eq!((figure.ratio(), figure.is_reached()), (Some(0.9), Some(true)));
        let figure = Figure { ratio_of_turns: Some(0.75), ..figure };
        assert_eq!((figure.ratio(), figure.is_reached()), (Some(0.75), Some(false)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_host_tells() {
        let (all, own) = (memory_available(), memory_resident());
        assert!(
            own.is_some_and(|own| own > 100_000) && all.is_some_and(|all| all > 1_000_000),
            "{own:?} {all:?}"
        );
        let before = processor_seconds().expect("there is a file");
        while processor_seconds().expect("there is a file") < before + 0.02 {}
    }
}
