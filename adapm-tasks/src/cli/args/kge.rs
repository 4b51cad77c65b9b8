//! Flags of knowledge graph embeddings.

use std::path::PathBuf;

use crate::Scheme;
use crate::kge::{ColumnOrder, LossKind, ModelKind, Negatives, Split, TrainConfig};
use clap::Args;
use clap::builder::BoolishValueParser;

use crate::cli::args::common::{ClusterArgs, EvalOutputArgs, SettingsArgs, TrainOutputArgs};
use crate::cli::args::parse::{at_least_one, epochs, one_of};
use crate::cli::args::{ProcessArgs, TraceKeysArgs};

#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArgs {
    /// Folder with train, valid (or dev), test (.txt, .tsv, .csv, .del, also .gz); one file of
    /// triples, which is split 80/10/10; or its name in $ADAPM_DATA/kge; none: generated family
    /// trees
    #[arg(long, value_name = "PATH|NAME")]
    pub(crate) data: Option<PathBuf>,
    /// Columns of the files, where no first line names them: head, relation, tail, or OpenKE's
    /// head, tail, relation
    #[arg(long, value_name = "ORDER", value_parser = one_of::<ColumnOrder>(&["hrt", "htr"]), requires = "data")]
    pub(crate) column_order: Option<ColumnOrder>,
    /// Seed of the generated graph, or of the split of one file
    #[arg(long, value_name = "N", default_value_t = DATA_SEED)]
    pub(crate) data_seed: u64,
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Clocks (chunks or data points) between `localize` and the access, under lapse
    #[arg(long, value_name = "CLOCKS", default_value_t = TrainConfig::default().localize_ahead)]
    pub(crate) localize_ahead: u64,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) training: TrainingArgs,
    #[command(flatten)]
    pub(crate) output: TrainOutputArgs,
    #[command(flatten)]
    pub(crate) traced: TraceKeysArgs,
    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Function that scores a triple
    #[arg(long, value_name = "NAME", default_value_t = ModelKind::Complex, value_parser = one_of::<ModelKind>(ModelKind::NAMES))]
    pub(crate) model: ModelKind,
    /// Length of an entity's vector, in reals (complex numbers: half real, half imaginary parts)
    #[arg(long, value_name = "REALS", default_value_t = TrainConfig::default().dim, allow_negative_numbers = true)]
    pub(crate) dim: usize,
    /// Give every relation an inverse with a vector of its own; --reciprocal=false takes it back
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true",
        hide_default_value = true, hide_possible_values = true, value_parser = BoolishValueParser::new())]
    pub(crate) reciprocal: bool,
    /// Let the frequency of a candidate with the relation count in ranking, as much as is best on
    /// valid; --prior=false: vectors alone
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true",
        action = clap::ArgAction::Set, hide_default_value = true, hide_possible_values = true, value_parser = BoolishValueParser::new())]
    pub(crate) prior: bool,
    /// Standard deviation of the initial values
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().initial_deviation, allow_negative_numbers = true)]
    pub(crate) initial_deviation: f32,
    /// Seed of initial values, order of the data and negatives
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().seed)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct TrainingArgs {
    /// Passes over the training data
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().epochs, value_parser = epochs, allow_negative_numbers = true)]
    pub(crate) epochs: u32,
    /// Loss to minimise: cross entropy over the negatives (softmax) or of each (logistic)
    #[arg(long, value_name = "NAME", default_value_t = LossKind::Softmax, value_parser = one_of::<LossKind>(LossKind::NAMES))]
    pub(crate) loss: LossKind,
    /// Negatives: one set for a whole chunk of triples, or a set for each triple
    #[arg(long, value_name = "WAY", default_value_t = Negatives::Shared, value_parser = one_of::<Negatives>(Negatives::NAMES))]
    pub(crate) negatives: Negatives,
    /// Negatives of a chunk (shared), or of each side of a triple (independent) [default: twice the
    /// entities, at most 1000; or 50]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) negative_count: Option<usize>,
    /// Sampling of negatives: any entities, as they come (naive), brought here ahead (preloc), from
    /// a pool that is used again (pool), such as are here (local) [default: naive under classic,
    /// preloc under lapse and adapm-no-replication, else local]
    #[arg(long, value_name = "SCHEME", value_parser = one_of::<Scheme>(&["naive", "preloc", "pool", "local"]))]
    pub(crate) sampling: Option<Scheme>,
    /// Triples of a chunk, with shared negatives [default: a fortieth of what a worker has in an
    /// epoch, 16 to 256]
    #[arg(long, value_name = "TRIPLES", value_parser = at_least_one)]
    pub(crate) chunk: Option<usize>,
    /// Learning rate of AdaGrad
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().learning_rate, allow_negative_numbers = true)]
    pub(crate) learning_rate: f32,
    /// Weight of the squared norm of a triple's entities
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().l2_entity, allow_negative_numbers = true)]
    pub(crate) l2_entity: f32,
    /// Weight of the squared norm of a triple's relation
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().l2_relation, allow_negative_numbers = true)]
    pub(crate) l2_relation: f32,
    /// Weight of the cubed absolute values of a triple's vectors [default: 0.05; 0 where scores
    /// are distances]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) n3: Option<f32>,
    /// Do not evaluate: neither select the epoch on valid nor report on test
    #[arg(long)]
    pub(crate) no_eval: bool,
    /// Epochs between two evaluations of valid (the last epoch is always evaluated) [default: 1 to
    /// 5, a tenth of the time]
    #[arg(long, value_name = "EPOCHS", value_parser = epochs)]
    pub(crate) valid_every: Option<u32>,
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct EvalArgs {
    /// Parameters written by `train kge --save FILE`
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) load: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Part of the data to rank
    #[arg(long, value_name = "PART", default_value_t = Split::Test, value_parser = one_of::<Split>(&["valid", "test"]), help_heading = "Data")]
    pub(crate) split: Split,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Write the ranks to FILE, one a line: of each triple its object's, then its subject's
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) ranks: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: EvalOutputArgs,
    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}

pub(super) const TRAIN_EXAMPLES: &str = "\
Examples:
  adapm train kge --nodes 4
  adapm train kge --data FB15k-237 --epochs 30 --save fb.adapm
  adapm train kge --data triples.tsv
  adapm train kge --recipe umls
  adapm train kge --json --no-eval | jq .local_share";

pub(super) const EVAL_EXAMPLES: &str = "\
Examples:
  adapm eval kge --load fb.adapm --data FB15k-237
  adapm eval kge --load fb.adapm --data FB15k-237 --nodes 4 --ranks ranks.txt";

/// The seed that is meant if none is given.
pub(crate) const DATA_SEED: u64 = 1;
