//! Evaluation, on a cluster or on plain arrays: the ranks of a split with parameters that stand still.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use adapm_core::Key;

use crate::kge::agreement::{self, Opening};
use crate::kge::board::Board;
use crate::kge::checkpoint::Checkpoint;
use crate::kge::config::{EvalConfig, Split};
use crate::kge::crew::{self, Crew};
use crate::kge::error::TaskError;
use crate::kge::filter::Filter;
use crate::kge::graph::Graph;
use crate::kge::kept::Kept;
use crate::kge::model::Model;
use crate::kge::parameters::Arrays;
use crate::kge::peers::Peers;
use crate::kge::rank::Ranker;
use crate::kge::report::{EvalReport, ManagerStats, Progress};
use crate::kge::seat::Seat;
use crate::kge::share::Share;
use crate::metric::{Rank, RankMetrics};

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
    let checked = crew::check_crew(system, nodes, workers, peers).map_err(TaskError::from);
    let checked = checked.and_then(|()| Ok(checkpoint.check_data(graph)?));
    agreement::agree(peers, checked.map(|()| Opening::evaluation(graph, &config, checkpoint)))?;
    let crew = Crew::new(system, nodes, workers, peers)?;
    let (model, reciprocal) = (Model { kind: checkpoint.model, dim: checkpoint.dim }, checkpoint.reciprocal);
    let kept = Kept::of(checkpoint, crew::shape(graph, model, reciprocal, 1));
    Ranking { graph, model, reciprocal, crew, split, progress, stop }.run(kept.initial())
}

/// Parameters that are to be ranked with: whose, of what, by whom.
pub(crate) struct Ranking<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) model: Model,
    pub(crate) reciprocal: bool,
    pub(crate) crew: Crew<'a>,
    pub(crate) split: Split,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) stop: &'a AtomicBool,
}

impl Ranking<'_> {
    /// Ranks with the parameters that `initial` writes: on every node those that have their home there.
    pub(crate) fn run(
        self,
        initial: impl Fn(Key, &mut [f32]) + Send + Sync + 'static,
    ) -> Result<EvalReport, TaskError> {
        let Self { graph, model, reciprocal, crew, split, progress, stop } = self;
        let began = Instant::now();
        let shape = crew::shape(graph, model, reciprocal, 1);
        crew.check(shape)?;
        let triples = match split {
            Split::Valid => graph.valid.as_slice(),
            Split::Test => graph.test.as_slice(),
        };
        let filter = Filter::new(graph, triples);
        let share = |seat| Share { split, triples, filter: &filter, seat, phase: 0 };
        let places = vec![Rank::default(); 2 * triples.len()];
        let ranker = || Ranker::new(model, shape, reciprocal);

        let (verdicts, is_cut, stats) = if let Some(setup) = crew.setup(0) {
            let cluster = setup.start(shape, initial)?;
            let stats = || cluster.stats().into();
            let board = Board::new(crew.here(), crew.peers, progress, stop, &stats);
            board.verdicts().ranks = places;
            let results = cluster.run(|mut worker| {
                share(crew.seat(&worker)).rank(&mut ranker(), &mut worker, &board)?;
                // Each stays until all are done: what it owns is asked for.
                Ok(worker.quiesce()?)
            })?;
            crew::first_error(results)?;
            let totals = board.conclude(0, board.stats(), true)?;
            let is_cut = board.is_cut(0);
            (board.into_verdicts(), is_cut, totals.stats)
        } else {
            let board = Board::new(1, crew.peers, progress, stop, &ManagerStats::default);
            board.verdicts().ranks = places;
            let mut arrays = Arrays::new(shape, 0, initial);
            share(Seat::ONLY).rank(&mut ranker(), &mut arrays, &board)?;
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
}
