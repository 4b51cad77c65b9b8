//! Results of simulated runs, and what follows from two of them.

use crate::measure::simulate::{Figures, Run};

/// Figures of runs, in the order in which they were asked for.
pub(crate) type Results = Vec<(Run, Figures)>;

/// Returns the speed-up of an epoch over one node.
pub(crate) fn speed_up(results: &Results, run: &Run, figures: &Figures) -> Option<f64> {
    let alone = results.iter().find(|(other, _)| other.task == run.task && other.nodes == 1)?;
    Some(alone.1.epoch_seconds / figures.epoch_seconds)
}
