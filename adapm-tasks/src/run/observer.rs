//! Progress of a run for observers, and the counts of the parameter manager meanwhile.
//!
//! Not here: how a run fails ([`TaskError`](crate::run::TaskError)).

use adapm_core::stats::{BUCKETS, Histogram};
use adapm_runtime::Stats;
use adapm_runtime::checkpoint::{CheckpointError, Saved};
use serde::{Deserialize, Serialize};

use crate::run::config::Split;

/// A moment of training, passed to [`Observer::training`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Training {
    /// The running epoch, from 1.
    pub epoch: u32,
    /// Epochs of the run.
    pub epochs: u32,
    /// It may end before, if epochs make no progress.
    pub may_end_early: bool,
    /// Training examples done in this epoch, over all workers. While an epoch runs and nodes are
    /// processes, an estimate by what this node has done: all workers have equal parts.
    pub done: u64,
    /// Training examples of an epoch.
    pub total: u64,
    /// Mean loss per training example so far in this epoch; while it runs, over the workers of this
    /// process, or NaN if the task evaluates each epoch at its end.
    pub loss: f64,
    /// Seconds of training in this epoch so far.
    pub seconds: f64,
    /// The manager's counts in this epoch, of the nodes in this process.
    pub stats: ManagerStats,
}

impl Training {
    /// Returns the training examples per second in this epoch.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        if self.seconds > 0.0 { self.done as f64 / self.seconds } else { 0.0 }
    }
}

/// Work of a run beside training and evaluating, passed to [`Observer::working`]. Takes a while if
/// parameters or data are large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// Gives every key its value at the start, of training or of an evaluation; counted in keys.
    Initializing,
    /// Selects what training begins with, on small data; counted in epochs, whose number is not
    /// known how many it takes.
    Selecting,
    /// Divides the data among workers; counted in parts of the data.
    Dividing,
    /// Waits until keys are where workers have signaled intent for them first; not
    /// counted.
    Settling,
    /// Copies the best parameters; counted in keys.
    Copying,
    /// Copies all parameters for a last checkpoint, and waits until it is written; counted in keys.
    Checkpointing,
}

/// Where a run goes on, passed to [`Observer::resumed`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resumption {
    /// The name of the checkpoint.
    pub checkpoint: String,
    /// The epoch that goes on, from 1.
    pub epoch: u32,
    /// Training examples of it that are done.
    pub done: u64,
    /// The workers are others than those that wrote it: their places in the data count for nothing.
    pub has_others: bool,
    /// Training examples that are done again for that.
    pub again: u64,
    /// Training examples that are left out for that.
    pub left_out: u64,
}

/// One epoch of a run, whose evaluations give `F`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Epoch<F> {
    /// The epoch, from 1.
    pub epoch: u32,
    /// Seconds of training, evaluation not counted.
    pub seconds: f64,
    /// Mean loss per training example, or per pair of a fixed sample (word vectors).
    pub loss: f64,
    /// Training examples done.
    pub examples: u64,
    /// Figures on valid, if it was evaluated after this epoch.
    pub valid: Option<F>,
    /// Seconds of evaluation.
    pub evaluation_seconds: f64,
    /// The manager's counts of training, evaluation not counted, from the start of the run to the
    /// end of this epoch.
    pub stats: ManagerStats,
    /// The manager's counts of this epoch's training alone.
    pub epoch_stats: ManagerStats,
}

/// Observer of a run, one for each process. Called on a thread of the run, a few times a second; a
/// slow observer slows one worker.
pub trait Observer<F>: Sync {
    /// Training goes on.
    fn training(&self, moment: &Training) {
        let _ = moment;
    }

    /// An evaluation goes on: `done` of `all` items.
    fn evaluating(&self, split: Split, done: u64, all: u64) {
        let _ = (split, done, all);
    }

    /// Work goes on that is neither: `done` of `all`, in a group as far as this process can tell.
    fn working(&self, work: Work, done: u64, all: u64) {
        let _ = (work, done, all);
    }

    /// Training begins with `hot` of all `keys` on every node, for the whole run; told under
    /// systems that choose them before it.
    fn replicating(&self, hot: u64, keys: u64) {
        let _ = (hot, keys);
    }

    /// Training begins with a partition that took so many seconds to find: a node holds `replicas`
    /// of all `keys` beside its own at most, for the whole run; told under a system that needs one.
    fn partitioned(&self, replicas: u64, keys: u64, seconds: f64) {
        let _ = (replicas, keys, seconds);
    }

    /// The run has its folder of checkpoints; `leads`: this process is the first of those that
    /// share it.
    fn opened(&self, leads: bool) {
        let _ = leads;
    }

    /// Training begins, or goes on: all processes are ready, and no worker of this one has done
    /// anything yet. Told once; not where nothing is to be trained.
    fn begins(&self) {}

    /// The run goes on from a checkpoint.
    fn resumed(&self, from: &Resumption) {
        let _ = from;
    }

    /// A checkpoint was written, as far as this process takes part in that, after workers had
    /// waited so many seconds for its copies; or it could not be. Training goes on.
    fn checkpointed(&self, outcome: &Result<Saved, CheckpointError>, pause: f64) {
        let _ = (outcome, pause);
    }

    /// An epoch, and its evaluation if any, is done.
    fn epoch(&self, epoch: &Epoch<F>) {
        let _ = epoch;
    }
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl<F> Observer<F> for NoProgress {}

/// Counts of the parameter manager, summed over all nodes. All are 0 without a manager.
///
/// Those of a run are of its training: from the start of the cluster, so that what was moved and
/// copied before the first step counts, to the end of the last epoch, without evaluations. So they
/// agree with each other: what was refreshed had been set up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ManagerStats {
    /// Key accesses served locally at once.
    pub local: u64,
    /// Key accesses served locally after waiting for the key to arrive.
    pub waited: u64,
    /// Key accesses that crossed the network.
    pub remote: u64,
    /// Nanoseconds for which workers waited for others to come near enough, under a bound, summed
    /// over workers.
    pub gated_nanos: u64,
    /// Main copies moved from node to node, between epochs too.
    pub relocations: u64,
    /// Replicas set up, between epochs too.
    pub replicas: u64,
    /// Replicas given up.
    pub releases: u64,
    /// Replicas whose refresh workers asked for, as they lagged behind others.
    pub renews: u64,
    /// Relocations that the policy wanted and that became replicas instead.
    pub coerced: u64,
    /// Intents that ended without a copy.
    pub refusals: u64,
    /// Bytes of encoded frames sent, heads included.
    pub bytes_sent: u64,
    /// Of them the values of changes that replicas brought to the main copies.
    pub delta_bytes: u64,
    /// Of them the values of refreshes.
    pub refresh_bytes: u64,
    /// Of them the values of replicas that were set up.
    pub replica_bytes: u64,
    /// Of them the values of main copies that moved.
    pub relocation_bytes: u64,
    /// Of them the values of remote pushes, those passed on included.
    pub operation_bytes: u64,
    /// Of them the values read by remote pulls.
    pub answer_bytes: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Entries of messages that were served, whichever way they came.
    pub served: u64,
    /// Forwards of these entries from node to node before they were served.
    pub forwards: u64,
    /// Sum over nodes and microseconds of the replicas held.
    pub held_micros: u64,
    /// Microseconds, summed over nodes.
    pub micros: u64,
    /// The most replicas that a node held at a time, since the start of the run; with several
    /// channels a bound.
    pub held_max: u64,
    /// Pulls and pushes that were not served at once, by the nanoseconds for which they blocked a
    /// worker.
    pub blocked: Histogram,
    /// Refreshes of replicas, by the time since the oldest change that the replica lacked, in
    /// nanoseconds.
    pub staleness: Histogram,
    /// Changes of replicas that left, by the nanoseconds for which they had waited for more, where
    /// changes do.
    pub delays: Histogram,
    /// Changes of replicas that left, by the number of pushes in each.
    pub delta_updates: Histogram,
}

impl ManagerStats {
    /// Returns the counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = self.with(*earlier, u64::saturating_sub);
        for (own, earlier) in since.histograms().into_iter().zip({ *earlier }.histograms()) {
            *own = own.since(earlier);
        }
        since.held_max = self.held_max;
        since
    }

    /// Returns the counts that the first epoch is counted from: all that was placed for it counts,
    /// but no time before it.
    pub(crate) fn placed(&self) -> Self {
        Self { held_micros: self.held_micros, micros: self.micros, ..Self::default() }
    }

    /// Returns the counts that an epoch that begins now is counted from, if the training before it
    /// ended at `ended`: copies that were placed since then are those it needs, whatever else was
    /// counted belongs to an evaluation.
    pub(crate) fn placed_since(&self, ended: &Self) -> Self {
        Self { relocations: ended.relocations, replicas: ended.replicas, ..*self }
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.with(*other, u64::saturating_add);
        for (sum, other) in sum.histograms().into_iter().zip({ *other }.histograms()) {
            sum.merge(other);
        }
        sum.held_max = self.held_max.max(other.held_max);
        sum
    }

    /// Returns the counts as one process sends them to another.
    pub(crate) fn told(&self) -> Told {
        let counts = { *self }.counts().map(|count| *count);
        let histograms = { *self }.histograms().map(|histogram| ToldHistogram::from(*histogram));
        Told { counts, held_max: self.held_max, histograms }
    }

    /// The opposite of [`told`](Self::told).
    pub(crate) fn from_told(told: &Told) -> Self {
        let mut stats = Self { held_max: told.held_max, ..Self::default() };
        let each = stats.histograms().into_iter().zip(&told.histograms);
        each.for_each(|(histogram, told)| *histogram = told.into());
        stats.counts().into_iter().zip(told.counts).for_each(|(count, told)| *count = told);
        stats
    }

    /// Returns all fields that are counts.
    fn counts(&mut self) -> [&mut u64; COUNTS] {
        let Self {
            local,
            waited,
            remote,
            gated_nanos,
            relocations,
            replicas,
            releases,
            renews,
            coerced,
            refusals,
            bytes_sent,
            delta_bytes,
            refresh_bytes,
            replica_bytes,
            relocation_bytes,
            operation_bytes,
            answer_bytes,
            messages_sent,
            served,
            forwards,
            held_micros,
            micros,
            held_max: _,
            blocked: _,
            staleness: _,
            delays: _,
            delta_updates: _,
        } = self;
        [
            local,
            waited,
            remote,
            gated_nanos,
            relocations,
            replicas,
            releases,
            renews,
            coerced,
            refusals,
            bytes_sent,
            delta_bytes,
            refresh_bytes,
            replica_bytes,
            relocation_bytes,
            operation_bytes,
            answer_bytes,
            messages_sent,
            served,
            forwards,
            held_micros,
            micros,
        ]
    }

    /// Returns all fields that are histograms.
    fn histograms(&mut self) -> [&mut Histogram; HISTOGRAMS] {
        [&mut self.blocked, &mut self.staleness, &mut self.delays, &mut self.delta_updates]
    }

    fn with(&self, mut other: Self, combine: fn(u64, u64) -> u64) -> Self {
        let mut combined = *self;
        for (mine, theirs) in combined.counts().into_iter().zip(other.counts()) {
            *mine = combine(*mine, *theirs);
        }
        combined
    }

    /// Returns the share of accesses served locally at once, in 0..=1; 1 if there was no access.
    #[must_use]
    pub fn local_share(&self) -> f64 {
        let accesses = self.local.saturating_add(self.waited).saturating_add(self.remote);
        if accesses == 0 { 1.0 } else { self.local as f64 / accesses as f64 }
    }

    /// Seconds for which workers were blocked in pulls and pushes, summed over workers.
    #[must_use]
    pub fn blocked_seconds(&self) -> f64 {
        self.blocked.sum as f64 / 1e9
    }

    /// Returns the mean seconds for which a pull or push that was not served at once blocked its
    /// worker, 0 if there was none.
    #[must_use]
    pub fn wait_mean(&self) -> f64 {
        self.blocked.mean() / 1e9
    }

    /// Returns an upper bound of the 99th percentile of these seconds, at most twice the
    /// percentile, 0 if there was none.
    #[must_use]
    pub fn wait_p99_bound(&self) -> f64 {
        self.blocked.quantile_bound(0.99) as f64 / 1e9
    }

    /// Seconds for which workers waited for others to come near enough, summed over workers.
    #[must_use]
    pub fn gated_seconds(&self) -> f64 {
        self.gated_nanos as f64 / 1e9
    }

    /// Returns the bytes sent that are no values: keys, counters, control.
    #[must_use]
    pub fn head_bytes(&self) -> u64 {
        let values = [
            self.delta_bytes,
            self.refresh_bytes,
            self.replica_bytes,
            self.relocation_bytes,
            self.operation_bytes,
            self.answer_bytes,
        ];
        values.into_iter().fold(self.bytes_sent, u64::saturating_sub)
    }

    /// Returns the mean number of replicas that a node held at a time, 0 if no time has passed.
    #[must_use]
    pub fn held_mean(&self) -> f64 {
        if self.micros == 0 { 0.0 } else { self.held_micros as f64 / self.micros as f64 }
    }

    /// Returns the mean staleness of refreshed replicas in seconds, 0 if there was no refresh.
    #[must_use]
    pub fn staleness_mean(&self) -> f64 {
        self.staleness.mean() / 1e9
    }

    /// Returns an upper bound of the 99th percentile of staleness in seconds, at most twice the
    /// percentile.
    #[must_use]
    pub fn staleness_p99_bound(&self) -> f64 {
        self.staleness.quantile_bound(0.99) as f64 / 1e9
    }

    /// Returns the mean seconds for which changes of replicas waited for more, 0 if none did.
    #[must_use]
    pub fn delay_mean(&self) -> f64 {
        self.delays.mean() / 1e9
    }

    /// Returns an upper bound of the 99th percentile of these seconds, at most twice the
    /// percentile.
    #[must_use]
    pub fn delay_p99_bound(&self) -> f64 {
        self.delays.quantile_bound(0.99) as f64 / 1e9
    }

    /// Returns the mean number of forwards of a served entry, 0 if there was none.
    #[must_use]
    pub fn hops_mean(&self) -> f64 {
        if self.served == 0 { 0.0 } else { self.forwards as f64 / self.served as f64 }
    }
}

impl From<Stats> for ManagerStats {
    fn from(stats: Stats) -> Self {
        let (served, values) = (stats.hops.count(), stats.value_bytes);
        Self {
            local: stats.local,
            waited: stats.waited,
            remote: stats.remote,
            gated_nanos: stats.gated_nanos,
            relocations: stats.relocations,
            replicas: stats.replicas,
            releases: stats.releases,
            renews: stats.renews,
            coerced: stats.coerced,
            refusals: stats.refusals,
            bytes_sent: stats.bytes_sent,
            delta_bytes: values.deltas,
            refresh_bytes: values.refreshes,
            replica_bytes: values.replicas,
            relocation_bytes: values.relocations,
            operation_bytes: values.operations,
            answer_bytes: values.answers,
            messages_sent: stats.messages_sent,
            served,
            forwards: stats.hops.sum,
            held_micros: stats.held_micros,
            micros: stats.micros,
            held_max: stats.held_max,
            blocked: stats.blocked,
            staleness: stats.staleness,
            delays: stats.delays,
            delta_updates: stats.delta_updates,
        }
    }
}

/// Counts as they go to other processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) counts: [u64; COUNTS],
    pub(crate) held_max: u64,
    pub(crate) histograms: [ToldHistogram; HISTOGRAMS],
}

/// A histogram as it goes to other processes: serde supports arrays of 32 at most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToldHistogram {
    pub(crate) buckets: [[u64; BUCKETS / 2]; 2],
    pub(crate) sum: u64,
    pub(crate) max: u64,
}

impl From<Histogram> for ToldHistogram {
    fn from(Histogram { buckets, sum, max }: Histogram) -> Self {
        let (fine, coarse) = buckets.split_at(BUCKETS / 2);
        let half = |half: &[u64]| half.try_into().expect("half of the buckets");
        Self { buckets: [half(fine), half(coarse)], sum, max }
    }
}

impl From<&ToldHistogram> for Histogram {
    fn from(told: &ToldHistogram) -> Self {
        let mut histogram = Self { sum: told.sum, max: told.max, ..Self::default() };
        histogram.buckets.copy_from_slice(told.buckets.as_flattened());
        histogram
    }
}

/// Fields of [`ManagerStats`] that are counts.
pub(crate) const COUNTS: usize = 22;
/// Fields of [`ManagerStats`] that are histograms.
pub(crate) const HISTOGRAMS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_all_there_is() {
        let mut stats =
            ManagerStats { local: 7, forwards: 3, held_max: 2, ..ManagerStats::default() };
        [1_000, 9_000_000, 1 << 45].into_iter().for_each(|nanos| stats.staleness.record(nanos));
        [40_000, 2_000].into_iter().for_each(|nanos| stats.blocked.record(nanos));
        (stats.delays.sum, stats.delta_updates.max) = (5, 6);
        assert_eq!(ManagerStats::from_told(&stats.told()), stats);
        let twice = stats.plus(&stats);
        assert_eq!((twice.local, twice.staleness.count(), twice.blocked.sum), (14, 6, 84_000));
        assert_eq!((stats.wait_mean(), stats.wait_p99_bound()), (21e-6, 40e-6));
        let since = stats.since(&stats);
        assert_eq!((since.wait_mean(), since.wait_p99_bound()), (0.0, 0.0), "there was none");
        assert_eq!(twice.since(&stats), stats);
    }
}
