//! A look at what a task would train on: its samples with the keys that they access, and nothing is
//! trained. Everything before the first epoch is as in a run with the same settings.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use adapm_core::Key;

use crate::partition::{Bigraph, BigraphError, Options, PartitionFile, hybrid};
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
        let surveyed = surveyed(task)?.ok_or(TaskError::NoSamples)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(surveyed);
        Ok(())
    }

    /// Returns what the run has noted; `None` if it has not come so far.
    pub(crate) fn into_found(self) -> Option<Surveyed> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what a task trains on; `None` if it has no samples.
fn surveyed(task: &impl Task) -> Result<Option<Surveyed>, TaskError> {
    let mut graph = Bigraph::new(task.shape().keys()).map_err(own)?;
    let mut refused = None;
    let digest = digest_of(task, &mut |sample| {
        refused = refused.or(graph.add(sample).err());
    })?;
    refused.map_or(Ok(()), |error| Err(own(error)))?;
    Ok(digest.map(|digest| Surveyed { graph, digest }))
}

/// Returns a partition of what this task trains on, the usual one, of no name; `None` if it has no
/// samples, or once `stop` is raised. Each process finds the same.
///
/// # Errors
///
/// More nodes than keys or than a partition can have, or data that cannot be read.
pub(crate) fn partition(
    task: &impl Task,
    nodes: usize,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Option<PartitionFile>, TaskError> {
    let Some(Surveyed { graph, digest }) = surveyed(task)? else { return Ok(None) };
    let partition = hybrid(&graph, nodes, &Options::usual(seed), stop).map_err(own)?;
    Ok(partition.map(|partition| PartitionFile::new("", seed, digest, partition)))
}

/// Checks that `partition` is one of what this task trains on, by so many nodes.
///
/// # Errors
///
/// If it is not.
pub(crate) fn check(
    partition: &PartitionFile,
    task: &impl Task,
    nodes: usize,
) -> Result<(), TaskError> {
    partition.check(task.shape().keys(), nodes)?;
    let digest = digest_of(task, &mut |_| {})?.ok_or(TaskError::NoSamples)?;
    Ok(partition.check_samples(digest)?)
}

fn own(error: BigraphError) -> TaskError {
    TaskError::Own(error.to_string())
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
