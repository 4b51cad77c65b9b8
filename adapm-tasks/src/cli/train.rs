//! The command `train`: the part that all tasks share.
//!
//! ```text
//!   prepare files to be written | read data | plan | train, watched | tables | write files | one object
//! ```
//!
//! What is a task's own is its [`Program`].

use std::num::NonZeroU32;
use std::path::Path;
use std::time::SystemTime;

use adapm_core::Key;
use adapm_runtime::checkpoint::Checkpoint;
use adapm_runtime::trace::Tracer;

use crate::cli::args::Given;
use crate::cli::failure::Failure;
use crate::cli::files::{self, Files, Outputs};
use crate::cli::folder::{self, RunFolder};
use crate::cli::format;
use crate::cli::interrupt::Interrupt;
use crate::cli::json;
use crate::cli::measure::trace::{self, error::TraceFailure};
use crate::cli::output::Output;
use crate::cli::processes::{self, Processes};
use crate::cli::program::{Model as _, Plan, Program, ReportOf, Source, TrainArgs};
use crate::cli::progress::Screen;
use crate::cli::report::{self, Summary};
use crate::cli::table::Table;
use crate::cli::{input, recipe};
use crate::files::OutputError;
use crate::run::checkpoints::CHECKPOINTS;
use crate::run::flags::name_of;
use crate::run::hot::HotChoice;
use crate::run::{ClusterConfig, Config as _, Keep, KeyChoice, Run};

/// Trains as `args` request, prints the results and saves the parameters if asked to; or lists
/// recipes.
pub(crate) fn run<P: Program>(
    args: &TrainArgs<P>,
    given: &Given,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    if args.settings.lists() {
        return list_recipes(P::NAME, Output::new(args.output.json));
    }
    P::check_flags(args).map_err(|error| *error.0)?;
    if args.settings.print_config {
        args.config.check()?;
        return Output::new(false).text(&given.to_toml(P::NAME));
    }
    let check = || files::check_shared(&P::files(&args.flags));
    processes::with(&args.processes, args.config.cluster().nodes, interrupt, check, |processes| {
        train(args, given, processes, interrupt)
    })
}

fn train<P: Program>(
    args: &TrainArgs<P>,
    given: &Given,
    processes: &Processes,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let began = SystemTime::now();
    let output = processes.output(args.output.json);
    args.config.check()?;
    check_manager(args.config.cluster(), processes)?;
    let is_first = processes.is_first();
    let own = args.output.folder().filter(|_| is_first || args.output.out_local.is_some());
    let is_restarted = own.is_some_and(folder::is_of_this_launch);
    let goes_on = args.output.resume.is_some() || is_restarted;
    own.map_or(Ok(()), |path| folder::check(path, args.output.overwrite, goes_on))?;
    let (mut outputs, choices) = prepare(args, processes, interrupt)?;
    let read = || P::read(args).map_err(|error| *error.0);
    let (data, source) = input::read(output, interrupt, processes.company().is_none(), read)?;
    outputs.check_inputs()?;
    let tracing = outputs.take(TRACE_FLAG);
    let tracing = tracing.map(|file| Tracing::new(file, traced_keys(args, &data, &choices)?));
    let tracing = tracing.transpose()?;
    let config = configured(args, processes, tracing.as_ref())?;
    let preface = preface(args, &config, (&data, &source), given, processes)?;
    let of = |path| RunFolder::of(path, args.output.folder_flag(), given.to_toml(P::NAME), goes_on);
    let elsewhere = args.output.folder().filter(|_| !is_first).map(of);
    let folder = own.filter(|_| is_first).map(|path| of(path).made()).transpose()?;
    add_models(folder.as_ref(), P::sizes(&data, &config), &mut outputs)?;

    let screen = Screen::new("train", output, interrupt).labelled(P::LABELS).preface(preface);
    let screen = screen.recorded(folder.as_ref()).set_up(elsewhere.as_ref());
    let checkpoints = args.output.checkpoints(is_restarted);
    let run = processes.run(&screen, interrupt.stop());
    let run = checkpoints.iter().fold(run, Run::checkpointed_in);
    let trained = P::train(&data, &config, &run);
    let traced = tracing.map_or(Ok(None), |tracing| tracing.finish(trained.is_ok()));
    let report = trained?;
    screen.begin();
    let summary = Summary::of(&report);
    // Results first, in case a file cannot be written; files even if the output is closed.
    let told = screen.finish().and_then(|()| {
        output.text(&summary.heading(output, &source.text))?;
        output.text(&P::quality(&data, &report))?;
        output.text(&summary.table(processes))
    });
    if processes.is_first() {
        keep(args, &data, &report, &summary.state(), &mut outputs);
    }
    let told = told.and_then(|()| {
        outputs.sentences().try_for_each(|sentence| output.sentence(sentence))?;
        traced?.map_or(Ok(()), |sentence| output.sentence(&sentence))?;
        output.object(&json::Run {
            task: P::NAME,
            origin: json::Origin::new(given, began),
            recipe: args.settings.recipe.as_deref(),
            system: &name_of(config.cluster().system),
            transport: processes.transport(),
            data: &source.text,
            generated: source.is_generated,
            own: P::object(&data, &config, &report),
            summary: &summary,
            saved: outputs.saved(SAVE_FLAG).map(|path| path.display().to_string()),
        })
    });
    let told = told.and_then(|()| tell_how_to_go_on(args, output, report.stopped));
    outputs.finish()?;
    folder.map_or(Ok(()), RunFolder::finish)?;
    told?;
    interrupt.exit_code().map_or(Ok(()), |code| Err(Failure::Interrupted(code)))
}

/// Tells how a run that was stopped goes on, if it can.
fn tell_how_to_go_on<P: Program>(
    args: &TrainArgs<P>,
    output: Output,
    stopped: bool,
) -> Result<(), Failure> {
    let has_one =
        |run: &&Path| Checkpoint::latest(&run.join(CHECKPOINTS)).is_ok_and(|c| c.is_some());
    match args.output.folder().filter(|_| stopped).filter(has_one) {
        Some(run) => output.sentence(&format!("go on with: train --resume {}", run.display())),
        None => Ok(()),
    }
}

/// Prepares the files that are going to be written, and reads which keys are to be traced.
fn prepare<P: Program>(
    args: &TrainArgs<P>,
    processes: &Processes,
    interrupt: &Interrupt,
) -> Result<(Outputs, Vec<KeyChoice>), Failure> {
    let mut files = P::files(&args.flags);
    files.read.extend(Files::given([("--homes", &args.homes)]));
    files.written.extend(Files::given([(SAVE_FLAG, &args.output.save)]));
    if !processes.is_first() {
        files.written.clear();
    }
    let mut outputs = Outputs::prepare(&files, interrupt)?;
    if let Some(file) = &args.traced.trace_keys {
        let part = processes.company().map(|company| trace::part_of(file, company.group.node()));
        outputs.add(TRACE_FLAG, part.as_deref().unwrap_or(file))?;
    }
    let choices = args.traced.trace.as_deref();
    let choices = choices.map_or(Ok(Vec::new()), |text| KeyChoice::list(text, P::KEY_KINDS));
    Ok((outputs, choices.map_err(TraceFailure::Choice)?))
}

/// Returns the keys to trace, at least one.
fn traced_keys<P: Program>(
    args: &TrainArgs<P>,
    data: &P::Data,
    choices: &[KeyChoice],
) -> Result<Vec<(Key, String)>, TraceFailure> {
    let keys = P::traced_keys(data, &args.config, choices).map_err(TraceFailure::Key)?;
    if keys.is_empty() { Err(TraceFailure::NoKeys(P::NAME)) } else { Ok(keys) }
}

/// Returns the settings of the library, with what is wanted of a run beside them.
///
/// # Errors
///
/// A partition that cannot be read.
fn configured<P: Program>(
    args: &TrainArgs<P>,
    processes: &Processes,
    tracing: Option<&Tracing>,
) -> Result<P::Config, Failure> {
    let mut config = args.config.clone();
    let (cluster, run) = config.common_mut();
    cluster.nodes = Some(processes.nodes(cluster.nodes));
    let needs_best = args.output.save.is_some() || P::needs_model(&args.flags);
    run.trace = tracing.map(|tracing| tracing.tracer.clone());
    run.keep = match (args.output.folder(), needs_best) {
        (Some(_), _) => Keep::BestAndLast,
        (None, true) => Keep::Best,
        (None, false) => Keep::Nothing,
    };
    run.partition = args.partition()?;
    Ok(config)
}

/// Adds the models of the folder of a run to its files, and checks that there is room for all of
/// these sizes.
fn add_models(
    folder: Option<&RunFolder>,
    mut sizes: Vec<(&'static str, u64)>,
    outputs: &mut Outputs,
) -> Result<(), Failure> {
    let size = sizes.iter().find(|(flag, _)| *flag == SAVE_FLAG).map_or(0, |(_, size)| *size);
    let Some(folder) = folder else { return outputs.check_space(&sizes) };
    for (flag, name) in [(folder.flag().best(), folder::BEST), (folder.flag().last(), folder::LAST)]
    {
        outputs.add(flag, &folder.path().join(name))?;
        sizes.push((flag, size));
    }
    outputs.check_space(&sizes)
}

/// Writes the files that are asked for.
fn keep<P: Program>(
    args: &TrainArgs<P>,
    data: &P::Data,
    report: &ReportOf<P>,
    state: &str,
    outputs: &mut Outputs,
) {
    let is_evaluated = report.epochs.iter().any(|epoch| epoch.valid.is_some());
    outputs.judge(!report.selects || is_evaluated);
    let words = P::model_in_words();
    if let Some(model) = &report.checkpoint {
        let what = format!("{words} of {state}");
        for flag in [SAVE_FLAG, args.output.folder_flag().best()] {
            outputs.save(flag, &what, |file| model.write_to(file));
        }
    }
    if let Some(model) = report.last.as_ref().or(report.checkpoint.as_ref()) {
        let what = format!("{words} at the end");
        outputs.save(args.output.folder_flag().last(), &what, |file| model.write_to(file));
    }
    P::write_files(args, data, report, state, outputs);
    outputs.leave("no epoch was completed");
}

/// Checks that several nodes or workers have a manager.
///
/// # Errors
///
/// If they have none.
pub(crate) fn check_manager(cluster: &ClusterConfig, processes: &Processes) -> Result<(), Failure> {
    let nodes = processes.nodes(cluster.nodes);
    let is_one = nodes == 1 && cluster.workers.as_ref().is_none_or(|workers| workers.all(1) == 1);
    if cluster.system.is_none() && processes.company().is_none() && !is_one {
        return Err(Failure::NoManager);
    }
    Ok(())
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
        // A list may be longer than a line.
        let flags = recipe.flags.replace(',', ", ");
        let flags = if flags.is_empty() { "the defaults" } else { &flags };
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
fn preface<P: Program>(
    args: &TrainArgs<P>,
    config: &P::Config,
    (data, source): (&P::Data, &Source),
    given: &Given,
    processes: &Processes,
) -> Result<String, Failure> {
    let cluster = config.cluster();
    let mut table = Table::new(&[]);
    let workers = report::workers_of_all(processes, cluster);
    let mut plan = Plan { table: &mut table, given, workers, source: &source.text };
    P::plan(args, config, data, &mut plan);
    if let Some(patience) = config.run().patience {
        let epochs = format::plural(patience as usize, "epoch");
        plan.row("ends", &format!("after {epochs} without progress"), &["patience"]);
    }
    plan.row("seed", &args.config.run().seed.to_string(), &["seed"]);
    plan.row("cluster", &report::planned_topology(processes, cluster), &report::CLUSTER_FLAGS);
    plan.row("system", &name_of(cluster.system), &["system", "localize-ahead", "ahead"]);
    if cluster.system.is_some_and(crate::System::has_hot_keys) {
        let flags = ["replicate-factor", "replicate", "replicate-keys"];
        plan.row("hot keys", &hot_in_words(config.run().hot_choice()), &flags);
    }
    if let Some(path) = &args.homes {
        let samples = if P::DEALS_BY_PARTITION { ", samples to nodes" } else { "" };
        plan.row("partition", &format!("{}: homes of keys{samples}", path.display()), &["homes"]);
    }
    if let Some(changes) = config.run().inter {
        let changes = format::plural(changes as usize, "change");
        let row = format!("keys of a batch at most {changes} of the rarer apart, or refreshed");
        plan.row("inter", &row, &["inter"]);
    }
    if let Some(most) = cluster.pacing.rounds_per_second {
        plan.row("rounds", &format!("at most {most} a second"), &["rounds-per-second"]);
    }
    let own = cluster.system.and_then(crate::System::bound).map(|bound| bound.ticks);
    if let Some(clocks) = own.or(cluster.pacing.bound.map(u64::from)) {
        let clocks = format::plural(clocks as usize, "clock");
        let usual = config.batches_per_clock();
        let batches = cluster.pacing.clock_every.map_or(usual, NonZeroU32::get);
        let row = format!("workers at most {clocks} apart, a clock in {batches} batches");
        plan.row("bound", &row, &["bound", "clock-every"]);
    }
    if let Some(name) = &args.settings.recipe {
        plan.row("recipe", &recipe::find(P::NAME, name)?.expected(), &["recipe"]);
    }
    let output = processes.output(args.output.json);
    let heading = output.bold(format!("train {}", P::NAME)).to_string();
    Ok(format!("{heading}\n{}\n", table.render()))
}

fn hot_in_words(choice: HotChoice<'_>) -> String {
    match choice {
        HotChoice::Factor(factor) => format!("accessed more than {factor} times the mean"),
        HotChoice::Most(count) => format!("the {} most frequent", format::count(count)),
        HotChoice::Listed(file) => format!("those of {}", file.display()),
    }
}

/// A trace that is being written.
struct Tracing {
    tracer: Tracer,
    file: crate::files::Output,
}

impl Tracing {
    /// Begins the trace of these keys, each with what it is.
    fn new(file: crate::files::Output, keys: Vec<(Key, String)>) -> Result<Self, Failure> {
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

fn unwritable(file: &crate::files::Output, error: OutputError) -> Failure {
    Failure::Unwritable { flag: TRACE_FLAG, path: file.path().to_owned(), error }
}

const SAVE_FLAG: &str = "--save";
const TRACE_FLAG: &str = "--trace-keys";
