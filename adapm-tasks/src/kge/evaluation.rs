//! Evaluation: the ranks of a split with the parameters of a checkpoint.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::kge::baseline::frequency_baseline;
use crate::kge::checkpoint::Checkpoint;
use crate::kge::config::EvalConfig;
use crate::kge::graph::Graph;
use crate::kge::model::Model;
use crate::kge::observed::Observed;
use crate::kge::opening;
use crate::kge::prior::{Prior, Weighing};
use crate::kge::ranking::Ranking;
use crate::kge::report::{EvalReport, Progress};
use crate::kge::shape::Shape;
use crate::metric::RankMetrics;
use crate::run::agreement;
use crate::run::crew::{self, Crew};
use crate::run::error::TaskError;
use crate::run::evaluation::Evaluation;
use crate::run::kept::Kept;
use crate::run::peers::Peers;

/// Computes the filtered ranks of a split with the parameters of `checkpoint`. The ranks do not depend on the number of
/// nodes and workers. Raising `stop` ends it early, without figures.
///
/// # Errors
///
/// A configuration that makes no sense, a checkpoint of other data, or a cluster that fails.
pub fn evaluate(
    graph: &Graph,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    run(graph, checkpoint, config, &Peers::alone(), progress, stop)
}

/// Evaluates with all nodes in this process, or as the node that `peers` say.
pub(crate) fn run(
    graph: &Graph,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    peers: &Peers<'_>,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let config = EvalConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let EvalConfig { system, nodes, workers, split } = config;
    let checked = crew::check(system, nodes, workers, peers).map_err(TaskError::from);
    let checked = checked.and_then(|()| Ok(checkpoint.check_data(graph)?));
    agreement::agree(peers, checked.map(|()| opening::evaluation(graph, &config, checkpoint)))?;
    let crew = Crew::new(system, nodes, workers, peers)?;

    let began = Instant::now();
    let (model, reciprocal) = (Model { kind: checkpoint.model, dim: checkpoint.dim }, checkpoint.reciprocal);
    let shape = Shape::of(graph, model, reciprocal, 1);
    let kept = Kept::all(shape.groups(), Arc::clone(&checkpoint.values));
    let (prior, weight) = (Prior::new(graph), checkpoint.weight);
    let examination = Ranking::new(graph, split, model, shape, reciprocal);
    let examination = &examination.weighing(Weighing::by(&prior, weight));
    let evaluation =
        Evaluation { examination, shape: shape.groups(), crew, observer: &Observed(progress), stop };
    let evaluated = evaluation.run(kept.initial())?;
    let ranks = Ranking::ranks(&evaluated.answers, 0);
    Ok(EvalReport {
        metrics: RankMetrics::of(&ranks),
        baseline: frequency_baseline(graph, split),
        frequency_weight: weight.factor(),
        ranks,
        seconds: began.elapsed().as_secs_f64(),
        stats: evaluated.stats,
        stopped: evaluated.stopped,
        nodes: crew.nodes,
        workers: crew.workers,
    })
}
