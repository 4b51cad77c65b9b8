//! Flags of the verbs about data.

use std::path::PathBuf;

use crate::ctr::Schema;
use crate::kge::ColumnOrder;
use clap::{Args, Subcommand};

use crate::cli::data::sets::Task;
use crate::run::flags::one_of;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_override_self = true, subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
pub(crate) struct DataArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<DataVerb>,
    /// Print one JSON object per data set, or of what was checked; tables go to stderr
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataVerb {
    /// Read data without training: what it is, how much of it, what is odd about it
    Check(CheckArgs),
}

#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES, args_override_self = true)]
pub(crate) struct CheckArgs {
    /// Folder or file, or its name in $ADAPM_DATA
    #[arg(value_name = "PATH|NAME")]
    pub(crate) data: PathBuf,
    /// Read it as data of this task [default: the task of the data set that it is, else what it
    /// looks like]
    #[arg(long, value_name = "TASK", value_parser = one_of::<Task>(&["kge", "mf", "wv", "ctr", "gnn"]))]
    pub(crate) task: Option<Task>,
    /// Columns of triples, where no first line names them
    #[arg(long, value_name = "ORDER", value_parser = one_of::<ColumnOrder>(&["hrt", "htr"]))]
    pub(crate) column_order: Option<ColumnOrder>,
    /// Columns of a table of clicks, as `train ctr` takes them
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) schema: Option<Schema>,
}

const EXAMPLES: &str = "\
Lists the data sets of the recipes: origin, licence, size, checksums, and the commands that
get them. $ADAPM_DATA is the folder in which data is looked up by name.

Examples:
  adapm data
  adapm data check FB15k-237
  adapm data check my/triples.tsv --json";

const CHECK_EXAMPLES: &str = "\
Exit codes:
  0   nothing is odd, or the data is a data set as it was published
  1   something is: facts that are repeated or in several parts, names unknown to train,
      a part that is missing, files that differ from those that were published
  2   the data cannot be read

Examples:
  adapm data check FB15k-237
  adapm data check my/triples.tsv
  adapm data check OpenKE/benchmarks/FB15K237 --column-order htr";
