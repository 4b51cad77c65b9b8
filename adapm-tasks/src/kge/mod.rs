//! Knowledge graph embeddings: a vector per entity and per relation, trained so that true facts score high.
//!
//! ```text
//!   Graph (files or generated) --> train(): loaders -> workers -> per-epoch selection on valid --> Checkpoint, test figures
//!                                                                                                     |
//!   Graph ----------------------------------------------------------------> evaluate() <--------------+
//! ```
//!
//! The task of AdaPM §5.1 and Lapse §4.1. Entity `e` is key `e`, relation `r` is key `entities + r`.

mod checkpoint;
mod config;
mod graph;
mod report;
mod run;

pub use checkpoint::{Checkpoint, CheckpointError};
pub use config::{
    ConfigError, EvalConfig, LossKind, ModelKind, Negatives, Split, TrainConfig, UnknownChoice,
};
pub use graph::{Graph, GraphCounts, GraphSource, Names, Triple};
pub use report::{
    EpochReport, EvalReport, ManagerStats, NoProgress, Progress, Stage, TaskError, TrainReport, Training,
};
pub use run::{evaluate, train};
