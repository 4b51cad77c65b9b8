//! The invariants of the protocol (section 8), one file each.
//!
//! | # | file | checked |
//! | --- | --- | --- |
//! | 1 | `one_owner` | after every step |
//! | 2 | `conservation` | after every step, exactly at rest |
//! | 3 | `holders` | after every step |
//! | 4 | `convergence` | at rest, and when a quiesce or `wait_sync` ends |
//! | 5 | `contention` | after every step |
//! | 6 | `completion` | hops after every step, barriers when they end; [`Cluster::settle`] that all operations end |
//! | 7 | `residence` | that nothing is forgotten after every step, the rest at rest |
//! | 8 | `session` | after every read |
//! | 9 | `order`, [`linear`] | after every read and at rest, where replication is off |
//! | 10 | `memory` | after every step, tightly at rest |
//! | 11 | `refusal` | whenever a bad message is fed |

mod completion;
mod conservation;
mod contention;
mod convergence;
mod holders;
pub mod linear;
mod memory;
mod one_owner;
mod order;
pub mod refusal;
mod residence;
mod session;

pub(super) use residence::heard;

use adapm_core::id::NodeId;

use crate::cluster::Cluster;
use crate::oracle::AccessId;
use crate::violation::Violation;

/// Everything that must hold after every step, given that `node` took the last one.
pub(super) fn check(cluster: &Cluster, node: NodeId) -> Result<(), Violation> {
    let checks = cluster.setup.checks;
    if checks.contains(1) {
        one_owner::check(cluster)?;
    }
    if checks.contains(2) {
        conservation::check(cluster)?;
    }
    if checks.contains(3) {
        holders::check(cluster)?;
    }
    if checks.contains(5) {
        contention::check(cluster)?;
    }
    if checks.contains(6) {
        completion::check_hops(cluster)?;
        cluster.check_bereaved(node)?;
    }
    if checks.contains(7) {
        residence::check(cluster, node)?;
    }
    if checks.contains(10) {
        memory::check(cluster, node)?;
    }
    Ok(())
}

/// Everything that must hold when nothing is left to do.
pub(super) fn check_at_rest(cluster: &mut Cluster) -> Result<(), Violation> {
    let checks = cluster.setup.checks;
    if checks.contains(2) {
        conservation::check_at_rest(cluster)?;
    }
    if checks.contains(4) {
        convergence::check_at_rest(cluster)?;
    }
    if checks.contains(7) {
        residence::check_at_rest(cluster)?;
    }
    if cluster.setup.sequential && checks.contains(9) && !cluster.losses.any() {
        linear::check_at_rest(cluster)?;
    }
    if checks.contains(10) {
        memory::check_at_rest(cluster)?;
    }
    Ok(())
}

/// Everything that must hold for a read that is done.
pub(super) fn check_read(cluster: &Cluster, read: AccessId) -> Result<(), Violation> {
    if cluster.setup.checks.contains(8) {
        session::check_read(&cluster.oracle, read)?;
    }
    if cluster.setup.sequential && cluster.setup.checks.contains(9) {
        order::check_read(&cluster.oracle, read)?;
    }
    Ok(())
}
