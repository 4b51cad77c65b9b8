//! The figures as tables, and what the paper states beside them.
//!
//! And the objects of `simulate --json`, whose names of fields are an interface: programs read
//! them.
//!
//! Times are in seconds, shares in 0..=1; of an epoch are `epoch_seconds` and `bytes_per_node`,
//! scaled from the slice of `points` data points.

use std::path::Path;

use crate::measure::simulate::paper::{FACTOR, Statement};
use crate::measure::simulate::{Figures, Run, Task};
use serde::Serialize;

use crate::cli::args::SimulateArgs;
use crate::cli::format;
use crate::cli::measure::simulate::results::{Results, speed_up};
use crate::cli::output::Output;
use crate::cli::table::{Align, Table};

/// Heads the output: what the figures are, and what they are not.
pub(super) fn heading(args: &SimulateArgs, output: Output) -> String {
    let machine = args.machine.machine();
    let bandwidth = match machine.bytes_per_second {
        0 => "no limit".to_owned(),
        rate => format!("{} Gbit/s", rate / 125_000_000),
    };
    let settings = format!(
        "{}: {} a node, seed {}; network {}, {bandwidth}; {}",
        output.bold("adapm simulate"),
        format::plural(args.workers, "worker"),
        args.seed,
        format::seconds(machine.latency_nanos as f64 / 1e9),
        format::plural(machine.channels as usize, "channel"),
    );
    let width = output.width().min(LINE_MAX);
    let explained = format::lines(EXPLAINED, width).join("\n");
    format!("{}\n{}\n", format::wrapped(&settings, width), output.dim(explained))
}

/// Returns a row per system and number of nodes.
pub(super) fn of_task(task: Task, results: &Results, output: Output) -> String {
    let mut columns = vec![Align::Right, Align::Left];
    columns.resize(HEADINGS.len(), Align::Right);
    let mut table = Table::new(&columns).named_by(2);
    table.row(HEADINGS.map(|heading| output.dim(heading).to_string()));
    for (run, figures) in results {
        table.row(row(results, run, figures));
    }
    format!("\n{} ({task})\n{}", output.bold(task.title()), table.render())
}

fn row(results: &Results, run: &Run, figures: &Figures) -> Vec<String> {
    let alone = run.nodes == 1;
    let between = |text: String| if alone { "-".to_owned() } else { text };
    let speed_up = speed_up(results, run, figures)
        .map_or_else(|| "-".to_owned(), |times| format!("{times:.2}x"));
    vec![
        run.nodes.to_string(),
        if alone { "any".to_owned() } else { run.contender.to_string() },
        format::seconds(figures.epoch_seconds),
        speed_up,
        between(format::bytes(figures.bytes_per_node as u64)),
        between(small_share(figures.waited_share)),
        between(small_share(figures.remote_share)),
        between(milliseconds(figures.check_age)),
        between(format!("{:.0} %", figures.busy_share.min(1.0) * 100.0)),
    ]
}

/// Returns the stated figures of a workload with ours.
pub(super) fn beside_the_paper(statements: &[Statement], output: Output) -> String {
    if statements.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Left]);
    let headings = ["beside the paper (8 nodes unless noted)", "stated", "here", ""];
    table.row(headings.map(|heading| output.dim(heading).to_string()));
    let mut reasons: Vec<&str> = Vec::new();
    for statement in statements {
        let verdict = if statement.agrees {
            "agrees".to_owned()
        } else {
            let known = reasons.iter().position(|reason| *reason == statement.because);
            let number = known.unwrap_or_else(|| {
                reasons.push(statement.because);
                reasons.len() - 1
            });
            format!("differs ({})", number + 1)
        };
        let figure = |value: f64| amount(value, statement.unit);
        table.row([
            statement.about.clone(),
            figure(statement.stated),
            figure(statement.modelled),
            verdict,
        ]);
    }
    let mut text = format!("\n{}", table.render());
    for (index, reason) in reasons.iter().enumerate() {
        let lines =
            format::lines(&format!("({}) {reason}", index + 1), output.width().min(LINE_MAX) - 2);
        text.push_str(&format!("  {}\n", lines.join("\n  ")));
    }
    text
}

/// Sums up all statements.
pub(super) fn closing(statements: &[Statement], folder: Option<&Path>, output: Output) -> String {
    let agree = statements.iter().filter(|statement| statement.agrees).count();
    let verdict = match statements.len() {
        0 => "The paper states no metric of any of these runs: it has them for 8 nodes.".to_owned(),
        all => format!(
            "{agree} of {all} metrics that the paper states agree: within a factor of {FACTOR}, ratios by what they exceed one by, \
             bounds if they hold."
        ),
    };
    let pictures = folder.map_or_else(String::new, |folder| {
        format!("\n{} holds one picture per workload.", folder.display())
    });
    let verdict = format::lines(&verdict, output.width().min(LINE_MAX)).join("\n");
    format!("\n{}{pictures}\n", output.bold(verdict))
}

fn amount(value: f64, unit: &str) -> String {
    match unit {
        "" => format!("{value:.2}x"),
        "%" if value == 0.0 => "0 %".to_owned(),
        "%" if value < 0.01 => format!("{value:.4} %"),
        "%" => format!("{value:.2} %"),
        unit if value < 10.0 => format!("{value:.1} {unit}"),
        unit => format!("{} {unit}", format::count(value.round() as u64)),
    }
}

/// Returns a share that is zero more often than not.
fn small_share(share: f64) -> String {
    match share {
        0.0 => "0".to_owned(),
        share if share < 1e-4 => format!("{:.4} %", share * 100.0),
        share => format!("{:.2} %", share * 100.0),
    }
}

fn milliseconds(seconds: f64) -> String {
    if seconds == 0.0 { "-".to_owned() } else { format!("{:.2} ms", seconds * 1e3) }
}

const HEADINGS: [&str; 9] =
    ["nodes", "system", "epoch", "speed-up", "sent/node", "waited", "remote", "checks", "busy"];

const EXPLAINED: &str = "Real protocol engines in virtual time; epochs are scaled from a slice. Nothing is learned, so \
speed-up is raw: the time of an epoch on one node over that on these. Sent: bytes of a node in an epoch. Waited: share of \
reads that waited for a copy in transit; remote: share of reads that another node answered; all others were local. Checks: \
mean time between two synchronizations of a replica with its owner. Busy: share of time of the channel threads.";

/// One run.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    task: &'static str,
    system: String,
    nodes: usize,
    workers: usize,
    machine: &'static str,
    compute: f64,
    seed: u64,
    epoch_seconds: f64,
    speed_up: Option<f64>,
    #[serde(flatten)]
    figures: &'a Figures,
}

impl<'a> Row<'a> {
    pub(super) fn new(run: &Run, figures: &'a Figures, speed_up: Option<f64>) -> Self {
        Self {
            task: run.task.name(),
            system: run.contender.to_string(),
            nodes: run.nodes,
            workers: run.workers,
            machine: run.machine.name,
            compute: run.compute,
            seed: run.seed,
            epoch_seconds: figures.epoch_seconds,
            speed_up,
            figures,
        }
    }
}

/// Longer lines are hard to read.
const LINE_MAX: usize = 100;
