//! What has to be equal on all nodes before a graph is trained on or evaluated.

use crate::kge::checkpoint::Checkpoint;
use crate::kge::config::{EvalConfig, TrainConfig};
use crate::kge::digest;
use crate::kge::graph::Graph;
use crate::run::agreement::{Opening, or_default};

/// A training run.
pub(crate) fn training(graph: &Graph, config: &TrainConfig) -> Opening {
    // Field by field, so that a field that is new cannot be forgotten.
    let TrainConfig {
        system,
        nodes,
        workers,
        seed,
        model,
        dim,
        epochs,
        negatives,
        negative_count,
        scheme,
        chunk,
        loss,
        learning_rate,
        l2_entity,
        l2_relation,
        n3,
        prior,
        initial_deviation,
        reciprocal,
        localize_ahead,
        evaluate,
        valid_every,
        checkpoint,
        // Whether a process traces is its own affair.
        trace: _,
    } = config;
    let settings = [
        ("seed", seed.to_string()),
        ("model", model.to_string()),
        ("dim", dim.to_string()),
        ("epochs", epochs.to_string()),
        ("negatives", negatives.to_string()),
        ("negative_count", or_default(*negative_count)),
        ("scheme", or_default(scheme.map(|scheme| format!("{scheme:?}")))),
        ("chunk", or_default(*chunk)),
        ("loss", loss.to_string()),
        ("learning_rate", learning_rate.to_string()),
        ("l2_entity", l2_entity.to_string()),
        ("l2_relation", l2_relation.to_string()),
        ("n3", n3.to_string()),
        ("prior", prior.to_string()),
        ("initial_deviation", initial_deviation.to_string()),
        ("reciprocal", reciprocal.to_string()),
        ("localize_ahead", localize_ahead.to_string()),
        ("evaluate", evaluate.to_string()),
        ("valid_every", or_default(*valid_every)),
    ];
    Opening::new("train kge", describe(graph), *checkpoint, (*system, *nodes, *workers), settings)
}

/// An evaluation of `checkpoint`.
pub(crate) fn evaluation(graph: &Graph, config: &EvalConfig, checkpoint: &Checkpoint) -> Opening {
    let EvalConfig { system, nodes, workers, split } = config;
    let kind = if checkpoint.reciprocal { "reciprocal " } else { "" };
    let weight = checkpoint.weight.factor();
    let digest = digest::of_values(checkpoint);
    let parameters = format!("{kind}{} {} {weight} {digest:016x}", checkpoint.model, checkpoint.dim);
    let settings = [("split", split.to_string()), ("parameters", parameters)];
    Opening::new("evaluate kge", describe(graph), false, (*system, *nodes, *workers), settings)
}

fn describe(graph: &Graph) -> String {
    let [train, valid, test] = [&graph.train, &graph.valid, &graph.test].map(Vec::len);
    let (entities, relations) = (graph.entities.len(), graph.relations.len());
    let digest = digest::of_graph(graph);
    format!(
        "{train} + {valid} + {test} triples of {entities} entities and {relations} relations ({digest:016x})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kge::prior::Weight;
    use crate::run::agreement::{Agreed, agree};
    use crate::run::circle::places;
    use crate::run::config::ConfigError;
    use crate::run::error::TaskError;
    use crate::run::peers::Peers;

    /// What each process ends with that opens as it is told.
    fn agree_all(openings: Vec<Result<Opening, TaskError>>) -> Vec<Result<Agreed, String>> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = places(openings.len())
                .into_iter()
                .zip(openings)
                .map(|(place, own)| {
                    let agree = move || agree(&Peers::among(&place), own).map_err(|error| error.to_string());
                    scope.spawn(agree)
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("does not panic")).collect()
        })
    }

    #[test]
    fn processes_that_mean_the_same_agree_and_node_0_chooses_the_checkpoint() {
        let graph = Graph::families(1, 1);
        let opening = |checkpoint| {
            let config = TrainConfig { checkpoint, ..TrainConfig::default() };
            Ok(training(&graph, &config))
        };
        let agreed = agree_all(vec![opening(true), opening(false), opening(false)]);
        assert_eq!(agreed, vec![Ok(Agreed { checkpoint: true, stopped: false }); 3]);
    }

    #[test]
    fn the_node_with_other_data_is_named_by_all() {
        let config = TrainConfig::default();
        let graphs = [1, 1, 1].map(|seed| Graph::families(seed, 1));
        let mut openings: Vec<_> = graphs.iter().map(|graph| Ok(training(graph, &config))).collect();
        let mut changed = graphs[0].clone();
        changed.train.swap(0, 1);
        openings[0] = Ok(training(&changed, &config));
        for text in agree_all(openings) {
            let text = text.expect_err("n0 differs");
            assert!(text.starts_with("node n0 has other data: ") && text.contains("triples"), "{text}");
            assert!(!text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn the_node_with_another_choice_is_named_with_it_by_all() {
        let graph = Graph::families(1, 1);
        let opening =
            |learning_rate| Ok(training(&graph, &TrainConfig { learning_rate, ..TrainConfig::default() }));
        let expected = "node n1 has learning_rate 0.2, others have 0.1; start all nodes alike";
        for text in agree_all(vec![opening(0.1), opening(0.2)]) {
            assert_eq!(text, Err(expected.to_owned()));
        }
        let chunked = |chunk| Ok(training(&graph, &TrainConfig { chunk, ..TrainConfig::default() }));
        let expected = "node n1 has chunk by default, others have 16; start all nodes alike";
        for text in agree_all(vec![chunked(Some(16)), chunked(None), chunked(Some(16))]) {
            assert_eq!(text, Err(expected.to_owned()));
        }
        let checkpoint = Checkpoint {
            model: crate::kge::ModelKind::Complex,
            dim: 2,
            reciprocal: false,
            weight: Weight::default(),
            entities: graph.entities.clone(),
            relations: graph.relations.clone(),
            trained_on: digest::of_train(&graph),
            values: std::sync::Arc::default(),
        };
        let other = evaluation(&graph, &EvalConfig::default(), &checkpoint);
        for text in agree_all(vec![opening(0.1), opening(0.1), Ok(other)]) {
            let expected =
                "node n2 runs evaluate kge, the others train kge; start all nodes with the same task";
            assert_eq!(text, Err(expected.to_owned()));
        }
    }

    #[test]
    fn a_process_that_cannot_start_is_named_by_the_others() {
        let opening = training(&Graph::families(1, 1), &TrainConfig::default());
        let ended = agree_all(vec![Ok(opening), Err(ConfigError::NoWorkers.into())]);
        let own = ConfigError::NoWorkers.to_string();
        assert_eq!(ended, [Err(format!("node n1 failed: {own}")), Err(own)]);
    }
}
