//! The tables of a run, and what all tasks have in its object of `--json` (names of fields are an
//! interface), as far as they are the same whatever is trained or evaluated.

use crate::run::{ClusterConfig, Epoch, ManagerStats, TrainReport};
use adapm_runtime::Workers;
use serde::Serialize;

use crate::cli::format;
use crate::cli::json;
use crate::cli::output::Output;
use crate::cli::processes::Processes;
use crate::cli::table::{Align, Table};

/// The results of a training run, but for its figures of merit. With `--json` programs read it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) nodes: usize,
    #[serde(serialize_with = "json::workers")]
    pub(crate) workers: Workers,
    /// Epochs of the run; of one that was stopped those that there were to be.
    pub(crate) epochs: u32,
    /// Seconds of the training of each epoch that is over.
    #[serde(rename = "epoch_seconds")]
    pub(crate) seconds: Vec<f64>,
    /// Seconds in which the partition was made, if the run has made one.
    pub(crate) partition_seconds: Option<f64>,
    /// Loss of the last epoch that is over, mean over examples.
    pub(crate) loss: Option<f64>,
    /// The epoch whose parameters are kept.
    #[serde(rename = "chosen_epoch")]
    pub(crate) chosen: u32,
    /// The epoch was chosen by its figures.
    #[serde(skip)]
    pub(crate) is_selected: bool,
    /// Seconds of all evaluations of valid.
    #[serde(skip)]
    pub(crate) valid_seconds: f64,
    /// Seconds of the evaluation of test; `None` if there was none.
    #[serde(skip)]
    pub(crate) test_seconds: Option<f64>,
    #[serde(flatten, serialize_with = "json::manager")]
    pub(crate) stats: ManagerStats,
    pub(crate) stopped: bool,
}

/// Seconds of training of each epoch, and of all evaluations between them.
pub(crate) fn seconds_of<F>(epochs: &[Epoch<F>]) -> (Vec<f64>, f64) {
    let seconds = epochs.iter().map(|epoch| epoch.seconds).collect();
    (seconds, epochs.iter().fold(0.0, |sum, epoch| sum + epoch.evaluation_seconds))
}

impl Summary {
    /// Returns that of a report.
    pub(crate) fn of<F, C, X>(report: &TrainReport<F, C, X>) -> Self {
        let (seconds, valid_seconds) = seconds_of(&report.epochs);
        let is_complete = !report.stopped && !report.epochs.is_empty();
        let epochs = if is_complete { seconds.len() as u32 } else { report.epochs_max };
        Self {
            nodes: report.nodes,
            workers: report.workers.clone(),
            epochs,
            seconds,
            partition_seconds: report.partition_seconds,
            loss: report.epochs.last().map(|epoch| epoch.loss),
            chosen: report.chosen_epoch,
            is_selected: report.epochs.iter().any(|epoch| epoch.valid.is_some()),
            valid_seconds,
            test_seconds: report.test.as_ref().map(|_| report.test_seconds),
            stats: report.stats,
            stopped: report.stopped,
        }
    }

    /// `result on DATA`, or how far it came.
    pub(crate) fn heading(&self, output: Output, source: &str) -> String {
        let finished = self.seconds.len();
        let ended = if self.stopped {
            format!(", stopped after {finished} of {} epochs", self.epochs)
        } else {
            String::new()
        };
        format!("\n{} on {source}{ended}\n", output.bold("result"))
    }

    /// Describes the resulting parameters.
    pub(crate) fn state(&self) -> String {
        let last = u32::try_from(self.seconds.len()).unwrap_or(u32::MAX);
        let (chosen, next) = (self.chosen, last.saturating_add(1));
        if self.stopped && !self.is_selected && next <= self.epochs {
            return format!("epoch {chosen} and of what was done of epoch {next}");
        }
        format!("epoch {chosen}")
    }

    /// Time, who took part, what the manager did.
    pub(crate) fn table(&self, processes: &Processes) -> String {
        let mut table = Table::new(&[Align::Left]);
        if self.is_selected {
            table.row(["selected", &format!("epoch {}", self.chosen)]);
        }
        if let Some(seconds) = self.partition_seconds {
            table.row(["partition", &format::seconds(seconds)]);
        }
        let all = self.seconds.iter().fold(0.0, |sum, second| sum + second);
        table.row(["training", &format!("{} in {}", format::seconds(all), each(&self.seconds))]);
        let evaluation = self.valid_seconds + self.test_seconds.unwrap_or(0.0);
        if self.is_selected || evaluation > 0.0 {
            let test = self.test_seconds.map_or_else(String::new, |test| {
                format!(", including {} on test", format::seconds(test))
            });
            table.row(["evaluation", &format!("{}{test}", format::seconds(evaluation))]);
        }
        took_part(&mut table, processes, self.nodes, &self.workers);
        manager(&mut table, &self.stats);
        table.render()
    }
}

/// `4 nodes x 1 worker`.
pub(crate) fn cluster(nodes: usize, workers: &Workers) -> String {
    format!("{} {}", format::plural(nodes, "node"), of_nodes(workers))
}

/// `x 2 workers`, or `with 2,1,1 workers`.
fn of_nodes(workers: &Workers) -> String {
    match workers.listed() {
        None => format!("x {}", format::plural(workers.all(1), "worker")),
        Some(_) => format!("with {workers} workers"),
    }
}

/// Returns [`topology`] as it is known before a run.
pub(crate) fn planned_topology(processes: &Processes, cluster: &ClusterConfig) -> String {
    topology(processes, processes.nodes(cluster.nodes), workers_asked(cluster).as_ref())
}

/// Returns the workers of each node that are asked for; plain arrays have one.
fn workers_asked(cluster: &ClusterConfig) -> Option<Workers> {
    if cluster.system.is_none() { Some(Workers::from(1)) } else { cluster.workers.clone() }
}

/// `4 nodes x 1 worker, in this process`, or `4 processes x 1 worker`.
fn topology(processes: &Processes, nodes: usize, workers: Option<&Workers>) -> String {
    match processes.company() {
        None => {
            let cluster = cluster(nodes, &self::workers(workers, nodes));
            format!("{cluster}, in this process")
        }
        Some(_) => self::processes(nodes, workers),
    }
}

/// Workers of each node: as asked for, else as many as there are cores for a node, at least one.
pub(crate) fn workers(asked: Option<&Workers>, nodes: usize) -> Workers {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    asked.cloned().unwrap_or_else(|| (cores / nodes.max(1)).max(1).into())
}

/// Workers of all nodes; `None` if they are processes that have yet to agree on them.
pub(crate) fn workers_of_all(processes: &Processes, cluster: &ClusterConfig) -> Option<usize> {
    let asked = workers_asked(cluster);
    let is_known = processes.company().is_none() || asked.is_some();
    let nodes = processes.nodes(cluster.nodes);
    is_known.then(|| workers(asked.as_ref(), nodes).all(nodes))
}

/// `4 processes x 1 worker`; without a number of workers all have as many as the one with the
/// fewest cores.
fn processes(processes: usize, workers: Option<&Workers>) -> String {
    let processes = format!("{processes} process{}", if processes == 1 { "" } else { "es" });
    match workers {
        Some(workers) => format!("{processes} {}", of_nodes(workers)),
        None => format!("{processes}, workers by their cores"),
    }
}

/// Processes and their workers: before the run they had not yet agreed on how many.
pub(crate) fn took_part(table: &mut Table, processes: &Processes, nodes: usize, workers: &Workers) {
    let Some(company) = processes.company() else { return };
    table.row(["cluster", &topology(processes, nodes, Some(workers))]);
    let membership = company.group.membership();
    if let (refusals @ 1.., Some(last)) = (membership.refusals(), membership.refused().last()) {
        let refusals = usize::try_from(refusals).unwrap_or(usize::MAX);
        table.row([
            "refused",
            &format!("{}; the last: {last}", format::plural(refusals, "connection")),
        ]);
    }
}

/// Adds what the manager did, if there was one.
pub(crate) fn manager(table: &mut Table, stats: &ManagerStats) {
    if stats.local + stats.waited + stats.remote == 0 {
        return;
    }
    let accesses = format!(
        "{} local ({}), {} waited, {} remote",
        format::count(stats.local),
        format::share(stats.local_share()),
        format::count(stats.waited),
        format::count(stats.remote),
    );
    table.row(["accesses", &accesses]);
    let blocked = format::seconds(stats.blocked_seconds());
    table.row(["blocked", &format!("{blocked} in pulls and pushes, summed over workers")]);
    let waits = stats.blocked.count();
    if waits > 0 {
        let [mean, p99] = [stats.wait_mean(), stats.wait_p99_bound()].map(format::seconds);
        let waits = format::count(waits);
        table.row(["", &format!("{mean} mean, 99 % below {p99}, over {waits} waits")]);
    }
    if stats.gated_nanos > 0 {
        let gated = format::seconds(stats.gated_seconds());
        table.row(["", &format!("{gated} at clocks, until others came near enough")]);
    }
    let sent = format!(
        "{} in {} messages",
        format::bytes(stats.bytes_sent),
        format::count(stats.messages_sent)
    );
    table.row(["sent", &sent]);
    let kinds = [
        ("changes", stats.delta_bytes),
        ("refreshes", stats.refresh_bytes),
        ("new replicas", stats.replica_bytes),
        ("relocations", stats.relocation_bytes),
        ("remote pushes", stats.operation_bytes),
        ("remote pulls", stats.answer_bytes),
        ("keys and control", stats.head_bytes()),
    ];
    let kinds = kinds.iter().filter(|(_, bytes)| *bytes > 0);
    let kinds = kinds.map(|(name, bytes)| format!("{} {name}", format::bytes(*bytes)));
    table.row(["", &kinds.collect::<Vec<_>>().join(", ")]);
    table.row(["relocations", &format::count(stats.relocations)]);
    let replicas = format!(
        "{} set up, {} released; a node held {:.0} on average, {} at most",
        format::count(stats.replicas),
        format::count(stats.releases),
        stats.held_mean(),
        format::count(stats.held_max),
    );
    table.row(["replicas", &replicas]);
    if stats.renews > 0 {
        let renewed =
            format!("{} refreshed as they lagged behind others", format::count(stats.renews));
        table.row(["", &renewed]);
    }
    freshness(table, stats);
    if stats.served > 0 {
        table.row(["hops", &format!("{:.3} mean", stats.hops_mean())]);
    }
}

/// Adds how old copies were, and how long changes waited.
fn freshness(table: &mut Table, stats: &ManagerStats) {
    let refreshes = stats.staleness.count();
    if refreshes > 0 {
        let [mean, p99] =
            [stats.staleness_mean(), stats.staleness_p99_bound()].map(format::seconds);
        let refreshes = format::count(refreshes);
        table.row([
            "staleness",
            &format!("{mean} mean, 99 % below {p99}, over {refreshes} refreshes"),
        ]);
    }
    if stats.delays.sum > 0 {
        let [mean, p99] = [stats.delay_mean(), stats.delay_p99_bound()].map(format::seconds);
        let (pushes, most) = (stats.delta_updates.mean(), format::count(stats.delta_updates.max));
        let waited = format!("changes of replicas waited {mean} before, 99 % below {p99}");
        table.row(["", &waited]);
        table.row(["", &format!("{pushes:.1} pushes left together on average, {most} at most")]);
    }
}

/// Flags that say how many take part, and how.
pub(crate) const CLUSTER_FLAGS: [&str; 5] = ["nodes", "workers", "node", "rendezvous", "transport"];

/// `20 epochs: 4.31 s each (4.10 s to 4.60 s)`.
fn each(seconds: &[f64]) -> String {
    let epochs = format::plural(seconds.len(), "epoch");
    if seconds.len() < 2 {
        return epochs;
    }
    let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
    let (shortest, longest) = seconds
        .iter()
        .fold((f64::MAX, 0.0), |(low, high): (f64, f64), &s| (low.min(s), high.max(s)));
    let [mean, shortest, longest] = [mean, shortest, longest].map(format::seconds);
    format!("{epochs}, {mean} each ({shortest} to {longest})")
}
