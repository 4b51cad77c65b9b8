//! Evaluation: how far the predictions of a checkpoint are off.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use adapm_transport::group::Group;

use crate::mf::checkpoint::Checkpoint;
use crate::mf::config::EvalConfig;
use crate::mf::metrics::RatingMetrics;
use crate::mf::opening;
use crate::mf::prediction::{self, Prediction, Scale};
use crate::mf::ratings::Ratings;
use crate::mf::report::EvalReport;
use crate::mf::task;
use crate::run::agreement;
use crate::run::config::Split;
use crate::run::crew::{self, Crew};
use crate::run::error::TaskError;
use crate::run::evaluation::Evaluation;
use crate::run::kept::Kept;
use crate::run::observer::Observer;
use crate::run::peers::Peers;
use crate::run::task::Examination;

/// Predicts a split with the parameters of `checkpoint`. The figures do not depend on the number of nodes and workers.
/// Raising `stop` ends it early, without figures.
///
/// # Errors
///
/// A configuration that makes no sense, a checkpoint of other data, or a cluster that fails.
pub fn evaluate(
    ratings: &Ratings,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    run(ratings, checkpoint, config, &Peers::alone(), observer, stop)
}

/// [`evaluate`] as one node of `group`; collective. The report is the same on all nodes.
///
/// # Errors
///
/// As [`evaluate`], on all nodes if on one; ratings, parameters or choices that differ between nodes; a node that is lost.
pub fn evaluate_in_group(
    ratings: &Ratings,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    group: &Arc<Group>,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let peers = Peers::of(group);
    peers.told_of(|| run(ratings, checkpoint, config, &peers, observer, stop))
}

fn run(
    ratings: &Ratings,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    peers: &Peers<'_>,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let config = EvalConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let EvalConfig { system, nodes, workers, split, clip } = config;
    let checked = crew::check(system, nodes, workers, peers).map_err(TaskError::from);
    let checked = checked.and_then(|()| Ok(checkpoint.check_data(ratings)?));
    agreement::agree(peers, checked.map(|()| opening::evaluation(ratings, &config, checkpoint)))?;
    let crew = Crew::new(system, nodes, workers, peers)?;

    let began = Instant::now();
    let (dim, shape) = (checkpoint.dim(), task::shape(ratings, checkpoint.dim()));
    let kept = Kept::all(shape.clone(), Arc::clone(&checkpoint.values));
    let held = match split {
        Split::Valid => &ratings.valid,
        Split::Test => &ratings.test,
    };
    let (means, range) = (&checkpoint.means, clip.then_some(ratings.range));
    let (scale, rows) = (Scale::Known(checkpoint.scale), ratings.rows);
    let examination = &Prediction { split, held, means, scale, rows, dim, value_len: dim, range };
    let evaluated = Evaluation { examination, shape, crew, observer, stop }.run(kept.initial())?;
    let metrics = (!evaluated.stopped).then(|| examination.figures(&evaluated.answers));
    Ok(EvalReport {
        metrics,
        means: metrics.map(|_| prediction::figures(held, means, 0.0, &[], range)),
        seconds: began.elapsed().as_secs_f64(),
        stats: evaluated.stats,
        stopped: evaluated.stopped,
        nodes: crew.nodes,
        workers: crew.workers,
    })
}
