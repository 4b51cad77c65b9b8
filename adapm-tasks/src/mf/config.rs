//! Choices of training and evaluation, and checks of them.

use adapm_runtime::trace::Tracer;

use crate::System;
use crate::mf::ratings::Ratings;
use crate::run::config::{ConfigError, Split, dimension, named, not_negative, positive, whole};
use crate::run::peers::Peers;
use crate::run::topology;

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
    /// Every element has a rate of its own, which falls with the squares of its gradients.
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
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrainConfig {
    /// The parameter management system; `None`: plain arrays, one node, one worker, no manager.
    /// Defaults to adapm.
    pub system: Option<System>,
    /// Nodes in this process; where nodes are processes their number counts instead. Defaults to 1.
    pub nodes: usize,
    /// Workers of each node; `None`: max(1, cores / nodes), where nodes are processes of the cores
    /// they share, and as many for all nodes. Defaults to `None`.
    pub workers: Option<usize>,
    /// Seed of initial values and order of the data. Defaults to 1.
    pub seed: u64,
    /// The order of visits. `None`: columnwise, but `dsgd` after cross-fitting ([`Selection`]): the
    /// steps of several workers on one column add up, which is much where each sees all cells of an
    /// epoch at once. Defaults to `None`.
    pub order: Option<Order>,
    /// The update rule of gradients. Defaults to AdaGrad.
    pub optimizer: Optimizer,
    /// Number of factors, the rank. Defaults to 32.
    pub dim: usize,
    /// Passes over the training data; 0 predicts the means. `None`: as many as help, at most 100;
    /// if nothing tells what helps ([`Selection::Nothing`]) 20. Defaults to `None`.
    ///
    /// [`Selection::Nothing`]: crate::mf::Selection::Nothing
    pub epochs: Option<u32>,
    /// Factor of every step, at first, where what is learnt has deviation 1. `None`: 0.1 with
    /// AdaGrad, 0.02 with SGD. Defaults to `None`.
    pub learning_rate: Option<f32>,
    /// Raises the learning rate by 5 % after an epoch in which the loss fell, and halves it after
    /// one in which it rose (bold driver). Defaults to false.
    pub bold_driver: bool,
    /// Weight of the squared norms of rows and columns, the same in all epochs, where what is
    /// learnt has deviation 1. `None`: it begins with 0.12 for each cell, or with 4 for each
    /// vector, and is halved after each epoch in which the error on what is selected on has not
    /// fallen by half a percent; if nothing is selected it is half of that and stays. Defaults to
    /// `None`.
    pub l2: Option<f32>,
    /// The weights of squared norms. Defaults to the number of cells.
    pub penalty: Penalty,
    /// Standard deviation of the initial values, around 0. Defaults to 0.05.
    pub initial_deviation: f32,
    /// Clips predictions to the range of the training data. Defaults to false.
    pub clip: bool,
    /// Chunks of up to 4,096 cells between `localize` and the access at most, and three quarters of
    /// them at least, under [`System::Lapse`]. Defaults to 8.
    pub localize_ahead: u64,
    /// Selects the epoch, and evaluates test with the selected one. Defaults to true.
    pub evaluate: bool,
    /// Holds cells of train back to select on, or leaves them out in turn, if the data has no valid
    /// part ([`Selection`](crate::mf::Selection)). Defaults to true.
    pub holds_back: bool,
    /// Epochs between two evaluations of valid; the last epoch is always evaluated. Defaults to 1.
    pub valid_every: u32,
    /// Puts the chosen parameters into the report; where nodes are processes they are brought
    /// together on node 0, whose choice counts. Defaults to true.
    pub checkpoint: bool,
    /// Writes what happens to some keys while training; where nodes are processes each writes its
    /// own part, if it chooses to. Defaults to `None`.
    pub trace: Option<Tracer>,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            system: Some(System::Adapm),
            nodes: 1,
            workers: None,
            seed: 1,
            order: None,
            optimizer: Optimizer::AdaGrad,
            dim: 32,
            epochs: None,
            learning_rate: None,
            bold_driver: false,
            l2: None,
            penalty: Penalty::Cell,
            initial_deviation: 0.05,
            clip: false,
            localize_ahead: 8,
            evaluate: true,
            holds_back: true,
            valid_every: 1,
            checkpoint: true,
            trace: None,
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

    /// Checks that the choices make sense for these ratings.
    pub(crate) fn check(&self, ratings: &Ratings, peers: &Peers<'_>) -> Result<(), ConfigError> {
        topology::check(self.system, self.nodes, self.workers, peers)?;
        if ratings.train_len() == 0 {
            return Err(ConfigError::NothingToTrain);
        }
        self.check_values()
    }

    /// Checks that each field has a value that is valid for any data.
    ///
    /// # Errors
    ///
    /// The first field that has not.
    pub fn check_values(&self) -> Result<(), ConfigError> {
        dimension(self.dim)?;
        positive("learning_rate", self.rate())?;
        positive("initial_deviation", self.initial_deviation)?;
        whole("localize_ahead", self.localize_ahead, 1, u64::MAX)?;
        whole("valid_every", self.valid_every.into(), 1, u64::MAX)?;
        not_negative("l2", self.l2.unwrap_or(0.0))
    }
}

/// Choices of an evaluation. Start from [`EvalConfig::default`] and set fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EvalConfig {
    /// The parameter management system; `None`: plain arrays. Defaults to adapm.
    pub system: Option<System>,
    /// Nodes in this process; where nodes are processes their number counts instead. Defaults to 1.
    pub nodes: usize,
    /// Workers of each node; `None`: max(1, cores / nodes), where nodes are processes of the cores
    /// they share, and as many for all nodes. Defaults to `None`.
    pub workers: Option<usize>,
    /// The evaluated part. Defaults to test.
    pub split: Split,
    /// Clips predictions to the range of the training data. Defaults to false.
    pub clip: bool,
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self {
            system: Some(System::Adapm),
            nodes: 1,
            workers: None,
            split: Split::Test,
            clip: false,
        }
    }
}

named!(Order, Order::Columnwise => "columnwise", Order::Dsgd => "dsgd", Order::Plain => "plain");
named!(Optimizer, Optimizer::AdaGrad => "adagrad", Optimizer::Sgd => "sgd");
named!(Penalty, Penalty::Cell => "cell", Penalty::Vector => "vector");
