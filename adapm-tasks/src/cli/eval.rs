//! The verb `eval`, as far as it is the same whatever is evaluated.
//!
//! The parts of each task implement [`Evaluating`]: [`super::kge`], [`super::mf`], [`super::wv`].

use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use crate::run::ManagerStats;
use serde::Serialize;

use crate::cli::args::{ClusterArgs, Given, ProcessArgs};
use crate::cli::epoch::Labels;
use crate::cli::failure::Failure;
use crate::cli::files::{Files, Outputs};
use crate::cli::format;
use crate::cli::input;
use crate::cli::interrupt::Interrupt;
use crate::cli::json;
use crate::cli::output::Output;
use crate::cli::processes::{self, Processes};
use crate::cli::progress::Screen;
use crate::cli::report;
use crate::cli::table::{Align, Table};
use crate::cli::train::{self, Common, Plan};

/// A task that can be evaluated from the command line.
pub(crate) trait Evaluating {
    /// Its name.
    const TASK: &'static str;
    /// Its words for screens and tables.
    const LABELS: Labels;
    /// Trained parameters, and what they are tried on.
    type Input;
    /// The result.
    type Report;

    /// Returns the flags that all tasks have.
    fn shared(&self) -> Shared<'_>;

    /// Files that it reads, and those that the first process writes in the end.
    fn files(&self) -> Files<'_>;

    /// Reads parameters and data.
    fn input(&self) -> Result<Self::Input, Failure>;

    /// Names the source of the data.
    fn source(input: &Self::Input) -> String;

    /// Returns true if the data is generated.
    fn is_generated(input: &Self::Input) -> bool;

    /// Adds a row a choice, each with the flags that made it.
    fn plan(&self, plan: &mut Plan<'_>, input: &Self::Input);

    /// Evaluates.
    fn evaluate(
        &self,
        input: &Self::Input,
        common: Common,
        processes: &Processes,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<Self::Report, Failure>;

    /// Returns the results that all tasks have.
    fn summary(report: &Self::Report) -> Summary;

    /// Returns the figures of merit, as a table.
    fn quality(&self, input: &Self::Input, report: &Self::Report) -> String;

    /// Writes the files it was asked for.
    fn keep(&self, report: &Self::Report, outputs: &mut Outputs) {
        let _ = (report, outputs);
    }

    /// Returns the fields of the object that only this task has.
    fn object(&self, input: &Self::Input, report: &Self::Report) -> impl Serialize;
}

/// The flags of an evaluation that all tasks have.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) cluster: &'a ClusterArgs,
    pub(crate) processes: &'a ProcessArgs,
    pub(crate) json: bool,
}

/// The results of an evaluation, but for its figures of merit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    /// The items that were evaluated, by name and number.
    pub(crate) items: (&'static str, u64),
    pub(crate) seconds: f64,
    pub(crate) stats: ManagerStats,
    pub(crate) stopped: bool,
    pub(crate) nodes: usize,
    pub(crate) workers: usize,
}

/// Evaluates what `args` ask for, prints the figures and writes files if asked to.
pub(crate) fn run<E: Evaluating>(
    args: &E,
    given: &Given,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let Shared { cluster, processes, .. } = args.shared();
    let check = || args.files().check_shared();
    processes::with(processes, cluster.nodes, interrupt, check, |processes| {
        evaluate(args, given, processes, interrupt)
    })
}

fn evaluate<E: Evaluating>(
    args: &E,
    given: &Given,
    processes: &Processes,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let began = SystemTime::now();
    let Shared { cluster, json, .. } = args.shared();
    let output = processes.output(json);
    let common = train::common(cluster, processes)?;
    let mut files = args.files();
    if !processes.is_first() {
        files.written.clear();
    }
    let mut outputs = files.prepare(interrupt)?;
    let input = input::read(output, interrupt, processes.company().is_none(), || args.input())?;
    outputs.check_inputs()?;
    let mut table = Table::new(&[]);
    let workers = report::workers_of_all(processes, common.nodes, common.workers);
    let mut plan = Plan { table: &mut table, given, workers };
    args.plan(&mut plan, &input);
    let topology = report::topology(processes, common.nodes, common.workers);
    plan.row("cluster", &topology, &report::CLUSTER_FLAGS);
    plan.row("system", &cluster.system.to_string(), &["system"]);
    let heading = output.bold(format!("eval {}", E::TASK)).to_string();
    let preface = format!("{heading}\n{}", table.render());

    let screen = Screen::new("eval", output, interrupt).labelled(E::LABELS).preface(preface);
    let report = args.evaluate(&input, common, processes, &screen, interrupt.stop())?;
    screen.open();
    let summary = E::summary(&report);
    let told = screen
        .finish()
        .and_then(|()| output.text(&result(args, &input, &report, output, processes)));
    if summary.stopped {
        outputs.leave("the evaluation is not complete");
    } else {
        outputs.copies();
        args.keep(&report, &mut outputs);
    }
    let told = told.and_then(|()| {
        outputs.sentences().try_for_each(|sentence| output.sentence(sentence))?;
        output.object(&json::Evaluation {
            task: E::TASK,
            origin: json::Origin::new(given, began),
            system: cluster.system.to_string(),
            nodes: summary.nodes,
            workers: summary.workers,
            transport: processes.transport(),
            data: E::source(&input),
            generated: E::is_generated(&input),
            own: args.object(&input, &report),
            seconds: summary.seconds,
            manager: json::Manager::from(&summary.stats),
            stopped: summary.stopped,
        })
    });
    outputs.finish()?;
    told?;
    interrupt.exit_code().map_or(Ok(()), |code| Err(Failure::Interrupted(code)))
}

/// Renders the results.
fn result<E: Evaluating>(
    args: &E,
    input: &E::Input,
    report: &E::Report,
    output: Output,
    processes: &Processes,
) -> String {
    let heading = format!("\n{} on {}", output.bold("result"), E::source(input));
    let summary = E::summary(report);
    if summary.stopped {
        return format!("{heading}, stopped before it was complete: no metrics\n");
    }
    let mut table = Table::new(&[Align::Left]);
    let (items, count) = summary.items;
    table
        .row([items, &format!("{} in {}", format::count(count), format::seconds(summary.seconds))]);
    report::took_part(&mut table, processes, summary.nodes, summary.workers);
    report::manager(&mut table, &summary.stats);
    format!("{heading}\n{}{}", args.quality(input, report), table.render())
}
