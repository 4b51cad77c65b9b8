//! The verb `demo`: one generated job under three systems, side by side.
//!
//! Nothing is delayed and nothing is left out: every figure is of the run at hand, also where adapting loses.

use adapm_tasks::System;
use adapm_tasks::kge::{self, Graph, LossKind, Negatives, TrainConfig, TrainReport};

use crate::args::DemoArgs;
use crate::failure::Failure;
use crate::format;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Screen;
use crate::report;
use crate::table::{Align, Table};
use crate::verdict;

/// How a figure is read from a report.
type Cell<'a> = &'a dyn Fn(&TrainReport) -> String;

/// What a system did.
pub(crate) struct Outcome {
    pub(crate) system: System,
    pub(crate) report: TrainReport,
}

/// Trains under each system in turn and compares.
pub(crate) fn run(args: &DemoArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(false);
    let graph = Graph::family(GRAPH_SEED);
    let mut opening = Some(introduction(args, &graph, output));
    let mut outcomes = Vec::new();
    for system in SYSTEMS {
        let screen = Screen::new(&format!("{system:<8}"), output, interrupt.stop()).without_lines();
        let screen = screen.opening(opening.take().unwrap_or_default());
        let report = kge::train(&graph, &config(args, system), &screen, interrupt.stop())?;
        screen.open();
        screen.finish()?;
        outcomes.push(Outcome { system, report });
        if interrupt.exit_code().is_some() {
            break;
        }
    }
    output.text(&comparison(&outcomes, output))?;
    if let Some(code) = interrupt.exit_code() {
        output.text("\nstopped: the last column is of what was done until then\n")?;
        return Err(Failure::Interrupted(code));
    }
    output.text(&verdict::sentences(&outcomes, args.nodes, output))?;
    output.text(&format!("\n{}\n{NEXT}", output.bold("try next")))
}

fn config(args: &DemoArgs, system: System) -> TrainConfig {
    let mut config = TrainConfig::default();
    config.system = Some(system);
    config.nodes = args.nodes;
    config.seed = args.seed;
    config.dim = args.dim;
    config.epochs = args.epochs;
    // The papers' way to draw negatives (AdaPM §5.1): many small accesses, which is what a parameter manager is for.
    config.negatives = Negatives::Independent;
    config.negative_count = Some(NEGATIVES);
    config.loss = LossKind::Logistic;
    config.n3 = 0.0;
    // Quality is compared at the end: selecting an epoch on the way would take longer than the training.
    config.valid_every = args.epochs;
    config
}

fn introduction(args: &DemoArgs, graph: &Graph, output: Output) -> String {
    let mut table = Table::new(&[]);
    report::describe_data(&mut table, graph, String::new());
    let model = TrainConfig::default().model;
    table.row(["model", &format!("{model}, {} reals an entity, {} loss", args.dim, LossKind::Logistic)]);
    table.row(["negatives", &format!("{NEGATIVES} for each side of a triple")]);
    table.row(["epochs", &args.epochs.to_string()]);
    table.row(["cluster", &report::cluster(args.nodes, report::workers(None, args.nodes))]);
    let names = SYSTEMS.map(System::name).join(", ");
    format!("{}: the same job under {names}\n{}\n", output.bold("adapm demo"), table.render(),)
}

/// A column per system, a row per figure, with what the row means.
fn comparison(outcomes: &[Outcome], output: Output) -> String {
    let mut columns = vec![Align::Left];
    columns.resize(1 + outcomes.len(), Align::Right);
    let mut table = Table::new(&columns);
    let heading = outcomes.iter().map(|outcome| output.bold(outcome.system.name()).to_string());
    table.row([String::new()].into_iter().chain(heading));
    let rows: [(&str, Cell<'_>, &str); 9] = [
        (
            "test MRR",
            &|run| run.test.map_or_else(|| "-".into(), |test| format::figure(test.mrr)),
            "at best 1",
        ),
        ("training time", &|run| format::seconds(seconds(run)), "without evaluation"),
        ("local accesses", &|run| format::share(run.stats.local_share()), "needed no other node"),
        ("waited", &|run| format::count(run.stats.waited), "for a key on its way"),
        ("remote", &|run| format::count(run.stats.remote), "asked another node"),
        ("bytes sent", &|run| format::bytes(run.stats.bytes_sent), "between the nodes"),
        ("relocations", &|run| format::count(run.stats.relocations), "moved to their users"),
        ("replicas", &|run| format::count(run.stats.replicas), "copies set up"),
        ("staleness", &staleness, "mean age of a copy"),
    ];
    for (name, cell, note) in rows {
        let cells = outcomes.iter().map(|outcome| cell(&outcome.report));
        table.row([name.to_owned()].into_iter().chain(cells).chain([output.dim(note).to_string()]));
    }
    table.render()
}

/// Seconds of training, all epochs.
pub(crate) fn seconds(report: &TrainReport) -> f64 {
    report.epochs.iter().fold(0.0, |sum, epoch| sum + epoch.seconds)
}

fn staleness(report: &TrainReport) -> String {
    if report.stats.refreshes == 0 { "-".into() } else { format::seconds(report.stats.staleness_mean()) }
}

const SYSTEMS: [System; 3] = [System::Adapm, System::Classic, System::Full];

/// The graph of the demo is also that of `train kge` without data.
const GRAPH_SEED: u64 = 1;

/// Negatives of each side of a triple.
const NEGATIVES: usize = 16;

const NEXT: &str = "  adapm train kge --nodes 4 --system lapse    another system, the same graph
  adapm train kge --data FOLDER --nodes 2     your own: train.txt, lines `h r t`
  adapm train kge --help                      everything that can be chosen

  From a clone, write `cargo run --release --` for `adapm`.
";
