//! Launchers of clusters: Slurm, MPI, torchrun and Kubernetes pass a process its node, the number
//! of nodes, and the rendezvous.
//!
//! Flags count first, then `ADAPM_*`, then the first launcher that is found, each value for itself:
//! under `mpirun` on several hosts the ranks are Open MPI's and `--rendezvous` names the place.
//! Every value remembers its origin.
//!
//! | launcher | node | nodes | rendezvous |
//! |---|---|---|---|
//! | torchrun | `RANK` | `WORLD_SIZE` | `MASTER_ADDR`, the port after `MASTER_PORT` |
//! | Open MPI, MVAPICH, MPICH | `..._RANK` | `..._SIZE` | a file if all are on one host |
//! | Slurm | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS`, `SLURM_NTASKS` | the first host, a port of the job's number |
//! | PMIx, PMI | `PMIX_RANK`, `PMI_RANK` | `PMI_SIZE` | none |
//! | Kubernetes | `JOB_COMPLETION_INDEX` | `ADAPM_NODES` | `ADAPM_RENDEZVOUS` |
//!
//! `mpirun` comes before Slurm because it starts its daemons as a Slurm step: their children
//! inherit the daemons' `SLURM_PROCID`. A launcher that started only one process leaves it alone,
//! and so does an allocation in which nothing was started by `srun`.
//!
//! Kubernetes counts no pods: `ADAPM_NODES` and `ADAPM_RENDEZVOUS` are in the job's template.
//!
//! ```no_run
//! # use std::sync::Arc;
//! use adapm_transport::group::launcher;
//!
//! // A process of srun, mpirun, torchrun or an indexed job, or one that was started by hand.
//! let joined = launcher::join(&mut |membership| eprintln!("{} are here", membership.joined()))?;
//! let group = joined.map(Arc::new);
//! // With adapm-runtime: `if let Some(group) = &group { builder = builder.nodes(group) }`.
//! # Ok::<(), adapm_transport::group::GroupError>(())
//! ```
//!
//! A program with flags of its own calls [`place`] and [`Position::config`], and then
//! [`Group::join`]. Processes of several hosts need a secret, the same for all ([`token`]).
//!
//! The machine is only inspected through [`Environment`], and only [`join`] connects.

mod environment;
pub(super) mod error;
mod found;
pub(crate) mod hostlist;
mod placement;
pub(super) mod secret;
#[cfg(test)]
mod tests;

use found::{Found, find_kubernetes, find_mpirun, find_pmi, find_slurm, find_torchrun};

use super::error::GroupError;
use super::member::Group;
use super::membership::Membership;

pub use environment::{Environment, Sourced, join_host, seconds};
pub use error::LauncherError;
pub use placement::{Flags, Placement, Position};
pub use secret::{SecretError, read_secret, token, token_of};

/// Joins the other processes of a run as its launcher or `ADAPM_*` tell; `None` if this process is
/// alone. The secret is that of `ADAPM_TOKEN` or of the file `ADAPM_TOKEN_FILE`.
///
/// # Errors
/// Those of [`place`], [`token`] and [`Group::join`].
pub fn join(watch: &mut dyn FnMut(&Membership)) -> Result<Option<Group>, GroupError> {
    let (flags, environment) = (Flags::default(), Environment::of_process());
    let Placement::Among(position) = place(&flags, &environment)? else { return Ok(None) };
    let mut config = position.config(&flags, &environment)?;
    config.token = token(None, &environment)?;
    Group::join(config, watch).map(Some)
}

/// Finds this process's place: by flags, then `ADAPM_*`, then the variables of a launcher.
///
/// # Errors
/// Invalid numbers, incomplete settings, a node out of range; each names the flag or variable.
pub fn place(flags: &Flags, environment: &Environment<'_>) -> Result<Placement, LauncherError> {
    let own = placement::own(flags, environment)?;
    let found = if own.is_complete() { None } else { find(environment)? };
    placement::decide(own, found)
}

/// Returns the first launcher whose variables are set.
fn find(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    let launchers = [find_torchrun, find_mpirun, find_slurm, find_pmi, find_kubernetes];
    for launcher in launchers {
        if let Some(found) = launcher(environment)? {
            return Ok(Some(found));
        }
    }
    found::refuse_half(environment)
}
