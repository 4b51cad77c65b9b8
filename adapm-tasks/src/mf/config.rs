//! Choices of training and evaluation, and checks of them.

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};
use serde::Serialize;

use crate::run::config::{
    ClusterConfig, Config, ConfigError, RunConfig, Split, dimension, named, not_negative, positive,
    whole,
};
use crate::run::flags::{TRAINING, one_of, positive_count};

/// The order in which workers visit cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// A worker visits its columns in groups, all cells of a group one after the other (AdaPM App.
    /// C).
    #[default]
    Columnwise,
    /// In each sub-epoch a worker visits another block of columns; a barrier ends it (Gemulla et
    /// al.; Lapse §4.1).
    Dsgd,
    /// A worker visits its cells in random order.
    Plain,
}

/// The update rule of gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Optimizer {
    /// Every vector has a rate of its own, which falls with the mean square of its gradients.
    #[default]
    AdaGrad,
    /// One rate for all.
    Sgd,
}

/// The weights of the squared norms of factors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Penalty {
    /// Every observed cell penalises its row and its column: a vector counts as often as it has
    /// cells.
    #[default]
    Cell,
    /// Every vector counts once, however many cells it has: each of them bears its part (as the
    /// programs of the papers).
    Vector,
}

/// Choices of a training run. Start from [`TrainConfig::default`] and set fields.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TrainConfig {
    /// Number of factors of a row or column, the rank
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().dim, help_heading = "Model")]
    pub dim: usize,
    /// Standard deviation of the initial values
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().initial_deviation, help_heading = "Model")]
    pub initial_deviation: f32,
    /// Clip predictions to the range of the training data; --clip=false takes it back
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true",
        action = ArgAction::Set, hide_default_value = true, hide_possible_values = true, value_parser = BoolishValueParser::new(), help_heading = "Model")]
    pub clip: bool,
    /// Passes over the training data [default: as many as help, at most 100; 20 if nothing is
    /// selected]
    #[arg(long, value_name = "N", value_parser = positive_count, help_heading = TRAINING)]
    pub epochs: Option<u32>,
    /// Order of visits: column by column, in blocks with a barrier after each (Lapse's), or at
    /// random [default: columnwise; dsgd after cross-fitting]
    #[arg(long, value_name = "NAME", value_parser = one_of::<Order>(Order::NAMES), help_heading = TRAINING)]
    pub order: Option<Order>,
    /// Update rule of the gradients
    #[arg(long, value_name = "NAME", default_value_t, value_parser = one_of::<Optimizer>(Optimizer::NAMES), help_heading = TRAINING)]
    pub optimizer: Optimizer,
    /// Learning rate, at first, where what is learnt has deviation 1 [default: 0.1; with sgd 0.02]
    #[arg(long, value_name = "X", help_heading = TRAINING)]
    pub learning_rate: Option<f32>,
    /// Raise the learning rate by 5 % after an epoch in which the loss fell, halve it where it
    /// rose; --bold-driver=false takes it back
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true",
        action = ArgAction::Set, hide_default_value = true, hide_possible_values = true, value_parser = BoolishValueParser::new(), help_heading = TRAINING)]
    pub bold_driver: bool,
    /// Weight of the squared norms of rows and columns, where what is learnt has deviation 1
    /// [default: from 0.12 by cell or 4 by vector, halved after each epoch in which the error has
    /// not fallen by half a percent; if nothing is selected half of it]
    #[arg(long, value_name = "X", help_heading = TRAINING)]
    pub l2: Option<f32>,
    /// Weights of squared norms: each cell its row's and column's, or each row and column once
    #[arg(long, value_name = "BY", default_value_t, value_parser = one_of::<Penalty>(Penalty::NAMES), help_heading = TRAINING)]
    pub penalty: Penalty,
    /// Train on all cells and select nothing, if the data has no valid part: else a twentieth of
    /// train is held back to select on, or of 10,000 cells and fewer each fifth is left out in turn
    /// before
    #[arg(long, help_heading = TRAINING)]
    pub no_hold_back: bool,
    /// Epochs between two evaluations of valid (the last epoch is always evaluated)
    #[arg(long, value_name = "EPOCHS", default_value_t = TrainConfig::default().valid_every, value_parser = positive_count, help_heading = TRAINING)]
    pub valid_every: u32,
    /// Nodes, workers, system.
    #[command(flatten)]
    #[serde(flatten)]
    pub cluster: ClusterConfig,
    /// Settings that all tasks have; a clock is a chunk of up to 4,096 cells.
    #[command(flatten)]
    #[serde(flatten)]
    pub run: RunConfig,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            dim: 32,
            initial_deviation: 0.05,
            clip: false,
            epochs: None,
            order: None,
            optimizer: Optimizer::default(),
            learning_rate: None,
            bold_driver: false,
            l2: None,
            penalty: Penalty::default(),
            no_hold_back: false,
            valid_every: 1,
            run: RunConfig::default(),
            cluster: ClusterConfig::default(),
        }
    }
}

/// Cells that a run selects on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selection {
    /// The valid part of the data.
    Valid {
        /// Its cells.
        cells: u64,
    },
    /// Cells that are generated beside those to train on.
    Generated {
        /// Their number.
        cells: u64,
    },
    /// Cells of train that are not trained on: a twentieth, at most 10,000, of no row and no column
    /// the last.
    HeldBack {
        /// Their number.
        cells: u64,
        /// Cells of train.
        of: u64,
    },
    /// Each fifth of train in turn, predicted from the others by a training of its own, four times
    /// over with other fifths.
    CrossFitted {
        /// Cells of train.
        cells: u64,
    },
    /// None: as many epochs as there are, with the same penalty, and what came out last.
    Nothing,
}

impl TrainConfig {
    /// Returns the order of visits in a run that selects like this.
    #[must_use]
    pub fn order(&self, selection: Selection) -> Order {
        self.order.unwrap_or(match selection {
            Selection::CrossFitted { .. } => Order::Dsgd,
            _ => Order::Columnwise,
        })
    }

    /// Returns the learning rate, at first.
    #[must_use]
    pub fn rate(&self) -> f32 {
        self.learning_rate.unwrap_or(match self.optimizer {
            Optimizer::AdaGrad => 0.1,
            Optimizer::Sgd => 0.02,
        })
    }

    /// Returns the weight of squared norms in the first epoch of a run that selects like this.
    #[must_use]
    pub fn penalty_first(&self, selection: Selection) -> f32 {
        let first = match self.penalty {
            Penalty::Cell => 0.12,
            Penalty::Vector => 4.0,
        };
        // One that does not fall has to be between the first and the last of those that do.
        self.l2.unwrap_or(if selection == Selection::Nothing { 0.5 * first } else { first })
    }
}

impl Config for TrainConfig {
    fn common(&self) -> (&ClusterConfig, &RunConfig) {
        (&self.cluster, &self.run)
    }

    fn common_mut(&mut self) -> (&mut ClusterConfig, &mut RunConfig) {
        (&mut self.cluster, &mut self.run)
    }

    fn batches_per_clock(&self) -> u32 {
        16
    }

    fn check(&self) -> Result<(), ConfigError> {
        dimension(self.dim)?;
        positive("learning_rate", self.rate())?;
        positive("initial_deviation", self.initial_deviation)?;
        whole("valid_every", self.valid_every.into(), 1, u64::MAX)?;
        not_negative("l2", self.l2.unwrap_or(0.0))?;
        self.run.check(&self.cluster)
    }
}

/// Choices of an evaluation. Start from [`EvalConfig::default`] and set fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EvalConfig {
    /// The evaluated part. Defaults to test.
    pub split: Split,
    /// Clips predictions to the range of the training data. Defaults to false.
    pub clip: bool,
    /// Nodes, workers, system.
    #[serde(flatten)]
    pub cluster: ClusterConfig,
}

named!(Order, Order::Columnwise => "columnwise", Order::Dsgd => "dsgd", Order::Plain => "plain");
named!(Optimizer, Optimizer::AdaGrad => "adagrad", Optimizer::Sgd => "sgd");
named!(Penalty, Penalty::Cell => "cell", Penalty::Vector => "vector");
