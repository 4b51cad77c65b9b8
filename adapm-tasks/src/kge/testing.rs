//! [`crate::testing`] of knowledge graphs.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use adapm_core::Key;

use crate::data::DataError;
use crate::data::names::Names;
use crate::data::triples::{ColumnOrder, Folder};
use crate::exchange::Exchange;
use crate::kge::checkpoint::{self, Checkpoint};
use crate::kge::config::TrainConfig;
use crate::kge::graph::{Graph, GraphCounts, GraphOptions, GraphSource, Triple};
use crate::kge::model::{Model, ModelKind, Shape};
use crate::kge::prior::Weight;
use crate::kge::ranking::Ranking;
use crate::kge::reader;
use crate::kge::training;
use crate::metric::RankMetrics;
use crate::run::config::{Keep, Split};
use crate::run::consistency;
use crate::run::error::TaskError;
use crate::run::file::CheckpointError;
use crate::run::managed::BestParameters;
use crate::run::observer::{ManagerStats, NoProgress};
use crate::run::peers::Peers;
use crate::run::state::{Answers, RunState};
use crate::run::task::Evaluation;
use crate::run::topology::is_here;

/// Returns the graph in a folder of these files, by name.
///
/// # Errors
///
/// As [`Graph::load`].
pub fn graph_of(files: &[(&str, &[u8])]) -> Result<Graph, DataError> {
    let read = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        Ok(files.iter().find(|(file, _)| *file == name).map(|(_, bytes)| bytes.to_vec()))
    };
    let options = GraphOptions { column_order: Some(ColumnOrder::Hrt), ..GraphOptions::default() };
    reader::load_from(&Folder { path: Path::new("folder"), read: &read }, &options)
}

/// Returns the checkpoint in a file of these bytes.
///
/// # Errors
///
/// As [`Checkpoint::load`].
pub fn read_checkpoint(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
    Checkpoint::of_bytes(bytes, Path::new("file"))
}

/// Returns the bytes of a file of `checkpoint`.
///
/// # Panics
///
/// If it cannot be written to memory.
#[must_use]
pub fn checkpoint_bytes(checkpoint: &Checkpoint) -> Vec<u8> {
    checkpoint.write_to(Vec::new()).expect("memory takes all bytes")
}

/// Returns a checkpoint of `graph` in which every value is `value`.
#[must_use]
pub fn checkpoint_of(
    graph: &Graph,
    kind: ModelKind,
    dim: usize,
    reciprocal: bool,
    value: f32,
) -> Checkpoint {
    let shape = Shape::of(graph, Model { kind, dim }, reciprocal, 1);
    Checkpoint {
        model: kind,
        dim,
        reciprocal,
        weight: Weight::default(),
        entities: graph.entities.clone(),
        relations: graph.relations.clone(),
        trained_on: checkpoint::digest_of_train(graph),
        values: vec![value; shape.groups().total()].into(),
    }
}

/// Checks the consistency of a training run with others.
///
/// # Errors
///
/// If they do not mean the same, or make no sense.
pub fn check_consistency(
    exchange: &dyn Exchange,
    graph: &Graph,
    config: &TrainConfig,
) -> Result<Keep, TaskError> {
    let own = training::train_fingerprint(graph, config);
    consistency::check(&Peers::among(exchange), Ok(own))
}

/// Ends a phase with others in which `triples` triples are ranked: examples done by all, and the
/// figures.
///
/// # Errors
///
/// If another fails, or makes no sense.
pub fn conclude(
    exchange: &dyn Exchange,
    workers: usize,
    triples: usize,
) -> Result<(u64, ManagerStats, RankMetrics), TaskError> {
    let (peers, stop) = (Peers::among(exchange), AtomicBool::new(false));
    let graph = Graph {
        train: Vec::new(),
        valid: Vec::new(),
        test: vec![Triple { subject: 0, relation: 0, object: 0 }; triples],
        entities: Names::default(),
        relations: Names::default(),
        counts: GraphCounts::default(),
        source: GraphSource::Generated { seed: 0 },
    };
    let model = Model { kind: ModelKind::Complex, dim: 2 };
    let ranking =
        Ranking::new(&graph, Split::Test, model, Shape::of(&graph, model, false, 1), false);
    let by_process = vec![workers; peers.processes()];
    let stats = ManagerStats::default;
    let state = RunState::<Ranking<'_>>::new(by_process, &peers, &NoProgress, &stop, &stats);
    state.verdicts().answers = Answers::to(&ranking);
    let totals = state.conclude(PHASE, ManagerStats::default(), true)?;
    let figures = ranking.figures(state.into_verdicts().answers.items());
    Ok((totals.done, totals.stats, figures))
}

/// Brings the values of a checkpoint of `graph` together at node 0, a few floats at a time: how
/// many there are.
///
/// # Errors
///
/// If another makes no sense.
pub fn gather(
    exchange: &dyn Exchange,
    graph: &Graph,
    dim: usize,
) -> Result<Option<usize>, TaskError> {
    let peers = Peers::among(exchange);
    let shape = Shape::of(graph, Model { kind: ModelKind::Complex, dim }, false, 1).groups();
    let here =
        (0..shape.keys()).map(Key).filter(|key| is_here(*key, peers.node(), peers.processes()));
    let floats = here.map(|key| shape.len_of(key)).sum();
    let best = BestParameters::new(shape, vec![vec![1.0; floats]], &peers);
    Ok(best.gather(&peers, FLOATS_MAX, &|_, _| {})?.map(|values| values.len()))
}

/// The phase of [`conclude`].
const PHASE: u64 = 1;

/// Floats of a piece, so few that there are several.
const FLOATS_MAX: usize = 64;
