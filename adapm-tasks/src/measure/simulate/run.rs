//! One workload under one system on one cluster, measured over a slice of an epoch.

use core::time::Duration;

use adapm_core::Clock;
use adapm_core::error::ConfigError;
use adapm_verify::sim::engines::{EngineError, Engines, EnginesConfig, Machine, Totals};
use adapm_verify::sim::{Failure, Perfect, Simulator};

use serde::{Serialize, Serializer};

use super::pattern::{Facts, pattern};
use super::trainer::Trainer;
use super::{Contender, Task};

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The workload.
    pub task: Task,
    /// The system.
    pub contender: Contender,
    /// Number of nodes.
    pub nodes: usize,
    /// Workers of each node.
    pub workers: usize,
    /// What machines and network cost.
    pub machine: Machine,
    /// How many times as long as assumed a worker computes, more than 0.
    pub compute: f64,
    /// From the start of one round to the next at the least, in nanoseconds. `None`: what engines do by themselves.
    pub round_nanos: Option<u64>,
    /// Seed of all choices.
    pub seed: u64,
}

/// What came out. Figures of an epoch are those of the slice, scaled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// Seconds of an epoch.
    #[serde(skip)]
    pub epoch_seconds: f64,
    /// Data points a second, all nodes together.
    #[serde(skip)]
    pub points_per_second: f64,
    /// Bytes that a node sends in an epoch.
    pub bytes_per_node: f64,
    /// Share of reads that were local.
    pub local_share: f64,
    /// Share of reads that waited for a copy on its way.
    pub waited_share: f64,
    /// Share of reads that asked another node.
    pub remote_share: f64,
    /// Relocations for a thousand data points.
    #[serde(rename = "relocations_per_1000_points")]
    pub relocations: f64,
    /// Replicas set up for a thousand data points.
    #[serde(rename = "replicas_per_1000_points")]
    pub replicas: f64,
    /// Mean time since the oldest change that a replica lacked when it was refreshed, in seconds.
    #[serde(rename = "staleness_mean")]
    pub staleness: f64,
    /// Mean time between two checks of a replica's owner (the measure of AdaPM §5.6), in seconds.
    #[serde(rename = "check_age_mean")]
    pub check_age: f64,
    /// Messages that a node sends in a second.
    #[serde(rename = "messages_per_node_and_second")]
    pub messages_per_node: f64,
    /// Share of time that a node's channels are busy.
    #[serde(rename = "channel_busy_share")]
    pub busy_share: f64,
    /// Share of a node's outgoing bandwidth in use; 0 if that is unlimited.
    #[serde(rename = "wire_busy_share")]
    pub wire_share: f64,
    /// Data points in the slice.
    pub points: u64,
    /// Reads in the slice.
    pub reads: u64,
    /// A fingerprint of everything that happened.
    #[serde(serialize_with = "hexadecimal")]
    pub trace: u64,
}

fn hexadecimal<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:016x}"))
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The cluster cannot be.
    #[error("{0}")]
    Config(ConfigError),
    /// The paper runs no such system on this workload.
    #[error("{1} is not modelled for {0}: its static choice is known for kge, wv and mf")]
    NotModelled(Task, Contender),
    /// A defect of the model or of an engine.
    #[error("{0}")]
    Failed(Failure<EngineError>),
}

/// Runs the slice.
///
/// # Errors
/// If the cluster cannot be, or the system is not modelled for the workload.
pub fn simulate(run: &Run) -> Result<Figures, SimulateError> {
    let mut pattern = pattern(run.task, run.nodes, run.contender.settles());
    if !run.contender.is_modelled_for(run.task) {
        return Err(SimulateError::NotModelled(run.task, run.contender));
    }
    let facts = pattern.facts().clone();
    let clock = Clock(TIMED_STEPS * facts.clocks);
    let config = EnginesConfig {
        nodes: run.nodes,
        workers: run.workers,
        layout: facts.layout.clone(),
        element_bytes: facts.element_bytes,
        keys_per_key: facts.keys_per_key,
        machine: run.machine,
        clock,
        round_nanos: run.round_nanos,
    };
    let policy = |_| run.contender.policy(run.workers, clock, facts.clocks);
    let engines = Engines::new(config, policy).map_err(SimulateError::Config)?;
    let board = engines.board();
    let links = Perfect::new(run.machine.wire(), run.nodes, run.seed);
    let mut simulator = Simulator::new(engines, links, run.seed);
    let mut trainer = Trainer::new(&mut *pattern, run, board.clone());
    simulator.run(&mut trainer, PATIENCE).map_err(SimulateError::Failed)?;
    let steps = trainer.measured().unwrap_or(0);
    let totals = board.totals();
    let [from, to] = totals.as_slice() else { unreachable!("a run that comes to rest was measured") };
    Ok(figures(run, &facts, steps, from, to, simulator.trace()))
}

fn figures(run: &Run, facts: &Facts, steps: u64, from: &Totals, to: &Totals, trace: u64) -> Figures {
    let points = steps * facts.points;
    let seconds = to.now.nanos_since(from.now) as f64 / 1e9;
    let nodes = run.nodes as f64;
    let of_epoch = facts.epoch_points as f64 / points as f64;
    let sum = |read: fn(&Totals) -> u64| (read(to) - read(from)) as f64;
    let reads = sum(|totals| totals.local + totals.waited + totals.remote);
    let share = |count: f64| if reads > 0.0 { count / reads } else { 0.0 };
    let per_thousand = |count: f64| count * facts.keys_per_key as f64 * 1_000.0 / points as f64;
    let mean = |count: f64, nanos: f64| if count > 0.0 { nanos / count / 1e9 } else { 0.0 };
    let bytes = sum(|totals| totals.bytes);
    Figures {
        epoch_seconds: seconds * of_epoch,
        points_per_second: points as f64 / seconds,
        bytes_per_node: bytes * of_epoch / nodes,
        local_share: share(sum(|totals| totals.local)),
        waited_share: share(sum(|totals| totals.waited)),
        remote_share: share(sum(|totals| totals.remote)),
        reads: reads as u64,
        relocations: per_thousand(sum(|totals| totals.engines.relocations)),
        replicas: per_thousand(sum(|totals| totals.engines.replicas)),
        staleness: mean(
            sum(|totals| totals.engines.staleness.count()),
            sum(|totals| totals.engines.staleness.sum),
        ),
        check_age: mean(
            sum(|totals| totals.engines.check_age.count()),
            sum(|totals| totals.engines.check_age.sum),
        ),
        messages_per_node: sum(|totals| totals.messages) / seconds / nodes,
        busy_share: sum(|totals| totals.busy_nanos) / 1e9 / seconds / nodes,
        wire_share: match run.machine.bytes_per_second {
            0 => 0.0,
            rate => bytes / seconds / nodes / rate as f64,
        },
        points,
        trace,
    }
}

/// Steps that the action timer has seen when a run begins: its first estimate is forgotten by then.
const TIMED_STEPS: u64 = 64;

/// More virtual time than any slice takes.
const PATIENCE: Duration = Duration::from_secs(100_000);
