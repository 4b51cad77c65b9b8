//! What the parameter manager did during a run.

use adapm_core::stats::{BUCKETS, Histogram};
use adapm_runtime::Stats;
use serde::{Deserialize, Serialize};

/// Counts of the parameter manager, summed over all nodes. All are 0 without a manager.
///
/// Those of a run are of its training: from the start of the cluster, so that what was moved and copied before the first step
/// counts, to the end of the last epoch, without evaluations. So they agree with each other: what was refreshed had been set up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ManagerStats {
    /// Key accesses served locally at once.
    pub local: u64,
    /// Key accesses served locally after waiting for the key to arrive.
    pub waited: u64,
    /// Key accesses that crossed the network.
    pub remote: u64,
    /// Nanoseconds for which workers were blocked in pulls and pushes, summed over workers.
    pub blocked_nanos: u64,
    /// Main copies moved from node to node, between epochs too.
    pub relocations: u64,
    /// Replicas set up, between epochs too.
    pub replicas: u64,
    /// Bytes of encoded frames sent, heads included.
    pub bytes_sent: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Entries of messages that were served, whichever way they came.
    pub served: u64,
    /// Forwards of these entries from node to node before they were served.
    pub forwards: u64,
    /// Refreshes of replicas, by the time since the oldest change that the replica lacked, in nanoseconds.
    pub staleness: Histogram,
}

impl ManagerStats {
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = self.with(earlier, u64::saturating_sub);
        since.staleness = self.staleness.since(&earlier.staleness);
        since
    }

    /// What an epoch that begins now is counted from, if the training before it ended at `ended`: copies that were placed since
    /// then are those it needs, whatever else was counted belongs to an evaluation.
    pub(crate) fn placed_since(&self, ended: &Self) -> Self {
        Self { relocations: ended.relocations, replicas: ended.replicas, ..*self }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.with(other, u64::saturating_add);
        sum.staleness.merge(&other.staleness);
        sum
    }

    /// What one process tells another.
    pub(crate) fn told(&self) -> Told {
        let Histogram { buckets, sum, max } = self.staleness;
        let (fine, coarse) = buckets.split_at(BUCKETS / 2);
        let half = |half: &[u64]| half.try_into().expect("half of the buckets");
        Told { counts: self.counts(), buckets: [half(fine), half(coarse)], sum, max }
    }

    /// The opposite of [`told`](Self::told).
    pub(crate) fn from_told(told: &Told) -> Self {
        let mut staleness = Histogram { sum: told.sum, max: told.max, ..Histogram::default() };
        staleness.buckets.copy_from_slice(told.buckets.as_flattened());
        Self { staleness, ..Self::default() }.with_counts(told.counts)
    }

    fn counts(&self) -> [u64; COUNTS] {
        [
            self.local,
            self.waited,
            self.remote,
            self.blocked_nanos,
            self.relocations,
            self.replicas,
            self.bytes_sent,
            self.messages_sent,
            self.served,
            self.forwards,
        ]
    }

    fn with_counts(self, counts: [u64; COUNTS]) -> Self {
        let [
            local,
            waited,
            remote,
            blocked_nanos,
            relocations,
            replicas,
            bytes_sent,
            messages_sent,
            served,
            forwards,
        ] = counts;
        Self {
            local,
            waited,
            remote,
            blocked_nanos,
            relocations,
            replicas,
            bytes_sent,
            messages_sent,
            served,
            forwards,
            staleness: self.staleness,
        }
    }

    fn with(&self, other: &Self, combine: fn(u64, u64) -> u64) -> Self {
        let mut counts = self.counts();
        for (mine, theirs) in counts.iter_mut().zip(other.counts()) {
            *mine = combine(*mine, theirs);
        }
        self.with_counts(counts)
    }

    /// Share of accesses served locally at once, in 0..=1; 1 if there was no access.
    #[must_use]
    pub fn local_share(&self) -> f64 {
        let accesses = self.local.saturating_add(self.waited).saturating_add(self.remote);
        if accesses == 0 { 1.0 } else { self.local as f64 / accesses as f64 }
    }

    /// Seconds for which workers were blocked in pulls and pushes, summed over workers.
    #[must_use]
    pub fn blocked_seconds(&self) -> f64 {
        self.blocked_nanos as f64 / 1e9
    }

    /// Mean staleness of refreshed replicas in seconds, 0 if there was no refresh.
    #[must_use]
    pub fn staleness_mean(&self) -> f64 {
        self.staleness.mean() / 1e9
    }

    /// An upper bound of the 99th percentile of staleness in seconds, at most twice the percentile.
    #[must_use]
    pub fn staleness_p99_bound(&self) -> f64 {
        self.staleness.quantile_bound(0.99) as f64 / 1e9
    }

    /// Mean number of forwards of a served entry, 0 if there was none.
    #[must_use]
    pub fn hops_mean(&self) -> f64 {
        if self.served == 0 { 0.0 } else { self.forwards as f64 / self.served as f64 }
    }
}

impl From<Stats> for ManagerStats {
    fn from(stats: Stats) -> Self {
        let served = stats.hops.count();
        Self {
            local: stats.local,
            waited: stats.waited,
            remote: stats.remote,
            blocked_nanos: stats.blocked_nanos,
            relocations: stats.relocations,
            replicas: stats.replicas,
            bytes_sent: stats.bytes_sent,
            messages_sent: stats.messages_sent,
            served,
            forwards: stats.hops.sum,
            staleness: stats.staleness,
        }
    }
}

/// Counts and staleness as they go to other processes: serde knows arrays of 32 at most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) counts: [u64; COUNTS],
    pub(crate) buckets: [[u64; BUCKETS / 2]; 2],
    pub(crate) sum: u64,
    pub(crate) max: u64,
}

/// Fields of [`ManagerStats`] that are counts.
pub(crate) const COUNTS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_all_there_is() {
        let mut stats = ManagerStats { local: 7, forwards: 3, ..ManagerStats::default() };
        [1_000, 9_000_000, 1 << 45].into_iter().for_each(|nanos| stats.staleness.record(nanos));
        assert_eq!(ManagerStats::from_told(&stats.told()), stats);
        let twice = stats.plus(&stats);
        assert_eq!((twice.local, twice.staleness.count()), (14, 6));
        assert_eq!(twice.since(&stats), stats);
    }
}
