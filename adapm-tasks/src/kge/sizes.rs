//! What follows the data and the workers: the sizes of a step, and how many steps are taken on a row at once.

use crate::kge::config::{Negatives, TrainConfig};
use crate::kge::graph::Graph;

/// Sizes of the steps of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sizes {
    /// Positives of a step.
    pub(crate) chunk: usize,
    /// Negatives of a step, or of each side of its positive.
    pub(crate) negatives: usize,
    /// Steps on the row of an entity, and on that of a relation, that start from the same value, on average.
    pub(crate) at_once: [f32; 2],
}

impl Sizes {
    /// The sizes where `workers` of all nodes train on `graph`.
    pub(crate) fn new(graph: &Graph, config: &TrainConfig, workers: usize) -> Self {
        let chunk = config.chunk_of(graph.train.len(), workers);
        let (entities, relations) = (graph.entities.len(), graph.relations.len());
        let negatives = config.negatives_of(entities);
        let sides = if config.negatives == Negatives::Independent { 2 } else { 1 };
        let at_once = [(2 * chunk + sides * negatives, entities), (chunk, relations)];
        let at_once = at_once.map(|(rows, all)| at_once_of(workers, rows as f32 / all.max(1) as f32));
        Self { chunk, negatives, at_once }
    }
}

/// Steps on a row at once, itself counted, where each of `workers` touches this share of all rows in a step.
///
/// Of steps that are taken at once each is, one after the other, behind half of the others on average. So one worker is as if alone,
/// and all are where rows are many.
fn at_once_of(workers: usize, share: f32) -> f32 {
    let others = workers.saturating_sub(1) as f32;
    1.0 + others / 2.0 * share.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_workers_share_rows_the_more_steps_are_at_once_and_one_worker_is_alone() {
        // A family is 44 people, and relations are few: a chunk of 16 touches them all.
        let graph = Graph::families(1, 1);
        let config = TrainConfig { chunk: Some(64), ..TrainConfig::default() };
        let at_once = |config: &TrainConfig, workers| Sizes::new(&graph, config, workers).at_once;
        let expected = [(1, 1.0), (2, 1.5), (4, 2.5), (8, 4.5)];
        assert!(expected.iter().all(|(workers, steps)| at_once(&config, *workers) == [*steps; 2]));
        // Two entities and two negatives of each side in a step, of all there are.
        let few = TrainConfig { negatives: Negatives::Independent, negative_count: Some(2), ..config };
        let [entity, relation] = at_once(&few, 3);
        assert!((entity - (1.0 + 6.0 / graph.entities.len() as f32)).abs() < 1e-6, "{entity}");
        assert!((relation - (1.0 + 1.0 / graph.relations.len() as f32)).abs() < 1e-6, "{relation}");
        assert_eq!(at_once(&few, 1), [1.0; 2]);
    }
}
