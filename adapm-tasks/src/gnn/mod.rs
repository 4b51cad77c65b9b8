//! Graph networks: the class of each node of a graph, by its features and those of its neighbours.
//!
//! ```text
//!   Graph (files or generated) --> train(): loaders sample neighbours -> workers -> per-epoch selection on valid --> Model, accuracy on test
//!                                                                                                                     |
//!   Graph ------------------------------------------------------------------------------> evaluate() <----------------+
//! ```
//!
//! A graph convolutional network of two layers, trained on samples of neighbours and judged by all
//! of them (AdaPM App. C has the access pattern). Features are given, and local to each node of the
//! run, or learned: then each node of the graph is a key. The layers are keys, too. Nodes of valid
//! and test are in the graph in training, without their classes: the usual, transductive setting.
//!
//! ```
//! use adapm_tasks::gnn::{Graph, SyntheticConfig, TrainConfig, evaluate, train};
//! use adapm_tasks::run::{Run, Split};
//!
//! let mut synthetic = SyntheticConfig::default();
//! synthetic.nodes = 1000;
//! let graph = Graph::synthetic(synthetic)?;
//! let mut config = TrainConfig::default();
//! (config.cluster.nodes, config.epochs) = (Some(2), Some(5));
//! let trained = train(&graph, &config, &Run::alone())?;
//! assert!(trained.epochs[4].loss < trained.epochs[0].loss);
//!
//! // The same parameters give the same figures on any number of nodes.
//! config.cluster.nodes = Some(3);
//! let model = trained.checkpoint.expect("is asked for by default");
//! let judged = evaluate(&graph, &model, Split::Test, &config.cluster, &Run::alone())?;
//! assert_eq!(trained.test, judged.figures);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
#![doc = include_str!("../../docs/gnn.md")]

mod config;
mod evaluation;
mod graph;
mod model;
mod ogb;
mod predict;
#[cfg(feature = "cli")]
pub(crate) mod program;
mod reader;
mod sampling;
mod synthetic;
pub(crate) mod task;
mod training;

use std::path::Path;

pub use config::{Fanout, FeatureSource, InvalidFanout, Partition, Scale, TrainConfig};
pub use evaluation::Accuracy;
pub use graph::{Graph, GraphCounts, Part};
pub use model::{Architecture, Inputs};
pub use predict::{NodeVectors, Prediction, Predictor};
#[cfg(feature = "cli")]
pub use program::Gnn;
pub use synthetic::SyntheticConfig;
pub use task::KEY_KINDS;
pub use training::{Model, evaluate, train};

use crate::data::DataError;
use crate::run::ConfigError;

impl Graph {
    /// Reads the graph in a folder.
    ///
    /// # Errors
    ///
    /// A file that is missing, unreadable or malformed.
    pub fn load(folder: &Path) -> Result<Self, DataError> {
        match reader::find(folder, "nodes.txt") {
            Some(nodes) => reader::read(folder, &nodes),
            None => ogb::read(folder),
        }
    }

    /// Generates a graph with a planted partition.
    ///
    /// # Errors
    ///
    /// Sizes that make no sense.
    pub fn synthetic(config: SyntheticConfig) -> Result<Self, ConfigError> {
        synthetic::generate(&config)
    }
}

/// The name of the task.
pub(crate) const NAME: &str = "gnn";
