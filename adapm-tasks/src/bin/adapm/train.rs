//! The verb `train kge`.

use std::io;
use std::path::Path;

use adapm_runtime::trace::Tracer;
use adapm_tasks::kge::{self, Graph, TaskError, TrainConfig};

use crate::args::{Given, TrainArgs};
use crate::failure::Failure;
use crate::format;
use crate::input;
use crate::interrupt::Interrupt;
use crate::json;
use crate::processes::{self, Processes};
use crate::progress::Screen;
use crate::report;
use crate::table::Table;
use crate::trace::{self, error::TraceFailure};

/// Trains what `args` ask for, prints what came out and keeps the parameters if asked to.
pub(crate) fn run(args: &TrainArgs, given: &Given, interrupt: &Interrupt) -> Result<(), Failure> {
    processes::with(&args.processes, args.cluster.nodes, interrupt, |processes| {
        train(args, given, processes, interrupt)
    })
}

fn train(
    args: &TrainArgs,
    given: &Given,
    processes: &Processes,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let output = processes.output(args.output.json);
    let mut config = config(args, processes);
    let save = args.output.save.as_deref().filter(|_| processes.is_first());
    input::probe_writable("--save", save)?;
    let trace = args.traced.trace_keys.as_ref().map(|file| match processes.company() {
        None => file.clone(),
        Some(company) => trace::part_of(file, company.group.node()),
    });
    input::probe_writable("--trace-keys", trace.as_deref())?;
    let graph = input::graph(&args.data, output, interrupt)?;
    config.trace = trace.as_deref().map(|path| tracer(path, args, &graph)).transpose()?;
    let opening = plan(args, &graph, &config, given, processes);

    let screen = Screen::new("train", output, interrupt.stop()).opening(opening);
    let stop = interrupt.stop();
    let trained = match processes.company() {
        None => kge::train(&graph, &config, &screen, stop),
        Some(company) => kge::train_in_group(&graph, &config, &company.group, &screen, stop),
    }?;
    screen.open();
    let shown = screen.finish();
    // Parameters first: they are worth more than the tables if one of the two fails.
    let saved = match save.zip(trained.checkpoint.as_ref()) {
        Some((path, checkpoint)) => {
            checkpoint.save(path).map_err(TaskError::Checkpoint)?;
            Some(path.display().to_string())
        }
        None => None,
    };
    shown?;
    output.text(&report::training_result(output, &graph, &config, &trained, processes))?;
    if let Some(path) = &saved {
        output.text(&format!("  parameters of epoch {} are in {path}\n", trained.chosen_epoch))?;
    }
    if let Some((tracer, path)) = config.trace.as_ref().zip(trace) {
        let events = tracer.finish().map_err(|error| unwritable(&path, error))?;
        let (events, keys) = (format::count(events), format::plural(tracer.keys().len(), "key"));
        output.text(&format!("  {events} events of {keys} are in {}\n", path.display()))?;
    }
    output.object(&json::Run::new(graph.source(), &config, &trained, saved.as_deref(), processes))?;
    interrupt.exit_code().map_or(Ok(()), |code| Err(Failure::Interrupted(code)))
}

/// Begins the trace of the keys that are asked for.
fn tracer(path: &Path, args: &TrainArgs, graph: &Graph) -> Result<Tracer, Failure> {
    let choices = args.traced.trace.as_ref().map_or(&[][..], |choices| &choices.0);
    let keys = kge::traced_keys(graph, args.model.reciprocal, choices).map_err(TraceFailure::Key)?;
    Tracer::create(path, keys).map_err(|error| unwritable(path, error))
}

fn unwritable(path: &Path, error: io::Error) -> Failure {
    Failure::Unwritable { flag: "--trace-keys", path: path.to_owned(), error }
}

fn plan(
    args: &TrainArgs,
    graph: &Graph,
    config: &TrainConfig,
    given: &Given,
    processes: &Processes,
) -> String {
    let mut table = Table::new(&[]);
    report::describe_data(&mut table, graph, input::origin(&args.data, given));
    let crew = report::crew(processes, config.nodes, config.workers);
    report::training_plan(&mut table, config, crew, given);
    let output = processes.output(args.output.json);
    format!("{}\n{}\n", output.bold("train kge"), table.render())
}

fn config(args: &TrainArgs, processes: &Processes) -> TrainConfig {
    let mut config = TrainConfig::default();
    config.system = Some(args.cluster.system);
    config.nodes = processes.nodes(args.cluster.nodes);
    config.workers = args.cluster.workers;
    config.localize_ahead = args.localize_ahead;
    config.seed = args.model.seed;
    config.model = args.model.model;
    config.dim = args.model.dim;
    config.reciprocal = args.model.reciprocal;
    config.initial_deviation = args.model.initial_deviation;
    config.epochs = args.training.epochs;
    config.loss = args.training.loss;
    config.negatives = args.training.negatives;
    config.negative_count = args.training.negative_count;
    config.scheme = args.training.sampling;
    config.chunk = args.training.chunk;
    config.learning_rate = args.training.learning_rate;
    config.l2_entity = args.training.l2_entity;
    config.l2_relation = args.training.l2_relation;
    config.n3 = args.training.n3;
    config.evaluate = !args.training.no_eval;
    config.valid_every = args.training.valid_every;
    config.checkpoint = args.output.save.is_some();
    config
}
