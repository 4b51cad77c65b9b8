//! Training, and the ranks of a split with a checkpoint.
//!
//! What a process needs is what it owns: only [`TrainReport`]'s checkpoint brings a model together.

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
use crate::run::config::{Config as _, ConfigError, Split};
use crate::run::consistency::RunFingerprint;
use crate::run::error::TaskError;
use crate::run::report;
use crate::run::settings::Settings;
use crate::run::start::Run;

/// Trains embeddings of `graph`.
///
/// # Errors
///
/// A configuration that makes no sense, training that diverges, or a cluster that fails; in a group
/// also data or choices that differ between nodes, and a node that is lost.
pub fn train(
    graph: &Graph,
    config: &TrainConfig,
    run: &Run<'_, RankMetrics>,
) -> Result<TrainReport, TaskError> {
    let config = &TrainConfig { cluster: run.cluster(&config.cluster), ..config.clone() };
    let empty = graph.train.is_empty().then_some(ConfigError::NothingToTrain);
    let checked = empty.map_or(Ok(()), Err).and_then(|()| config.check());
    let fingerprint = || train_fingerprint(graph, config);
    run.start(&config.cluster, checked.map_err(TaskError::from), fingerprint, |started| {
        let held = hold_back(graph, config);
        let whole = graph;
        let graph = held.as_ref().unwrap_or(graph);
        let (parts, chosen) = (Parts::new(), Chosen::default());
        let sizes = Sizes::new(graph, config, started.topology.all());
        let workers = started.topology.workers;
        let is_selected = !config.run.no_eval && !graph.valid.is_empty();
        let priors = (config.prior && is_selected).then(|| [Prior::new(graph), Prior::new(whole)]);
        let priors = priors.as_ref();
        let (parts, chosen) = (&parts, &chosen);
        let partition = None;
        let mut task =
            Embeddings { graph, config, parts, sizes, workers, priors, chosen, partition };
        let (train, valid) = (graph.train.len(), graph.valid.len());
        let valid_every = config.valid_every_of(train, valid, graph.entities.len());
        let trained = started.train(&mut task, Settings::of(config, config.epochs, valid_every))?;
        let has_valid = trained.epochs.iter().any(|epoch| epoch.valid.is_some());
        let judged = trained.test.map(|_| Split::Test).or(has_valid.then_some(Split::Valid));
        let judged_graph = |split| if split == Split::Test { whole } else { graph };
        let found = Found {
            baseline: judged.map(|split| frequency_baseline(judged_graph(split), split)),
            held_back: whole.train.len() - graph.train.len(),
            frequency_weight: chosen.weight().factor(),
            chunk: sizes.chunk,
            negatives: sizes.negatives,
        };
        Ok(trained.with(found, |values| Checkpoint {
            model: config.model,
            dim: config.dim,
            reciprocal: config.reciprocal,
            weight: chosen.weight(),
            entities: graph.entities.clone(),
            relations: graph.relations.clone(),
            trained_on: checkpoint::digest_of_train(whole),
            values,
        }))
    })
}

/// Computes the filtered ranks of a split with the parameters of `checkpoint`. The ranks do not
/// depend on the number of nodes and workers.
///
/// # Errors
///
/// A configuration that makes no sense, a checkpoint of other data, or a cluster that fails; in a
/// group also data, parameters or choices that differ between nodes, and a node that is lost.
pub fn evaluate(
    graph: &Graph,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    run: &Run<'_, RankMetrics>,
) -> Result<EvalReport, TaskError> {
    let checked = checkpoint.check_data(graph).map_err(TaskError::from);
    let fingerprint = || evaluate_fingerprint(graph, config, checkpoint);
    run.start(&config.cluster, checked, fingerprint, |started| {
        let split = config.split;
        let model = Model { kind: checkpoint.model, dim: checkpoint.dim };
        let shape = Shape::of(graph, model, checkpoint.reciprocal, 1);
        let (prior, weight) = (Prior::new(graph), checkpoint.weight);
        let evaluation = Ranking::new(graph, split, model, shape, checkpoint.reciprocal);
        let evaluation = &evaluation.weighing(Weighing::by(&prior, weight));
        let values = &checkpoint.values;
        let (report, answers) = started.evaluate_saved(evaluation, shape.groups(), values)?;
        let ranks = Ranking::ranks(&answers, 0);
        let figures = (!report.stopped).then(|| RankMetrics::of(&ranks));
        let (baseline, frequency_weight) = (frequency_baseline(graph, split), weight.factor());
        let report = report::EvalReport { figures, ..report };
        Ok(report.with(Ranked { baseline, frequency_weight, ranks }))
    })
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
    let mut random = Xoshiro256PlusPlus::seed_from_u64(config.run.seed);
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
    RunFingerprint::of_training(NAME, describe(graph), config)
}

/// Returns the fingerprint of evaluating `checkpoint`, equal on all nodes.
pub(crate) fn evaluate_fingerprint(
    graph: &Graph,
    config: &EvalConfig,
    checkpoint: &Checkpoint,
) -> RunFingerprint {
    let kind = if checkpoint.reciprocal { "reciprocal " } else { "" };
    let weight = checkpoint.weight.factor();
    let digest = checkpoint.values.digest();
    let parameters =
        format!("{kind}{} {} {weight} {digest:016x}", checkpoint.model, checkpoint.dim);
    RunFingerprint::of_evaluation(NAME, describe(graph), &config.cluster, config)
        .with("parameters", parameters)
}

fn describe(graph: &Graph) -> String {
    let [train, valid, test] = [&graph.train, &graph.valid, &graph.test].map(Vec::len);
    let (entities, relations) = (graph.entities.len(), graph.relations.len());
    let digest = checkpoint::digest_of_graph(graph);
    format!(
        "{train} + {valid} + {test} triples of {entities} entities and {relations} relations ({digest:016x})"
    )
}

/// Result of a training run.
pub type TrainReport = report::TrainReport<RankMetrics, Checkpoint, Found>;

/// Results of training beside the figures.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Found {
    /// Figures of the frequency baseline ([`frequency_baseline`](crate::kge::frequency_baseline))
    /// on the same triples: on test, or on valid if that alone was evaluated; `None` if neither
    /// was.
    pub baseline: Option<RankMetrics>,
    /// The weight of frequency beside the vectors, as was best on valid
    /// ([`TrainConfig::prior`](crate::kge::TrainConfig::prior)).
    pub frequency_weight: f32,
    /// Training triples that were held back to select the epoch on, as there was no valid set:
    /// their figures are those of valid.
    pub held_back: usize,
    /// Triples of a step: of a chunk, or one if negatives are independent.
    pub chunk: usize,
    /// Negatives of a chunk (shared), or of each side of a triple (independent).
    pub negatives: usize,
}

/// Result of an evaluation.
pub type EvalReport = report::EvalReport<RankMetrics, Ranked>;

/// Results of an evaluation beside the figures.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ranked {
    /// Figures of the frequency baseline ([`frequency_baseline`](crate::kge::frequency_baseline)).
    pub baseline: RankMetrics,
    /// The weight of frequency beside the vectors, as the checkpoint says.
    pub frequency_weight: f32,
    /// Two ranks per triple, in the order of the triples: first of the object, then of the subject.
    /// Empty if stopped.
    pub ranks: Vec<Rank>,
}

/// The name of the task.
pub(crate) const NAME: &str = "kge";

#[cfg(test)]
mod tests;
