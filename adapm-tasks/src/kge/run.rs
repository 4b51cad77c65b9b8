//! The two entry points of the task.

use std::sync::atomic::AtomicBool;

use crate::kge::checkpoint::Checkpoint;
use crate::kge::config::{ConfigError, EvalConfig, TrainConfig};
use crate::kge::graph::Graph;
use crate::kge::report::{EvalReport, Progress, TaskError, TrainReport};

/// Trains embeddings of `graph`. Raising `stop` ends the run within a chunk, with the results so far.
///
/// # Errors
///
/// A configuration that makes no sense, or training that diverges.
pub fn train(
    graph: &Graph,
    config: &TrainConfig,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let _ = (graph, config, progress, stop);
    Err(ConfigError::NothingToTrain.into())
}

/// Computes the filtered ranks of a split with the parameters of `checkpoint`. The ranks do not depend on the number of
/// nodes and workers. Raising `stop` ends it early, without figures.
///
/// # Errors
///
/// A configuration that makes no sense, or a checkpoint of other data.
pub fn evaluate(
    graph: &Graph,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let _ = (graph, checkpoint, config, progress, stop);
    Err(ConfigError::NothingToTrain.into())
}
