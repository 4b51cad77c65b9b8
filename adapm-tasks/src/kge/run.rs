//! Training, on a cluster or on plain arrays, with the figures on test in the end.

use std::sync::atomic::{AtomicBool, Ordering};

use adapm_core::Key;
use adapm_runtime::System;
use adapm_runtime::trace::Tracer;

use crate::kge::agreement::{self, Agreed, Opening};
use crate::kge::board::{Board, Verdicts};
use crate::kge::checkpoint::Checkpoint;
use crate::kge::config::{Split, TrainConfig};
use crate::kge::crew::{self, Crew};
use crate::kge::error::TaskError;
use crate::kge::evaluation::Ranking;
use crate::kge::filter::Filter;
use crate::kge::graph::Graph;
use crate::kge::initial;
use crate::kge::kept::{Kept, PIECE_FLOATS};
use crate::kge::managed::{Announcement, Setup};
use crate::kge::model::Model;
use crate::kge::parameters::{Arrays, Unannounced};
use crate::kge::peers::Peers;
use crate::kge::report::{EvalReport, ManagerStats, Progress, TrainReport};
use crate::kge::seat::Seat;
use crate::kge::session::{Job, Session};

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
    run(graph, config, &Peers::alone(), progress, stop)
}

/// Trains with all nodes in this process, or as the node that `peers` say.
pub(crate) fn run(
    graph: &Graph,
    config: &TrainConfig,
    peers: &Peers<'_>,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let config = TrainConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let own = crew::check_training(graph, &config, peers).map(|()| Opening::training(graph, &config));
    let agreed = agreement::agree(peers, own.map_err(TaskError::from))?;
    let crew = Crew::new(config.system, config.nodes, config.workers, peers)?;
    let model = Model { kind: config.model, dim: config.dim };
    crew.check(crew::shape(graph, model, config.reciprocal, 2))?;
    let training = Training { graph, config: &config, model, crew, progress, stop };
    let (parts, verdicts) = training.epochs()?;
    training.conclude(parts, verdicts, agreed)
}

/// A training run whose processes have agreed on it.
struct Training<'a> {
    graph: &'a Graph,
    config: &'a TrainConfig,
    model: Model,
    crew: Crew<'a>,
    progress: &'a dyn Progress,
    stop: &'a AtomicBool,
}

impl Training<'_> {
    /// Trains, and returns what the workers of this process copied of the chosen parameters.
    fn epochs(&self) -> Result<(Vec<Vec<f32>>, Verdicts), TaskError> {
        let Self { graph, config, model, crew, progress, stop } = *self;
        let shape = crew::shape(graph, model, config.reciprocal, 2);
        let filter = (config.evaluate && !graph.valid.is_empty()).then(|| Filter::new(graph, &graph.valid));
        let (seed, deviation) = (config.seed, config.initial_deviation);
        let initial = move |key: Key, value: &mut [f32]| initial::value(seed, deviation, key, value);
        let localizes = config.system == Some(System::Lapse);
        let job = |board| Job { graph, config, shape, filter: filter.as_ref(), board, localizes };

        let Some(setup) = crew.setup(seed) else {
            let board = Board::new(1, crew.peers, progress, stop, &ManagerStats::default);
            let arrays = Arrays::new(shape, seed, initial);
            let part = Session::new(job(&board), Seat::ONLY, arrays).run(Unannounced)?;
            return Ok((vec![part], board.into_verdicts()));
        };
        let trace = config.trace.as_ref();
        let cluster = Setup { trace, ..setup }.start(shape, initial)?;
        let stats = || cluster.stats().into();
        let board = Board::new(crew.here(), crew.peers, progress, stop, &stats);
        let results = cluster.run(|worker| {
            let handle = worker.intent_handle();
            let announcer =
                if localizes { Announcement::Localize(handle) } else { Announcement::Intent(handle) };
            Session::new(job(&board), crew.seat(&worker), worker).run(announcer)
        });
        // The cluster that evaluates test is another one.
        trace.into_iter().for_each(Tracer::end);
        let results = results?;
        Ok((crew::first_error(results)?, board.into_verdicts()))
    }

    /// Evaluates the chosen parameters on test, and puts the report together.
    fn conclude(
        &self,
        parts: Vec<Vec<f32>>,
        verdicts: Verdicts,
        agreed: Agreed,
    ) -> Result<TrainReport, TaskError> {
        let Self { graph, config, model, crew, progress, stop } = *self;
        let kept = Kept::new(crew::shape(graph, model, config.reciprocal, 1), parts, crew.peers);
        // What one process has seen of the flag counts for all.
        let stopped = crew.peers.share(Ok(stop.load(Ordering::Relaxed)))?.contains(&true);
        let last = verdicts.epochs.last();
        let mut report = TrainReport {
            chosen_epoch: verdicts.chosen.or(last.map(|epoch| epoch.epoch)).unwrap_or(0),
            test: None,
            test_seconds: 0.0,
            stats: last.map_or(ManagerStats::default(), |epoch| epoch.stats),
            epochs: verdicts.epochs,
            checkpoint: None,
            stopped,
            nodes: crew.nodes,
            workers: crew.workers,
        };
        if config.evaluate && !stopped && !graph.test.is_empty() {
            let (split, reciprocal) = (Split::Test, config.reciprocal);
            let ranking = Ranking { graph, model, reciprocal, crew, split, progress, stop };
            let EvalReport { metrics, seconds, stopped, .. } = ranking.run(kept.initial())?;
            report.test = (!stopped).then_some(metrics);
            (report.test_seconds, report.stopped) = (seconds, stopped);
        }
        if agreed.checkpoint {
            report.checkpoint = kept.gather(crew.peers, PIECE_FLOATS)?.map(|values| Checkpoint {
                model: config.model,
                dim: config.dim,
                reciprocal: config.reciprocal,
                entities: graph.entities.clone(),
                relations: graph.relations.clone(),
                values,
            });
        }
        Ok(report)
    }
}
