//! Training, with all nodes in this process or as one of several.

use std::sync::atomic::AtomicBool;

use crate::kge::baseline::frequency_baseline;
use crate::kge::check;
use crate::kge::checkpoint::Checkpoint;
use crate::kge::config::TrainConfig;
use crate::kge::graph::Graph;
use crate::kge::observed::Observed;
use crate::kge::opening;
use crate::kge::partition::Parts;
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
    let settings = settings(config);
    let crew = Crew::new(settings.system, settings.nodes, settings.workers, peers)?;
    let parts = Parts::new();
    let sizes = Sizes::new(graph, config, crew.nodes * crew.workers);
    let (task, observer) = (Embeddings { graph, config, parts: &parts, sizes }, Observed(progress));
    let run = Run { task: &task, settings, agreed, crew, observer: &observer, stop };
    let trained = run.train()?;
    let has_valid = trained.epochs.iter().any(|epoch| epoch.valid.is_some());
    let judged = trained.test.map(|_| Split::Test).or(has_valid.then_some(Split::Valid));
    Ok(TrainReport {
        epochs: trained.epochs.into_iter().map(Into::into).collect(),
        chosen_epoch: trained.chosen_epoch,
        test: trained.test,
        test_seconds: trained.test_seconds,
        baseline: judged.map(|split| frequency_baseline(graph, split)),
        stats: trained.stats,
        checkpoint: trained.values.map(|values| Checkpoint {
            model: config.model,
            dim: config.dim,
            reciprocal: config.reciprocal,
            entities: graph.entities.clone(),
            relations: graph.relations.clone(),
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
fn settings(config: &TrainConfig) -> Settings<'_> {
    let TrainConfig { system, nodes, workers, seed, epochs, evaluate, valid_every, ref trace, .. } = *config;
    Settings { system, nodes, workers, seed, epochs, evaluate, valid_every, trace: trace.as_ref() }
}

#[cfg(test)]
mod tests;
