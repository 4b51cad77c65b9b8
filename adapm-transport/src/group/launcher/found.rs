//! The variables of each launcher in the processes that it started.
//!
//! - torchrun, and programs that set the same variables (PyTorch's Kubernetes operator,
//!   hand-written scripts). Its own store listens on `MASTER_PORT`, so the nodes meet on the port
//!   after it.
//! - Launchers of MPI programs: Open MPI's and MVAPICH's own, MPICH's Hydra, and all that speak
//!   PMIx or PMI. They pass ranks, not hosts. If all ranks are on one host they meet through a file
//!   named after the job; else the user has to name the rendezvous.
//! - Slurm, for processes started by `srun`.
//! - Kubernetes, for the pods of an indexed job.

use std::path::PathBuf;

use super::environment::{Environment, Sourced, file_name, join_host};
use super::error::LauncherError;
use super::hostlist;
use crate::group::config::Rendezvous;

/// The findings of one launcher. Any part may be missing.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) launcher: &'static str,
    pub(super) node: Option<Sourced<usize>>,
    pub(super) nodes: Option<Sourced<usize>>,
    pub(super) rendezvous: Option<Sourced<Rendezvous>>,
    /// The number is an index that implies no other nodes.
    pub(super) index_only: bool,
    /// A name that tells this run from others of the same launcher.
    pub(super) job: Option<String>,
}

/// Finds a process of torchrun. `RANK` is the sign: scripts export `WORLD_SIZE` and `MASTER_ADDR`
/// for any launcher.
pub(super) fn find_torchrun(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    let Some(node) = environment.sourced_number("RANK")? else { return Ok(None) };
    let Some(nodes) = environment.sourced_number("WORLD_SIZE")? else {
        return Err(LauncherError::HalfSet {
            launcher: TORCHRUN,
            present: "RANK",
            missing: "WORLD_SIZE",
        });
    };
    let one_host = environment.number("LOCAL_WORLD_SIZE")? == Some(nodes.value);
    Ok(Some(Found {
        launcher: TORCHRUN,
        node: Some(node),
        nodes: Some(nodes),
        rendezvous: torchrun_rendezvous(environment, one_host)?,
        job: environment.text("TORCHELASTIC_RUN_ID").filter(|id| id != "none"),
        ..Found::default()
    }))
}

/// Refuses variables that a script exports for several ranks without numbering them. Called once no
/// launcher was found.
pub(super) fn refuse_half(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    let several = environment.number("WORLD_SIZE")?.is_some_and(|nodes| nodes > 1);
    if several && environment.has("MASTER_ADDR") {
        return Err(LauncherError::HalfSet {
            launcher: TORCHRUN,
            present: "WORLD_SIZE",
            missing: "RANK",
        });
    }
    Ok(None)
}

fn torchrun_rendezvous(
    environment: &Environment<'_>,
    one_host: bool,
) -> Result<Option<Sourced<Rendezvous>>, LauncherError> {
    let Some(host) = environment.text("MASTER_ADDR") else { return Ok(None) };
    let Some(value) = environment.text("MASTER_PORT") else {
        return Err(LauncherError::HalfSet {
            launcher: TORCHRUN,
            present: "MASTER_ADDR",
            missing: "MASTER_PORT",
        });
    };
    let port =
        value.parse::<u16>().ok().filter(|port| *port > 0).and_then(|port| port.checked_add(1));
    let Some(port) = port else { return Err(LauncherError::Port { name: "MASTER_PORT", value }) };
    // On one host the host's name would needlessly be an address that others can reach.
    let host = if one_host { "127.0.0.1" } else { &host };
    let value = Rendezvous::Address(join_host(host, port));
    Ok(Some(Sourced { value, origin: "MASTER_ADDR and MASTER_PORT + 1" }))
}

/// The variables of one launcher.
struct Dialect {
    launcher: &'static str,
    rank: &'static str,
    size: &'static str,
    local_size: &'static str,
    /// The variables that name the job; if none is set, the parent process does.
    job: &'static [&'static str],
}

/// Finds a process that `mpirun` or `mpiexec` started.
pub(super) fn find_mpirun(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    for dialect in &MPIRUN {
        if let Some(found) = find_ranked(environment, dialect)? {
            return Ok(Some(found));
        }
    }
    // Slurm can be told to speak Hydra's language, but does not count the ranks of a host for it.
    let hydra = environment.has("MPI_LOCALNRANKS") || environment.has("HYDI_CONTROL_FD");
    if hydra { find_ranked(environment, &HYDRA) } else { Ok(None) }
}

/// Finds a process of any launcher that speaks PMIx or PMI and passes the number of processes.
pub(super) fn find_pmi(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    if let Some(found) = find_ranked(environment, &HYDRA)? {
        return Ok(Some(found));
    }
    // PMIx reports the number only through its daemon: a flag or ADAPM_NODES has to give it.
    let Some(node) = environment.sourced_number("PMIX_RANK")? else { return Ok(None) };
    let job = environment.text("PMIX_NAMESPACE");
    Ok(Some(Found { launcher: "PMIx", node: Some(node), job, ..Found::default() }))
}

fn find_ranked(
    environment: &Environment<'_>,
    dialect: &Dialect,
) -> Result<Option<Found>, LauncherError> {
    let (node, nodes) =
        (environment.sourced_number(dialect.rank)?, environment.sourced_number(dialect.size)?);
    let half =
        |present, missing| LauncherError::HalfSet { launcher: dialect.launcher, present, missing };
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
        Sourced {
            value: Rendezvous::JobFile(folder.join(file_name("mpi", job))),
            origin: dialect.local_size,
        }
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

/// Finds a process of a step of Slurm.
///
/// A shell in an allocation (`salloc`, a batch script) has most of these variables too, even
/// `SLURM_PROCID=0`, but no step, or one of the step numbers that Slurm reserves for such shells: a
/// plain `adapm train` there runs alone.
pub(super) fn find_slurm(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    let Some(step) = first_number(environment, &["SLURM_STEP_ID", "SLURM_STEPID"])? else {
        return Ok(None);
    };
    if step.value >= STEP_RESERVED {
        return Ok(None);
    }
    let nodes =
        first_number(environment, &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"])?;
    let node = environment.sourced_number("SLURM_PROCID")?;
    let half =
        |present, missing| Err(LauncherError::HalfSet { launcher: "Slurm", present, missing });
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
        found.rendezvous = slurm_rendezvous(environment, job.value, step.value)?;
    }
    Ok(Some(found))
}

/// Returns a file if the step has one host, else a port of the first one.
fn slurm_rendezvous(
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
        Rendezvous::Address(join_host(first, slurm_port(job, step)))
    };
    Ok(Some(Sourced { value, origin: name }))
}

/// Returns a port of the step: steps that run side by side get different ports, none of which the
/// system assigns.
fn slurm_port(job: usize, step: usize) -> u16 {
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

/// Finds the index of a pod of an indexed job.
///
/// A pod knows nothing else. `ADAPM_NODES` and `ADAPM_RENDEZVOUS` in the job's template give the
/// number of pods and the rendezvous; without them an index implies no other pods, and the process
/// runs alone.
pub(super) fn find_kubernetes(
    environment: &Environment<'_>,
) -> Result<Option<Found>, LauncherError> {
    let node = environment.sourced_number("JOB_COMPLETION_INDEX")?;
    Ok(node.map(|node| Found {
        launcher: "Kubernetes",
        node: Some(node),
        index_only: true,
        ..Found::default()
    }))
}

const TORCHRUN: &str = "torchrun";

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

/// Step numbers from here on are shells and helpers: interactive, batch, external. Slurm counts the
/// others from 0.
const STEP_RESERVED: usize = 0xffff_fff0;

/// Below the ports that systems assign.
const PORT_FIRST: u16 = 10_000;
const PORTS: u16 = 20_000;
