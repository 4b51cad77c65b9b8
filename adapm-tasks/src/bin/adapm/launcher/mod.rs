//! Who started this process: which node it is, of how many, and where they meet.
//!
//! Flags count first, then `ADAPM_*`, then the first launcher that is found, each value for itself: under `mpirun` on several
//! hosts the ranks are Open MPI's and `--rendezvous` says where they meet. Every value remembers where it came from.
//!
//! | launcher | node | nodes | rendezvous |
//! |---|---|---|---|
//! | torchrun | `RANK` | `WORLD_SIZE` | `MASTER_ADDR`, the port after `MASTER_PORT` |
//! | Open MPI, MVAPICH, MPICH | `..._RANK` | `..._SIZE` | a file if all are on one host |
//! | Slurm | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS`, `SLURM_NTASKS` | the first host, a port of the job's number |
//! | PMIx, PMI | `PMIX_RANK`, `PMI_RANK` | `PMI_SIZE` | none |
//! | Kubernetes | `JOB_COMPLETION_INDEX` | `ADAPM_NODES` | `ADAPM_RENDEZVOUS` |
//!
//! `mpirun` comes before Slurm because it starts its daemons as a Slurm step: what they start inherits the daemons' `SLURM_PROCID`.
//! A launcher that started one process only leaves it alone, and so does an allocation in which nothing was started by `srun`.
//!
//! Nothing here looks at the machine but through [`Environment`], and nothing connects.

mod environment;
mod error;
pub(crate) mod hostlist;
mod kubernetes;
mod mpi;
mod placement;
mod slurm;
#[cfg(test)]
mod tests;
mod torchrun;

pub(crate) use environment::{Environment, process_parent, process_variable};
pub(crate) use error::LauncherError;
pub(crate) use placement::{Asked, Meeting, Member, Placement, Sourced, join_host};

/// What a launcher says. Any part may be missing.
#[derive(Debug, Default)]
struct Found {
    launcher: &'static str,
    node: Option<Sourced<usize>>,
    nodes: Option<Sourced<usize>>,
    rendezvous: Option<Sourced<Meeting>>,
    /// The number is an index that says nothing about others.
    index_only: bool,
    /// What tells this run from others of the same launcher.
    job: Option<String>,
}

/// The first launcher that left its variables.
fn find(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    let launchers = [torchrun::find, mpi::find_mpirun, slurm::find, mpi::find_pmi, kubernetes::find];
    for launcher in launchers {
        if let Some(found) = launcher(environment)? {
            return Ok(Some(found));
        }
    }
    torchrun::refuse_half(environment)
}

/// Finds this process's place: what was asked for by flags, then `ADAPM_*`, then what a launcher left.
///
/// # Errors
///
/// Numbers that are none, half of what is needed, a node that there is not; each names the flag or variable.
pub(crate) fn place(asked: &Asked, environment: &Environment<'_>) -> Result<Placement, LauncherError> {
    let own = placement::own(asked, environment)?;
    let found = if own.is_complete() { None } else { find(environment)? };
    placement::decide(own, found)
}
