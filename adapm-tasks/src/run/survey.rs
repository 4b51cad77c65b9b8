//! A look at what a task would train on: its samples with the keys that they access, and nothing is
//! trained. Everything before the first epoch is as in a run with the same settings.

use std::sync::{Mutex, PoisonError};

use adapm_core::Key;

use crate::partition::{Bigraph, PartitionFile};
use crate::run::config::ConfigError;
use crate::run::consistency::Digest;
use crate::run::error::TaskError;
use crate::run::task::Task;

/// What a run is asked for instead of training; filled by it.
#[derive(Debug, Default)]
pub(crate) struct Survey(Mutex<Option<Surveyed>>);

/// Samples and keys of a task, and the digest of these.
#[derive(Debug)]
pub(crate) struct Surveyed {
    pub(crate) graph: Bigraph,
    pub(crate) digest: u64,
}

impl Survey {
    /// Notes what the task trains on.
    ///
    /// # Errors
    ///
    /// A task without samples, or data that cannot be read.
    pub(crate) fn take(&self, task: &impl Task) -> Result<(), TaskError> {
        let keys = task.shape().keys();
        let mut graph = Bigraph::new(keys).map_err(|error| TaskError::Own(error.to_string()))?;
        let mut refused = None;
        let digest = digest_of(task, &mut |sample| {
            refused = refused.or(graph.add(sample).err());
        })?;
        let refused = refused.map_or(Ok(()), |error| Err(TaskError::Own(error.to_string())));
        refused?;
        let digest = digest.ok_or(TaskError::NoSamples)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Surveyed { graph, digest });
        Ok(())
    }

    /// Returns what the run has noted; `None` if it has not come so far.
    pub(crate) fn into_found(self) -> Option<Surveyed> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that `partition` is one of what this task trains on, by nodes with so many workers each.
///
/// # Errors
///
/// If it is not.
pub(crate) fn check(
    partition: &PartitionFile,
    task: &impl Task,
    workers: &[usize],
) -> Result<(), TaskError> {
    partition.check(task.shape().keys(), workers.len())?;
    if workers.iter().any(|of_node| *of_node != workers[0]) {
        return Err(ConfigError::PartsOfUnequal.into());
    }
    let digest = digest_of(task, &mut |_| {})?.ok_or(TaskError::NoSamples)?;
    Ok(partition.check_samples(digest)?)
}

/// Returns the digest of the samples of a task, which it passes to `each`; `None` if it has none.
fn digest_of(task: &impl Task, each: &mut dyn FnMut(&[Key])) -> Result<Option<u64>, TaskError> {
    let mut digest = Digest::new();
    let has_some = task.samples(&mut |sample| {
        digest.word(sample.len() as u64);
        sample.iter().for_each(|key| digest.word(key.0));
        each(sample);
    })?;
    Ok(has_some.then(|| digest.sum()))
}
