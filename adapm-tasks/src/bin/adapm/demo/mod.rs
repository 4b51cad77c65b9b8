//! The verb `demo`: a generated job of each task under three systems, side by side.
//!
//! Nothing is delayed and nothing is left out: every figure is of the run at hand, also where adapting loses.

mod job;
mod verdict;

use adapm_tasks::System;
use adapm_tasks::run::ManagerStats;

use crate::args::DemoArgs;
use crate::demo::job::Job;
use crate::failure::Failure;
use crate::format;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Screen;
use crate::report;
use crate::table::{Align, Table};

/// How a figure is read from an outcome.
type Cell<'a> = &'a dyn Fn(&Outcome) -> String;

/// What a system did in a job.
pub(crate) struct Outcome {
    system: System,
    /// The figure of merit; `None` if the run was stopped.
    figure: Option<f64>,
    /// Of training, all epochs.
    seconds: f64,
    stats: ManagerStats,
}

/// What all systems did in a job.
pub(crate) struct Compared {
    name: &'static str,
    is_higher_better: bool,
    outcomes: Vec<Outcome>,
}

/// Trains each job under each system in turn and compares.
pub(crate) fn run(args: &DemoArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(false);
    let jobs = Job::all(args)?;
    let mut opening = Some(introduction(args, &jobs, output));
    let mut compared = Vec::new();
    for job in &jobs {
        let mut outcomes = Vec::new();
        for system in SYSTEMS {
            let name = format!("{:<3} {:<8}", job.name, system.name());
            let screen = Screen::new(&name, output, interrupt).labelled(job.labels).without_lines();
            let screen = screen.opening(opening.take().unwrap_or_default());
            let outcome = job.train(system, &screen, interrupt.stop())?;
            screen.open();
            screen.finish()?;
            outcomes.push(outcome);
            if interrupt.exit_code().is_some() {
                break;
            }
        }
        output.text(&comparison(job, &outcomes, output))?;
        if let Some(code) = interrupt.exit_code() {
            output.text("\nstopped: the last column is of what was done until then\n")?;
            return Err(Failure::Interrupted(code));
        }
        compared.push(Compared { name: job.name, is_higher_better: job.is_higher_better, outcomes });
    }
    output.text(&verdict::sentences(&compared, args.nodes, output))?;
    output.text(&format!("\n{}\n{NEXT}", output.bold("try next")))
}

fn introduction(args: &DemoArgs, jobs: &[Job], output: Output) -> String {
    let mut table = Table::new(&[]);
    for job in jobs {
        table.row([output.bold(job.name).to_string(), job.data.clone()]);
        table.row(["", &job.plan]);
    }
    let cluster = report::cluster(args.nodes, report::workers(None, args.nodes));
    table.row(["cluster", &cluster]);
    let names = SYSTEMS.map(System::name).join(", ");
    let heading = output.bold("adapm demo");
    let title = format::wrapped(&format!("{heading}: three small jobs, each under {names}"), output.width());
    format!("{title}\n{}", table.render())
}

/// A column per system, a row per figure, with what the row means.
fn comparison(job: &Job, outcomes: &[Outcome], output: Output) -> String {
    let mut columns = vec![Align::Left];
    columns.resize(1 + outcomes.len(), Align::Right);
    let mut table = Table::new(&columns);
    let heading = outcomes.iter().map(|outcome| output.bold(outcome.system.name()).to_string());
    table.row([output.bold(job.name).to_string()].into_iter().chain(heading));
    let best = format!("best possible: {}", format::figure(job.best));
    let rows: [(&str, Cell<'_>, &str); 9] = [
        (job.figure, &|run| run.figure.map_or_else(|| "-".into(), format::figure), &best),
        ("training time", &|run| format::seconds(run.seconds), "without evaluation"),
        ("local accesses", &|run| format::share(run.stats.local_share()), "needed no other node"),
        ("waited", &|run| format::count(run.stats.waited), "for a key in transit"),
        ("remote", &|run| format::count(run.stats.remote), "asked another node"),
        ("bytes sent", &|run| format::bytes(run.stats.bytes_sent), "between the nodes"),
        ("relocations", &|run| format::count(run.stats.relocations), "keys moved to a node"),
        ("replicas", &|run| format::count(run.stats.replicas), "copies set up"),
        ("staleness", &staleness, "mean age of a copy"),
    ];
    for (name, cell, note) in rows {
        let cells = outcomes.iter().map(cell);
        table.row([name.to_owned()].into_iter().chain(cells).chain([output.dim(note).to_string()]));
    }
    format!("\n{}", table.render())
}

fn staleness(outcome: &Outcome) -> String {
    let stats = &outcome.stats;
    if stats.staleness.count() == 0 { "-".into() } else { format::seconds(stats.staleness_mean()) }
}

const SYSTEMS: [System; 3] = [System::Adapm, System::Classic, System::Full];

const NEXT: &str = "  adapm train kge --nodes 4 --system lapse  another system, the same graph
  adapm train mf --data RATINGS --nodes 2   your ratings: `user item rating`
  adapm train wv --data TEXT --nodes 2      your text: a sentence a line
  adapm train kge --help                    all settings

  From a clone, write `cargo run --release --` for `adapm`.
";
