//! Knowledge graph embeddings: a vector per entity and per relation, trained so that true facts score high.
//!
//! ```text
//!   Graph (files or generated) --> train(): loaders -> workers -> per-epoch selection on valid --> Checkpoint, test figures
//!                                                                                                     |
//!   Graph ----------------------------------------------------------------> evaluate() <--------------+
//! ```
//!
//! The task of AdaPM §5.1 and Lapse §4.1. Entity `e` is key `e`, relation `r` is key `entities + r`.
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
//! [`Group`](adapm_transport::group::Group), on every process of it. Parameters move as the manager moves them; beside them
//! the first workers of the nodes exchange a note at the end of a phase ([`Exchange`](crate::exchange::Exchange)) and decide
//! the same from the same notes. All reports are the same; the chosen parameters are brought together on node 0, if at all.
//!
#![doc = include_str!("../../docs/kge.md")]

mod agreement;
mod board;
mod checkpoint;
#[cfg(test)]
mod circle;
mod complex;
mod config;
mod crew;
mod digest;
mod error;
mod evaluation;
mod filter;
mod frequency;
mod graph;
mod group;
mod independent;
mod initial;
mod kept;
mod loader;
mod loss;
mod managed;
mod model;
mod note;
mod order;
mod parameters;
mod peers;
mod plan;
mod rank;
mod reader;
mod recipe;
mod report;
mod rescal;
mod run;
mod seat;
mod session;
mod share;
mod step;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod traced;

pub use agreement::Disagreement;
pub use checkpoint::{Checkpoint, CheckpointError};
pub use config::{
    ConfigError, EvalConfig, LossKind, ModelKind, Negatives, Split, TrainConfig, UnknownChoice,
};
pub use error::TaskError;
pub use evaluation::evaluate;
pub use graph::{Graph, GraphCounts, GraphSource, Names, Triple};
pub use group::{evaluate_in_group, train_in_group};
pub use report::{EpochReport, EvalReport, ManagerStats, NoProgress, Progress, Stage, TrainReport, Training};
pub use run::train;
pub use traced::{KeyChoice, UnknownKey, UnknownKeyChoice, traced_keys};
