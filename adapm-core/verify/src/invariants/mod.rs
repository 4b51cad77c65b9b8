//! The invariants of the protocol ("What must hold"), one file each.
//!
//! | # | file | checked |
//! | --- | --- | --- |
//! | 1 | `one_owner` | after every step |
//! | 2 | `conservation` | after every step, exactly at rest; when all have copied for a snapshot |
//! | 3 | `holders` | after every step |
//! | 4 | `convergence` | at rest, and when a quiesce or `wait_sync` ends |
//! | 5 | `contention` | after every step |
//! | 5 | `hot` | after every step, and at rest |
//! | 5 | `kept` | after every step |
//! | 6 | `completion` | hops after every step, barriers when they end; [`crate::cluster::Cluster::settle`] that all operations end |
//! | 7 | `residence` | that nothing is forgotten after every step, the rest at rest |
//! | 8 | `session` | after every read |
//! | 9 | `order`, [`linear`] | after every step, after every read and at rest, where replication is off |
//! | 10 | `memory` | after every step, tightly at rest |
//! | 11 | `refusal` | whenever a bad message is fed |
//! | 13 | `tick` | after every read, when a worker passes a tick, at rest |

mod completion;
mod conservation;
mod contention;
mod convergence;
mod holders;
mod hot;
mod kept;
pub mod linear;
mod memory;
mod one_owner;
mod order;
pub mod refusal;
mod residence;
mod session;
mod tick;

use adapm_core::id::NodeId;

use crate::oracle::AccessId;
use crate::picture::Picture;
use crate::violation::Violation;

pub(crate) use completion::{check_met, check_noticed};
pub(crate) use conservation::{check_cut, check_quiet};
pub(crate) use convergence::{check_renewed, check_synced};
pub(crate) use hot::is_local;
pub(crate) use kept::set_up;
pub(crate) use memory::check_bytes;
pub(crate) use tick::check_passed;

/// Checks everything that must hold after every step, the last one by `node`.
pub(super) fn check(picture: &Picture, node: NodeId) -> Result<(), Violation> {
    let checks = picture.setup.checks;
    if checks.contains(1) {
        one_owner::check(picture)?;
    }
    if checks.contains(2) {
        conservation::check(picture)?;
    }
    if checks.contains(3) {
        holders::check(picture)?;
    }
    if checks.contains(5) {
        contention::check(picture)?;
        hot::check(picture, node)?;
        kept::check(picture)?;
    }
    if checks.contains(6) {
        completion::check_hops(picture)?;
        completion::check_bereaved(picture, node)?;
    }
    if checks.contains(7) {
        residence::check(picture, node)?;
    }
    if checks.contains(9) {
        order::check_copies(picture, node)?;
    }
    if checks.contains(10) {
        memory::check(picture, node)?;
    }
    Ok(())
}

/// Checks everything that must hold when nothing is left to do.
pub(super) fn check_at_rest(picture: &Picture) -> Result<(), Violation> {
    let checks = picture.setup.checks;
    if checks.contains(2) {
        conservation::check_at_rest(picture)?;
    }
    if checks.contains(4) && picture.setup.lag == 0 {
        convergence::check_at_rest(picture)?;
    }
    if checks.contains(5) {
        hot::check_at_rest(picture)?;
    }
    if checks.contains(6) {
        tick::check_at_rest(picture)?;
    }
    if checks.contains(7) {
        residence::check_at_rest(picture)?;
    }
    if picture.setup.sequential && checks.contains(9) && !picture.losses.any() {
        linear::check_at_rest(picture)?;
    }
    if checks.contains(10) {
        memory::check_at_rest(picture)?;
    }
    Ok(())
}

/// Checks everything that must hold for a finished read.
pub(super) fn check_read(picture: &Picture, read: AccessId) -> Result<(), Violation> {
    if picture.setup.checks.contains(8) {
        session::check_read(&picture.oracle, read)?;
    }
    if picture.setup.is_sequential(read.key) && picture.setup.checks.contains(9) {
        order::check_read(&picture.oracle, read)?;
    }
    if picture.setup.checks.contains(13) {
        tick::check_read(picture, read)?;
    }
    Ok(())
}
