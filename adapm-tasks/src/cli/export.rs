//! The verb `export`: trained parameters in forms that other programs read.
//!
//! A form of the task's own holds all that the model has. The forms that all tasks have hold one
//! of its tables ([`Table`]), and names in a file beside. Memory has what the head of a model has,
//! names above all, and a piece of the values.

use std::io::{self, Write};

use crate::export::Table;
use crate::gnn::{Architecture, Graph, NodeVectors, Predictor};
use crate::run::{CheckpointError, TaskError, Values};
use crate::{ctr, files, kge, mf, wv};

use crate::cli::args::export::{
    ExportArgs, ExportFileArgs, ExportNodesArgs, ExportTask, ExportWordsArgs, Form,
};
use crate::cli::failure::Failure;
use crate::cli::files::{Files, Outputs};
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::{format, input};

/// A model that is to be written.
struct Exported<'m> {
    /// Its vectors, by their kinds.
    tables: Vec<Table<'m>>,
    /// The content of the task's own form: the subject of "are in FILE".
    described: String,
    /// Writes all of it in that form.
    write_own: WriteAll<'m>,
}

type WriteAll<'m> = Box<dyn Fn(&mut dyn Write) -> io::Result<()> + 'm>;

fn of_graph(model: &kge::Checkpoint) -> Exported<'_> {
    let (entities, relations) = (count(model.entities().len()), count(model.relations().len()));
    Exported {
        tables: model.tables(),
        described: format!("{entities} entities and {relations} relations"),
        write_own: Box::new(|file| model.export_to(file)),
    }
}

fn of_matrix(model: &mf::Checkpoint) -> Exported<'_> {
    Exported {
        tables: model.tables(),
        described: format!("{} rows and {} columns", count(model.rows()), count(model.columns())),
        write_own: Box::new(|file| model.export_to(file)),
    }
}

fn of_clicks(model: &ctr::Predictor) -> Exported<'_> {
    let (features, numbers) = (format::count(model.features()), model.dim());
    Exported {
        tables: model.tables(),
        described: format!("{features} features with a weight and {numbers} numbers each"),
        write_own: Box::new(|file| model.export_to(file)),
    }
}

fn of_words((vectors, form): &(wv::Vectors, wv::Format)) -> Exported<'_> {
    let tables = vectors.tables();
    let words: String = tables.iter().map(described).collect();
    Exported {
        tables,
        described: format!("{words} in word2vec's {form} form"),
        write_own: Box::new(|file| vectors.write_to(file, *form)),
    }
}

fn of_nodes(vectors: &NodeVectors) -> Exported<'_> {
    let tables = vectors.tables();
    Exported {
        described: tables.iter().map(described).collect(),
        tables,
        write_own: Box::new(|file| {
            vectors.tables().iter().try_for_each(|table| table.write_lines("", file))
        }),
    }
}

/// Reads parameters and writes them in another form.
pub(crate) fn run(task: &ExportTask, interrupt: &Interrupt) -> Result<(), Failure> {
    match task {
        ExportTask::Kge(ExportArgs { files, format }) => {
            let load = || whole(kge::Checkpoint::open(&files.load), |model| &model.values);
            write(files, *format, interrupt, load, of_graph)
        }
        ExportTask::Mf(ExportArgs { files, format }) => {
            let load = || whole(mf::Checkpoint::open(&files.load), |model| &model.values);
            write(files, *format, interrupt, load, of_matrix)
        }
        ExportTask::Ctr(ExportArgs { files, format }) => {
            let load = || whole(ctr::Predictor::open(&files.load), |model| &model.values);
            write(files, *format, interrupt, load, of_clicks)
        }
        ExportTask::Wv(ExportWordsArgs { files, format }) => {
            let (form, of_word2vec) = format.of_all();
            let load = || {
                let (vectors, _) = wv::program::vectors(&files.load)?;
                Ok((whole(Ok(vectors), |vectors| &vectors.values)?, of_word2vec))
            };
            write(files, form, interrupt, load, of_words)
        }
        ExportTask::Gnn(args) => {
            let ExportArgs { files, format } = &args.of_all;
            let load = || interrupt.hurry(|| nodes(args));
            write(files, *format, interrupt, load, of_nodes)
        }
    }
}

/// Returns the vectors of nodes.
fn nodes(args: &ExportNodesArgs) -> Result<NodeVectors, Failure> {
    let load = &args.of_all.files.load;
    let model = whole(Architecture::open(load), |model| &model.values)?;
    let of_input = |text: String| Failure::Input(format!("{}: {text}", load.display()));
    let Some(name) = &args.data else {
        return NodeVectors::learned(&model).ok_or_else(|| {
            let text = "the model learned no features of nodes; give --data GRAPH to write the first layer of its nodes";
            of_input(text.to_owned())
        });
    };
    let graph = Graph::load(&input::locate("gnn", name)?).map_err(TaskError::Data)?;
    let predictor = Predictor::new(&graph, model);
    Ok(predictor.map_err(|error| of_input(error.to_string()))?.hidden()?)
}

/// Returns a model of which all was read once, a piece at a time: damage is told before anything is
/// written. Rows are read again where they are written.
fn whole<M>(
    model: Result<M, CheckpointError>,
    values: impl FnOnce(&M) -> &Values,
) -> Result<M, Failure> {
    let model = model.map_err(TaskError::Checkpoint)?;
    values(&model).check().map_err(TaskError::Checkpoint)?;
    Ok(model)
}

/// Writes where it can, and never over what is read.
fn write<M>(
    args: &ExportFileArgs,
    form: Form,
    interrupt: &Interrupt,
    load: impl FnOnce() -> Result<M, Failure>,
    exported: impl Fn(&M) -> Exported<'_>,
) -> Result<(), Failure> {
    if form == Form::Tsv && (args.names.is_some() || args.table.is_some()) {
        let flag = if args.names.is_some() { "--names" } else { "--table" };
        let text =
            format!("{flag} is for --format npy or projector; leave it out, or give --format");
        return Err(Failure::Input(text));
    }
    let mut written = vec![("--output", args.output.as_path())];
    written.extend(Files::given([("--names", &args.names)]));
    let files = Files { read: vec![("--load", args.load.as_path())], written };
    let mut outputs = Outputs::prepare(&files, interrupt)?;
    outputs.copies();
    let model = load()?;
    // By another way a file may have been read that is going to be written.
    outputs.check_inputs()?;
    let Exported { tables, described: of_own, write_own } = exported(&model);
    if form == Form::Tsv {
        outputs.save("--output", &of_own, write_own);
    } else {
        let table = chosen(tables, args)?;
        let form_in_words = if form == Form::Npy { "NumPy's" } else { "the projector's" };
        let what = format!("{} in {form_in_words} form", described(&table));
        outputs.save("--output", &what, |file| match form {
            Form::Npy => table.write_npy(file),
            _ => table.write_numbers(file),
        });
        let what = format!("names of {} {}", count(table.rows()), table.kind());
        outputs.save("--names", &what, |file| table.write_names(file));
    }
    // What is asked for stands on stdout alone.
    let output = Output::new(files.written.iter().any(|(_, path)| files::is_stdout(path)));
    let told = outputs.sentences().try_for_each(|sentence| {
        output.text(&format!("{}\n", format::wrapped(sentence, output.width())))
    });
    outputs.finish()?;
    told
}

/// Returns the table that is asked for, or the only one.
fn chosen<'m>(mut tables: Vec<Table<'m>>, args: &ExportFileArgs) -> Result<Table<'m>, Failure> {
    let load = args.load.display();
    let flags: Vec<_> = tables.iter().map(|table| format!("--table {}", table.kind())).collect();
    let flags = flags.join(" or ");
    let at = match &args.table {
        Some(kind) => tables.iter().position(|table| table.kind() == kind),
        None => (tables.len() == 1).then_some(0),
    };
    at.map(|at| tables.swap_remove(at)).ok_or_else(|| {
        let fault = match &args.table {
            Some(kind) => format!("the model has no {kind} (--table)"),
            None => "the model has vectors of several kinds".to_owned(),
        };
        Failure::Input(format!("{load}: {fault}; give {flags}"))
    })
}

fn described(table: &Table<'_>) -> String {
    let numbers = format::plural(table.width(), "number");
    format!("{} {} with {numbers} each", count(table.rows()), table.kind())
}

fn count(number: usize) -> String {
    format::count(number as u64)
}
