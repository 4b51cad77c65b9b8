//! The verb `check`: whether saved models and checkpoints are as they were written, and what is in
//! them.

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use adapm_runtime::checkpoint::Checkpoint;
use adapm_runtime::tables::Tables;
use serde::Serialize;
use serde_json::Value;

use crate::cli::args::{CheckModelsArgs, MANIFEST};
use crate::cli::failure::Failure;
use crate::cli::folder::{BEST, LAST};
use crate::cli::format;
use crate::cli::input;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::table::Table;
use crate::run::checkpoints::{CHECKPOINTS, Record, ResumeError};
use crate::run::{self, Inspected, TaskError};

/// A model that was checked.
#[derive(Serialize)]
struct Checked {
    path: String,
    task: String,
    bytes: u64,
    tensors: Vec<Shape>,
    /// Whose files are here of a checkpoint, if hosts have a folder each.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Parts>,
    /// What else there is to know of a checkpoint.
    #[serde(flatten)]
    progress: Option<Progress>,
}

#[derive(Serialize)]
struct Shape {
    name: String,
    rows: u64,
    numbers: u64,
}

/// The processes whose files a folder has, and how many wrote the checkpoint.
#[derive(Serialize)]
struct Parts {
    here: Vec<usize>,
    of: usize,
}

/// How far a run was when it wrote a checkpoint.
#[derive(Serialize)]
struct Progress {
    /// Seconds since 1970.
    time: u64,
    /// Batches of all workers.
    step: u64,
    /// The running epoch, and how many of its examples are done.
    epoch: u32,
    done: u64,
    examples: u64,
    /// The epoch of the best parameters, and its figures on valid.
    best_epoch: Option<u32>,
    best: Value,
    /// Workers of each node.
    workers: Vec<usize>,
}

/// Something that can be checked.
enum Found {
    Model(PathBuf),
    Checkpoint(PathBuf),
}

/// Checks each model and checkpoint, in order.
pub(crate) fn run(args: &CheckModelsArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(args.json);
    for path in &args.paths {
        for found in found_in(path)? {
            let inspect = || inspected(&found);
            let checked = input::read(output, interrupt, true, inspect)?;
            output.text(&told(&checked, output))?;
            output.object(&checked)?;
        }
    }
    Ok(())
}

/// Returns a file or a checkpoint, or those of the folder of a run.
fn found_in(path: &Path) -> Result<Vec<Found>, Failure> {
    if !path.is_dir() {
        return Ok(vec![Found::Model(path.to_path_buf())]);
    }
    if path.join(MANIFEST).is_file() {
        return Ok(vec![Found::Checkpoint(path.to_path_buf())]);
    }
    let models = [BEST, LAST].map(|name| path.join(name)).into_iter();
    let models = models.filter(|model| model.is_file()).map(Found::Model);
    let checkpoints = Checkpoint::list(&path.join(CHECKPOINTS)).unwrap_or_default();
    let found: Vec<Found> = models.chain(checkpoints.into_iter().map(Found::Checkpoint)).collect();
    if found.is_empty() {
        return Err(Failure::NoModel { path: path.to_path_buf() });
    }
    // That the run can go on is a part of it.
    let whole = || {
        let latest = Checkpoint::latest(&path.join(CHECKPOINTS))?;
        let needs = latest.iter().flat_map(Checkpoint::needs);
        needs
            .map(|name| path.join(CHECKPOINTS).join(name))
            .try_for_each(|need| Checkpoint::open(&need).map(drop))
    };
    whole().map_err(|error| Failure::from(TaskError::from(ResumeError::from(error))))?;
    Ok(found)
}

fn inspected(found: &Found) -> Result<Checked, Failure> {
    match found {
        Found::Model(path) => {
            let Inspected { task, bytes, tensors, .. } =
                run::inspect(path).map_err(TaskError::Checkpoint)?;
            let shapes = tensors.into_iter().map(|tensor| Shape {
                name: tensor.name.into_owned(),
                rows: tensor.rows,
                numbers: tensor.len,
            });
            let (path, tensors) = (path.display().to_string(), shapes.collect());
            Ok(Checked { path, task, bytes, tensors, parts: None, progress: None })
        }
        Found::Checkpoint(path) => {
            let read = || {
                let found = Checkpoint::open(path)?;
                found.verify().map(|()| found)
            };
            let found = read().map_err(|error| TaskError::from(ResumeError::from(error)))?;
            // The best parameters have no record of a run.
            let record: Option<Record> = serde_json::from_str(&found.program()).ok();
            let parts = || Parts { here: found.here(), of: found.parts() };
            Ok(Checked {
                path: path.display().to_string(),
                task: record.as_ref().map_or_else(String::new, Record::task_name),
                bytes: found.bytes(),
                tensors: shapes_of(found.tables()),
                parts: found.is_apart().then(parts),
                progress: record.map(|record| Progress::of(record, found.time())),
            })
        }
    }
}

fn shapes_of(tables: &Tables) -> Vec<Shape> {
    let of = |name: String, rows, numbers: usize| Shape { name, rows, numbers: numbers as u64 };
    let tables = tables.as_slice().iter().filter(|table| table.rows() > 0);
    let shapes = tables.flat_map(|table| {
        let rows = table.rows();
        let states = table.state().iter();
        let states = states
            .map(move |state| of(format!("{}.{}", table.name(), state.name), rows, state.len));
        [of(table.name().to_owned(), rows, table.dim())].into_iter().chain(states)
    });
    shapes.collect()
}

impl Progress {
    fn of(record: Record, time: u64) -> Self {
        let Record { step, epoch, done, examples, chosen, best, workers, .. } = record;
        Self { time, step, epoch, done, examples, best_epoch: chosen, best, workers }
    }

    /// Adds what people want to know.
    fn tell(&self, table: &mut Table) {
        let share = format::share(self.done as f64 / self.examples.max(1) as f64);
        table.row(["progress", &format!("{share} of epoch {}", self.epoch)]);
        if let Some(epoch) = self.best_epoch {
            let numbers = self.best.as_object().into_iter().flatten();
            let figures = numbers.filter_map(|(name, number)| {
                Some(format!("{name} {}", format::figure(number.as_f64()?)))
            });
            let figures: Vec<String> = figures.take(FIGURES_MAX).collect();
            let figures = if figures.is_empty() {
                String::new()
            } else {
                format!(": {}", figures.join(", "))
            };
            table.row(["best", &format!("epoch {epoch}{figures}")]);
        }
        let workers: Vec<String> = self.workers.iter().map(usize::to_string).collect();
        table.row([
            "workers",
            &format!("{} of {}", workers.join(","), format::plural(workers.len(), "node")),
        ]);
        table.row(["written", &format::date(UNIX_EPOCH + Duration::from_secs(self.time))]);
    }
}

fn told(checked: &Checked, output: Output) -> String {
    let Checked { path, task, bytes, tensors, parts, progress } = checked;
    let shapes = tensors.iter().map(|Shape { name, rows, numbers }| {
        format!("{name} {} x {}", format::count(*rows), format::count(*numbers))
    });
    let shapes: Vec<String> = shapes.collect();
    let mut table = Table::new(&[]);
    if !task.is_empty() {
        table.row(["task", task]);
    }
    progress.iter().for_each(|progress| progress.tell(&mut table));
    if let Some(Parts { here, of }) = parts {
        let here: Vec<String> = here.iter().map(usize::to_string).collect();
        let row = format!("{} of {of}, the others are on other hosts", here.join(", "));
        table.row(["parts", &row]);
    }
    table.row(["size", &format::bytes(*bytes)]);
    if !shapes.is_empty() {
        table.row(["tensors", &shapes.join(", ")]);
    }
    table.row(["checksum", "as it was written"]);
    format!("{}\n{}", output.bold(path), table.render())
}

/// Figures that are shown of the best epoch.
const FIGURES_MAX: usize = 4;
