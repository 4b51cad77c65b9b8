//! Training, with all nodes in this process or as one of several.

use std::sync::atomic::AtomicBool;

use crate::kge::baseline::frequency_baseline;
use crate::kge::check;
use crate::kge::checkpoint::Checkpoint;
use crate::kge::config::TrainConfig;
use crate::kge::digest;
use crate::kge::graph::Graph;
use crate::kge::held_back;
use crate::kge::observed::Observed;
use crate::kge::opening;
use crate::kge::partition::Parts;
use crate::kge::prior::{Chosen, Prior};
use crate::kge::report::{Progress, TrainReport};
use crate::kge::sizes::Sizes;
use crate::kge::task::Embeddings;
use crate::run::agreement;
use crate::run::config::{Settings, Split};
use crate::run::crew::Crew;
use crate::run::error::TaskError;
use crate::run::peers::Peers;
use crate::run::training::Run;

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
    let config = &TrainConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let own = check::training(graph, config, peers).map(|()| opening::training(graph, config));
    let agreed = agreement::agree(peers, own.map_err(TaskError::from))?;
    let held = held_back::hold_back(graph, config);
    let whole = graph;
    let graph = held.as_ref().unwrap_or(graph);
    let settings = settings(config, graph);
    let crew = Crew::new(settings.system, settings.nodes, settings.workers, peers)?;
    let parts = Parts::new();
    let sizes = Sizes::new(graph, config, crew.nodes * crew.workers);
    let is_selected = config.evaluate && !graph.valid.is_empty();
    let priors = (config.prior && is_selected).then(|| [Prior::new(graph), Prior::new(whole)]);
    let chosen = Chosen::default();
    let task = Embeddings { graph, config, parts: &parts, sizes, priors: priors.as_ref(), chosen: &chosen };
    let observer = Observed(progress);
    let run = Run { task: &task, settings, agreed, crew, observer: &observer, stop };
    let trained = run.train()?;
    let has_valid = trained.epochs.iter().any(|epoch| epoch.valid.is_some());
    let judged = trained.test.map(|_| Split::Test).or(has_valid.then_some(Split::Valid));
    Ok(TrainReport {
        epochs: trained.epochs.into_iter().map(Into::into).collect(),
        chosen_epoch: trained.chosen_epoch,
        test: trained.test,
        test_seconds: trained.test_seconds,
        baseline: judged
            .map(|split| frequency_baseline(if split == Split::Test { whole } else { graph }, split)),
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
            trained_on: digest::of_train(whole),
            values,
        }),
        stopped: trained.stopped,
        nodes: trained.nodes,
        workers: trained.workers,
        chunk: sizes.chunk,
        negatives: sizes.negatives,
    })
}

/// What a configuration says that all tasks have.
fn settings<'a>(config: &'a TrainConfig, graph: &Graph) -> Settings<'a> {
    let TrainConfig { system, nodes, workers, seed, epochs, evaluate, ref trace, .. } = *config;
    let valid_every = config.valid_every_of(graph.train.len(), graph.valid.len(), graph.entities.len());
    Settings { system, nodes, workers, seed, epochs, evaluate, valid_every, trace: trace.as_ref() }
}

#[cfg(test)]
mod tests;
