//! The verb `eval`, as far as it is the same whatever is evaluated.
//!
//! What is a task's own is its [`Program`].

use std::time::SystemTime;

use crate::cli::args::Given;
use crate::cli::epoch::Figures as _;
use crate::cli::failure::Failure;
use crate::cli::files::{Files, Outputs, check_shared};
use crate::cli::format;
use crate::cli::input;
use crate::cli::interrupt::Interrupt;
use crate::cli::json;
use crate::cli::output::Output;
use crate::cli::processes::{self, Processes};
use crate::cli::program::{EvalArgs, EvalReportOf, Plan, Program, Source};
use crate::cli::progress::Screen;
use crate::cli::report;
use crate::cli::table::{Align, Table};
use crate::cli::train::check_manager;
use crate::run::flags::name_of;

/// Evaluates what `args` ask for, prints the figures and writes files if asked to.
pub(crate) fn run<P: Program>(
    args: &EvalArgs<P>,
    given: &Given,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let check = || check_shared(&files(args));
    let nodes = args.cluster.nodes;
    processes::with(&args.processes, nodes, interrupt, check, |processes| {
        evaluate(args, given, processes, interrupt)
    })
}

fn evaluate<P: Program>(
    args: &EvalArgs<P>,
    given: &Given,
    processes: &Processes,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let began = SystemTime::now();
    let output = processes.output(args.output.json);
    check_manager(&args.cluster, processes)?;
    let mut files = files(args);
    if !processes.is_first() {
        files.written.clear();
    }
    let mut outputs = Outputs::prepare(&files, interrupt)?;
    let read = || P::read_evaluation(args).map_err(|error| *error.0);
    let (subject, source) = input::read(output, interrupt, processes.company().is_none(), read)?;
    outputs.check_inputs()?;
    let preface = preface(args, (&subject, &source), given, processes);

    let screen = Screen::new("eval", output, interrupt).labelled(P::LABELS).preface(preface);
    let run = &processes.run(&screen, interrupt.stop());
    let report = P::evaluate(&subject, &args.flags, &args.cluster, run)?;
    screen.open();
    let told = screen
        .finish()
        .and_then(|()| output.text(&result(args, (&subject, &source), &report, output, processes)));
    if report.stopped {
        outputs.leave("the evaluation is not complete");
    } else {
        outputs.copies();
        P::write_evaluation_files(&report, &mut outputs);
    }
    let told = told.and_then(|()| {
        outputs.sentences().try_for_each(|sentence| output.sentence(sentence))?;
        output.object(&json::Evaluation {
            task: P::NAME,
            origin: json::Origin::new(given, began),
            system: &name_of(args.cluster.system),
            nodes: report.nodes,
            workers: report.workers.clone(),
            transport: processes.transport(),
            data: &source.text,
            generated: source.is_generated,
            own: P::evaluation_object(&args.flags, &subject, &report),
            seconds: report.seconds,
            manager: json::Manager::from(&report.stats),
            stopped: report.stopped,
        })
    });
    outputs.finish()?;
    told?;
    interrupt.exit_code().map_or(Ok(()), |code| Err(Failure::Interrupted(code)))
}

/// Returns the files that are read and written.
pub(crate) fn files<P: Program>(args: &EvalArgs<P>) -> Files<'_> {
    let mut files = P::evaluation_files(&args.flags);
    files.read.push(("--load", &args.load));
    files
}

/// Describes the evaluation that is about to begin.
fn preface<P: Program>(
    args: &EvalArgs<P>,
    (subject, source): (&P::EvalData, &Source),
    given: &Given,
    processes: &Processes,
) -> String {
    let mut table = Table::new(&[]);
    let workers = report::workers_of_all(processes, &args.cluster);
    let mut plan = Plan { table: &mut table, given, workers, source: &source.text };
    P::plan_evaluation(args, subject, &mut plan);
    let topology = report::planned_topology(processes, &args.cluster);
    plan.row("cluster", &topology, &report::CLUSTER_FLAGS);
    plan.row("system", &name_of(args.cluster.system), &["system"]);
    let heading = processes.output(args.output.json).bold(format!("eval {}", P::NAME)).to_string();
    format!("{heading}\n{}", table.render())
}

/// Renders the results.
fn result<P: Program>(
    args: &EvalArgs<P>,
    (subject, source): (&P::EvalData, &Source),
    report: &EvalReportOf<P>,
    output: Output,
    processes: &Processes,
) -> String {
    let heading = format!("\n{} on {}", output.bold("result"), source.text);
    if report.stopped {
        return format!("{heading}, stopped before it was complete: no metrics\n");
    }
    let mut table = Table::new(&[Align::Left]);
    let items = report.figures.as_ref().map_or(0, P::Figures::items);
    let done = format!("{} in {}", format::count(items), format::seconds(report.seconds));
    table.row([P::LABELS.items, &done]);
    report::took_part(&mut table, processes, report.nodes, &report.workers);
    report::manager(&mut table, &report.stats);
    let quality = P::evaluation_quality(&args.flags, subject, report);
    format!("{heading}\n{quality}{}", table.render())
}
