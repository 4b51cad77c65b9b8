//! Flags of predictions.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::gnn::Part;
use crate::gnn::program::DataArgs as GraphArgs;
use crate::kge::program::DataArgs;
use crate::run::flags::{at_least_one, one_of};
use crate::wv::program::LOAD;

#[derive(Debug, Subcommand)]
pub(crate) enum PredictTask {
    /// Knowledge graph embeddings: the missing end of a fact, how likely a triple is
    #[command(after_help = KGE_EXAMPLES)]
    Kge(KgeArgs),
    /// Matrix factorization: the value of a cell, the highest columns of a row
    #[command(after_help = MF_EXAMPLES)]
    Mf(MfArgs),
    /// Word vectors: the words nearest to a word, answers to an analogy
    #[command(after_help = WV_EXAMPLES)]
    Wv(WvArgs),
    /// Click prediction: the probability of a click of each example of a file
    #[command(after_help = CTR_EXAMPLES)]
    Ctr(CtrArgs),
    /// Graph networks: the class of each node of a graph
    #[command(after_help = GNN_EXAMPLES)]
    Gnn(Box<GnnArgs>),
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct CtrArgs {
    /// Model written by `train --save FILE`
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) load: PathBuf,
    /// Read all of the model's file and check its checksum, also where an answer needs less
    #[arg(long, help_heading = "Model")]
    pub(crate) check: bool,
    /// Examples in the form of the training data, also .gz; labels do not matter, and may be
    /// missing; -: stdin
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub(crate) data: PathBuf,
    /// Print one JSON object per example; notes go to stderr
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct GnnArgs {
    /// Model written by `train --save FILE`
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) load: PathBuf,
    /// Read all of the model's file and check its checksum, also where an answer needs less
    #[arg(long, help_heading = "Model")]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) data: GraphArgs,
    /// Classify the nodes of this part only
    #[arg(long, value_name = "PART", value_parser = one_of::<Part>(Part::NAMES), conflicts_with = "node", help_heading = "Query")]
    pub(crate) split: Option<Part>,
    /// Classify these nodes only: their numbers, between commas
    #[arg(long, value_name = "N,...", value_delimiter = ',', help_heading = "Query")]
    pub(crate) node: Vec<u32>,
    /// Print one JSON object per node; notes go to stderr
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// Model written by `train --save FILE`
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) load: PathBuf,
    /// Read all of the model's file and check its checksum, also where an answer needs less
    #[arg(long, help_heading = "Model")]
    pub(crate) check: bool,
    /// File of queries instead of one by flags: one a line (see below), also .gz; -: stdin
    #[arg(long, value_name = "FILE", help_heading = "Query")]
    pub(crate) queries: Option<PathBuf>,
    /// Answers at most, of a query that has several
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = at_least_one, help_heading = "Query")]
    pub(crate) top: usize,
    /// Print one JSON object per query; notes go to stderr
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(args_override_self = true, next_help_heading = "Query")]
#[command(mut_arg("data", |flag| flag.help(KGE_DATA).long_help(KGE_DATA)))]
pub(crate) struct KgeArgs {
    /// Entity that the fact is about; left out: it is asked for
    #[arg(long, value_name = "NAME", conflicts_with = "queries")]
    pub(crate) head: Option<String>,
    /// Relation
    #[arg(long, value_name = "NAME", conflicts_with = "queries")]
    pub(crate) relation: Option<String>,
    /// Entity that the relation leads to; left out: it is asked for
    #[arg(long, value_name = "NAME", conflicts_with = "queries")]
    pub(crate) tail: Option<String>,
    /// Answer with facts of the data, too, and rank among them
    #[arg(long)]
    pub(crate) known: bool,
    #[command(flatten)]
    pub(crate) ask: AskArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, Args)]
#[command(args_override_self = true, next_help_heading = "Query")]
pub(crate) struct MfArgs {
    /// Id of a row: whose columns are asked for, if --column is left out
    #[arg(long, value_name = "ID", conflicts_with = "queries")]
    pub(crate) row: Option<String>,
    /// Id of a column: the value of this cell is asked for
    #[arg(long, value_name = "ID", conflicts_with = "queries")]
    pub(crate) column: Option<String>,
    /// Answer with columns that the row has in the data, too
    #[arg(long)]
    pub(crate) known: bool,
    #[command(flatten)]
    pub(crate) ask: AskArgs,
    /// Clip values to the range of the training data
    #[arg(long, help_heading = "Model")]
    pub(crate) clip: bool,
    /// Ratings, or their name in $ADAPM_DATA/mf: the columns that a row has there are left out of
    /// its answers
    #[arg(long, value_name = "PATH|NAME", help_heading = "Data")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(args_override_self = true, next_help_heading = "Query")]
#[command(mut_arg("load", |flag| flag.help(LOAD).long_help(LOAD)))]
pub(crate) struct WvArgs {
    /// Word whose neighbours are asked for
    #[arg(long, value_name = "WORD", conflicts_with_all = ["queries", "analogy"])]
    pub(crate) word: Option<String>,
    /// Three words: A is to B as C is to what?
    #[arg(long, num_args = 3, value_names = ["A", "B", "C"], conflicts_with = "queries")]
    pub(crate) analogy: Option<Vec<String>>,
    /// The most frequent words that can be answers [default: all]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) words: Option<usize>,
    #[command(flatten)]
    pub(crate) ask: AskArgs,
}

const KGE_DATA: &str = "\
The data that the model was trained on, or its name in $ADAPM_DATA/kge: its facts are left out of \
answers, and its frequencies count as in eval; none: generated family trees, if the model is of them";

pub(crate) const KGE_EXAMPLES: &str = "\
A line of --queries is head, relation and tail between tabs, or between blanks
where there is no tab, with ? for the end that is asked for. A line of answers:
  HEAD  RELATION  ?  rank  NAME  score  known     between tabs; known, if it is
  HEAD  RELATION  TAIL  tail-score  tail-rank  head-score  head-rank  yes|no|-

Examples:
  adapm predict kge --load umls.adapm --data umls --head virus --relation causes
  adapm predict kge --load umls.adapm --data umls --tail virus --relation isa
  adapm predict kge --load fb.adapm --data FB15k-237 --queries - --json";

pub(crate) const MF_EXAMPLES: &str = "\
A line of --queries is a row and a column between a tab, or a row alone.
A line of answers:
  ROW  COLUMN  value                between tabs
  ROW  ?  rank  COLUMN  value  known     if it is

Examples:
  adapm predict mf --load ml.adapm --row 42 --column 1193 --clip
  adapm predict mf --load ml.adapm --row 42 --data ml-1m/ratings.dat --top 5
  adapm predict mf --load ml.adapm --queries cells.tsv > predicted.tsv";

pub(crate) const WV_EXAMPLES: &str = "\
A line of --queries is a word, or the three words of an analogy, between tabs or
blanks. A line of answers:
  WORD  rank  NEAR  cosine          between tabs
  A  B  C  rank  NEAR  cosine

Examples:
  adapm predict wv --load text8.adapm --word king
  adapm predict wv --load text8.adapm --analogy man king woman --top 3
  adapm predict wv --load glove.6B.100d.txt --word king --words 50000 --json";

pub(crate) const CTR_EXAMPLES: &str = "\
A line of output is the probability of a click of the example in that line of
the data, without blank lines and a line of names.

Examples:
  adapm predict ctr --load criteo.adapm --data day_23.tsv.gz > probabilities
  head -5 adult.test | adapm predict ctr --load adult.adapm --data - --json";

pub(crate) const GNN_EXAMPLES: &str = "\
A line of output, of all nodes unless --split or --node says which:
  NODE  class  probability      between tabs
The data may lack classes and parts: class -1 and part none in nodes.txt.

Examples:
  adapm predict gnn --load citeseer.adapm --data citeseer > classes.tsv
  adapm predict gnn --load citeseer.adapm --data citeseer --node 17,23
  adapm predict gnn --load citeseer.adapm --data citeseer --split test --json";
