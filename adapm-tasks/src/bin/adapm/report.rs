//! The tables of a run: what is about to be done, and what came out.

use adapm_tasks::kge::{EvalReport, Graph, ManagerStats, Negatives, Split, TrainConfig, TrainReport};
use adapm_tasks::metric::RankMetrics;

use crate::args::Given;
use crate::format;
use crate::output::Output;
use crate::processes::Processes;
use crate::table::{Align, Table};

/// Adds what the data is and what was found in it. `origin` says which flag chose it.
pub(crate) fn describe_data(table: &mut Table, graph: &Graph, origin: String) {
    table.row(["data".to_owned(), graph.source().to_string(), origin]);
    let splits = format!(
        "{} train, {} valid, {} test triples; {} entities, {} relations",
        format::count(graph.train().len() as u64),
        format::count(graph.valid().len() as u64),
        format::count(graph.test().len() as u64),
        format::count(graph.entities().len() as u64),
        format::count(graph.relations().len() as u64),
    );
    table.row(["", &splits]);
    let counts = graph.counts();
    if counts.duplicates > 0 {
        table.row(["", &format!("{} repeated in train, trained on once", format::count(counts.duplicates))]);
    }
    for (split, unknown) in [("valid", counts.unknown_valid), ("test", counts.unknown_test)] {
        if unknown > 0 {
            table.row([
                "",
                &format!("{} of {split} with a name unknown to train, kept", format::count(unknown)),
            ]);
        }
    }
}

/// The choices of a training run, each with the flags that made it.
pub(crate) fn training_plan(table: &mut Table, config: &TrainConfig, cluster: String, given: &Given) {
    let reciprocal = if config.reciprocal { ", reciprocal relations" } else { "" };
    let model = format!("{}, {} reals an entity{reciprocal}", config.model, config.dim);
    table.row(["model".into(), model, given.among(&["model", "dim", "reciprocal", "initial-deviation"])]);
    let mut training = format!("{} loss, AdaGrad, learning rate {}", config.loss, config.learning_rate);
    for (name, weight) in [("L2", config.l2_entity), ("relation L2", config.l2_relation), ("N3", config.n3)] {
        if weight != 0.0 {
            training.push_str(&format!(", {name} {weight}"));
        }
    }
    let flags = given.among(&["loss", "learning-rate", "l2-entity", "l2-relation", "n3"]);
    table.row(["training".into(), training, flags]);
    let negatives = match (config.negatives, config.negative_count) {
        (Negatives::Shared, count) => {
            format!("{} shared by a chunk of {} triples", count.unwrap_or(1000), config.chunk)
        }
        (_, count) => format!("{} for each side of a triple", count.unwrap_or(50)),
    };
    let sampling = config.sampling().map_or(String::new(), |scheme| format!("; sampling {scheme}"));
    let flags = given.among(&["negatives", "negative-count", "sampling", "chunk"]);
    table.row(["negatives".into(), negatives + &sampling, flags]);
    let epochs = match config.evaluate {
        true => format!("{}, valid every {}", config.epochs, config.valid_every),
        false => format!("{}, not evaluated", config.epochs),
    };
    table.row(["epochs".into(), epochs, given.among(&["epochs", "valid-every", "no-eval"])]);
    table.row(["cluster".into(), cluster, given.among(&CLUSTER_FLAGS)]);
    let system = config.system.map_or("none", |system| system.name());
    table.row(["system", system, &given.among(&["system", "localize-ahead"])]);
    table.row(["seed", &config.seed.to_string(), &given.among(&["seed"])]);
}

/// `4 nodes x 1 worker, in this process`.
pub(crate) fn cluster(nodes: usize, workers: usize) -> String {
    let (nodes, workers) = (format::plural(nodes, "node"), format::plural(workers, "worker"));
    format!("{nodes} x {workers}, in this process")
}

/// `4 nodes x 1 worker, in this process`, or `4 processes x 1 worker`.
pub(crate) fn crew(processes: &Processes, nodes: usize, workers: Option<usize>) -> String {
    match processes.company() {
        None => cluster(nodes, self::workers(workers, nodes)),
        Some(_) => self::processes(nodes, workers),
    }
}

/// Workers of each node: as asked for, else as many as there are cores for a node, at least one.
pub(crate) fn workers(asked: Option<usize>, nodes: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    asked.unwrap_or_else(|| (cores / nodes.max(1)).max(1))
}

/// `4 processes x 1 worker`; without a number of workers all have as many as the one with the fewest cores.
fn processes(processes: usize, workers: Option<usize>) -> String {
    let processes = format!("{processes} process{}", if processes == 1 { "" } else { "es" });
    match workers {
        Some(workers) => format!("{processes} x {}", format::plural(workers, "worker")),
        None => format!("{processes}, workers by their cores"),
    }
}

/// What came out of a training run.
pub(crate) fn training_result(
    output: Output,
    graph: &Graph,
    config: &TrainConfig,
    report: &TrainReport,
    processes: &Processes,
) -> String {
    let mut text = format!("\n{}", heading(output, graph));
    let finished = report.epochs.len();
    let ended = if report.stopped {
        format!(", stopped after {finished} of {} epochs", config.epochs)
    } else {
        String::new()
    };
    text.push_str(&format!("{ended}\n"));
    text.push_str(&quality(&[("valid", chosen_valid(report)), ("test", report.test.as_ref())]));
    let mut table = Table::new(&[Align::Left]);
    if config.evaluate {
        table.row(["selected", &format!("epoch {}", report.chosen_epoch)]);
    }
    let seconds: Vec<f64> = report.epochs.iter().map(|epoch| epoch.seconds).collect();
    table.row([
        "training",
        &format!(
            "{} in {}",
            format::seconds(seconds.iter().fold(0.0, |sum, second| sum + second)),
            each(&seconds)
        ),
    ]);
    let evaluation = report.epochs.iter().fold(0.0, |sum, epoch| sum + epoch.evaluation_seconds);
    if config.evaluate {
        let test = match report.test {
            Some(_) => format!(", of it test {}", format::seconds(report.test_seconds)),
            None => String::new(),
        };
        let evaluation = format!("{}{test}", format::seconds(evaluation + report.test_seconds));
        table.row(["evaluation", &evaluation]);
    }
    took_part(&mut table, processes, report.nodes, report.workers);
    manager(&mut table, &report.stats);
    text + &table.render()
}

/// What came out of an evaluation.
pub(crate) fn evaluation_result(
    output: Output,
    graph: &Graph,
    split: Split,
    report: &EvalReport,
    processes: &Processes,
) -> String {
    let mut text = format!("\n{}", heading(output, graph));
    if report.stopped {
        text.push_str(", stopped before it was complete: no figures\n");
        return text;
    }
    text.push('\n');
    text.push_str(&quality(&[(split.name(), Some(&report.metrics))]));
    let mut table = Table::new(&[Align::Left]);
    table.row([
        "queries",
        &format!("{} in {}", format::count(report.metrics.queries), format::seconds(report.seconds)),
    ]);
    took_part(&mut table, processes, report.nodes, report.workers);
    manager(&mut table, &report.stats);
    text + &table.render()
}

/// Processes and their workers: before the run they had not yet agreed on how many.
fn took_part(table: &mut Table, processes: &Processes, nodes: usize, workers: usize) {
    if processes.company().is_some() {
        table.row(["cluster", &crew(processes, nodes, Some(workers))]);
    }
}

/// The figures on valid that selected the epoch.
pub(crate) fn chosen_valid(report: &TrainReport) -> Option<&RankMetrics> {
    let chosen = report.epochs.iter().find(|epoch| epoch.epoch == report.chosen_epoch)?;
    chosen.valid.as_ref()
}

/// Figures of generated data are not to be mistaken for others.
fn heading(output: Output, graph: &Graph) -> String {
    format!("{} on {}", output.bold("result"), graph.source())
}

/// A row per split that was evaluated; empty if none was.
fn quality(splits: &[(&str, Option<&RankMetrics>)]) -> String {
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Right]);
    let mut any = false;
    for (split, metrics) in splits {
        let Some(metrics) = metrics else { continue };
        if !any {
            table.row(["filtered", "MRR", "Hits@1", "Hits@3", "Hits@10"]);
            any = true;
        }
        let mut row = vec![(*split).to_owned()];
        row.extend(
            [metrics.mrr, metrics.hits_at_1, metrics.hits_at_3, metrics.hits_at_10].map(format::figure),
        );
        if metrics.has_ties() {
            let (worst, best) = (metrics.mrr_pessimistic, metrics.mrr_optimistic);
            row.push(format!("MRR {worst:.4} if ties are lost, {best:.4} if won"));
        }
        table.row(row);
    }
    if any { table.render() + "\n" } else { String::new() }
}

fn manager(table: &mut Table, stats: &ManagerStats) {
    let accesses = format!(
        "{} local ({}), {} waited, {} remote",
        format::count(stats.local),
        format::share(stats.local_share()),
        format::count(stats.waited),
        format::count(stats.remote),
    );
    table.row(["accesses", &accesses]);
    let sent =
        format!("{} in {} messages", format::bytes(stats.bytes_sent), format::count(stats.messages_sent));
    table.row(["sent", &sent]);
    table.row(["relocations", &format::count(stats.relocations)]);
    table.row(["replicas", &format!("{} set up", format::count(stats.replicas))]);
    if stats.refreshes > 0 {
        let (mean, refreshes) = (format::seconds(stats.staleness_mean()), format::count(stats.refreshes));
        table.row(["staleness", &format!("{mean} mean over {refreshes} refreshes")]);
    }
    if stats.served > 0 {
        table.row(["hops", &format!("{:.3} mean", stats.hops_mean())]);
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
    let (shortest, longest) =
        seconds.iter().fold((f64::MAX, 0.0), |(low, high): (f64, f64), &s| (low.min(s), high.max(s)));
    let [mean, shortest, longest] = [mean, shortest, longest].map(format::seconds);
    format!("{epochs}, {mean} each ({shortest} to {longest})")
}
