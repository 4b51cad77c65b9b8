//! What the parameter manager did during a run.

use adapm_runtime::Stats;

/// Counts of the parameter manager, summed over all nodes from the start of the run. All are 0 without a manager.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ManagerStats {
    /// Key accesses served locally at once.
    pub local: u64,
    /// Key accesses served locally after waiting for the key to arrive.
    pub waited: u64,
    /// Key accesses that crossed the network.
    pub remote: u64,
    /// Main copies moved from node to node.
    pub relocations: u64,
    /// Replicas set up.
    pub replicas: u64,
    /// Bytes of encoded frames sent, heads included.
    pub bytes_sent: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Refreshes of replicas whose staleness was measured.
    pub refreshes: u64,
    /// Sum over `refreshes` of the time since the oldest change that the replica lacked, in nanoseconds.
    pub staleness_nanoseconds: u64,
    /// Entries of messages that were served, whichever way they came.
    pub served: u64,
    /// Forwards of these entries from node to node before they were served.
    pub forwards: u64,
}

impl ManagerStats {
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// All counts, in the order of the fields.
    pub(crate) fn counts(&self) -> [u64; COUNTS] {
        [
            self.local,
            self.waited,
            self.remote,
            self.relocations,
            self.replicas,
            self.bytes_sent,
            self.messages_sent,
            self.refreshes,
            self.staleness_nanoseconds,
            self.served,
            self.forwards,
        ]
    }

    /// The opposite of [`counts`](Self::counts).
    pub(crate) fn from_counts(counts: [u64; COUNTS]) -> Self {
        let [local, waited, remote, relocations, replicas, bytes_sent, messages_sent, ..] = counts;
        let [.., refreshes, staleness_nanoseconds, served, forwards] = counts;
        Self {
            local,
            waited,
            remote,
            relocations,
            replicas,
            bytes_sent,
            messages_sent,
            refreshes,
            staleness_nanoseconds,
            served,
            forwards,
        }
    }

    fn with(&self, other: &Self, combine: fn(u64, u64) -> u64) -> Self {
        let mut counts = self.counts();
        for (mine, theirs) in counts.iter_mut().zip(other.counts()) {
            *mine = combine(*mine, theirs);
        }
        Self::from_counts(counts)
    }

    /// Share of accesses served locally at once, in 0..=1; 1 if there was no access.
    #[must_use]
    pub fn local_share(&self) -> f64 {
        let accesses = self.local.saturating_add(self.waited).saturating_add(self.remote);
        if accesses == 0 { 1.0 } else { self.local as f64 / accesses as f64 }
    }

    /// Mean staleness of refreshed replicas in seconds, 0 if there was no refresh.
    #[must_use]
    pub fn staleness_mean(&self) -> f64 {
        if self.refreshes == 0 {
            0.0
        } else {
            self.staleness_nanoseconds as f64 / self.refreshes as f64 / 1e9
        }
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
            relocations: stats.relocations,
            replicas: stats.replicas,
            bytes_sent: stats.bytes_sent,
            messages_sent: stats.messages_sent,
            refreshes: stats.staleness.count(),
            staleness_nanoseconds: stats.staleness.sum,
            served,
            forwards: stats.hops.sum,
        }
    }
}

/// Fields of [`ManagerStats`].
const COUNTS: usize = 11;
