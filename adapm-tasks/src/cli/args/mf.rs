//! Flags of matrix factorization.

use std::path::PathBuf;

use crate::mf::{Optimizer, Order, Penalty, SyntheticConfig, TrainConfig};
use crate::run::Split;
use clap::Args;
use clap::builder::BoolishValueParser;

use crate::cli::args::common::{ClusterArgs, EvalOutputArgs, SettingsArgs, TrainOutputArgs};
use crate::cli::args::parse::{epochs, one_of};
use crate::cli::args::{ProcessArgs, TraceKeysArgs};

#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArgs {
    /// Ratings: a file (`u i r` lines, CSV, TSV, MovieLens, MatrixMarket; .gz too) whose first line
    /// may name the columns user, item and rating; a folder with train and test of these; or its
    /// name in $ADAPM_DATA/mf; none: a generated matrix
    #[arg(long, value_name = "PATH|NAME", conflicts_with_all = ["data_seed", "rows", "columns", "cells", "test_cells", "rank", "noise"])]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) generated: GeneratedArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GeneratedArgs {
    /// Seed of the generated matrix
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().seed)]
    pub(crate) data_seed: u64,
    /// Rows of the generated matrix
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().rows)]
    pub(crate) rows: u32,
    /// Columns of the generated matrix
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().columns)]
    pub(crate) columns: u32,
    /// Cells of the generated matrix to train on, at most a quarter of all
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().cells)]
    pub(crate) cells: u64,
    /// Cells of the generated matrix to predict
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().test_cells)]
    pub(crate) test_cells: u32,
    /// Rank of the generated matrix without noise
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().rank)]
    pub(crate) rank: usize,
    /// Standard deviation of the noise of the generated matrix; that of the matrix without is 1
    #[arg(long, value_name = "X", default_value_t = SyntheticConfig::default().noise, allow_negative_numbers = true)]
    pub(crate) noise: f32,
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
    /// Chunks of up to 4,096 cells between `localize` and the access, under lapse
    #[arg(long, value_name = "CHUNKS", default_value_t = TrainConfig::default().localize_ahead)]
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
    /// Number of factors of a row or column
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().dim, allow_negative_numbers = true)]
    pub(crate) dim: usize,
    /// Standard deviation of the initial values
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().initial_deviation, allow_negative_numbers = true)]
    pub(crate) initial_deviation: f32,
    /// Clip predictions to the range of the training data; --clip=false takes it back
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true",
        hide_default_value = true, hide_possible_values = true, value_parser = BoolishValueParser::new())]
    pub(crate) clip: bool,
    /// Seed of initial values and order of the data
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().seed)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct TrainingArgs {
    /// Passes over the training data [default: as many as help, at most 100; 20 if nothing is
    /// selected]
    #[arg(long, value_name = "N", value_parser = epochs, allow_negative_numbers = true)]
    pub(crate) epochs: Option<u32>,
    /// Order of visits: column by column, in blocks with a barrier after each (Lapse's), or at
    /// random [default: columnwise; dsgd after cross-fitting]
    #[arg(long, value_name = "NAME", value_parser = one_of::<Order>(&["columnwise", "dsgd", "plain"]))]
    pub(crate) order: Option<Order>,
    /// Update rule of the gradients
    #[arg(long, value_name = "NAME", default_value_t = Optimizer::AdaGrad, value_parser = one_of::<Optimizer>(&["adagrad", "sgd"]))]
    pub(crate) optimizer: Optimizer,
    /// Learning rate, at first, where what is learnt has deviation 1 [default: 0.1; with sgd 0.02]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) learning_rate: Option<f32>,
    /// Raise the learning rate by 5 % after an epoch in which the loss fell, halve it where it
    /// rose; --bold-driver=false takes it back
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true",
        hide_default_value = true, hide_possible_values = true, value_parser = BoolishValueParser::new())]
    pub(crate) bold_driver: bool,
    /// Weight of the squared norms of rows and columns, where what is learnt has deviation 1
    /// [default: from 0.12 by cell or 4 by vector, halved after each epoch that does not help; if
    /// nothing is selected half of it]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) l2: Option<f32>,
    /// Weights of squared norms: each cell its row's and column's, or each row and column once
    #[arg(long, value_name = "BY", default_value_t = Penalty::Cell, value_parser = one_of::<Penalty>(&["cell", "vector"]))]
    pub(crate) penalty: Penalty,
    /// Do not evaluate: neither select the epoch nor report on test
    #[arg(long)]
    pub(crate) no_eval: bool,
    /// Train on all cells and select nothing, if the data has no valid part: else a twentieth of
    /// train is held back to select on, or of 10,000 cells and fewer each fifth is left out in turn
    /// before
    #[arg(long)]
    pub(crate) no_hold_back: bool,
    /// Epochs between two evaluations of valid (the last epoch is always evaluated)
    #[arg(long, value_name = "EPOCHS", default_value_t = TrainConfig::default().valid_every, value_parser = epochs)]
    pub(crate) valid_every: u32,
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct EvalArgs {
    /// Factors written by `train mf --save FILE`
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) load: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Part of the data to predict
    #[arg(long, value_name = "PART", default_value_t = Split::Test, value_parser = one_of::<Split>(&["valid", "test"]), help_heading = "Data")]
    pub(crate) split: Split,
    /// Clip predictions to the range of the training data
    #[arg(long, help_heading = "Model")]
    pub(crate) clip: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) output: EvalOutputArgs,
    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}

pub(super) const TRAIN_EXAMPLES: &str = "\
Examples:
  adapm train mf --nodes 4
  adapm train mf --nodes 4 --order dsgd --system lapse --localize-ahead 1
  adapm train mf --data ml-1m/ratings.dat --save ml.adapm
  adapm train mf --rows 100000 --columns 10000 --cells 10000000 --no-eval";

pub(super) const EVAL_EXAMPLES: &str = "\
Examples:
  adapm eval mf --load ml.adapm --data ml-1m/ratings.dat --clip
  adapm eval mf --load ml.adapm --data ml-1m/ratings.dat --nodes 4 --json
  adapm eval mf --load ml.adapm --data new.csv    a file that was not trained on";
