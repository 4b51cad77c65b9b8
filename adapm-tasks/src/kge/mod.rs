//! Knowledge graph embeddings: a vector per entity and per relation, trained so that true facts score high.
//!
//! ```text
//!   Graph (files or generated) --> train(): loaders -> workers -> per-epoch selection on valid --> Checkpoint, test figures
//!                                                                                                     |
//!   Graph ----------------------------------------------------------------> evaluate() <--------------+
//! ```
//!
//! The task of AdaPM §5.1 and Lapse §4.1. Entity `e` is key `e`, relation `r` is key `entities + r`.

mod board;
mod checkpoint;
mod complex;
mod config;
mod filter;
mod frequency;
mod graph;
mod independent;
mod initial;
mod loader;
mod loss;
mod managed;
mod model;
mod order;
mod parameters;
mod plan;
mod rank;
mod reader;
mod recipe;
mod report;
mod rescal;
mod run;
mod session;
mod share;
mod step;

pub use checkpoint::{Checkpoint, CheckpointError};
pub use config::{
    ConfigError, EvalConfig, LossKind, ModelKind, Negatives, Split, TrainConfig, UnknownChoice,
};
pub use graph::{Graph, GraphCounts, GraphSource, Names, Triple};
pub use report::{
    EpochReport, EvalReport, ManagerStats, NoProgress, Progress, Stage, TaskError, TrainReport, Training,
};
pub use run::{evaluate, train};
