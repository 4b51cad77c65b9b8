//! The objects of `--json`. Names of fields are an interface: programs read them.
//!
//! Times are in seconds, shares in 0..=1; counts are totals over all nodes. What was not computed, or is no finite number,
//! is `null`, and so is the transport of nodes that are in one process.

use adapm_tasks::kge::{
    Checkpoint, EpochReport, EvalConfig, EvalReport, Graph, GraphSource, ManagerStats, TrainConfig,
    TrainReport,
};
use adapm_tasks::metric::RankMetrics;
use serde::Serialize;

use crate::processes::Processes;

/// What the parameter manager did.
#[derive(Serialize)]
pub(crate) struct Manager {
    local_share: f64,
    local: u64,
    waited: u64,
    remote: u64,
    relocations: u64,
    replicas: u64,
    bytes_sent: u64,
    messages_sent: u64,
    refreshes: u64,
    staleness_mean: f64,
    hops_mean: f64,
}

impl From<&ManagerStats> for Manager {
    fn from(stats: &ManagerStats) -> Self {
        Self {
            local_share: stats.local_share(),
            local: stats.local,
            waited: stats.waited,
            remote: stats.remote,
            relocations: stats.relocations,
            replicas: stats.replicas,
            bytes_sent: stats.bytes_sent,
            messages_sent: stats.messages_sent,
            refreshes: stats.refreshes,
            staleness_mean: stats.staleness_mean(),
            hops_mean: stats.hops_mean(),
        }
    }
}

/// Means over ranks.
#[derive(Serialize)]
struct Quality {
    mrr: Option<f64>,
    mrr_optimistic: Option<f64>,
    mrr_pessimistic: Option<f64>,
    hits_at_1: Option<f64>,
    hits_at_3: Option<f64>,
    hits_at_10: Option<f64>,
}

impl From<Option<&RankMetrics>> for Quality {
    fn from(metrics: Option<&RankMetrics>) -> Self {
        Self {
            mrr: metrics.map(|metrics| metrics.mrr),
            mrr_optimistic: metrics.map(|metrics| metrics.mrr_optimistic),
            mrr_pessimistic: metrics.map(|metrics| metrics.mrr_pessimistic),
            hits_at_1: metrics.map(|metrics| metrics.hits_at_1),
            hits_at_3: metrics.map(|metrics| metrics.hits_at_3),
            hits_at_10: metrics.map(|metrics| metrics.hits_at_10),
        }
    }
}

/// One epoch: its training alone.
#[derive(Serialize)]
pub(crate) struct Epoch {
    epoch: u32,
    seconds: f64,
    loss: f64,
    triples: u64,
    #[serde(flatten)]
    manager: Manager,
    valid_mrr: Option<f64>,
    evaluation_seconds: f64,
}

impl From<&EpochReport> for Epoch {
    fn from(report: &EpochReport) -> Self {
        Self {
            epoch: report.epoch,
            seconds: report.seconds,
            loss: report.loss,
            triples: report.triples,
            manager: Manager::from(&report.epoch_stats),
            valid_mrr: report.valid.map(|metrics| metrics.mrr),
            evaluation_seconds: report.evaluation_seconds,
        }
    }
}

/// A training run.
#[derive(Serialize)]
pub(crate) struct Run<'a> {
    task: &'static str,
    system: &'static str,
    nodes: usize,
    workers: usize,
    transport: Option<&'static str>,
    seed: u64,
    data: String,
    generated: bool,
    model: &'static str,
    dim: usize,
    loss: &'static str,
    negatives: &'static str,
    learning_rate: f32,
    epochs: u32,
    epoch_seconds: Vec<f64>,
    chosen_epoch: u32,
    valid_mrr: Option<f64>,
    #[serde(flatten)]
    test: Quality,
    #[serde(flatten)]
    manager: Manager,
    stopped: bool,
    saved: Option<&'a str>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        source: &GraphSource,
        config: &TrainConfig,
        report: &TrainReport,
        saved: Option<&'a str>,
        processes: &Processes,
    ) -> Self {
        Self {
            task: "kge",
            system: config.system.map_or("none", |system| system.name()),
            nodes: report.nodes,
            workers: report.workers,
            transport: processes.transport(),
            seed: config.seed,
            data: source.to_string(),
            generated: matches!(source, GraphSource::Generated { .. }),
            model: config.model.name(),
            dim: config.dim,
            loss: config.loss.name(),
            negatives: config.negatives.name(),
            learning_rate: config.learning_rate,
            epochs: config.epochs,
            epoch_seconds: report.epochs.iter().map(|epoch| epoch.seconds).collect(),
            chosen_epoch: report.chosen_epoch,
            valid_mrr: crate::report::chosen_valid(report).map(|metrics| metrics.mrr),
            test: Quality::from(report.test.as_ref()),
            manager: Manager::from(&report.stats),
            stopped: report.stopped,
            saved,
        }
    }
}

/// An evaluation.
#[derive(Serialize)]
pub(crate) struct Evaluation {
    task: &'static str,
    split: &'static str,
    system: &'static str,
    nodes: usize,
    workers: usize,
    transport: Option<&'static str>,
    data: String,
    generated: bool,
    model: &'static str,
    dim: usize,
    queries: u64,
    seconds: f64,
    #[serde(flatten)]
    quality: Quality,
    #[serde(flatten)]
    manager: Manager,
    stopped: bool,
}

impl Evaluation {
    pub(crate) fn new(
        graph: &Graph,
        checkpoint: &Checkpoint,
        config: &EvalConfig,
        report: &EvalReport,
        processes: &Processes,
    ) -> Self {
        Self {
            task: "kge",
            split: config.split.name(),
            system: config.system.map_or("none", |system| system.name()),
            nodes: report.nodes,
            workers: report.workers,
            transport: processes.transport(),
            data: graph.source().to_string(),
            generated: graph.is_generated(),
            model: checkpoint.model().name(),
            dim: checkpoint.dim(),
            queries: report.metrics.queries,
            seconds: report.seconds,
            quality: Quality::from((!report.stopped).then_some(&report.metrics)),
            manager: Manager::from(&report.stats),
            stopped: report.stopped,
        }
    }
}
