//! Invariant 4: at rest every replica equals its main copy; a `wait_sync` that ends has brought its
//! node up to date.

use adapm_core::id::Key;
use adapm_core::slot::State;

use crate::digits::Seen;
use crate::oracle::NodeWorker;
use crate::picture::Picture;
use crate::violation::{Violation, hold};

pub(super) fn check_at_rest(picture: &Picture) -> Result<(), Violation> {
    for key in picture.keys() {
        let Some(main) = picture.main_value(key) else { continue };
        for node in picture.nodes() {
            let row = picture.row(node, key);
            if row.state() != State::Replica {
                continue;
            }
            let replica = || picture.oracle.decode(key, &row.value);
            let owner = || picture.oracle.decode(key, &main);
            hold!(
                picture.setup.checks => ReplicasEqual,
                row.value == main,
                "replica of {key} at {node} has {:?}, main copy {:?}",
                replica(),
                owner()
            );
            let clean = row.delta.iter().all(|element| *element == 0);
            hold!(picture.setup.checks => ReplicasClean, clean, "replica of {key} at {node} has updates not sent");
        }
    }
    Ok(())
}

/// Checks, when a renewal ends, that the replicas include the content of the main copies at the
/// call.
pub(crate) fn check_renewed(
    picture: &Picture,
    who: NodeWorker,
    mains: &[(Key, Seen)],
) -> Result<(), Violation> {
    for &(key, before) in mains.iter().filter(|(key, _)| !picture.oracle.was_set(*key)) {
        let row = picture.row(who.0, key);
        if row.state() == State::Replica {
            let missing = before.pushes & !picture.oracle.decode(key, &row.value)?.pushes;
            hold!(
                picture.setup.checks => RenewSeen,
                missing == 0,
                "a renewal of {who:?} ends without p{} in its replica of {key}",
                missing.trailing_zeros()
            );
        }
    }
    Ok(())
}

/// Checks, when a `wait_sync` ends, that the pushes of its node are in the main copies, and its
/// replicas include the content of the main copies at the call.
pub(crate) fn check_synced(
    picture: &Picture,
    who: NodeWorker,
    mains: &[Option<Seen>],
    own: &[u128],
) -> Result<(), Violation> {
    let plain: Vec<Key> = picture.keys().filter(|key| !picture.oracle.was_set(*key)).collect();
    for key in plain {
        let before = mains[key.0 as usize].map_or(0, |seen| seen.pushes);
        if let Some(main) = picture.judged_main(key)? {
            let missing = own[key.0 as usize] & !main.pushes;
            hold!(
                picture.setup.checks => SyncSent,
                missing == 0,
                "wait_sync of {who:?} ends before p{} of {key}",
                missing.trailing_zeros()
            );
        }
        let row = picture.row(who.0, key);
        if row.state() == State::Replica {
            let missing = before & !picture.oracle.decode(key, &row.value)?.pushes;
            hold!(
                picture.setup.checks => SyncSeen,
                missing == 0,
                "wait_sync of {who:?} ends without p{} in its replica of {key}",
                missing.trailing_zeros()
            );
        }
    }
    Ok(())
}
