//! The objects of `--json`. Names of fields are an interface: programs read them.
//!
//! Times are in seconds, shares in 0..=1; counts are totals over all nodes. What was not computed,
//! or is no finite number, is `null`, and so is the transport of nodes that are in one process.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::run::ManagerStats;
use adapm_runtime::Workers;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::cli::args::{Given, Settings};
use crate::cli::epoch::EpochDone;
use crate::cli::epoch::Labels;
use crate::cli::format;

/// The counts of the parameter manager.
#[derive(Serialize)]
pub(crate) struct Manager {
    local_share: f64,
    local: u64,
    waited: u64,
    remote: u64,
    /// Summed over workers.
    blocked_seconds: f64,
    /// Pulls and pushes that blocked a worker, and for how long each did.
    waits: u64,
    wait_mean: f64,
    /// An upper bound, at most twice the percentile.
    wait_p99: f64,
    /// Of waits for others under a bound, summed over workers.
    gated_seconds: f64,
    relocations: u64,
    replicas: u64,
    releases: u64,
    /// Replicas whose refresh workers asked for.
    renews: u64,
    /// Relocations that became replicas.
    coerced: u64,
    /// Intents that ended without a copy.
    refusals: u64,
    /// Replicas that a node held at a time.
    held_mean: f64,
    held_max: u64,
    bytes_sent: u64,
    /// Of them values, by what they are for, and the rest.
    delta_bytes: u64,
    refresh_bytes: u64,
    replica_bytes: u64,
    relocation_bytes: u64,
    operation_bytes: u64,
    answer_bytes: u64,
    head_bytes: u64,
    messages_sent: u64,
    refreshes: u64,
    staleness_mean: f64,
    /// An upper bound, at most twice the percentile.
    staleness_p99: f64,
    /// Changes of replicas that left, the pushes in each, and for how long they had waited for
    /// more.
    deltas: u64,
    delta_updates_mean: f64,
    delta_updates_max: u64,
    delay_mean: f64,
    delay_p99: f64,
    hops_mean: f64,
}

impl From<&ManagerStats> for Manager {
    fn from(stats: &ManagerStats) -> Self {
        Self {
            local_share: stats.local_share(),
            local: stats.local,
            waited: stats.waited,
            remote: stats.remote,
            blocked_seconds: stats.blocked_seconds(),
            waits: stats.blocked.count(),
            wait_mean: stats.wait_mean(),
            wait_p99: stats.wait_p99_bound(),
            gated_seconds: stats.gated_seconds(),
            relocations: stats.relocations,
            replicas: stats.replicas,
            releases: stats.releases,
            renews: stats.renews,
            coerced: stats.coerced,
            refusals: stats.refusals,
            held_mean: stats.held_mean(),
            held_max: stats.held_max,
            bytes_sent: stats.bytes_sent,
            delta_bytes: stats.delta_bytes,
            refresh_bytes: stats.refresh_bytes,
            replica_bytes: stats.replica_bytes,
            relocation_bytes: stats.relocation_bytes,
            operation_bytes: stats.operation_bytes,
            answer_bytes: stats.answer_bytes,
            head_bytes: stats.head_bytes(),
            messages_sent: stats.messages_sent,
            refreshes: stats.staleness.count(),
            staleness_mean: stats.staleness_mean(),
            staleness_p99: stats.staleness_p99_bound(),
            deltas: stats.delta_updates.count(),
            delta_updates_mean: stats.delta_updates.mean(),
            delta_updates_max: stats.delta_updates.max,
            delay_mean: stats.delay_mean(),
            delay_p99: stats.delay_p99_bound(),
            hops_mean: stats.hops_mean(),
        }
    }
}

/// Writes what the parameter manager did among other fields.
pub(crate) fn manager<S: Serializer>(
    stats: &ManagerStats,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    Manager::from(stats).serialize(serializer)
}

/// One epoch: its training alone.
#[derive(Serialize)]
pub(crate) struct Epoch {
    epoch: u32,
    seconds: f64,
    loss: f64,
    /// The number of examples, by the task's word for them; the figure on valid, by its name.
    #[serde(flatten)]
    named: BTreeMap<String, Value>,
    #[serde(flatten)]
    manager: Manager,
    evaluation_seconds: f64,
}

impl Epoch {
    pub(crate) fn new(epoch: &EpochDone, labels: Labels) -> Self {
        let valid = format!("valid_{}", labels.quality.to_lowercase());
        let named = [
            (labels.examples.to_owned(), Value::from(epoch.examples)),
            (valid, epoch.valid.map_or(Value::Null, Value::from)),
        ];
        Self {
            epoch: epoch.epoch,
            seconds: epoch.seconds,
            loss: epoch.loss,
            named: named.into_iter().collect(),
            manager: Manager::from(&epoch.stats),
            evaluation_seconds: epoch.evaluation_seconds,
        }
    }
}

/// The origin of a run, from which it can be repeated: the program, and the value of each flag,
/// given or not.
#[derive(Serialize)]
pub(crate) struct Origin<'a> {
    version: &'static str,
    /// When it began, UTC.
    date: String,
    /// By the names of the flags.
    settings: &'a Settings,
}

impl<'a> Origin<'a> {
    pub(crate) fn new(given: &'a Given, began: SystemTime) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            date: format::date(began),
            settings: given.settings(),
        }
    }
}

/// A training run; `own` is what is the task's, `summary` what all runs have.
#[derive(Serialize)]
pub(crate) struct Run<'a, O, S> {
    pub(crate) task: &'static str,
    #[serde(flatten)]
    pub(crate) origin: Origin<'a>,
    pub(crate) recipe: Option<&'a str>,
    pub(crate) system: &'a str,
    pub(crate) transport: Option<&'static str>,
    pub(crate) data: &'a str,
    pub(crate) generated: bool,
    #[serde(flatten)]
    pub(crate) own: O,
    #[serde(flatten)]
    pub(crate) summary: &'a S,
    pub(crate) saved: Option<String>,
}

/// Writes numbers of workers: one number, or a list with one for each node.
pub(crate) fn workers<S: Serializer>(workers: &Workers, serializer: S) -> Result<S::Ok, S::Error> {
    match workers.listed() {
        None => workers.all(1).serialize(serializer),
        Some(nodes) => workers.of_each(nodes).serialize(serializer),
    }
}

/// An evaluation; `own` is what is the task's.
#[derive(Serialize)]
pub(crate) struct Evaluation<'a, O> {
    pub(crate) task: &'static str,
    #[serde(flatten)]
    pub(crate) origin: Origin<'a>,
    pub(crate) system: &'a str,
    pub(crate) nodes: usize,
    #[serde(serialize_with = "workers")]
    pub(crate) workers: Workers,
    pub(crate) transport: Option<&'static str>,
    pub(crate) data: &'a str,
    pub(crate) generated: bool,
    #[serde(flatten)]
    pub(crate) own: O,
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) manager: Manager,
    pub(crate) stopped: bool,
}
