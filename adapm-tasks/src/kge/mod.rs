//! Knowledge graph embeddings: a vector per entity and per relation, trained so that true facts
//! score high.
//!
//! ```text
//!   Graph (files or generated) --> train(): loaders -> workers -> per-epoch selection on valid --> Checkpoint, test figures
//!                                                                                                     |
//!   Graph ----------------------------------------------------------------> evaluate() <--------------+
//! ```
//!
//! The task of AdaPM §5.1 and Lapse §4.1. Entity `e` is key `e`, relation `r` is key `entities +
//! r`.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use adapm_tasks::kge::{EvalConfig, Graph, NoProgress, TaskError, TrainConfig, evaluate, train};
//!
//! let graph = Graph::families(1, 2);
//! let mut config = TrainConfig::default();
//! (config.nodes, config.dim, config.epochs, config.negative_count) = (2, 8, 3, Some(50));
//! let stop = AtomicBool::new(false);
//! let trained = train(&graph, &config, &NoProgress, &stop)?;
//! assert!(trained.epochs[2].loss < trained.epochs[0].loss);
//!
//! // The same parameters give the same ranks on any number of nodes.
//! let mut config = EvalConfig::default();
//! config.nodes = 3;
//! let checkpoint = trained.checkpoint.expect("is asked for by default");
//! let evaluated = evaluate(&graph, &checkpoint, &config, &NoProgress, &stop)?;
//! assert_eq!(trained.test, Some(evaluated.metrics));
//! # Ok::<(), TaskError>(())
//! ```
//!
//! # Nodes as processes
//!
//! [`train_in_group`] and [`evaluate_in_group`] do the same as one node of a
//! [`Group`](adapm_transport::group::Group), on every process of it. Parameters move as the manager
//! moves them; beside them the first workers of the nodes exchange a message at the end of a phase
//! ([`Exchange`](crate::exchange::Exchange)) and decide the same from the same messages. All
//! reports are the same; the chosen parameters are brought together on node 0, if at all.
//!
#![doc = include_str!("../../docs/kge.md")]

mod checkpoint;
mod comparison;
pub(crate) mod config;
mod graph;
mod loader;
mod loss;
mod model;
mod order;
mod predict;
pub(crate) mod prior;
mod ranking;
mod reader;
mod step;
pub(crate) mod task;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod training;

pub use checkpoint::Checkpoint;
pub use config::{EvalConfig, LossKind, Negatives, TrainConfig};
pub use graph::{Graph, GraphCounts, GraphFiles, GraphForm, GraphOptions, GraphSource, Triple};
pub use model::ModelKind;
pub use predict::{Answer, Candidate, Predictor, Query, Standing};
pub use ranking::frequency_baseline;

pub use task::{KEY_KINDS, traced_keys};
pub use training::{EvalReport, TrainReport, evaluate, evaluate_in_group, train, train_in_group};

pub use crate::data::names::Names;
pub use crate::data::triples::ColumnOrder;
pub use crate::run::{
    CheckpointError, ConfigError, ManagerStats, Mismatch, NoProgress, Split, TaskError, Training,
    UnknownChoice,
};
