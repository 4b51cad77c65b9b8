//! What processes tell each other at the end of a phase.

use serde::{Deserialize, Serialize};

use crate::kge::report::ManagerStats;

/// What one process says about a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Note {
    /// Which phase: all have to mean the same.
    pub(crate) phase: u64,
    /// Some worker left it early.
    pub(crate) is_cut: bool,
    /// What each worker has done, and the sum of its losses.
    pub(crate) tallies: Vec<(u64, f64)>,
    /// The manager's counts of this phase.
    pub(crate) stats: [u64; 11],
    /// (better, tied) of the ranks that the workers computed, worker by worker; none if nothing was ranked.
    pub(crate) ranks: Vec<(u32, u32)>,
}

/// What all workers of all processes have done in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) done: u64,
    /// Summed up in the order of the workers: the same number however they are spread over processes.
    pub(crate) loss: f64,
    pub(crate) stats: ManagerStats,
}

impl Totals {
    pub(crate) fn of(notes: &[Note]) -> Self {
        let tallies = || notes.iter().flat_map(|note| &note.tallies);
        let stats = notes.iter().map(|note| ManagerStats::from_counts(note.stats));
        Self {
            done: tallies().map(|(done, _)| done).sum(),
            loss: tallies().map(|(_, loss)| loss).sum(),
            stats: stats.fold(ManagerStats::default(), |sum, stats| sum.plus(&stats)),
        }
    }
}
