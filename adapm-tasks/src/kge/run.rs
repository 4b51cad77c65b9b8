//! The two entry points of the task: training and evaluation, on a cluster or on plain arrays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use adapm_core::Key;
use adapm_runtime::System;

use crate::kge::board::Board;
use crate::kge::checkpoint::Checkpoint;
use crate::kge::config::{ConfigError, EvalConfig, ModelKind, Split, TrainConfig};
use crate::kge::filter::Filter;
use crate::kge::graph::Graph;
use crate::kge::initial;
use crate::kge::managed::{Announcement, Setup};
use crate::kge::model::Model;
use crate::kge::parameters::{Arrays, Shape, Unannounced};
use crate::kge::rank::Ranker;
use crate::kge::report::{EvalReport, ManagerStats, Progress, TaskError, TrainReport};
use crate::kge::session::{Job, Session};
use crate::kge::share::Share;
use crate::metric::{Rank, RankMetrics};

/// Trains embeddings of `graph`. Raising `stop` ends the run within a chunk, with the results so far.
///
/// # Errors
///
/// A configuration that makes no sense, training that diverges, or a cluster that fails.
pub fn train(
    graph: &Graph,
    config: &TrainConfig,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    check_training(graph, config)?;
    let model = Model { kind: config.model, dim: config.dim };
    let crew = Crew::new(config.system, config.nodes, config.workers);
    let shape = shape(graph, model, config.reciprocal, 2);
    crew.check(shape)?;
    let filter = (config.evaluate && !graph.valid.is_empty()).then(|| Filter::new(graph, &graph.valid));
    let (seed, deviation) = (config.seed, config.initial_deviation);
    let initial = move |key: Key, value: &mut [f32]| initial::value(seed, deviation, key, value);
    let localizes = config.system == Some(System::Lapse);
    let job = |board| Job { graph, config, shape, filter: filter.as_ref(), board, localizes };

    let (parts, mut verdicts) = if let Some(setup) = crew.setup(seed) {
        let cluster = setup.start(shape, initial)?;
        let stats = || cluster.stats().into();
        let board = Board::new(crew.all(), progress, stop, &stats);
        let results = cluster.run(|worker| {
            let handle = worker.intent_handle();
            let announcer =
                if localizes { Announcement::Localize(handle) } else { Announcement::Intent(handle) };
            let number = worker.node().index() * crew.workers + worker.id().index();
            Session::new(job(&board), number, crew.all(), worker).run(announcer)
        })?;
        (first_error(results)?, board.into_verdicts())
    } else {
        let board = Board::new(1, progress, stop, &ManagerStats::default);
        let arrays = Arrays::new(shape, seed, initial);
        let part = Session::new(job(&board), 0, 1, arrays).run(Unannounced)?;
        (vec![part], board.into_verdicts())
    };

    let checkpoint = Checkpoint {
        model: config.model,
        dim: config.dim,
        reciprocal: config.reciprocal,
        entities: graph.entities.clone(),
        relations: graph.relations.clone(),
        values: Arc::new(parts.concat()),
    };
    let epochs = std::mem::take(&mut verdicts.epochs);
    let last = epochs.last().map_or(0, |epoch| epoch.epoch);
    let mut report = TrainReport {
        chosen_epoch: verdicts.chosen.unwrap_or(last),
        test: None,
        test_seconds: 0.0,
        stats: epochs.last().map_or(ManagerStats::default(), |epoch| epoch.stats),
        epochs,
        checkpoint,
        stopped: stop.load(Ordering::Relaxed),
        nodes: crew.nodes,
        workers: crew.workers,
    };
    if config.evaluate && !report.stopped && !graph.test.is_empty() {
        let EvalReport { metrics, seconds, stopped, .. } =
            rank(graph, &report.checkpoint, crew, Split::Test, progress, stop)?;
        (report.test, report.test_seconds, report.stopped) =
            ((!stopped).then_some(metrics), seconds, stopped);
    }
    Ok(report)
}

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
    check_crew(config.nodes, config.workers)?;
    checkpoint.check_data(graph)?;
    rank(
        graph,
        checkpoint,
        Crew::new(config.system, config.nodes, config.workers),
        config.split,
        progress,
        stop,
    )
}

fn rank(
    graph: &Graph,
    checkpoint: &Checkpoint,
    crew: Crew,
    split: Split,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let began = Instant::now();
    let model = Model { kind: checkpoint.model, dim: checkpoint.dim };
    let shape = shape(graph, model, checkpoint.reciprocal, 1);
    crew.check(shape)?;
    let triples = match split {
        Split::Valid => graph.valid.as_slice(),
        Split::Test => graph.test.as_slice(),
    };
    let filter = Filter::new(graph, triples);
    let values = Arc::clone(&checkpoint.values);
    let initial = move |key: Key, value: &mut [f32]| {
        let start = shape.offset(key);
        value.copy_from_slice(&values[start..start + value.len()]);
    };
    let share = |worker, workers| Share { split, triples, filter: &filter, worker, workers, phase: 0 };
    let places = vec![Rank::default(); 2 * triples.len()];
    let ranker = || Ranker::new(model, shape, checkpoint.reciprocal);

    let (verdicts, is_cut, stats) = if let Some(setup) = crew.setup(0) {
        let cluster = setup.start(shape, initial)?;
        let stats = || cluster.stats().into();
        let board = Board::new(crew.all(), progress, stop, &stats);
        board.verdicts().ranks = places;
        let results = cluster.run(|mut worker| {
            let number = worker.node().index() * crew.workers + worker.id().index();
            share(number, crew.all()).rank(&mut ranker(), &mut worker, &board)?;
            // Each stays until all are done: what it owns is asked for.
            Ok(worker.quiesce()?)
        })?;
        first_error(results)?;
        let (is_cut, stats) = (board.is_cut(0), board.stats());
        (board.into_verdicts(), is_cut, stats)
    } else {
        let board = Board::new(1, progress, stop, &ManagerStats::default);
        board.verdicts().ranks = places;
        let mut arrays = Arrays::new(shape, 0, initial);
        share(0, 1).rank(&mut ranker(), &mut arrays, &board)?;
        let is_cut = board.is_cut(0);
        (board.into_verdicts(), is_cut, ManagerStats::default())
    };
    let ranks = if is_cut { Vec::new() } else { verdicts.ranks };
    Ok(EvalReport {
        metrics: RankMetrics::of(&ranks),
        ranks,
        seconds: began.elapsed().as_secs_f64(),
        stats,
        stopped: is_cut,
        nodes: crew.nodes,
        workers: crew.workers,
    })
}

/// Who takes part.
#[derive(Clone, Copy)]
struct Crew {
    system: Option<System>,
    nodes: usize,
    /// Of each node.
    workers: usize,
}

impl Crew {
    fn new(system: Option<System>, nodes: usize, workers: Option<usize>) -> Self {
        if system.is_none() {
            return Self { system, nodes: 1, workers: 1 };
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self { system, nodes, workers: workers.unwrap_or((cores / nodes).max(1)) }
    }

    fn all(self) -> usize {
        self.nodes * self.workers
    }

    fn setup(self, seed: u64) -> Option<Setup> {
        self.system.map(|system| Setup { system, nodes: self.nodes, workers: self.workers, seed })
    }

    /// Checks that parameters of this shape can be laid out over the nodes, also if no manager does it.
    fn check(self, shape: Shape) -> Result<(), TaskError> {
        let (nodes, keys) = (self.nodes, shape.keys());
        if nodes as u64 > keys {
            return Err(ConfigError::MoreNodesThanKeys { nodes, keys }.into());
        }
        shape.layout().map(drop)
    }
}

fn shape(graph: &Graph, model: Model, reciprocal: bool, halves: usize) -> Shape {
    let relations = graph.relations.len() as u64;
    Shape {
        entities: graph.entities.len() as u64,
        relations: if reciprocal { 2 * relations } else { relations },
        entity_len: halves * model.dim,
        relation_len: halves * model.relation_len(),
    }
}

fn check_crew(nodes: usize, workers: Option<usize>) -> Result<(), ConfigError> {
    match (nodes, workers) {
        (0, _) => Err(ConfigError::NoNodes),
        (_, Some(0)) => Err(ConfigError::NoWorkers),
        _ => Ok(()),
    }
}

fn check_training(graph: &Graph, config: &TrainConfig) -> Result<(), ConfigError> {
    check_crew(config.nodes, config.workers)?;
    if graph.train.is_empty() {
        return Err(ConfigError::NothingToTrain);
    }
    let is_odd = config.model == ModelKind::Complex && !config.dim.is_multiple_of(2);
    if config.dim == 0 || config.dim > DIM_MAX || is_odd {
        return Err(ConfigError::Dimension { dim: config.dim });
    }
    let positive = [
        ("learning_rate", config.learning_rate > 0.0 && config.learning_rate.is_finite()),
        ("initial_deviation", config.initial_deviation > 0.0 && config.initial_deviation.is_finite()),
        ("chunk", config.chunk > 0),
        ("negative_count", config.negatives_of_a_set() > 0),
        ("valid_every", config.valid_every > 0),
        ("localize_ahead", config.localize_ahead > 0),
    ];
    let not_negative =
        [("l2_entity", config.l2_entity), ("l2_relation", config.l2_relation), ("n3", config.n3)];
    let wrong = positive.iter().find(|(_, holds)| !holds).map(|(field, _)| *field);
    if let Some(field) = wrong {
        return Err(ConfigError::NotPositive { field });
    }
    match not_negative.iter().find(|(_, weight)| !(*weight >= 0.0 && weight.is_finite())) {
        Some((field, _)) => Err(ConfigError::Negative { field }),
        None => Ok(()),
    }
}

/// All results, or the first error; an operation that failed because the run was ending only if there is no other.
fn first_error<R>(results: Vec<Result<R, TaskError>>) -> Result<Vec<R>, TaskError> {
    let is_consequence = |error: &TaskError| matches!(error, TaskError::Access(_));
    let (done, mut failed): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    failed.sort_by_key(|result| result.as_ref().err().is_some_and(is_consequence));
    match failed.into_iter().next() {
        Some(Err(error)) => Err(error),
        _ => done.into_iter().collect(),
    }
}

/// Reals of an entity that are supported.
const DIM_MAX: usize = 1 << 16;
