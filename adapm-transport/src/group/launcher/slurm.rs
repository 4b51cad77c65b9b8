//! Slurm: processes that `srun` started.
//!
//! A shell in an allocation (`salloc`, a batch script) has most of these variables too, and even
//! `SLURM_PROCID=0`, but there is no step around it, or one of the numbers that Slurm keeps for
//! such shells: a plain `adapm train` there is on its own.

use std::path::PathBuf;

use super::environment::Environment;
use super::error::LauncherError;
use super::found::{Found, Sourced};
use super::hostlist;
use super::meeting::{file_name, join_host};
use crate::group::config::Rendezvous;

/// Finds a process of a step.
pub(super) fn find(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    let Some(step) = first_number(environment, &["SLURM_STEP_ID", "SLURM_STEPID"])? else { return Ok(None) };
    if step.value >= STEP_RESERVED {
        return Ok(None);
    }
    let nodes = first_number(environment, &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"])?;
    let node = environment.sourced_number("SLURM_PROCID")?;
    let half = |present, missing| Err(LauncherError::HalfSet { launcher: "Slurm", present, missing });
    match (&node, &nodes) {
        (None, _) => return half(step.origin, "SLURM_PROCID"),
        (_, None) => return half("SLURM_PROCID", "SLURM_NTASKS"),
        _ => {}
    }
    let Some(job) = first_number(environment, &["SLURM_JOB_ID", "SLURM_JOBID"])? else {
        return half("SLURM_PROCID", "SLURM_JOB_ID");
    };
    let name = format!("{}.{}", job.value, step.value);
    let mut found = Found { launcher: "Slurm", node, nodes, job: Some(name), ..Found::default() };
    if found.nodes.as_ref().is_some_and(|nodes| nodes.value > 1) {
        found.rendezvous = rendezvous(environment, job.value, step.value)?;
    }
    Ok(Some(found))
}

/// A file if the step has one host, else a port of the first one.
fn rendezvous(
    environment: &Environment<'_>,
    job: usize,
    step: usize,
) -> Result<Option<Sourced<Rendezvous>>, LauncherError> {
    let lists = ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"];
    let list = lists.into_iter().find_map(|name| Some((name, environment.text(name)?)));
    let Some((name, list)) = list else { return Ok(None) };
    let Some(hosts) = hostlist::expand(&list) else {
        return Err(LauncherError::Hostlist { name, value: list });
    };
    let [first, others @ ..] = hosts.as_slice() else { return Ok(None) };
    let value = if others.is_empty() {
        let folder = PathBuf::from(environment.temporary_folder());
        Rendezvous::JobFile(folder.join(file_name("slurm", &format!("{job}.{step}"))))
    } else {
        Rendezvous::Address(join_host(first, port(job, step)))
    };
    Ok(Some(Sourced { value, origin: name }))
}

/// Steps that run next to each other get ports apart, and none that the system gives to others.
fn port(job: usize, step: usize) -> u16 {
    let mixed = (job as u64).wrapping_mul(31).wrapping_add((step as u64).wrapping_mul(7919));
    PORT_FIRST + u16::try_from(mixed % u64::from(PORTS)).unwrap_or(0)
}

fn first_number(
    environment: &Environment<'_>,
    names: &[&'static str],
) -> Result<Option<Sourced<usize>>, LauncherError> {
    for name in names {
        if let Some(number) = environment.sourced_number(name)? {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Steps from here on are shells and helpers: interactive, batch, external. Slurm counts the others
/// from 0.
const STEP_RESERVED: usize = 0xffff_fff0;

/// Below the ports that systems give to those who do not ask for one.
const PORT_FIRST: u16 = 10_000;
const PORTS: u16 = 20_000;
