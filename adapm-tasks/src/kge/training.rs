//! Training, and the ranks of a split with a checkpoint: with all nodes in this process, or as one
//! node of a group of processes.
//!
//! Every process of the group makes the same calls with the same data and the same choices, or all
//! end with the name of the node that differs. What a process needs is what it owns: only
//! `TrainReport::checkpoint` brings a model together.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use adapm_transport::group::Group;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::kge::checkpoint::{self, Checkpoint};
use crate::kge::config::{EvalConfig, Sizes, TrainConfig};
use crate::kge::graph::Graph;
use crate::kge::model::{Model, Shape};
use crate::kge::order::Parts;
use crate::kge::prior::{Chosen, Prior, Weighing};
use crate::kge::ranking::{Ranking, frequency_baseline};
use crate::kge::reader::Uses;
use crate::kge::task::Embeddings;
use crate::metric::{Rank, RankMetrics};
use crate::run::config::{Settings, Split};
use crate::run::consistency::{self, RunFingerprint, equal, or_default};
use crate::run::error::TaskError;
use crate::run::managed::BestParameters;
use crate::run::observer::{Epoch, ManagerStats, Observer};
use crate::run::peers::Peers;
use crate::run::topology::{self, Topology};
use crate::run::training::{EvaluationRun, Run};

/// Trains embeddings of `graph`. Raising `stop` ends the run within a chunk, with the results so
/// far.
///
/// # Errors
///
/// A configuration that makes no sense, training that diverges, or a cluster that fails.
pub fn train(
    graph: &Graph,
    config: &TrainConfig,
    observer: &dyn Observer<RankMetrics>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    train_as(graph, config, &Peers::alone(), observer, stop)
}

/// Trains with all nodes in this process, or as the node that `peers` say.
pub(crate) fn train_as(
    graph: &Graph,
    config: &TrainConfig,
    peers: &Peers<'_>,
    observer: &dyn Observer<RankMetrics>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let config = &TrainConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let own = config.check(graph, peers).map(|()| train_fingerprint(graph, config));
    let agreed = consistency::check(peers, own.map_err(TaskError::from))?;
    let held = hold_back(graph, config);
    let whole = graph;
    let graph = held.as_ref().unwrap_or(graph);
    let settings = settings(config, graph);
    let topology = Topology::new(settings.system, settings.nodes, settings.workers, peers)?;
    let parts = Parts::new();
    let sizes = Sizes::new(graph, config, topology.nodes * topology.workers);
    let is_selected = config.evaluate && !graph.valid.is_empty();
    let priors = (config.prior && is_selected).then(|| [Prior::new(graph), Prior::new(whole)]);
    let chosen = Chosen::default();
    let task = Embeddings {
        graph,
        config,
        parts: &parts,
        sizes,
        priors: priors.as_ref(),
        chosen: &chosen,
    };
    let run = Run { task: &task, settings, agreed, topology, observer, stop };
    let trained = run.train()?;
    let has_valid = trained.epochs.iter().any(|epoch| epoch.valid.is_some());
    let judged = trained.test.map(|_| Split::Test).or(has_valid.then_some(Split::Valid));
    Ok(TrainReport {
        epochs: trained.epochs,
        chosen_epoch: trained.chosen_epoch,
        test: trained.test,
        test_seconds: trained.test_seconds,
        baseline: judged.map(|split| {
            frequency_baseline(if split == Split::Test { whole } else { graph }, split)
        }),
        held_back: whole.train.len() - graph.train.len(),
        frequency_weight: chosen.weight().factor(),
        stats: trained.stats,
        checkpoint: trained.values.map(|values| Checkpoint {
            model: config.model,
            dim: config.dim,
            reciprocal: config.reciprocal,
            weight: chosen.weight(),
            entities: graph.entities.clone(),
            relations: graph.relations.clone(),
            trained_on: checkpoint::digest_of_train(whole),
            values,
        }),
        stopped: trained.stopped,
        nodes: trained.nodes,
        workers: trained.workers,
        chunk: sizes.chunk,
        negatives: sizes.negatives,
    })
}

/// Returns the settings that all tasks have.
fn settings<'a>(config: &'a TrainConfig, graph: &Graph) -> Settings<'a> {
    let TrainConfig { system, nodes, workers, seed, epochs, evaluate, ref trace, .. } = *config;
    let valid_every =
        config.valid_every_of(graph.train.len(), graph.valid.len(), graph.entities.len());
    Settings { system, nodes, workers, seed, epochs, evaluate, valid_every, trace: trace.as_ref() }
}

/// Computes the filtered ranks of a split with the parameters of `checkpoint`. The ranks do not
/// depend on the number of nodes and workers. Raising `stop` ends it early, without figures.
///
/// # Errors
///
/// A configuration that makes no sense, a checkpoint of other data, or a cluster that fails.
pub fn evaluate(
    graph: &Graph,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    observer: &dyn Observer<RankMetrics>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    evaluate_as(graph, checkpoint, config, &Peers::alone(), observer, stop)
}

/// Evaluates with all nodes in this process, or as the node that `peers` say.
pub(crate) fn evaluate_as(
    graph: &Graph,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    peers: &Peers<'_>,
    observer: &dyn Observer<RankMetrics>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let config = EvalConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let EvalConfig { system, nodes, workers, split } = config;
    let checked = topology::check(system, nodes, workers, peers).map_err(TaskError::from);
    let checked = checked.and_then(|()| Ok(checkpoint.check_data(graph)?));
    consistency::check(peers, checked.map(|()| evaluate_fingerprint(graph, &config, checkpoint)))?;
    let topology = Topology::new(system, nodes, workers, peers)?;

    let began = Instant::now();
    let (model, reciprocal) =
        (Model { kind: checkpoint.model, dim: checkpoint.dim }, checkpoint.reciprocal);
    let shape = Shape::of(graph, model, reciprocal, 1);
    let best = BestParameters::all(shape.groups(), Arc::clone(&checkpoint.values));
    let (prior, weight) = (Prior::new(graph), checkpoint.weight);
    let evaluation = Ranking::new(graph, split, model, shape, reciprocal);
    let evaluation = &evaluation.weighing(Weighing::by(&prior, weight));
    let run = EvaluationRun { evaluation, shape: shape.groups(), topology, observer, stop };
    let evaluated = run.run(best.initial())?;
    let ranks = Ranking::ranks(&evaluated.answers, 0);
    Ok(EvalReport {
        metrics: RankMetrics::of(&ranks),
        baseline: frequency_baseline(graph, split),
        frequency_weight: weight.factor(),
        ranks,
        seconds: began.elapsed().as_secs_f64(),
        stats: evaluated.stats,
        stopped: evaluated.stopped,
        nodes: topology.nodes,
        workers: topology.workers,
    })
}

/// [`train`] as one node of `group`; collective. The report is the same on all nodes, but for the
/// checkpoint, which is on node 0.
///
/// Raising `stop` in one process ends the run in all, in this one within a chunk, in the others at
/// the end of their epoch; [`Group::on_stop`] raises it everywhere at once.
///
/// # Errors
///
/// As [`train`], on all nodes if on one; data or choices that differ between nodes; a node that is
/// lost.
pub fn train_in_group(
    graph: &Graph,
    config: &TrainConfig,
    group: &Arc<Group>,
    observer: &dyn Observer<RankMetrics>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let peers = Peers::of(group);
    peers.told_of(|| train_as(graph, config, &peers, observer, stop))
}

/// [`evaluate`] as one node of `group`; collective. The report is the same on all nodes.
///
/// # Errors
///
/// As [`evaluate`], on all nodes if on one; data, parameters or choices that differ between nodes;
/// a node that is lost.
pub fn evaluate_in_group(
    graph: &Graph,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    group: &Arc<Group>,
    observer: &dyn Observer<RankMetrics>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let peers = Peers::of(group);
    peers.told_of(|| evaluate_as(graph, checkpoint, config, &peers, observer, stop))
}

/// Returns the graph with some of its training triples as valid, a pure function of the seed: as
/// many as are to be held back, never the last one of an entity or relation. `None` if none is, or
/// none can be spared.
pub(crate) fn hold_back(graph: &Graph, config: &TrainConfig) -> Option<Graph> {
    let wanted = config.held_back_of(graph.train.len(), graph.valid.len());
    if wanted == 0 {
        return None;
    }
    // Another stream than that of who trains on which facts.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(config.seed);
    (0..2).for_each(|_| random.long_jump());
    let mut positions: Vec<u32> = (0..graph.train.len() as u32).collect();
    positions.shuffle(&mut random);
    let mut uses = Uses::new(&graph.train, graph.entities.len(), graph.relations.len());
    let mut is_held = vec![false; graph.train.len()];
    let mut held = 0;
    for position in positions {
        if held == wanted {
            break;
        }
        if uses.give_up(&graph.train[position as usize]) {
            is_held[position as usize] = true;
            held += 1;
        }
    }
    let part = |wanted: bool| {
        let triples = graph.train.iter().zip(&is_held).filter(|(_, is_held)| **is_held == wanted);
        triples.map(|(triple, _)| *triple).collect()
    };
    (held > 0).then(|| Graph { train: part(false), valid: part(true), ..graph.clone() })
}

/// Returns the fingerprint of training, equal on all nodes.
pub(crate) fn train_fingerprint(graph: &Graph, config: &TrainConfig) -> RunFingerprint {
    let settings = equal!(config: TrainConfig {
        seed, model, dim, epochs, negatives,
        negative_count => or_default(*negative_count),
        scheme => or_default(scheme.map(|scheme| format!("{scheme:?}"))),
        chunk => or_default(*chunk),
        loss, learning_rate, l2_entity, l2_relation,
        n3 => or_default(*n3),
        prior, initial_deviation, reciprocal, localize_ahead, evaluate,
        valid_every => or_default(*valid_every)
    } beside system, nodes, workers, checkpoint, trace);
    let TrainConfig { system, nodes, workers, checkpoint, .. } = *config;
    RunFingerprint::new(
        "train kge",
        describe(graph),
        checkpoint,
        (system, nodes, workers),
        settings,
    )
}

/// Returns the fingerprint of evaluating `checkpoint`, equal on all nodes.
pub(crate) fn evaluate_fingerprint(
    graph: &Graph,
    config: &EvalConfig,
    checkpoint: &Checkpoint,
) -> RunFingerprint {
    let EvalConfig { system, nodes, workers, split } = config;
    let kind = if checkpoint.reciprocal { "reciprocal " } else { "" };
    let weight = checkpoint.weight.factor();
    let digest = checkpoint::digest_of_values(checkpoint);
    let parameters =
        format!("{kind}{} {} {weight} {digest:016x}", checkpoint.model, checkpoint.dim);
    let settings = [("split", split.to_string()), ("parameters", parameters)];
    RunFingerprint::new(
        "evaluate kge",
        describe(graph),
        false,
        (*system, *nodes, *workers),
        settings,
    )
}

fn describe(graph: &Graph) -> String {
    let [train, valid, test] = [&graph.train, &graph.valid, &graph.test].map(Vec::len);
    let (entities, relations) = (graph.entities.len(), graph.relations.len());
    let digest = checkpoint::digest_of_graph(graph);
    format!(
        "{train} + {valid} + {test} triples of {entities} entities and {relations} relations ({digest:016x})"
    )
}

/// Result of a training run, complete or stopped: the same on all nodes if they are processes, but
/// for `checkpoint`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrainReport {
    /// Every finished epoch.
    pub epochs: Vec<Epoch<RankMetrics>>,
    /// The epoch whose parameters are in `checkpoint`: best on valid; without evaluation the last;
    /// 0 = initial values.
    pub chosen_epoch: u32,
    /// Figures on test with the chosen parameters; `None` without evaluation, without test triples,
    /// or if stopped.
    pub test: Option<RankMetrics>,
    /// Seconds of the evaluation of test.
    pub test_seconds: f64,
    /// Figures of the frequency baseline ([`frequency_baseline`](crate::kge::frequency_baseline))
    /// on the same triples: on test, or on valid if that alone was evaluated; `None` if neither
    /// was.
    pub baseline: Option<RankMetrics>,
    /// The weight of frequency beside the vectors, as was best on valid
    /// ([`TrainConfig::prior`](crate::kge::TrainConfig::prior)).
    pub frequency_weight: f32,
    /// The manager's counts of training, evaluation not counted.
    pub stats: ManagerStats,
    /// Parameters of the chosen epoch, if
    /// [`TrainConfig::checkpoint`](crate::kge::TrainConfig::checkpoint) asks for them; on node 0
    /// only if nodes are processes.
    pub checkpoint: Option<Checkpoint>,
    /// The stop flag ended the run early.
    pub stopped: bool,
    /// Training triples that were held back to select the epoch on, as there was no valid set:
    /// their figures are those of valid.
    pub held_back: usize,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers per node that took part.
    pub workers: usize,
    /// Triples of a step: of a chunk, or one if negatives are independent.
    pub chunk: usize,
    /// Negatives of a chunk (shared), or of each side of a triple (independent).
    pub negatives: usize,
}

/// Result of an evaluation, the same on all nodes if they are processes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EvalReport {
    /// The figures.
    pub metrics: RankMetrics,
    /// Figures of the frequency baseline ([`frequency_baseline`](crate::kge::frequency_baseline)).
    pub baseline: RankMetrics,
    /// The weight of frequency beside the vectors, as the checkpoint says.
    pub frequency_weight: f32,
    /// Two ranks per triple, in the order of the triples: first of the object, then of the subject.
    /// Empty if stopped.
    pub ranks: Vec<Rank>,
    /// Seconds it took.
    pub seconds: f64,
    /// The manager's counts.
    pub stats: ManagerStats,
    /// The stop flag ended the evaluation early: no figures.
    pub stopped: bool,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers per node that took part.
    pub workers: usize,
}

#[cfg(test)]
mod tests;
