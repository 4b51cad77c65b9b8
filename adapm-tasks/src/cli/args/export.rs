//! Flags of the verb that writes saved models in other forms.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::wv;

#[derive(Debug, Subcommand)]
pub(crate) enum ExportTask {
    /// Knowledge graph embeddings
    #[command(after_help = of_tables(EXPORT_KGE))]
    Kge(ExportArgs),
    /// Matrix factorization
    #[command(after_help = of_tables(EXPORT_MF))]
    Mf(ExportArgs),
    /// Word vectors
    #[command(after_help = of_tables(EXPORT_WV))]
    Wv(ExportWordsArgs),
    /// Click prediction: weights and embeddings of features
    #[command(after_help = of_tables(EXPORT_CTR))]
    Ctr(ExportArgs),
    /// Graph networks: a vector of each node
    #[command(after_help = of_tables(EXPORT_GNN))]
    Gnn(ExportNodesArgs),
}

/// Flags of all exports.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct ExportFileArgs {
    /// Parameters written by `train --save FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) load: PathBuf,
    /// File to write; an older one of that name stays as it is until the new one is complete; -:
    /// stdout
    #[arg(long, value_name = "FILE", value_parser = output_path)]
    pub(crate) output: PathBuf,
    /// With npy or projector: file for the names of the rows, one a line; -: stdout
    #[arg(long, value_name = "FILE", value_parser = output_path)]
    pub(crate) names: Option<PathBuf>,
    /// With npy or projector: the vectors to write, where a model has several kinds (see below)
    #[arg(long, value_name = "KIND")]
    pub(crate) table: Option<String>,
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) files: ExportFileArgs,
    /// Form of the file (see below)
    #[arg(long, value_name = "FORM", default_value_t = Form::Tsv, value_enum)]
    pub(crate) format: Form,
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct ExportWordsArgs {
    #[command(flatten)]
    pub(crate) files: ExportFileArgs,
    /// Form of the file (see below)
    #[arg(long, value_name = "FORM", default_value_t = WordForm::Text, value_enum)]
    pub(crate) format: WordForm,
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct ExportNodesArgs {
    #[command(flatten)]
    pub(crate) of_all: ExportArgs,
    /// A graph, or its name in $ADAPM_DATA/gnn: write the first layer of its nodes instead of
    /// features that were learned
    #[arg(long, value_name = "PATH|NAME")]
    pub(crate) data: Option<PathBuf>,
}

/// A form of a file of vectors: lines as the task has them, NumPy's, the Embedding Projector's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Tsv,
    Npy,
    Projector,
}

/// A form of a file of word vectors: word2vec's two, and those of all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WordForm {
    Text,
    Binary,
    Npy,
    Projector,
}

impl WordForm {
    /// Returns the form among those of all tasks, and word2vec's, which matters if that is the
    /// task's own.
    pub(crate) fn of_all(self) -> (Form, wv::Format) {
        match self {
            Self::Text => (Form::Tsv, wv::Format::Text),
            Self::Binary => (Form::Tsv, wv::Format::Binary),
            Self::Npy => (Form::Npy, wv::Format::Text),
            Self::Projector => (Form::Projector, wv::Format::Text),
        }
    }
}

/// Returns the file that a word names, which may stand for stdout.
fn output_path(word: &str) -> Result<PathBuf, &'static str> {
    match word {
        "" => Err("give a file, or -"),
        "-" => Ok(PathBuf::from("/dev/stdout")),
        path => Ok(PathBuf::from(path)),
    }
}

/// Returns the end of a help screen: the task's own form, and those of all tasks.
fn of_tables(own: &str) -> String {
    let (own, examples) = own.split_once("\n\n").unwrap_or((own, ""));
    format!("{own}\n{TABLES}\n\n{examples}")
}

const TABLES: &str = "\
npy: NumPy's file of all numbers, float32, a row a vector; numpy.load reads it.
projector: a line a vector, numbers between tabs, for projector.tensorflow.org;
  the file of --names is its metadata.";

const EXPORT_KGE: &str = "\
tsv: lines of fields between tabs
  entity    NAME  number ...   --dim numbers; complex ones: real parts first
  relation  NAME  number ...   as many; rescal: dim x dim, row by row
  inverse   NAME  number ...   of each relation, with --reciprocal
--table: entities, relations, or inverses.

Examples:
  adapm export kge --load fb.adapm --output fb.tsv
  adapm export kge --load fb.adapm --format npy --table entities --output fb.npy
    --names fb.txt";

const EXPORT_MF: &str = "\
tsv: lines of fields between tabs
  mean    number
  row     ID  effect  number ...   --dim numbers; a prediction is the mean, both
  column  ID  effect  number ...   effects, and the product of the numbers
--table: rows or columns, whose numbers are those above, without effects.

Examples:
  adapm export mf --load ml.adapm --output ml.tsv
  adapm export mf --load ml.adapm --format npy --table columns --output ml.npy
    --names films";

const EXPORT_WV: &str = "\
text and binary: word2vec's, which gensim reads, too; the most frequent word is
  the first
  WORDS DIM               a line of text at the start of either form
  WORD number number ...  text: a line a word
  WORD, a space, DIM floats of 4 bytes, little-endian, a line feed: binary
--load may be a file of either form, or of GloVe's, too.

Examples:
  adapm export wv --load text8.adapm --output text8.bin --format binary
  adapm export wv --load text8.adapm --format projector --output vectors.tsv
    --names metadata.tsv";

const EXPORT_CTR: &str = "\
tsv: lines of fields between tabs
  FEATURE  weight  number ...   --dim numbers: the feature's embedding
--table: embeddings or weights; a model dcn has no weights.

Examples:
  adapm export ctr --load criteo.adapm --output criteo.tsv
  adapm export ctr --load c.adapm --format npy --table embeddings --output c.npy";

const EXPORT_GNN: &str = "\
Vectors are the features that were learned or, with --data, the units of the
first layer for each node of that graph, from its features and neighbours.
tsv: lines of fields between tabs
  NODE  number ...   --dim numbers, or --hidden with --data

Examples:
  adapm export gnn --load citeseer.adapm --data citeseer --output nodes.tsv
  adapm export gnn --load learned.adapm --format npy --output nodes.npy";
