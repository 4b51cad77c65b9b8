//! Launchers of MPI programs: Open MPI's and MVAPICH's own, MPICH's Hydra, and whoever speaks PMIx
//! or PMI.
//!
//! They tell ranks, not hosts. If all ranks are on one host they meet through a file named after
//! the job; else somebody has to say where.

use std::path::PathBuf;

use super::environment::Environment;
use super::error::LauncherError;
use super::found::{Found, Sourced};
use super::meeting::file_name;
use crate::group::config::Rendezvous;

/// The variables of one launcher.
struct Dialect {
    launcher: &'static str,
    rank: &'static str,
    size: &'static str,
    local_size: &'static str,
    /// Any of these names the job; without one, the parent process does.
    job: &'static [&'static str],
}

/// Finds a process that `mpirun` or `mpiexec` started.
pub(super) fn find_mpirun(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    for dialect in &MPIRUN {
        if let Some(found) = find(environment, dialect)? {
            return Ok(Some(found));
        }
    }
    // Slurm can be asked to speak Hydra's language, but does not count the ranks of a host for it.
    let hydra = environment.has("MPI_LOCALNRANKS") || environment.has("HYDI_CONTROL_FD");
    if hydra { find(environment, &HYDRA) } else { Ok(None) }
}

/// Finds a process of any launcher that speaks PMIx or PMI and says how many there are.
pub(super) fn find_pmi(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    if let Some(found) = find(environment, &HYDRA)? {
        return Ok(Some(found));
    }
    // PMIx keeps the count to those who ask its daemon: it is left to a flag or to ADAPM_NODES.
    let Some(node) = environment.sourced_number("PMIX_RANK")? else { return Ok(None) };
    let job = environment.text("PMIX_NAMESPACE");
    Ok(Some(Found { launcher: "PMIx", node: Some(node), job, ..Found::default() }))
}

fn find(environment: &Environment<'_>, dialect: &Dialect) -> Result<Option<Found>, LauncherError> {
    let (node, nodes) =
        (environment.sourced_number(dialect.rank)?, environment.sourced_number(dialect.size)?);
    let half = |present, missing| LauncherError::HalfSet { launcher: dialect.launcher, present, missing };
    let (node, nodes) = match (node, nodes) {
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(half(dialect.rank, dialect.size)),
        (None, Some(_)) => return Err(half(dialect.size, dialect.rank)),
        (Some(node), Some(nodes)) => (node, nodes),
    };
    let job = dialect.job.iter().find_map(|name| environment.text(name));
    let job = job.or_else(|| environment.parent().map(str::to_owned));
    let one_host = environment.number(dialect.local_size)? == Some(nodes.value);
    let rendezvous = job.as_deref().filter(|_| one_host).map(|job| {
        let folder = PathBuf::from(environment.temporary_folder());
        Sourced { value: Rendezvous::JobFile(folder.join(file_name("mpi", job))), origin: dialect.local_size }
    });
    Ok(Some(Found {
        launcher: dialect.launcher,
        node: Some(node),
        nodes: Some(nodes),
        rendezvous,
        job,
        ..Found::default()
    }))
}

const MPIRUN: [Dialect; 2] = [
    Dialect {
        launcher: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_size: "OMPI_COMM_WORLD_LOCAL_SIZE",
        job: &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"],
    },
    Dialect {
        launcher: "MVAPICH",
        rank: "MV2_COMM_WORLD_RANK",
        size: "MV2_COMM_WORLD_SIZE",
        local_size: "MV2_COMM_WORLD_LOCAL_SIZE",
        job: &["PMI_JOBID"],
    },
];

const HYDRA: Dialect = Dialect {
    launcher: "PMI",
    rank: "PMI_RANK",
    size: "PMI_SIZE",
    local_size: "MPI_LOCALNRANKS",
    job: &["PMI_JOBID"],
};
