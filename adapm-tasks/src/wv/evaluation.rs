//! Evaluation: answers to analogy questions with trained vectors.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use adapm_transport::group::Group;

use crate::run::agreement;
use crate::run::crew::{self, Crew};
use crate::run::error::TaskError;
use crate::run::evaluation::Evaluation;
use crate::run::kept::Kept;
use crate::run::observer::Observer;
use crate::run::peers::Peers;
use crate::run::shape::Shape;
use crate::run::task::Examination as _;
use crate::wv::analogy::{Analogies, AnalogyReport};
use crate::wv::answering::Answering;
use crate::wv::checkpoint::Checkpoint;
use crate::wv::config::EvalConfig;
use crate::wv::opening;
use crate::wv::report::EvalReport;
use crate::wv::vectors::Vectors;

/// Answers `questions` with the vectors of `checkpoint`. The answers do not depend on the number of nodes and workers.
/// Raising `stop` ends it early, without figures.
///
/// # Errors
///
/// A configuration that makes no sense, or a cluster that fails.
pub fn evaluate(
    checkpoint: &Checkpoint,
    questions: &Analogies,
    config: &EvalConfig,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    evaluate_vectors(&checkpoint.vectors(), questions, config, observer, stop)
}

/// [`evaluate`] as one node of `group`; collective. The report is the same on all nodes.
///
/// # Errors
///
/// As [`evaluate`], on all nodes if on one; questions, vectors or choices that differ between nodes; a node that is lost.
pub fn evaluate_in_group(
    checkpoint: &Checkpoint,
    questions: &Analogies,
    config: &EvalConfig,
    group: &Arc<Group>,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    evaluate_vectors_in_group(&checkpoint.vectors(), questions, config, group, observer, stop)
}

/// [`evaluate`] with vectors of whatever origin.
///
/// # Errors
///
/// A configuration that makes no sense, or a cluster that fails.
pub fn evaluate_vectors(
    vectors: &Vectors,
    questions: &Analogies,
    config: &EvalConfig,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    run(vectors, questions, config, &Peers::alone(), observer, stop)
}

/// [`evaluate_vectors`] as one node of `group`; collective. The report is the same on all nodes.
///
/// # Errors
///
/// As [`evaluate_in_group`].
pub fn evaluate_vectors_in_group(
    vectors: &Vectors,
    questions: &Analogies,
    config: &EvalConfig,
    group: &Arc<Group>,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let peers = Peers::of(group);
    peers.told_of(|| run(vectors, questions, config, &peers, observer, stop))
}

/// Evaluates with all nodes in this process, or as the node that `peers` say.
fn run(
    vectors: &Vectors,
    questions: &Analogies,
    config: &EvalConfig,
    peers: &Peers<'_>,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let config = EvalConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let EvalConfig { system, nodes, workers, words } = config;
    let checked = crew::check(system, nodes, workers, peers).map_err(TaskError::from);
    agreement::agree(peers, checked.map(|()| opening::evaluation(vectors, questions, &config)))?;
    let crew = Crew::new(system, nodes, workers, peers)?;

    let began = Instant::now();
    let (dim, limit) = (vectors.dim(), words.unwrap_or(usize::MAX));
    // Only input vectors take part: the vector of word `w` is key `w`, as in training.
    let shape = Shape::new(&[(vectors.words().len() as u64, dim)]);
    let kept = Kept::all(shape.clone(), Arc::clone(&vectors.values));
    let examination = &Answering::new(questions, vectors.words(), dim, limit);
    let evaluated = Evaluation { examination, shape, crew, observer, stop }.run(kept.initial())?;
    Ok(EvalReport {
        analogies: (!evaluated.stopped).then(|| examination.figures(&evaluated.answers)),
        seconds: began.elapsed().as_secs_f64(),
        stats: evaluated.stats,
        stopped: evaluated.stopped,
        nodes: crew.nodes,
        workers: crew.workers,
    })
}
