//! The verb `train`, as far as it is the same whatever is trained.
//!
//! ```text
//!   probe files to be written | read data | plan | train, watched | keep the parameters | tables | one object
//! ```
//!
//! What is a task's own it says by [`Training`]: [`crate::kge`], [`crate::mf`], [`crate::wv`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use adapm_core::Key;
use adapm_runtime::System;
use adapm_runtime::trace::Tracer;
use adapm_tasks::run::{KeyChoice, UnknownKey};
use serde::Serialize;

use crate::args::{ClusterArgs, Given, Manager, ProcessArgs, RecipeArgs, TraceKeysArgs, TrainOutputArgs};
use crate::failure::Failure;
use crate::files::{self, Files};
use crate::format;
use crate::interrupt::Interrupt;
use crate::json;
use crate::output::Output;
use crate::processes::{self, Processes};
use crate::progress::{Labels, Screen};
use crate::report::{self, Summary};
use crate::table::Table;
use crate::trace::{self, error::TraceFailure};
use crate::{input, recipe};

/// What a task says to be trained from the command line.
pub(crate) trait Training {
    /// Its name.
    const TASK: &'static str;
    /// What it calls what it does.
    const LABELS: Labels;
    /// What its keys can be traced by.
    const KEY_KINDS: &'static [&'static str];
    /// What is trained on.
    type Data;
    /// The library's choices.
    type Config;
    /// What came out.
    type Report;

    /// The flags that all tasks have.
    fn shared(&self) -> Shared<'_>;

    /// Files that it reads, and those of its own that the first process writes in the end.
    fn files(&self) -> Files<'_>;

    /// Reads or generates what is trained on.
    fn data(&self) -> Result<Self::Data, Failure>;

    /// Where the data came from.
    fn source(data: &Self::Data) -> String;

    /// Whether the data is generated.
    fn is_generated(data: &Self::Data) -> bool;

    /// The keys to trace, with what they are.
    fn traced_keys(&self, data: &Self::Data, choices: &[KeyChoice])
    -> Result<Vec<(Key, String)>, UnknownKey>;

    /// The library's choices from all flags.
    fn config(&self, common: Common) -> Self::Config;

    /// Adds a row a choice, each with the flags that made it.
    fn plan(&self, plan: &mut Plan<'_>, data: &Self::Data, config: &Self::Config);

    /// Trains.
    fn train(
        &self,
        data: &Self::Data,
        config: &Self::Config,
        processes: &Processes,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<Self::Report, Failure>;

    /// What came out that all tasks have.
    fn summary(&self, report: &Self::Report) -> Summary;

    /// The figures of merit, as a table; empty if there are none.
    fn quality(data: &Self::Data, report: &Self::Report) -> String;

    /// Writes the files it was asked for, but for traces. Gives a sentence for each; the file with the parameters is `--save`'s.
    fn keep(&self, data: &Self::Data, report: &Self::Report) -> Result<Vec<String>, Failure>;

    /// What the last object holds of this task's alone.
    fn object(data: &Self::Data, config: &Self::Config, report: &Self::Report) -> impl Serialize;
}

/// The flags of a training run that all tasks have.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) recipe: &'a RecipeArgs,
    pub(crate) cluster: &'a ClusterArgs,
    pub(crate) output: &'a TrainOutputArgs,
    pub(crate) traced: &'a TraceKeysArgs,
    pub(crate) processes: &'a ProcessArgs,
}

/// What all configurations have.
pub(crate) struct Common {
    pub(crate) system: Option<System>,
    pub(crate) nodes: usize,
    pub(crate) workers: Option<usize>,
    pub(crate) trace: Option<Tracer>,
}

/// The table of what is about to be done.
pub(crate) struct Plan<'a> {
    pub(crate) table: &'a mut Table,
    pub(crate) given: &'a Given,
}

impl Plan<'_> {
    /// Adds a row: what is chosen, and those of `flags` that chose it.
    pub(crate) fn row(&mut self, name: &str, choice: &str, flags: &[&str]) {
        self.table.row([name, choice, &self.given.among(flags)]);
    }
}

/// Trains what `args` ask for, prints what came out and keeps the parameters if asked to; or lists recipes.
pub(crate) fn run<T: Training>(args: &T, given: &Given, interrupt: &Interrupt) -> Result<(), Failure> {
    let shared = args.shared();
    if shared.recipe.lists() {
        return recipe::list(T::TASK, Output::new(shared.output.json));
    }
    processes::with(shared.processes, shared.cluster.nodes, interrupt, |processes| {
        train(args, given, processes, interrupt)
    })
}

fn train<T: Training>(
    args: &T,
    given: &Given,
    processes: &Processes,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let Shared { cluster, output: wanted, traced, .. } = args.shared();
    let output = processes.output(wanted.json);
    let common = common(cluster, processes)?;
    if processes.is_first() {
        let mut files = args.files();
        files.written.extend(Files::given([("--save", &wanted.save), ("--trace-keys", &traced.trace_keys)]));
        files.probe()?;
    }
    let trace = traced.trace_keys.as_ref().map(|file| match processes.company() {
        None => file.clone(),
        Some(company) => trace::part_of(file, company.group.node()),
    });
    if let Some(part) = trace.as_deref().filter(|_| processes.company().is_some()) {
        files::probe_writable("--trace-keys", part)?;
    }
    let choices = traced.trace.as_deref().map_or(Ok(Vec::new()), |text| KeyChoice::list(text, T::KEY_KINDS));
    let choices = choices.map_err(TraceFailure::Choice)?;
    let data = input::read(output, interrupt, "reading data", || args.data())?;
    let tracer = trace.as_deref().map(|path| tracer(path, args, &data, &choices)).transpose()?;
    let config = args.config(Common { trace: tracer.clone(), ..common });
    let opening = opening(args, &data, &config, given, processes)?;

    let screen = Screen::new("train", output, interrupt.stop()).labelled(T::LABELS).opening(opening);
    let report = args.train(&data, &config, processes, &screen, interrupt.stop())?;
    screen.open();
    let shown = screen.finish();
    // Parameters first: they are worth more than the tables if one of the two fails.
    let kept = if processes.is_first() { args.keep(&data, &report)? } else { Vec::new() };
    shown?;
    let summary = args.summary(&report);
    output.text(&summary.heading(output, &T::source(&data)))?;
    output.text(&T::quality(&data, &report))?;
    output.text(&summary.table(processes))?;
    kept.iter().try_for_each(|sentence| output.text(&format!("  {sentence}\n")))?;
    if let Some((tracer, path)) = tracer.zip(trace) {
        let events = tracer.finish().map_err(|error| unwritable(&path, error))?;
        let (events, keys) = (format::count(events), format::plural(tracer.keys().len(), "key"));
        output.text(&format!("  {events} events of {keys} are in {}\n", path.display()))?;
    }
    output.object(&json::Run {
        task: T::TASK,
        recipe: args.shared().recipe.recipe.as_deref(),
        system: cluster.system.to_string(),
        transport: processes.transport(),
        data: T::source(&data),
        generated: T::is_generated(&data),
        own: T::object(&data, &config, &report),
        outcome: json::Outcome::from(&summary),
        saved: saved(wanted.save.as_deref(), processes, !kept.is_empty()),
    })?;
    interrupt.exit_code().map_or(Ok(()), |code| Err(Failure::Interrupted(code)))
}

/// The choices of a cluster.
///
/// # Errors
///
/// Several nodes or workers without a manager.
pub(crate) fn common(cluster: &ClusterArgs, processes: &Processes) -> Result<Common, Failure> {
    let Manager(system) = cluster.system;
    let nodes = processes.nodes(cluster.nodes);
    let is_one = nodes == 1 && cluster.workers.is_none_or(|workers| workers == 1);
    if system.is_none() && processes.company().is_none() && !is_one {
        return Err(Failure::NoManager);
    }
    // Without a manager there is one worker, which the plan is to say.
    let workers = if system.is_none() { Some(1) } else { cluster.workers };
    Ok(Common { system, nodes, workers, trace: None })
}

/// What is about to be done.
fn opening<T: Training>(
    args: &T,
    data: &T::Data,
    config: &T::Config,
    given: &Given,
    processes: &Processes,
) -> Result<String, Failure> {
    let Shared { recipe: asked, cluster, output, .. } = args.shared();
    let mut table = Table::new(&[]);
    let mut plan = Plan { table: &mut table, given };
    args.plan(&mut plan, data, config);
    let Common { nodes, workers, .. } = common(cluster, processes)?;
    plan.row("cluster", &report::crew(processes, nodes, workers), &report::CLUSTER_FLAGS);
    plan.row("system", &cluster.system.to_string(), &["system", "localize-ahead", "ahead"]);
    if let Some(name) = &asked.recipe {
        plan.row("recipe", &recipe::find(T::TASK, name)?.expected(), &["recipe"]);
    }
    let heading = processes.output(output.json).bold(format!("train {}", T::TASK)).to_string();
    Ok(format!("{heading}\n{}\n", table.render()))
}

/// Begins the trace of the keys that are asked for.
fn tracer<T: Training>(
    path: &Path,
    args: &T,
    data: &T::Data,
    choices: &[KeyChoice],
) -> Result<Tracer, Failure> {
    let keys = args.traced_keys(data, choices).map_err(TraceFailure::Key)?;
    Tracer::create(path, keys).map_err(|error| unwritable(path, error))
}

fn unwritable(path: &Path, error: io::Error) -> Failure {
    Failure::Unwritable { flag: "--trace-keys", path: path.to_owned(), error }
}

/// The file with the parameters, if this process has written it.
fn saved(path: Option<&Path>, processes: &Processes, is_kept: bool) -> Option<String> {
    let path: Option<PathBuf> = path.filter(|_| processes.is_first() && is_kept).map(Path::to_owned);
    path.map(|path| path.display().to_string())
}
