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
//! use adapm_tasks::kge::{EvalConfig, Graph, TrainConfig, evaluate, train};
//! use adapm_tasks::run::{Run, TaskError};
//!
//! let graph = Graph::families(1, 2);
//! let mut config = TrainConfig::default();
//! (config.dim, config.epochs, config.negative_count) = (8, 3, Some(50));
//! config.cluster.nodes = Some(2);
//! let trained = train(&graph, &config, &Run::alone())?;
//! assert!(trained.epochs[2].loss < trained.epochs[0].loss);
//!
//! // The same parameters give the same ranks on any number of nodes.
//! let mut config = EvalConfig::default();
//! config.cluster.nodes = Some(3);
//! let checkpoint = trained.checkpoint.expect("is asked for by default");
//! let evaluated = evaluate(&graph, &checkpoint, &config, &Run::alone())?;
//! assert_eq!(trained.test, evaluated.figures);
//! # Ok::<(), TaskError>(())
//! ```
//!
//! [`Run::in_group`](crate::run::Run::in_group) does the same as one node of a group of processes.
//! Parameters move as the manager moves them; beside them the first workers of the nodes exchange a
//! message at the end of a phase ([`Exchange`](crate::exchange::Exchange)) and decide the same from
//! the same messages. All reports are the same; the chosen parameters are brought together on node
//! 0, if at all.
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
#[cfg(feature = "cli")]
pub(crate) mod program;
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
#[cfg(feature = "cli")]
pub use program::Kge;
pub use ranking::frequency_baseline;

pub use task::{KEY_KINDS, traced_keys};
pub use training::{EvalReport, Found, Ranked, TrainReport, evaluate, train};

pub use crate::data::names::Names;
pub use crate::data::triples::ColumnOrder;
pub use crate::run::{
    CheckpointError, ConfigError, ManagerStats, Mismatch, NoProgress, Split, TaskError, Training,
    UnknownChoice,
};
