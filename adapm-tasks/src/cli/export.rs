//! The verb `export`: trained parameters in forms that other programs read.

use std::io::{self, Write};

use crate::run::TaskError;
use crate::{ctr, files, kge, mf, wv};

use crate::cli::args::ExportArgs;
use crate::cli::failure::Failure;
use crate::cli::files::Files;
use crate::cli::files::Outputs;
use crate::cli::format;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::verbs::ExportTask;

/// Reads parameters and writes them in another form.
pub(crate) fn run(task: &ExportTask, interrupt: &Interrupt) -> Result<(), Failure> {
    match task {
        ExportTask::Kge(files) => {
            let load = || Ok(kge::Checkpoint::load(&files.load).map_err(TaskError::Checkpoint)?);
            let save =
                |checkpoint: &kge::Checkpoint, file: &mut dyn Write| checkpoint.export_to(file);
            write(files, interrupt, load, save, |checkpoint| {
                let (entities, relations) =
                    (checkpoint.entities().len(), checkpoint.relations().len());
                format!("{} entities and {} relations", count(entities), count(relations))
            })
        }
        ExportTask::Mf(files) => {
            let load = || Ok(mf::Checkpoint::load(&files.load).map_err(TaskError::Checkpoint)?);
            let save =
                |checkpoint: &mf::Checkpoint, file: &mut dyn Write| checkpoint.export_to(file);
            write(files, interrupt, load, save, |checkpoint| {
                format!(
                    "{} rows and {} columns",
                    count(checkpoint.rows()),
                    count(checkpoint.columns())
                )
            })
        }
        ExportTask::Ctr(files) => {
            let load = || Ok(ctr::Predictor::open(&files.load).map_err(TaskError::Checkpoint)?);
            let save = |model: &ctr::Predictor, file: &mut dyn Write| model.export_to(file);
            write(files, interrupt, load, save, |model| {
                let (features, dim) = (model.features().count(), model.dim());
                format!("{} features with a weight and {dim} numbers each", count(features))
            })
        }
        ExportTask::Wv(args) => {
            let (files, format) = (&args.files, args.format);
            let load = || crate::wv::program::vectors(&files.load).map(|(vectors, _)| vectors);
            let save = |vectors: &wv::Vectors, file: &mut dyn Write| vectors.write_to(file, format);
            write(files, interrupt, load, save, |vectors| {
                let (words, dim) = (count(vectors.words().len()), vectors.dim());
                format!("{words} words with {dim} numbers each in word2vec's {format} form")
            })
        }
    }
}

/// Writes where it can, and never over what is read.
fn write<M>(
    args: &ExportArgs,
    interrupt: &Interrupt,
    load: impl FnOnce() -> Result<M, Failure>,
    save: impl Fn(&M, &mut dyn Write) -> io::Result<()>,
    describe: impl FnOnce(&M) -> String,
) -> Result<(), Failure> {
    let (read, written) =
        (vec![("--load", args.load.as_path())], vec![("--output", args.output.as_path())]);
    let mut outputs = Outputs::prepare(&Files { read, written }, interrupt)?;
    outputs.copies();
    let model = load()?;
    outputs.save("--output", &describe(&model), |file| save(&model, file));
    // What is asked for stands on stdout alone.
    let output = Output::new(files::is_stdout(&args.output));
    let told = outputs.sentences().try_for_each(|sentence| {
        output.text(&format!("{}\n", format::wrapped(sentence, output.width())))
    });
    outputs.finish()?;
    told
}

fn count(number: usize) -> String {
    format::count(number as u64)
}
