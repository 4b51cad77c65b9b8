//! The verb `export`: trained parameters in forms that other programs read.
//!
//! A form of the task's own holds all that the model has. The forms that all tasks have hold one
//! of its tables ([`Table`]), and names in a file beside.

use std::io::{self, Write};

use crate::export::Table;
use crate::gnn::{Architecture, Graph, NodeVectors, Predictor};
use crate::run::TaskError;
use crate::{ctr, files, kge, mf, wv};

use crate::cli::args::export::{ExportArgs, ExportFileArgs, ExportNodesArgs, ExportTask, Form};
use crate::cli::failure::Failure;
use crate::cli::files::{Files, Outputs};
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::{format, input};

/// A model that is written in other forms.
trait Exported {
    /// Returns its vectors, by their kinds.
    fn tables(&self) -> Vec<Table<'_>>;

    /// Writes all of it in the task's own form.
    fn write_own(&self, file: &mut dyn Write) -> io::Result<()>;

    /// Describes the content of the task's own form: the subject of "are in FILE".
    fn describe_own(&self) -> String;
}

impl Exported for kge::Checkpoint {
    fn tables(&self) -> Vec<Table<'_>> {
        self.tables()
    }

    fn write_own(&self, file: &mut dyn Write) -> io::Result<()> {
        self.export_to(file)
    }

    fn describe_own(&self) -> String {
        let (entities, relations) = (count(self.entities().len()), count(self.relations().len()));
        format!("{entities} entities and {relations} relations")
    }
}

impl Exported for mf::Checkpoint {
    fn tables(&self) -> Vec<Table<'_>> {
        self.tables()
    }

    fn write_own(&self, file: &mut dyn Write) -> io::Result<()> {
        self.export_to(file)
    }

    fn describe_own(&self) -> String {
        format!("{} rows and {} columns", count(self.rows()), count(self.columns()))
    }
}

impl Exported for ctr::Predictor {
    fn tables(&self) -> Vec<Table<'_>> {
        self.tables()
    }

    fn write_own(&self, file: &mut dyn Write) -> io::Result<()> {
        self.export_to(file)
    }

    fn describe_own(&self) -> String {
        let (features, dim) = (count(self.features().count()), self.dim());
        format!("{features} features with a weight and {dim} numbers each")
    }
}

impl Exported for NodeVectors {
    fn tables(&self) -> Vec<Table<'_>> {
        self.tables()
    }

    fn write_own(&self, file: &mut dyn Write) -> io::Result<()> {
        self.tables().iter().try_for_each(|table| table.write_lines("", file))
    }

    fn describe_own(&self) -> String {
        self.tables().iter().map(described).collect()
    }
}

/// Word vectors, and word2vec's form of a file of them.
struct Words(wv::Vectors, wv::Format);

impl Exported for Words {
    fn tables(&self) -> Vec<Table<'_>> {
        self.0.tables()
    }

    fn write_own(&self, file: &mut dyn Write) -> io::Result<()> {
        self.0.write_to(file, self.1)
    }

    fn describe_own(&self) -> String {
        let form = self.1;
        let words: String = self.tables().iter().map(described).collect();
        format!("{words} in word2vec's {form} form")
    }
}

/// Reads parameters and writes them in another form.
pub(crate) fn run(task: &ExportTask, interrupt: &Interrupt) -> Result<(), Failure> {
    match task {
        ExportTask::Kge(ExportArgs { files, format }) => write(files, *format, interrupt, || {
            Ok(kge::Checkpoint::load(&files.load).map_err(TaskError::Checkpoint)?)
        }),
        ExportTask::Mf(ExportArgs { files, format }) => write(files, *format, interrupt, || {
            Ok(mf::Checkpoint::load(&files.load).map_err(TaskError::Checkpoint)?)
        }),
        ExportTask::Ctr(ExportArgs { files, format }) => write(files, *format, interrupt, || {
            Ok(ctr::Predictor::open(&files.load).map_err(TaskError::Checkpoint)?)
        }),
        ExportTask::Wv(args) => {
            let (form, of_words) = args.format.of_all();
            write(&args.files, form, interrupt, || {
                let (vectors, _) = wv::program::vectors(&args.files.load)?;
                Ok(Words(vectors, of_words))
            })
        }
        ExportTask::Gnn(args) => {
            let ExportArgs { files, format } = &args.of_all;
            write(files, *format, interrupt, || interrupt.hurry(|| nodes(args)))
        }
    }
}

/// Returns the vectors of nodes.
fn nodes(args: &ExportNodesArgs) -> Result<NodeVectors, Failure> {
    let load = &args.of_all.files.load;
    let model = Architecture::load(load).map_err(TaskError::Checkpoint)?;
    let of_input = |text: String| Failure::Input(format!("{}: {text}", load.display()));
    let Some(name) = &args.data else {
        return NodeVectors::learned(&model).ok_or_else(|| {
            let text = "the model learned no features of nodes; give --data GRAPH to write the first layer of its nodes";
            of_input(text.to_owned())
        });
    };
    let graph = Graph::load(&input::locate("gnn", name)?).map_err(TaskError::Data)?;
    let predictor = Predictor::new(&graph, model);
    Ok(predictor.map_err(|error| of_input(error.to_string()))?.hidden())
}

/// Writes where it can, and never over what is read.
fn write<M: Exported>(
    args: &ExportFileArgs,
    form: Form,
    interrupt: &Interrupt,
    load: impl FnOnce() -> Result<M, Failure>,
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
    if form == Form::Tsv {
        outputs.save("--output", &model.describe_own(), |file| model.write_own(file));
    } else {
        let table = chosen(model.tables(), args)?;
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
    let is_taken = |path| files::is_stdout(path);
    let output = Output::new(files.written.iter().any(|(_, path)| is_taken(path)));
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
