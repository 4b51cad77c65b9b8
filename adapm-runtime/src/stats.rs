//! Totals over engines, links and workers, readable while a cluster runs (protocol, "Operations").
//!
//! No hot path shares a counter: a worker has counters of its own, and a channel thread publishes a
//! copy of its engine's totals each time before it completes operations that workers wait for, or
//! sleeps.

use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::stats::{Histogram, Stats as EngineStats, ValueBytes};

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, wait};

/// Totals of a node or a cluster since it was built.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Accesses (one per key of a pull, push or set) served at once from a local copy.
    pub local: u64,
    /// Accesses that waited for a copy in flight to this node.
    pub waited: u64,
    /// Accesses served by another node.
    pub remote: u64,
    /// Nanoseconds for which a worker was blocked in each synchronous pull, push, set or renewal
    /// that was not served at once.
    pub blocked: Histogram,
    /// Nanoseconds for which workers waited at clocks, barriers and quiesces for others to come
    /// near enough, under a bound, summed over workers.
    pub gated_nanos: u64,
    /// Main copies that moved.
    pub relocations: u64,
    /// Replicas created.
    pub replicas: u64,
    /// Replicas released.
    pub releases: u64,
    /// Replicas whose refresh workers asked for ([`crate::Worker::renew`]).
    pub renews: u64,
    /// Refreshes sent to holders.
    pub refreshes: u64,
    /// Relocations that a policy wanted and the engine turned into replicas.
    pub coerced: u64,
    /// Intents that the owner answered with `Remote`.
    pub refusals: u64,
    /// Rounds started, over all channels.
    pub rounds: u64,
    /// Encoded bytes sent, heads and values; also those to nodes in the same process.
    pub bytes_sent: u64,
    /// Bytes of values in frames sent, by what the values are for; the rest of
    /// [`bytes_sent`](Self::bytes_sent) are heads: keys, counters, control.
    pub value_bytes: ValueBytes,
    /// Frames sent.
    pub messages_sent: u64,
    /// The most replicas that a node held at a time; of a node with several channels a bound, the
    /// sum of theirs.
    pub held_max: u64,
    /// Sum over nodes and microseconds of the replicas held; see [`held_mean`](Self::held_mean).
    pub held_micros: u64,
    /// Microseconds since the start, summed over nodes.
    pub micros: u64,
    /// Sampled keys that were pulled, under any scheme.
    pub sampled: u64,
    /// Sampled keys that were local when pulled. Their share of `sampled` shows the benefit of a
    /// scheme.
    pub sampled_local: u64,
    /// Sampled keys of scheme `local` for which no local one was found, pulled from their owner.
    pub sample_fallbacks: u64,
    /// Keys of samples that were finished or dropped before they were pulled.
    pub sample_unpulled: u64,
    /// Number of times that an entry was forwarded before it was served.
    pub hops: Histogram,
    /// Staleness in nanoseconds: age of the oldest change that a replica lacked when its refresh
    /// left the owner.
    pub staleness: Histogram,
    /// Nanoseconds for which each change of a replica waited for more before it left, where changes
    /// do ([`adapm_core::policy::Patience`]).
    pub delays: Histogram,
    /// Pushes in each change of a replica that left, 65,535 for any more.
    pub delta_updates: Histogram,
    /// Nanoseconds between two refresh opportunities of a holder (the measure of AdaPM §5.6).
    pub check_age: Histogram,
    /// Traffic *to* each node, by node id.
    pub peers: Vec<Traffic>,
}

/// Encoded traffic in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames.
    pub messages: u64,
    /// Bytes of heads and values.
    pub bytes: u64,
}

impl Stats {
    /// Returns the number of accesses of workers: local, waited and remote.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.local + self.waited + self.remote
    }

    /// Returns the share of accesses that were local, in 0..=1; 1 if there were none.
    #[must_use]
    pub fn local_share(&self) -> f64 {
        let all = self.accesses();
        if all == 0 { 1.0 } else { self.local as f64 / all as f64 }
    }

    /// Returns the mean number of replicas that a node held at a time, 0 if no time has passed.
    #[must_use]
    pub fn held_mean(&self) -> f64 {
        if self.micros == 0 { 0.0 } else { self.held_micros as f64 / self.micros as f64 }
    }

    /// Returns the seconds for which workers were blocked in synchronous calls, summed over them.
    #[must_use]
    pub fn blocked_seconds(&self) -> f64 {
        self.blocked.sum as f64 / 1e9
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

    /// Returns the traffic to `node`, zero if the cluster has no such node.
    #[must_use]
    pub fn traffic_to(&self, node: NodeId) -> Traffic {
        self.peers.get(node.index()).copied().unwrap_or_default()
    }

    /// Adds the totals `other`, of other nodes, to these.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.local, other.local),
            (&mut self.waited, other.waited),
            (&mut self.remote, other.remote),
            (&mut self.gated_nanos, other.gated_nanos),
            (&mut self.relocations, other.relocations),
            (&mut self.replicas, other.replicas),
            (&mut self.releases, other.releases),
            (&mut self.renews, other.renews),
            (&mut self.refreshes, other.refreshes),
            (&mut self.coerced, other.coerced),
            (&mut self.refusals, other.refusals),
            (&mut self.rounds, other.rounds),
            (&mut self.bytes_sent, other.bytes_sent),
            (&mut self.messages_sent, other.messages_sent),
            (&mut self.sampled, other.sampled),
            (&mut self.sampled_local, other.sampled_local),
            (&mut self.sample_fallbacks, other.sample_fallbacks),
            (&mut self.sample_unpulled, other.sample_unpulled),
            (&mut self.held_micros, other.held_micros),
            (&mut self.micros, other.micros),
        ] {
            *mine += theirs;
        }
        self.held_max = self.held_max.max(other.held_max);
        self.value_bytes.merge(&other.value_bytes);
        self.blocked.merge(&other.blocked);
        self.hops.merge(&other.hops);
        self.staleness.merge(&other.staleness);
        self.delays.merge(&other.delays);
        self.delta_updates.merge(&other.delta_updates);
        self.check_age.merge(&other.check_age);
        self.add_traffic(&other.peers);
    }

    /// Adds the totals of a channel of the same node.
    pub(crate) fn add_engine(&mut self, engine: &EngineStats) {
        let held_max = self.held_max + engine.held.max;
        let micros = self.micros.max(engine.micros);
        self.merge(&Self {
            local: engine.local,
            waited: engine.waited,
            remote: engine.remote,
            relocations: engine.relocations,
            replicas: engine.replicas,
            releases: engine.releases,
            renews: engine.renews,
            refreshes: engine.refreshes,
            coerced: engine.coerced,
            refusals: engine.refusals,
            rounds: engine.rounds,
            hops: engine.hops,
            staleness: engine.staleness,
            delays: engine.delays,
            delta_updates: engine.delta_updates,
            check_age: engine.check_age,
            value_bytes: engine.value_bytes,
            held_micros: engine.held.micros,
            ..Self::default()
        });
        (self.held_max, self.micros) = (held_max, micros);
    }

    pub(crate) fn add_link(&mut self, sent: &[Traffic]) {
        self.add_traffic(sent);
        for traffic in sent {
            self.messages_sent += traffic.messages;
            self.bytes_sent += traffic.bytes;
        }
    }

    fn add_traffic(&mut self, sent: &[Traffic]) {
        if self.peers.len() < sent.len() {
            self.peers.resize(sent.len(), Traffic::default());
        }
        for (mine, theirs) in self.peers.iter_mut().zip(sent) {
            mine.messages += theirs.messages;
            mine.bytes += theirs.bytes;
        }
    }
}

/// Counters of one worker, on cache lines of their own. Only the worker writes them, except where
/// noted; any thread reads.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerCounters {
    local: AtomicU64,
    gated_nanos: AtomicU64,
    /// Written after a wait alone, next to which its lock is nothing.
    blocked: Mutex<Histogram>,
    sampled: AtomicU64,
    sampled_local: AtomicU64,
    sample_fallbacks: AtomicU64,
    /// The only counter that other threads raise too.
    sample_unpulled: AtomicU64,
}

impl WorkerCounters {
    /// Counts accesses served by the fast path. A plain load and store: there is one writer.
    #[inline]
    pub(crate) fn add_local(&self, accesses: u64) {
        raise(&self.local, accesses);
    }

    /// Counts a wait of the worker for engines.
    pub(crate) fn add_blocked(&self, time: Duration) {
        lock(&self.blocked).record(nanos(time));
    }

    /// Counts the time for which the worker waited for others to come near enough.
    pub(crate) fn add_gated(&self, time: Duration) {
        raise(&self.gated_nanos, nanos(time));
    }

    /// Counts sampled keys that were pulled, and how many of them were local.
    pub(crate) fn add_sampled(&self, keys: u64, local: u64) {
        raise(&self.sampled, keys);
        raise(&self.sampled_local, local);
    }

    pub(crate) fn add_sample_fallbacks(&self, keys: u64) {
        raise(&self.sample_fallbacks, keys);
    }

    /// Counts keys that were never pulled. Called from any thread, as any thread may drop a sample.
    pub(crate) fn add_unpulled(&self, keys: u64) {
        self.sample_unpulled.fetch_add(keys, Ordering::Relaxed);
    }

    pub(crate) fn add_to(&self, stats: &mut Stats) {
        stats.local += self.local.load(Ordering::Relaxed);
        stats.blocked.merge(&lock(&self.blocked));
        stats.gated_nanos += self.gated_nanos.load(Ordering::Relaxed);
        stats.sampled += self.sampled.load(Ordering::Relaxed);
        stats.sampled_local += self.sampled_local.load(Ordering::Relaxed);
        stats.sample_fallbacks += self.sample_fallbacks.load(Ordering::Relaxed);
        stats.sample_unpulled += self.sample_unpulled.load(Ordering::Relaxed);
    }
}

/// Adds to a counter that only one thread writes.
#[inline]
fn raise(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The latest totals of one channel thread.
#[derive(Debug, Default)]
pub(crate) struct Published {
    totals: Mutex<Totals>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Totals {
    engine: EngineStats,
    sent: Vec<Traffic>,
    ended: bool,
}

impl Published {
    pub(crate) fn publish(&self, engine: &EngineStats, sent: &[Traffic]) {
        let mut totals = lock(&self.totals);
        let more_replicas = engine.replicas != totals.engine.replicas;
        totals.engine = *engine;
        totals.sent.clear();
        totals.sent.extend_from_slice(sent);
        drop(totals);
        if more_replicas {
            self.changed.notify_all();
        }
    }

    /// Ends publishing for good.
    pub(crate) fn end(&self) {
        lock(&self.totals).ended = true;
        self.changed.notify_all();
    }

    /// Blocks until `replicas` replicas have been set up, or the channel thread has ended.
    pub(crate) fn wait_for_replicas(&self, replicas: u64) {
        let mut totals = lock(&self.totals);
        while totals.engine.replicas < replicas && !totals.ended {
            totals = wait(&self.changed, totals);
        }
    }

    pub(crate) fn add_to(&self, stats: &mut Stats) {
        let totals = lock(&self.totals);
        stats.add_engine(&totals.engine);
        stats.add_link(&totals.sent);
    }
}

#[cfg(all(test, not(adapm_loom)))]
mod tests {
    use super::*;

    #[test]
    fn totals_add_up_over_engines_links_and_workers() {
        let mut engine = EngineStats::default();
        (engine.local, engine.remote, engine.replicas) = (1, 4, 2);
        engine.staleness.record(1_000);
        (engine.micros, engine.held.max, engine.held.micros) = (10, 3, 20);
        engine.value_bytes.deltas = 50;
        let sent = [Traffic::default(), Traffic { messages: 3, bytes: 70 }];
        let published = Published::default();
        published.publish(&engine, &sent);
        let worker = WorkerCounters::default();
        worker.add_local(5);
        worker.add_local(6);
        worker.add_blocked(Duration::from_micros(2));
        worker.add_blocked(Duration::from_micros(3));

        let mut node = Stats::default();
        published.add_to(&mut node);
        worker.add_to(&mut node);
        let mut all = node.clone();
        all.merge(&node);

        assert_eq!((node.local, node.remote, node.accesses()), (12, 4, 16));
        assert_eq!(
            (node.local_share(), node.blocked.max, all.blocked.sum, all.blocked.count()),
            (0.75, 3_000, 10_000, 4)
        );
        assert_eq!((node.messages_sent, node.bytes_sent), (3, 70));
        assert_eq!(all.traffic_to(NodeId(1)), Traffic { messages: 6, bytes: 140 });
        assert_eq!(all.staleness_mean(), 1e-6);
        assert_eq!(Stats::default().local_share(), 1.0);
        assert_eq!((all.value_bytes.deltas, all.value_bytes.sum()), (100, 100));
        published.add_to(&mut node);
        // Two channels hold twice as much in the same time, two nodes in twice the time.
        assert_eq!((node.held_max, node.held_mean(), node.micros), (6, 4.0, 10));
        assert_eq!((all.held_max, all.held_mean(), all.micros), (3, 2.0, 20));
    }
}
