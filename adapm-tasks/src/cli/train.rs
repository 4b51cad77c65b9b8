//! The command `train`: the part that all tasks share.
//!
//! ```text
//!   prepare files to be written | read data | plan | train, watched | tables | write files | one object
//! ```
//!
//! Each task implements [`Training`]: [`super::kge`], [`super::mf`], [`super::wv`].

use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use crate::files::{self, OutputError};
use crate::run::{ConfigError, KeyChoice, TaskError, UnknownKey};
use adapm_core::Key;
use adapm_runtime::trace::Tracer;
use adapm_runtime::{Scheme, System};
use serde::Serialize;

use crate::cli::args::{
    ClusterArgs, Given, Manager, ProcessArgs, SettingsArgs, TraceKeysArgs, TrainOutputArgs,
};
use crate::cli::epoch::Labels;
use crate::cli::failure::Failure;
use crate::cli::files::{Files, Outputs};
use crate::cli::format;
use crate::cli::interrupt::Interrupt;
use crate::cli::json;
use crate::cli::measure::trace::{self, error::TraceFailure};
use crate::cli::output::Output;
use crate::cli::processes::{self, Processes};
use crate::cli::progress::Screen;
use crate::cli::report::{self, Summary};
use crate::cli::table::Table;
use crate::cli::{input, recipe};

/// A task that can be trained from the command line.
pub(crate) trait Training {
    /// Its name.
    const TASK: &'static str;
    /// Its words for screens and tables.
    const LABELS: Labels;
    /// The kinds of keys that can be traced.
    const KEY_KINDS: &'static [&'static str];
    /// The training data.
    type Data;
    /// The library's choices.
    type Config;
    /// The result.
    type Report;

    /// Returns the flags that all tasks have.
    fn shared(&self) -> Shared<'_>;

    /// Returns the files that it reads, and those of its own that the first process writes in the
    /// end.
    fn files(&self) -> Files<'_>;

    /// Reads or generates the training data.
    fn data(&self) -> Result<Self::Data, Failure>;

    /// Names the source of the data.
    fn source(data: &Self::Data) -> String;

    /// Returns true if the data is generated.
    fn is_generated(data: &Self::Data) -> bool;

    /// Returns the keys to trace, with what they are.
    fn traced_keys(
        &self,
        data: &Self::Data,
        choices: &[KeyChoice],
    ) -> Result<Vec<(Key, String)>, UnknownKey>;

    /// Returns the library's choices from all flags.
    fn config(&self, common: Common) -> Self::Config;

    /// Checks the configuration as far as it does not depend on the data.
    fn check(config: &Self::Config) -> Result<(), ConfigError>;

    /// Adds a row per choice, with the flags that made it.
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

    /// Returns the results that all tasks have.
    fn summary(&self, report: &Self::Report) -> Summary;

    /// Returns the figures of merit, as a table; empty if there are none.
    fn quality(data: &Self::Data, report: &Self::Report) -> String;

    /// Returns true if the resulting parameters were evaluated as requested, as far as possible.
    fn is_judged(&self, data: &Self::Data, report: &Self::Report) -> bool;

    /// Returns the minimum size in bytes of each file of parameters, by its flag.
    fn sizes(data: &Self::Data, config: &Self::Config) -> Vec<(&'static str, u64)>;

    /// Writes the requested files except traces; `state` names the state of the parameters, such as
    /// `epoch 3`.
    fn keep(&self, data: &Self::Data, report: &Self::Report, state: &str, outputs: &mut Outputs);

    /// Returns the fields of the last object that only this task has.
    fn object(data: &Self::Data, config: &Self::Config, report: &Self::Report) -> impl Serialize;
}

/// The flags of a training run that all tasks have.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) settings: &'a SettingsArgs,
    pub(crate) cluster: &'a ClusterArgs,
    pub(crate) output: &'a TrainOutputArgs,
    pub(crate) traced: &'a TraceKeysArgs,
    pub(crate) processes: &'a ProcessArgs,
}

/// The settings that all configurations have.
pub(crate) struct Common {
    pub(crate) system: Option<System>,
    pub(crate) nodes: usize,
    pub(crate) workers: Option<usize>,
    pub(crate) trace: Option<Tracer>,
}

/// The table that describes the run to come.
pub(crate) struct Plan<'a> {
    pub(crate) table: &'a mut Table,
    pub(crate) given: &'a Given,
    /// Workers of all nodes; `None` where processes have yet to agree on them.
    pub(crate) workers: Option<usize>,
}

impl Plan<'_> {
    /// Adds a row: a choice, and those of `flags` that made it.
    pub(crate) fn row(&mut self, name: &str, choice: &str, flags: &[&str]) {
        self.table.row([name, choice, &self.given.among(flags)]);
    }

    /// Adds a warning if the sampling scheme suits the system badly on `nodes` nodes.
    pub(crate) fn warn_of_sampling(
        &mut self,
        scheme: Option<Scheme>,
        system: Option<System>,
        nodes: usize,
    ) {
        let (Some(scheme), Some(system)) = (scheme, system) else { return };
        if let Some(caveat) = scheme.caveat(system).filter(|_| nodes > 1) {
            let usual = Scheme::of(system);
            self.row("warning", &format!("{scheme} sampling {caveat}; use {usual}"), &[]);
        }
    }
}

/// Trains as `args` request, prints the results and saves the parameters if asked to; or lists
/// recipes.
pub(crate) fn run<T: Training>(
    args: &T,
    given: &Given,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let shared = args.shared();
    if shared.settings.lists() {
        return list_recipes(T::TASK, Output::new(shared.output.json));
    }
    if shared.settings.print_config {
        return print_settings(args, given);
    }
    let check = || args.files().check_shared();
    processes::with(shared.processes, shared.cluster.nodes, interrupt, check, |processes| {
        train(args, given, processes, interrupt)
    })
}

fn train<T: Training>(
    args: &T,
    given: &Given,
    processes: &Processes,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let began = SystemTime::now();
    let Shared { cluster, output: wanted, traced, .. } = args.shared();
    let output = processes.output(wanted.json);
    T::check(&args.config(common(cluster, processes)?)).map_err(TaskError::Config)?;
    let common = common(cluster, processes)?;
    let mut files = args.files();
    files.written.extend(Files::given([("--save", &wanted.save)]));
    if !processes.is_first() {
        files.written.clear();
    }
    let mut outputs = files.prepare(interrupt)?;
    if let Some(file) = &traced.trace_keys {
        let part = processes.company().map(|company| trace::part_of(file, company.group.node()));
        outputs.add(TRACE_FLAG, part.as_deref().unwrap_or(file))?;
    }
    let choices =
        traced.trace.as_deref().map_or(Ok(Vec::new()), |text| KeyChoice::list(text, T::KEY_KINDS));
    let choices = choices.map_err(TraceFailure::Choice)?;
    let data = input::read(output, interrupt, processes.company().is_none(), || args.data())?;
    outputs.check_inputs()?;
    let tracing = outputs.take(TRACE_FLAG);
    let tracing = tracing.map(|file| Tracing::new(file, args, &data, &choices)).transpose()?;
    let config = args
        .config(Common { trace: tracing.as_ref().map(|tracing| tracing.tracer.clone()), ..common });
    outputs.check_space(&T::sizes(&data, &config))?;
    let preface = preface(args, &data, &config, given, processes)?;

    let screen = Screen::new("train", output, interrupt).labelled(T::LABELS).preface(preface);
    let trained = args.train(&data, &config, processes, &screen, interrupt.stop());
    let traced = tracing.map_or(Ok(None), |tracing| tracing.finish(trained.is_ok()));
    let report = trained?;
    screen.open();
    let summary = args.summary(&report);
    // Results first, in case a file cannot be written; files even if the output is closed.
    let told = screen.finish().and_then(|()| {
        output.text(&summary.heading(output, &T::source(&data)))?;
        output.text(&T::quality(&data, &report))?;
        output.text(&summary.table(processes))
    });
    if processes.is_first() {
        outputs.judge(args.is_judged(&data, &report));
        args.keep(&data, &report, &summary.state(), &mut outputs);
        outputs.leave("no epoch was completed");
    }
    let told = told.and_then(|()| {
        outputs.sentences().try_for_each(|sentence| output.sentence(sentence))?;
        traced?.map_or(Ok(()), |sentence| output.sentence(&sentence))?;
        output.object(&json::Run {
            task: T::TASK,
            origin: json::Origin::new(given, began),
            recipe: args.shared().settings.recipe.as_deref(),
            system: cluster.system.to_string(),
            transport: processes.transport(),
            data: T::source(&data),
            generated: T::is_generated(&data),
            own: T::object(&data, &config, &report),
            summary: &summary,
            saved: outputs.saved("--save").map(|path| path.display().to_string()),
        })
    });
    outputs.finish()?;
    told?;
    interrupt.exit_code().map_or(Ok(()), |code| Err(Failure::Interrupted(code)))
}

/// Returns the choices of a cluster.
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
    // Without a manager there is one worker, and the plan says so.
    let workers = if system.is_none() { Some(1) } else { cluster.workers };
    Ok(Common { system, nodes, workers, trace: None })
}

/// Prints the settings of a run that could begin, as a file of settings.
fn print_settings<T: Training>(args: &T, given: &Given) -> Result<(), Failure> {
    let ClusterArgs { nodes, workers, system: Manager(system) } = *args.shared().cluster;
    let common = Common { system, nodes: nodes.unwrap_or(1), workers, trace: None };
    T::check(&args.config(common))?;
    Output::new(false).text(&given.to_toml(T::TASK))
}

/// Prints the recipes of a task.
fn list_recipes(task: &str, output: Output) -> Result<(), Failure> {
    let recipes = recipe::all(task);
    if recipes.is_empty() {
        return output.text(&format!("there is no recipe of train {task} yet\n"));
    }
    let mut table = Table::new(&[]);
    for recipe in &recipes {
        output.object(recipe)?;
        let flags = if recipe.flags.is_empty() { "the defaults" } else { &recipe.flags };
        table.row([
            output.bold(recipe.name()).to_string(),
            format!("--data {} and {flags}", recipe.data),
        ]);
        for recipe::Figure { metric, value, runs } in &recipe.figures {
            table.row(["", &format!("{metric} {value}: {runs}")]);
        }
        table.row([
            String::new(),
            output.dim(format!("{}, {}", recipe.date, recipe.machine)).to_string(),
        ]);
    }
    let heading = output.bold(format!("recipes of train {task}")).to_string();
    let title = format!("{heading}: `--recipe NAME`; flags given by hand win, `--data` too");
    output.text(&format!("{}\n{}", format::wrapped(&title, output.width()), table.render()))
}

/// Describes the run that is about to begin.
fn preface<T: Training>(
    args: &T,
    data: &T::Data,
    config: &T::Config,
    given: &Given,
    processes: &Processes,
) -> Result<String, Failure> {
    let Shared { settings, cluster, output, .. } = args.shared();
    let mut table = Table::new(&[]);
    let Common { nodes, workers, .. } = common(cluster, processes)?;
    let workers_of_all = report::workers_of_all(processes, nodes, workers);
    let mut plan = Plan { table: &mut table, given, workers: workers_of_all };
    args.plan(&mut plan, data, config);
    plan.row("cluster", &report::topology(processes, nodes, workers), &report::CLUSTER_FLAGS);
    plan.row("system", &cluster.system.to_string(), &["system", "localize-ahead", "ahead"]);
    if let Some(name) = &settings.recipe {
        plan.row("recipe", &recipe::find(T::TASK, name)?.expected(), &["recipe"]);
    }
    let heading = processes.output(output.json).bold(format!("train {}", T::TASK)).to_string();
    Ok(format!("{heading}\n{}\n", table.render()))
}

/// A trace that is being written.
struct Tracing {
    tracer: Tracer,
    file: files::Output,
}

impl Tracing {
    /// Begins the trace of the requested keys.
    fn new<T: Training>(
        file: files::Output,
        args: &T,
        data: &T::Data,
        choices: &[KeyChoice],
    ) -> Result<Self, Failure> {
        let keys = args.traced_keys(data, choices).map_err(TraceFailure::Key)?;
        let writer =
            file.writer().map_err(|error| unwritable(&file, OutputError::Refused(error)))?;
        Ok(Self { tracer: Tracer::new(writer, keys), file })
    }

    /// Ends the trace and returns a sentence that says where it is. The trace of a failed run
    /// replaces no file.
    fn finish(self, is_complete: bool) -> Result<Option<String>, Failure> {
        let Self { tracer, file } = self;
        let events =
            tracer.finish().map_err(|error| unwritable(&file, OutputError::Failed(error)))?;
        if !is_complete && file.replaces() {
            return Ok(None);
        }
        let path = file.path().to_owned();
        file.commit().map_err(|error| Failure::Unwritable {
            flag: TRACE_FLAG,
            path: path.clone(),
            error,
        })?;
        let (events, keys) = (format::count(events), format::plural(tracer.keys().len(), "key"));
        Ok(Some(format!("{events} events of {keys} are in {}", path.display())))
    }
}

fn unwritable(file: &files::Output, error: OutputError) -> Failure {
    Failure::Unwritable { flag: TRACE_FLAG, path: file.path().to_owned(), error }
}

const TRACE_FLAG: &str = "--trace-keys";
