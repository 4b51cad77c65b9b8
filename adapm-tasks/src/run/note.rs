//! What processes tell each other at the end of a phase.

use serde::{Deserialize, Serialize};

use crate::run::stats::{ManagerStats, Told};

/// What one process says about a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Note<A> {
    /// Which phase: all have to mean the same.
    pub(crate) phase: u64,
    /// Some worker left it early.
    pub(crate) is_cut: bool,
    /// What each worker has done, and the sum of its losses.
    pub(crate) tallies: Vec<(u64, f64)>,
    /// The manager's counts of this phase.
    pub(crate) stats: Told,
    /// What the workers found out about their items, worker by worker; none if nothing was examined.
    pub(crate) answers: Vec<A>,
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
    pub(crate) fn of<A>(notes: &[Note<A>]) -> Self {
        let tallies = || notes.iter().flat_map(|note| &note.tallies);
        let stats = notes.iter().map(|note| ManagerStats::from_told(&note.stats));
        Self {
            // What others say may be too much to sum up.
            done: tallies().fold(0, |sum: u64, (done, _)| sum.saturating_add(*done)),
            loss: tallies().map(|(_, loss)| loss).sum(),
            stats: stats.fold(ManagerStats::default(), |sum, stats| sum.plus(&stats)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::stats::COUNTS;

    #[test]
    fn what_is_too_much_to_sum_up_is_the_most_there_is() {
        let note = |done| Note::<()> {
            phase: 1,
            is_cut: false,
            tallies: vec![(done, 0.5), (1, 0.25)],
            stats: Told {
                counts: [u64::MAX; COUNTS],
                buckets: [[u64::MAX; 20]; 2],
                sum: u64::MAX,
                max: u64::MAX,
            },
            answers: Vec::new(),
        };
        let totals = Totals::of(&[note(3), note(u64::MAX)]);
        assert_eq!((totals.done, totals.loss), (u64::MAX, 1.5));
        assert!((0.0..=1.0).contains(&totals.stats.local_share()));
        for staleness in [totals.stats.staleness_mean(), totals.stats.staleness_p99_bound()] {
            assert!(staleness.is_finite() && staleness >= 0.0, "{staleness}");
        }
    }
}
