//! The objects of `simulate --json`. Names of fields are an interface: programs read them.
//!
//! Times are in seconds, shares in 0..=1; of an epoch are `epoch_seconds` and `bytes_per_node`, scaled from the slice of
//! `points` data points.

use adapm_tasks::measure::simulate::paper::Statement;
use adapm_tasks::measure::simulate::{Figures, Run};
use serde::Serialize;

/// One run.
#[derive(Serialize)]
pub(super) struct Row {
    task: &'static str,
    system: &'static str,
    nodes: usize,
    workers: usize,
    machine: &'static str,
    compute: f64,
    seed: u64,
    epoch_seconds: f64,
    speed_up: Option<f64>,
    bytes_per_node: f64,
    local_share: f64,
    waited_share: f64,
    remote_share: f64,
    relocations_per_1000_points: f64,
    replicas_per_1000_points: f64,
    staleness_mean: f64,
    check_age_mean: f64,
    messages_per_node_and_second: f64,
    channel_busy_share: f64,
    wire_busy_share: f64,
    points: u64,
    reads: u64,
    trace: String,
}

impl Row {
    pub(super) fn new(run: &Run, figures: &Figures, speed_up: Option<f64>) -> Self {
        Self {
            task: run.task.name(),
            system: run.contender.name(),
            nodes: run.nodes,
            workers: run.workers,
            machine: run.machine.name,
            compute: run.compute,
            seed: run.seed,
            epoch_seconds: figures.epoch_seconds,
            speed_up,
            bytes_per_node: figures.bytes_per_node,
            local_share: figures.local_share,
            waited_share: figures.waited_share,
            remote_share: figures.remote_share,
            relocations_per_1000_points: figures.relocations,
            replicas_per_1000_points: figures.replicas,
            staleness_mean: figures.staleness,
            check_age_mean: figures.check_age,
            messages_per_node_and_second: figures.messages_per_node,
            channel_busy_share: figures.busy_share,
            wire_busy_share: figures.wire_share,
            points: figures.points,
            reads: figures.reads,
            trace: format!("{:016x}", figures.trace),
        }
    }
}

/// One figure of the paper.
#[derive(Serialize)]
pub(super) struct Stated<'a> {
    task: &'static str,
    paper: &'a str,
    stated: f64,
    modelled: f64,
    unit: &'a str,
    agrees: bool,
    because: &'a str,
}

impl<'a> Stated<'a> {
    pub(super) fn new(statement: &'a Statement) -> Self {
        Self {
            task: statement.task.name(),
            paper: &statement.about,
            stated: statement.stated,
            modelled: statement.modelled,
            unit: statement.unit,
            agrees: statement.agrees,
            because: statement.because,
        }
    }
}
