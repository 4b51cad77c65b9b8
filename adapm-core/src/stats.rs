//! Totals of one engine, cheap enough to be always on.

/// Number of buckets of a [`Histogram`].
pub const BUCKETS: usize = 40;

/// A histogram in powers of two with sum and maximum: bucket 0 counts zeros, bucket `b` values of
/// `2^(b-1)..2^b`, the last also all larger ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Counts per bucket.
    pub buckets: [u64; BUCKETS],
    /// Sum of all values.
    pub sum: u64,
    /// Largest value.
    pub max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], sum: 0, max: 0 }
    }
}

impl Histogram {
    /// Counts `value`.
    pub fn record(&mut self, value: u64) {
        let bucket = (u64::BITS - value.leading_zeros()) as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// Returns the number of values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the mean of all values, 0 if there are none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let count = self.count();
        if count == 0 { 0.0 } else { self.sum as f64 / count as f64 }
    }

    /// Returns an upper bound of the `share` quantile: the end of its bucket, or the maximum for
    /// the last one; 0 if there are no values.
    #[must_use]
    pub fn quantile_bound(&self, share: f64) -> u64 {
        let count = self.count();
        if count == 0 {
            return 0;
        }
        let wanted = (count as f64 * share) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen = count.saturating_add(seen);
            if seen > wanted && bucket + 1 < BUCKETS {
                return ((1_u64 << bucket) - 1).min(self.max);
            }
        }
        self.max
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Returns the counts since `earlier`; the maximum is that of the whole time.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = *self;
        for (mine, before) in since.buckets.iter_mut().zip(&earlier.buckets) {
            *mine = mine.saturating_sub(*before);
        }
        since.sum = self.sum.saturating_sub(earlier.sum);
        since
    }
}

/// Bytes of values sent, by what the values are for. Heads of frames are in none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueBytes {
    /// Updates and values of replicas, from holders to owners.
    pub deltas: u64,
    /// Refreshes of replicas, from owners to holders.
    pub refreshes: u64,
    /// Values of replicas that are set up.
    pub replicas: u64,
    /// Values of main copies that move.
    pub relocations: u64,
    /// Updates and values of remote pushes and sets, once for each node that passes them on.
    pub operations: u64,
    /// Values read by remote pulls.
    pub answers: u64,
}

impl ValueBytes {
    /// Returns the sum over all kinds.
    #[must_use]
    pub fn sum(&self) -> u64 {
        let Self { deltas, refreshes, replicas, relocations, operations, answers } = *self;
        deltas + refreshes + replicas + relocations + operations + answers
    }

    /// Adds other bytes.
    pub fn merge(&mut self, other: &Self) {
        self.deltas += other.deltas;
        self.refreshes += other.refreshes;
        self.replicas += other.replicas;
        self.relocations += other.relocations;
        self.operations += other.operations;
        self.answers += other.answers;
    }
}

/// Number of replicas held at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Replicas held now.
    pub now: u64,
    /// The most held at a time.
    pub max: u64,
    /// Sum over the microseconds so far of the replicas held in each: divided by the time, their
    /// mean.
    pub micros: u64,
}

impl Held {
    /// Counts a replica more.
    pub(crate) fn add(&mut self) {
        self.now += 1;
        self.max = self.max.max(self.now);
    }

    /// Counts a replica less.
    pub(crate) fn remove(&mut self) {
        debug_assert!(self.now > 0, "what is given up was counted when it was set up");
        self.now = self.now.saturating_sub(1);
    }

    /// Adds `micros` microseconds in which what is held has not changed.
    pub(crate) fn pass(&mut self, micros: u64) {
        self.micros = self.micros.saturating_add(self.now.saturating_mul(micros));
    }

    /// Adds what another engine of the same node holds.
    pub fn merge(&mut self, other: &Self) {
        self.now += other.now;
        // They may have held most at different times: this is a bound.
        self.max += other.max;
        self.micros = self.micros.saturating_add(other.micros);
    }
}

/// Totals of one engine since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Accesses of own workers through the slow path that were served under the latch at once.
    pub local: u64,
    /// Accesses of own workers that were parked for a copy on its way.
    pub waited: u64,
    /// Accesses of own workers that needed another node.
    pub remote: u64,
    /// Main copies that arrived here.
    pub relocations: u64,
    /// Replicas set up here.
    pub replicas: u64,
    /// Replicas given up here.
    pub releases: u64,
    /// Replicas here whose refresh workers asked for.
    pub renews: u64,
    /// Refreshes sent to holders.
    pub refreshes: u64,
    /// Relocations that a policy wanted and the mechanism turned into replicas (protocol,
    /// "Decisions").
    pub coerced: u64,
    /// Requests that ended in `Remote`.
    pub refusals: u64,
    /// Rounds started.
    pub rounds: u64,
    /// Messages sent, control included.
    pub messages_sent: u64,
    /// Bytes of values in messages sent.
    pub value_bytes: ValueBytes,
    /// Replicas held at a time.
    pub held: Held,
    /// Microseconds from the first input to the last one.
    pub micros: u64,
    /// Messages applied.
    pub messages_applied: u64,
    /// Entries answered with `Retry` because their origin had too many parked here.
    pub retries: u64,
    /// Forwards of an entry before it was served here.
    pub hops: Histogram,
    /// Staleness in nanoseconds: time since the oldest change that the replica lacks, measured by
    /// the owner when it sends the refresh.
    pub staleness: Histogram,
    /// Time that changes of replicas here waited for more, in nanoseconds, if they had to
    /// ([`crate::policy::Patience`]).
    pub delays: Histogram,
    /// Pushes of workers in each delta that was sent, 65,535 for any more.
    pub delta_updates: Histogram,
    /// Time between two refresh opportunities of a holder in nanoseconds (the measure of
    /// AdaPM §5.6).
    pub check_age: Histogram,
}

impl Stats {
    /// Adds another engine's totals. Times are summed, too.
    pub fn merge(&mut self, other: &Self) {
        self.value_bytes.merge(&other.value_bytes);
        self.held.merge(&other.held);
        for (mine, theirs) in [
            (&mut self.local, other.local),
            (&mut self.waited, other.waited),
            (&mut self.remote, other.remote),
            (&mut self.relocations, other.relocations),
            (&mut self.replicas, other.replicas),
            (&mut self.releases, other.releases),
            (&mut self.renews, other.renews),
            (&mut self.refreshes, other.refreshes),
            (&mut self.coerced, other.coerced),
            (&mut self.refusals, other.refusals),
            (&mut self.rounds, other.rounds),
            (&mut self.messages_sent, other.messages_sent),
            (&mut self.micros, other.micros),
            (&mut self.messages_applied, other.messages_applied),
            (&mut self.retries, other.retries),
        ] {
            *mine += theirs;
        }
        self.hops.merge(&other.hops);
        self.staleness.merge(&other.staleness);
        self.delays.merge(&other.delays);
        self.delta_updates.merge(&other.delta_updates);
        self.check_age.merge(&other.check_age);
    }
}
