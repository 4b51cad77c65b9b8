//! The verb `check`: whether saved models are as they were written, and what is in them.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::args::CheckModelsArgs;
use crate::cli::failure::Failure;
use crate::cli::folder::{BEST, LAST};
use crate::cli::format;
use crate::cli::input;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::table::Table;
use crate::run::{self, Inspected, TaskError};

/// A model that was checked.
#[derive(Serialize)]
struct Checked {
    path: String,
    task: String,
    bytes: u64,
    tensors: Vec<Shape>,
}

#[derive(Serialize)]
struct Shape {
    name: String,
    rows: u64,
    numbers: u64,
}

/// Checks each model, in order.
pub(crate) fn run(args: &CheckModelsArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(args.json);
    for path in &args.paths {
        for model in models_of(path)? {
            let inspect = || Ok(run::inspect(&model).map_err(TaskError::Checkpoint)?);
            let checked = checked(&model, input::read(output, interrupt, true, inspect)?);
            output.text(&told(&checked, output))?;
            output.object(&checked)?;
        }
    }
    Ok(())
}

/// Returns a file, or those of the folder of a run.
fn models_of(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let models = [BEST, LAST].map(|name| path.join(name));
    let models: Vec<PathBuf> = models.into_iter().filter(|model| model.is_file()).collect();
    if models.is_empty() {
        return Err(Failure::NoModel { path: path.to_path_buf() });
    }
    Ok(models)
}

fn checked(path: &Path, inspected: Inspected) -> Checked {
    let Inspected { task, bytes, tensors, .. } = inspected;
    let shapes = tensors.into_iter().map(|tensor| Shape {
        name: tensor.name.into_owned(),
        rows: tensor.rows,
        numbers: tensor.len,
    });
    Checked { path: path.display().to_string(), task, bytes, tensors: shapes.collect() }
}

fn told(checked: &Checked, output: Output) -> String {
    let Checked { path, task, bytes, tensors } = checked;
    let shapes = tensors.iter().map(|Shape { name, rows, numbers }| {
        format!("{name} {} x {}", format::count(*rows), format::count(*numbers))
    });
    let shapes: Vec<String> = shapes.collect();
    let mut table = Table::new(&[]);
    table.row(["task", task]);
    table.row(["size", &format::bytes(*bytes)]);
    if !shapes.is_empty() {
        table.row(["tensors", &shapes.join(", ")]);
    }
    table.row(["checksum", "as it was written"]);
    format!("{}\n{}", output.bold(path), table.render())
}
