//! What a run takes of a task's configuration.

use std::num::NonZeroU32;
use std::sync::Arc;

use adapm_runtime::trace::Tracer;

use crate::partition::PartitionFile;
use crate::run::config::{Config, RunConfig};
use crate::run::hot::HotChoice;

/// The settings of a training run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    /// Of initial values and samples.
    pub(crate) seed: u64,
    /// Batches that are one clock to a bound, unless the cluster has a number of its own.
    pub(crate) clock_every: NonZeroU32,
    pub(crate) epochs: u32,
    /// Evaluates what there is to evaluate: valid to select an epoch, test in the end.
    pub(crate) evaluate: bool,
    /// Epochs between two evaluations of valid; positive.
    pub(crate) valid_every: u32,
    /// Epochs without progress after which the run ends.
    pub(crate) patience: Option<u32>,
    /// What is hot, if the system has such keys.
    pub(crate) hot: HotChoice<'a>,
    /// The bound between keys that are accessed together, in changes.
    pub(crate) inter: Option<u32>,
    pub(crate) trace: Option<&'a Tracer>,
    pub(crate) partition: Option<&'a Arc<PartitionFile>>,
}

impl<'a> Settings<'a> {
    /// Returns those of a configuration, with the epochs of the run, and epochs between two
    /// evaluations of valid.
    pub(crate) fn of(config: &'a impl Config, epochs: u32, valid_every: u32) -> Self {
        let RunConfig { seed, no_eval, patience, inter, ref trace, ref partition, .. } =
            *config.run();
        let clock_every = NonZeroU32::new(config.batches_per_clock()).unwrap_or(NonZeroU32::MIN);
        let (evaluate, hot, trace) = (!no_eval, config.run().hot_choice(), trace.as_ref());
        Self {
            seed,
            clock_every,
            epochs,
            evaluate,
            valid_every,
            patience,
            hot,
            inter,
            trace,
            partition: partition.as_ref(),
        }
    }
}
