//! The verb `export`: trained parameters in forms that other programs read.

use adapm_tasks::run::{CheckpointError, TaskError};
use adapm_tasks::{kge, mf, wv};

use crate::args::{ExportArgs, ExportTask};
use crate::failure::Failure;
use crate::files::Files;
use crate::format;
use crate::output::Output;

/// Reads parameters and writes them in another form.
pub(crate) fn run(task: &ExportTask) -> Result<(), Failure> {
    let (files, written) = match task {
        ExportTask::Kge(files) => (
            files,
            write(files, || {
                let checkpoint = kge::Checkpoint::load(&files.load)?;
                checkpoint.export(&files.output)?;
                let (entities, relations) = (checkpoint.entities().len(), checkpoint.relations().len());
                Ok(format!("{} entities and {} relations", count(entities), count(relations)))
            })?,
        ),
        ExportTask::Mf(files) => (
            files,
            write(files, || {
                let checkpoint = mf::Checkpoint::load(&files.load)?;
                checkpoint.export(&files.output)?;
                Ok(format!("{} rows and {} columns", count(checkpoint.rows()), count(checkpoint.columns())))
            })?,
        ),
        ExportTask::Wv(args) => (
            &args.files,
            write(&args.files, || {
                let checkpoint = wv::Checkpoint::load(&args.files.load)?;
                checkpoint.vectors().save(&args.files.output, args.format)?;
                let (words, dim) = (count(checkpoint.words().len()), checkpoint.dim());
                Ok(format!("{words} words with {dim} numbers each in word2vec's {} form", args.format))
            })?,
        ),
    };
    Output::new(false).text(&format!("{written} are in {}\n", files.output.display()))
}

/// Writes where it can, and never over what is read.
fn write(
    files: &ExportArgs,
    write: impl FnOnce() -> Result<String, CheckpointError>,
) -> Result<String, Failure> {
    let (read, written) =
        (vec![("--load", files.load.as_path())], vec![("--output", files.output.as_path())]);
    Files { read, written }.probe()?;
    write().map_err(|error| TaskError::Checkpoint(error).into())
}

fn count(number: usize) -> String {
    format::count(number as u64)
}
