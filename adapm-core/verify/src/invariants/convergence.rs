//! Invariant 4: at rest every replica equals its main copy; a `wait_sync` that ends has brought its node up to date.

use adapm_core::id::{Key, NodeId};
use adapm_core::slot::State;

use crate::cluster::Cluster;
use crate::digits::Seen;
use crate::oracle::{What, Who};
use crate::violation::{Violation, hold};

pub(super) fn check_at_rest(cluster: &Cluster) -> Result<(), Violation> {
    for key in cluster.keys() {
        let Some(main) = cluster.main_value(key) else { continue };
        for node in cluster.nodes() {
            let row = cluster.row(node, key);
            if row.state() != State::Replica {
                continue;
            }
            let replica = || cluster.oracle.judge(key, &row.value);
            let owner = || cluster.oracle.judge(key, &main);
            hold!(
                cluster.setup.checks => ReplicasEqual,
                row.value == main,
                "replica of {key} at {node} has {:?}, main copy {:?}",
                replica(),
                owner()
            );
            let clean = row.delta.iter().all(|element| *element == 0);
            hold!(cluster.setup.checks => ReplicasClean, clean, "replica of {key} at {node} has updates not sent");
        }
    }
    Ok(())
}

impl Cluster {
    /// The pushes that workers of `node` have made to `key`.
    pub(crate) fn pushes_of_node(&self, node: NodeId, key: Key) -> u128 {
        let of_node = self.oracle.accesses(key).iter().filter(|access| access.who.0 == node);
        of_node.fold(0, |mask, access| match access.what {
            What::Push(digit) => mask | 1 << digit,
            What::Pull(_) | What::Set(_) => mask,
        })
    }

    /// When a `wait_sync` ends, the pushes that its node had made are in the main copies, and its replicas have what the
    /// main copies had.
    pub(crate) fn check_synced(
        &self,
        who: Who,
        mains: &[Option<Seen>],
        own: &[u128],
    ) -> Result<(), Violation> {
        let plain: Vec<Key> = self.keys().filter(|key| !self.oracle.was_set(*key)).collect();
        for key in plain {
            let before = mains[key.0 as usize].map_or(0, |seen| seen.pushes);
            if let Some(main) = self.judged_main(key)? {
                let missing = own[key.0 as usize] & !main.pushes;
                hold!(
                    self.setup.checks => SyncSent,
                    missing == 0,
                    "wait_sync of {who:?} ends before p{} of {key}",
                    missing.trailing_zeros()
                );
            }
            let row = self.row(who.0, key);
            if row.state() == State::Replica {
                let missing = before & !self.oracle.judge(key, &row.value)?.pushes;
                hold!(
                    self.setup.checks => SyncSeen,
                    missing == 0,
                    "wait_sync of {who:?} ends without p{} in its replica of {key}",
                    missing.trailing_zeros()
                );
            }
        }
        Ok(())
    }
}
