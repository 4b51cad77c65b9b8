//! The verb `compare`: systems side by side on one task, on several numbers of nodes (AdaPM §5.1).
//!
//! Each [`cell`], a system on a number of nodes with a seed, is a process of its own; systems take
//! turns, so that changes of the machine's speed hit all alike. [`figures`] are computed from what
//! the runs print, [`table`] and [`picture`] show them.
//!
//! Not here: how runs are tuned. All have the settings that are given, as far as they take them;
//! [`tuning`] asks another verb for those of nups.

mod cell;
mod figures;
mod folder;
mod live;
mod picture;
mod process;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod tuning;
mod usage;

pub(crate) use cell::Record;

use std::cell::RefCell;
use std::path::Path;
use std::thread;
use std::time::SystemTime;

use serde::Serialize;

use crate::System;
use crate::cli::args::{CompareArgs, Given, OF_ONE_RUN};
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::measure::compare::cell::{Cell, Ending};
use crate::cli::measure::compare::figures::{Merit, Reference, Row};
use crate::cli::measure::compare::folder::FURTHER;
use crate::cli::measure::compare::live::Live;
use crate::cli::measure::compare::process::{Common, refused, save};
use crate::cli::measure::compare::settings::Settings;
use crate::cli::measure::compare::table::RowObject;
use crate::cli::output::Output;
use crate::cli::painter::Painter;
use crate::cli::program::Program;
use crate::cli::verbs::CompareTask;
use crate::cli::{format, json, train};
use crate::run::Config as _;

/// Does something with the arguments of the task at hand.
macro_rules! for_task {
    ($task:expr, $args:ident => $does:expr) => {
        match $task {
            CompareTask::Kge($args) => $does,
            CompareTask::Mf($args) => $does,
            CompareTask::Wv($args) => $does,
            CompareTask::Ctr($args) => $does,
            CompareTask::Gnn($args) => $does,
        }
    };
}

/// Runs what is not done yet, and shows all there is.
pub(crate) fn run(task: &CompareTask, given: &Given, interrupt: &Interrupt) -> Result<(), Failure> {
    for_task!(task, args => compare(args, given, interrupt))
}

/// Runs what is not done yet behind a bar called `name`; returns what is recorded of all runs that
/// are done, as files in the folder of the comparison have it.
///
/// # Errors
///
/// As [`run`]; a run that failed is a record.
pub(crate) fn collect(
    task: &CompareTask,
    given: &Given,
    name: &str,
    interrupt: &Interrupt,
) -> Result<Vec<Record>, Failure> {
    let quiet = Output::new(false).silent();
    for_task!(task, args => Ok(saved(args, given, (name, quiet), interrupt, |_, _, _| Ok(()))?.0))
}

fn compare<P: Program>(
    args: &CompareArgs<P>,
    given: &Given,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    if args.train.settings.lists() {
        return train::run(&args.train, given, interrupt);
    }
    let output = Output::new(args.comparison.as_objects);
    let name = format!("compare {}", P::NAME);
    let show = |rows: &[Row<'_>], objects: &[RowObject], (merit, reference): (&_, &_)| {
        output.text(&table::tables(rows, merit, reference, (output, output.width())))?;
        objects.iter().try_for_each(|row| output.object(row))?;
        let files = "compare.csv, compare.json, *.svg";
        let folder = args.comparison.folder.display();
        output.sentence(&format!("tables and pictures are in {folder}: {files}"))
    };
    let (records, cells) = saved(args, given, (&name, output), interrupt, show)?;
    conclude(&records, cells, interrupt, output)
}

/// Runs what is not done yet, writes all there is into the folder, and shows it, if there is
/// anything. Returns what is recorded, and the number of runs, whether they are done or not.
fn saved<P: Program>(
    args: &CompareArgs<P>,
    given: &Given,
    (name, output): (&str, Output),
    interrupt: &Interrupt,
    show: impl FnOnce(&[Row<'_>], &[RowObject], (&Merit, &Reference)) -> Result<(), Failure>,
) -> Result<(Vec<Record>, usize), Failure> {
    let settings = check(args, given)?;
    let began = SystemTime::now();
    let words = words(args, given);
    let folder = args.comparison.folder.as_path();
    let _lock = folder::open(folder, &shared(args, &settings, &words), args.comparison.resume)?;
    let cells = cells(args);
    let live = Live::new(Painter::new(), name, cells.len(), interrupt);
    let common = Common {
        folder,
        task: P::NAME,
        settings: &settings,
        tunes: args.comparison.tunes,
        words: &words,
        as_processes: args.comparison.as_processes,
        budget: args.comparison.budget,
        untuned: RefCell::default(),
        interrupt,
        live: &live,
    };
    output.text(&introduction::<P>(args, given, &cells, output))?;
    let merit = Merit::of(P::NAME, P::LABELS);
    let records = run_all(&cells, &common, &merit, output)?;
    // What is recorded of runs before is not replaced by nothing.
    if !records.is_empty() {
        let reference = Reference::of(&records, &merit, args.comparison.target);
        let rows = figures::rows(&records, &merit, &reference);
        let objects = RowObject::all(&rows);
        let all = Comparison {
            task: P::NAME,
            origin: json::Origin::new(given, began),
            quality: merit.name,
            reference: &reference,
            rows: &objects,
            runs: &records,
        };
        all.save(folder, &rows, &merit)?;
        show(&rows, &objects, (&merit, &reference))?;
    }
    Ok((records, cells.len()))
}

/// Runs each cell that is not done yet, until a signal comes; of all that are done returns what is
/// recorded.
fn run_all(
    cells: &[Cell],
    common: &Common<'_>,
    merit: &Merit,
    output: Output,
) -> Result<Vec<Record>, Failure> {
    let mut records: Vec<Record> = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        let recorded = cell.recorded(common.folder);
        let is_new = recorded.is_none();
        let found = match recorded {
            None if common.interrupt.exit_code().is_none() => cell.run(common)?,
            recorded => recorded,
        };
        let Some(record) = found else { continue };
        if at == 0 && record.is_refused() {
            // All others have the same settings and data.
            return Err(Failure::Input(refusal(&record)));
        }
        common.live.ended(is_new);
        common.live.aside(|| {
            if is_new {
                output.text(&line(&record, merit, (at + 1, cells.len()), output))?;
            }
            output.object(&record)
        })?;
        records.push(record);
    }
    Ok(records)
}

/// Returns how a comparison of so many cells ends: badly if a signal came, or if runs failed.
fn conclude(
    records: &[Record],
    cells: usize,
    interrupt: &Interrupt,
    output: Output,
) -> Result<(), Failure> {
    let runs = format::plural(cells, "run");
    if let Some(code) = interrupt.exit_code() {
        let done = format!("stopped after {} of {runs}", records.len());
        output.sentence(&format!("{done}; the same command with --resume goes on"))?;
        return Err(Failure::Interrupted(code));
    }
    let failed = || records.iter().filter(|record| record.has_failed());
    let Some(first) = failed().next() else { return Ok(()) };
    Err(Failure::Compared(format!("{} of {runs} failed; {}", failed().count(), refusal(first))))
}

/// Checks flags before anything is run; returns the settings of runs.
fn check<'a, P: Program>(args: &CompareArgs<P>, given: &'a Given) -> Result<Settings<'a>, Failure> {
    let flags = OF_ONE_RUN.map(|flag| flag.strip_prefix("run-").unwrap_or(flag));
    let of_one_run = flags.into_iter().find(|flag| given.has_any(&[flag]));
    let written = P::files(&args.train.flags).written;
    let written = written.first().map(|(flag, _)| flag.trim_start_matches('-'));
    if let Some(flag) = of_one_run.or(written) {
        return Err(Failure::Input(format!("--{flag} is of one run: leave it out with compare")));
    }
    let workers = args.train.config.cluster().workers.as_ref();
    if let Some(list) = workers.filter(|workers| workers.listed().is_some()) {
        return Err(Failure::Input(format!(
            "--workers {list}: all nodes that are compared have as many workers; give one number"
        )));
    }
    P::check_flags(&args.train).map_err(|error| *error.0)?;
    Settings::new(args, given)
}

/// Returns the words that all runs have beside the settings: as many workers on each node whatever
/// their number, so that one node is as strong as one of several; a figure after each epoch.
fn words<P: Program>(args: &CompareArgs<P>, given: &Given) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |flag: &str, value: usize| words.extend([flag.to_owned(), value.to_string()]);
    if args.train.config.cluster().workers.is_none() {
        let of = &args.comparison;
        let before = of.resume.then(|| folder::further(&of.folder)).flatten();
        let most = of.node_counts().last().copied().unwrap_or(1);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let own = (cores / most).max(1);
        add("--workers", before.as_deref().and_then(workers_of).unwrap_or(own));
    }
    let flag = "valid-every";
    let is_flag = given.command().get_arguments().any(|other| other.get_long() == Some(flag));
    if is_flag && !given.settings().contains_key(flag) && !args.train.config.run().no_eval {
        add("--valid-every", 1);
    }
    words
}

/// Returns the number of workers among the words of a comparison that is gone on with: more nodes
/// than before do not change it.
fn workers_of(words: &str) -> Option<usize> {
    let mut words = words.split([' ', ',']).skip_while(|word| *word != "--workers");
    words.nth(1)?.parse().ok()
}

/// Returns the settings of all runs as a file, with what else must be equal if a comparison goes
/// on.
fn shared<P: Program>(args: &CompareArgs<P>, settings: &Settings<'_>, words: &[String]) -> String {
    let processes = if args.comparison.as_processes { ", each node as a process" } else { "" };
    let budget = args.comparison.budget.map_or_else(String::new, |budget| {
        format!(", for {} at most", format::seconds(budget.as_secs_f64()))
    });
    let (words, tuned) = (words.join(" "), if args.comparison.tunes { ", nups tuned" } else { "" });
    let settings = settings.of_all();
    format!("{}\n{FURTHER}{words}{processes}{budget}{tuned}\n", settings.trim_end())
}

/// Returns all runs in order: the reference first, then turn by turn.
fn cells<P: Program>(args: &CompareArgs<P>) -> Vec<Cell> {
    let (systems, counts) = (args.comparison.systems(), args.comparison.node_counts());
    let mut cells: Vec<Cell> = Vec::new();
    for seed in args.seeds() {
        let mut add = |system: System, nodes: usize| {
            let cell = Cell { system, nodes, seed };
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        };
        add(System::default(), 1);
        for &nodes in &counts {
            systems.iter().for_each(|system| add(*system, nodes));
        }
    }
    cells
}

fn introduction<P: Program>(
    args: &CompareArgs<P>,
    given: &Given,
    cells: &[Cell],
    output: Output,
) -> String {
    let heading = output.bold(format!("compare {}", P::NAME)).to_string();
    let of = &args.comparison;
    let counts = of.node_counts().iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let settings = given.words(&OWN);
    let text = format!(
        "{heading}: {} on {counts} nodes, {} in all{}",
        of.systems().iter().map(System::to_string).collect::<Vec<_>>().join(", "),
        format::plural(cells.len(), "run"),
        if settings.is_empty() { String::new() } else { format!("; {settings}") },
    );
    format!("{}\n", format::wrapped(&text, output.width()))
}

/// Returns a line about a run that has ended.
fn line(record: &Record, merit: &Merit, (at, all): (usize, usize), output: Output) -> String {
    let title = record.cell.title();
    let reference = Reference::default();
    let curve = figures::Run { record, merit, reference: &reference }.curve();
    let ended = match (&record.reason, record.ending) {
        (Some(reason), _) => format!("FAILED: {reason}"),
        (None, Ending::Budget) => "stopped, its time is over".to_owned(),
        _ => "done".to_owned(),
    };
    let quality = curve.last().map_or_else(String::new, |point| {
        format!(", {} {}", merit.name, format::figure(point.quality))
    });
    let seconds = format::seconds(record.seconds);
    let text = format!("  {at}/{all}  {title}: {ended} in {seconds}{quality}");
    format!("{}\n", format::wrapped(&text, output.width()))
}

/// Returns the sentence on a run that failed.
pub(crate) fn refusal(record: &Record) -> String {
    let reason = record.reason.as_deref().unwrap_or("no word");
    format!("{} ended with {reason}", record.cell.title())
}

/// Flags that say what is compared; see [`Given`].
const OWN: [&str; 6] = ["systems", "node-counts", "runs", "folder", "resume", "as-objects"];

/// All there is of a comparison, for programs.
#[derive(Serialize)]
struct Comparison<'a> {
    task: &'static str,
    #[serde(flatten)]
    origin: json::Origin<'a>,
    /// The name of the figure of merit.
    quality: &'static str,
    reference: &'a Reference,
    rows: &'a [RowObject],
    runs: &'a [Record],
}

impl Comparison<'_> {
    /// Writes all there is into the folder of the comparison.
    fn save(&self, folder: &Path, rows: &[Row<'_>], merit: &Merit) -> Result<(), Failure> {
        let text =
            serde_json::to_vec_pretty(self).map_err(|error| refused(folder, &error.into()))?;
        save(&folder.join("compare.json"), &text)?;
        save(&folder.join("compare.csv"), table::csv(rows).as_bytes())?;
        let pictures = picture::all(rows, merit);
        pictures.iter().try_for_each(|(name, svg)| save(&folder.join(name), svg.as_bytes()))
    }
}
