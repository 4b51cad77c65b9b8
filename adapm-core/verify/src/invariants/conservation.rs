//! Invariant 2: every push is counted exactly once, wherever it is.
//!
//! At every step, the main copy (here or granted and in flight), the deltas of all replicas and the updates in flight are
//! summed. A push that is acknowledged to its worker must be in that sum once; one that still waits in an engine may be
//! missing, and none may be there twice. At rest all are in the main copy.

use adapm_core::engine::OpId;
use adapm_core::id::Key;
use adapm_core::slot::State;
use adapm_core::value::accumulate;

use crate::cluster::Cluster;
use crate::digits::{self, Seen};
use crate::violation::{Violation, hold};

pub(super) fn check(cluster: &Cluster) -> Result<(), Violation> {
    for key in cluster.keys() {
        // A set erases older pushes: what must be left is judged at rest.
        if cluster.oracle.pushes(key) == 0 || cluster.oracle.was_set(key) {
            continue;
        }
        if cluster.losses.is_doomed(key) {
            continue;
        }
        let mut sum = vec![0; cluster.setup.value_len(key)];
        add_copies(cluster, key, &mut sum);
        add_flight(cluster, key, &mut sum);
        let pushes = match digits::pushes(&sum) {
            Ok(pushes) => pushes,
            Err(unsound) => {
                hold!(cluster.setup.checks => PushOnce, false, "{key} counts a push twice: {unsound:?}");
                continue;
            }
        };
        let lost = cluster.owed(key) & !pushes;
        hold!(cluster.setup.checks => PushKept, lost == 0, "{key} has lost push p{}", lost.trailing_zeros());
    }
    Ok(())
}

fn add_copies(cluster: &Cluster, key: Key, sum: &mut [i64]) {
    for node in cluster.nodes() {
        let row = cluster.row(node, key);
        match row.state() {
            State::Main => accumulate(sum, &row.value),
            State::Replica => accumulate(sum, &row.delta),
            State::None | State::Requested | State::Releasing => {}
        }
    }
}

fn add_flight(cluster: &Cluster, key: Key, sum: &mut [i64]) {
    for aloft in cluster.air.about(key) {
        if aloft.entry.kind.is_update() {
            accumulate(sum, &aloft.entry.value);
        } else if aloft.entry.kind.is_ownership() {
            accumulate(sum, &cluster.granted_value(aloft.to, &aloft.entry));
        }
    }
}

pub(super) fn check_at_rest(cluster: &Cluster) -> Result<(), Violation> {
    for key in cluster.keys() {
        let Some(seen) = cluster.judged_main(key)? else { continue };
        if !cluster.losses.any() {
            cluster.oracle.check_final(key, seen)?;
        } else if !cluster.oracle.was_set(key) {
            let lost = cluster.owed(key) & !seen.pushes;
            hold!(cluster.setup.checks => KeptAtRest, lost == 0, "{key} has lost push p{}, which a survivor made", lost.trailing_zeros());
        }
    }
    Ok(())
}

impl Cluster {
    /// What the main copy of `key` contains, `None` if there is none.
    pub(crate) fn judged_main(&self, key: Key) -> Result<Option<Seen>, Violation> {
        self.main_value(key).map(|value| self.oracle.judge(key, &value)).transpose()
    }

    /// The pushes that must be somewhere: all that are done, but for those of nodes that have vanished.
    fn owed(&self, key: Key) -> u128 {
        let gone = self.losses.gone().iter().map(|node| self.pushes_of_node(*node, key));
        gone.fold(self.oracle.acknowledged(key), |owed, pushes| owed & !pushes)
    }

    /// When a quiesce ends, every operation issued before the call has ended, and its pushes are everywhere.
    pub(crate) fn check_quiet(&self, quiesce: OpId, pushes: &[u128]) -> Result<(), Violation> {
        let waiting = self.calls.open().find(|(op, _)| *op < quiesce && !self.calls.is_collective(*op));
        hold!(self.setup.checks => QuiesceEnded, waiting.is_none(), "{quiesce:?}, a quiesce, ends before {waiting:?}");
        for key in self.keys().filter(|key| !self.oracle.was_set(*key)) {
            let made = pushes[key.0 as usize];
            let made = if self.losses.any() { made & self.owed(key) } else { made };
            if let Some(main) = self.judged_main(key)? {
                let lost = made & !main.pushes;
                hold!(
                    self.setup.checks => QuiesceKept,
                    lost == 0,
                    "a quiesce ends before p{} of {key} has arrived",
                    lost.trailing_zeros()
                );
            }
            for node in self.nodes().filter(|node| self.state(*node, key) == State::Replica) {
                let lost = made & !self.oracle.judge(key, &self.row(node, key).value)?.pushes;
                hold!(
                    self.setup.checks => QuiesceSeen,
                    lost == 0,
                    "a quiesce ends before p{} of {key} is at {node}",
                    lost.trailing_zeros()
                );
            }
        }
        Ok(())
    }
}
