//! What a run tells while it goes and when it is done. How it fails is told by [`crate::kge::TaskError`].

use crate::kge::checkpoint::Checkpoint;
use crate::kge::config::Split;
use crate::metric::{Rank, RankMetrics};

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

/// A moment of training, passed to [`Progress::training`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Training {
    /// The running epoch, from 1.
    pub epoch: u32,
    /// Epochs of the run.
    pub epochs: u32,
    /// Training triples done in this epoch, over all workers. While an epoch runs and nodes are processes, what this node
    /// has done, times the number of nodes: all have equal parts.
    pub done: u64,
    /// Training triples of an epoch.
    pub total: u64,
    /// Mean loss per training triple so far in this epoch; while it runs, over the workers of this process.
    pub loss: f64,
    /// Seconds of training in this epoch so far.
    pub seconds: f64,
    /// The manager's counts, of the nodes in this process.
    pub stats: ManagerStats,
}

impl Training {
    /// Training triples per second in this epoch.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        if self.seconds > 0.0 { self.done as f64 / self.seconds } else { 0.0 }
    }
}

/// A long step that is not training, passed to [`Progress::stage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Ranks are computed: queries done, of how many.
    Evaluating(Split, u64, u64),
}

/// Result of one epoch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EpochReport {
    /// The epoch, from 1.
    pub epoch: u32,
    /// Seconds of training, evaluation not counted.
    pub seconds: f64,
    /// Mean loss per training triple.
    pub loss: f64,
    /// Training triples done.
    pub triples: u64,
    /// Figures on valid, if it was evaluated after this epoch.
    pub valid: Option<RankMetrics>,
    /// Seconds of evaluation.
    pub evaluation_seconds: f64,
    /// The manager's counts of training, evaluation not counted, from the start of the run to the end of this epoch.
    pub stats: ManagerStats,
    /// The manager's counts of this epoch's training alone.
    pub epoch_stats: ManagerStats,
}

/// Result of a training run, complete or stopped: the same on all nodes if they are processes, but for `checkpoint`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrainReport {
    /// Every finished epoch.
    pub epochs: Vec<EpochReport>,
    /// The epoch whose parameters are in `checkpoint`: best on valid; without evaluation the last; 0 = initial values.
    pub chosen_epoch: u32,
    /// Figures on test with the chosen parameters; `None` without evaluation, without test triples, or if stopped.
    pub test: Option<RankMetrics>,
    /// Seconds of the evaluation of test.
    pub test_seconds: f64,
    /// The manager's counts of training, evaluation not counted.
    pub stats: ManagerStats,
    /// Parameters of the chosen epoch, if [`TrainConfig::checkpoint`](crate::kge::TrainConfig::checkpoint) asks for them; on
    /// node 0 only if nodes are processes.
    pub checkpoint: Option<Checkpoint>,
    /// The stop flag ended the run early.
    pub stopped: bool,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers per node that took part.
    pub workers: usize,
}

/// Result of an evaluation, the same on all nodes if they are processes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EvalReport {
    /// The figures.
    pub metrics: RankMetrics,
    /// Two ranks per triple, in the order of the triples: first of the object, then of the subject. Empty if stopped.
    pub ranks: Vec<Rank>,
    /// Seconds it took.
    pub seconds: f64,
    /// The manager's counts.
    pub stats: ManagerStats,
    /// The stop flag ended the evaluation early: no figures.
    pub stopped: bool,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers per node that took part.
    pub workers: usize,
}

/// Observer of a run, one for each process. Called on a thread of the run, a few times a second; a slow observer slows one
/// worker.
pub trait Progress: Sync {
    /// Training goes on.
    fn training(&self, moment: &Training) {
        let _ = moment;
    }

    /// A step that is not training goes on.
    fn stage(&self, stage: Stage) {
        let _ = stage;
    }

    /// An epoch, and its evaluation if any, is done.
    fn epoch(&self, report: &EpochReport) {
        let _ = report;
    }
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {}

/// Fields of [`ManagerStats`].
const COUNTS: usize = 11;
