//! Kubernetes: pods of an indexed job.
//!
//! A pod knows its index only. How many there are and where they meet is told by `ADAPM_NODES` and
//! `ADAPM_RENDEZVOUS` in the job's template; without them an index says nothing about other pods,
//! and the process is on its own.

use super::environment::Environment;
use super::error::LauncherError;
use super::found::Found;

/// Finds the index of a pod.
pub(super) fn find(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    let node = environment.sourced_number("JOB_COMPLETION_INDEX")?;
    Ok(node.map(|node| Found {
        launcher: "Kubernetes",
        node: Some(node),
        index_only: true,
        ..Found::default()
    }))
}
