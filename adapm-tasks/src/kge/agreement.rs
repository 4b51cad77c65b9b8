//! Before the first step: that all processes mean the same run.
//!
//! Everything that has to be equal crosses once, as text where it is short, so that the one that differs can be named.

use std::collections::BTreeMap;
use std::fmt;

use adapm_core::NodeId;
use adapm_core::error::OneLine;
use serde::{Deserialize, Serialize};

use crate::exchange;
use crate::kge::checkpoint::Checkpoint;
use crate::kge::config::{EvalConfig, TrainConfig};
use crate::kge::digest;
use crate::kge::error::TaskError;
use crate::kge::graph::Graph;
use crate::kge::peers::Peers;

/// In what a node differs from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disagreement {
    /// Its data.
    Data {
        /// What it has read.
        there: String,
        /// What others have.
        elsewhere: String,
    },
    /// A choice of its configuration, or its program.
    Setting {
        /// Name of the field, `program` or `task`.
        name: String,
        /// Its choice.
        there: String,
        /// That of others.
        elsewhere: String,
    },
}

impl fmt::Display for Disagreement {
    /// Continues `node n2 `.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Some of it is what others say.
        match self {
            Self::Data { there, elsewhere } => {
                let (there, elsewhere) = (OneLine(there), OneLine(elsewhere));
                write!(f, "has other data: {there}, others have {elsewhere}; give all nodes the same data")
            }
            Self::Setting { name, there, elsewhere } => {
                let (name, there, elsewhere) = (OneLine(name), OneLine(there), OneLine(elsewhere));
                write!(f, "has {name} {there}, others have {elsewhere}; start all nodes alike")
            }
        }
    }
}

/// What a process says about the run it means.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Opening {
    data: String,
    /// Names and values, in order.
    settings: Vec<(String, String)>,
    /// Node 0 wants the parameters.
    checkpoint: bool,
}

/// What all have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Node 0 wants the parameters.
    pub(crate) checkpoint: bool,
}

impl Opening {
    /// A training run.
    pub(crate) fn training(graph: &Graph, config: &TrainConfig) -> Self {
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
            chunk,
            loss,
            learning_rate,
            l2_entity,
            l2_relation,
            n3,
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
            ("program", program()),
            ("task", "train".to_owned()),
            ("system", system.map_or("none", |system| system.name()).to_owned()),
            ("nodes", nodes.to_string()),
            ("workers", workers.map_or("as cores".to_owned(), |workers| workers.to_string())),
            ("seed", seed.to_string()),
            ("model", model.to_string()),
            ("dim", dim.to_string()),
            ("epochs", epochs.to_string()),
            ("negatives", negatives.to_string()),
            ("negative_count", format!("{negative_count:?}")),
            ("chunk", chunk.to_string()),
            ("loss", loss.to_string()),
            ("learning_rate", learning_rate.to_string()),
            ("l2_entity", l2_entity.to_string()),
            ("l2_relation", l2_relation.to_string()),
            ("n3", n3.to_string()),
            ("initial_deviation", initial_deviation.to_string()),
            ("reciprocal", reciprocal.to_string()),
            ("localize_ahead", localize_ahead.to_string()),
            ("evaluate", evaluate.to_string()),
            ("valid_every", valid_every.to_string()),
        ];
        Self { data: describe(graph), settings: owned(settings), checkpoint: *checkpoint }
    }

    /// An evaluation of `checkpoint`.
    pub(crate) fn evaluation(graph: &Graph, config: &EvalConfig, checkpoint: &Checkpoint) -> Self {
        let EvalConfig { system, nodes, workers, split } = config;
        let kind = if checkpoint.reciprocal { "reciprocal " } else { "" };
        let digest = digest::of_values(checkpoint);
        let parameters = format!("{kind}{} {} {digest:016x}", checkpoint.model, checkpoint.dim);
        let settings = [
            ("program", program()),
            ("task", "evaluate".to_owned()),
            ("system", system.map_or("none", |system| system.name()).to_owned()),
            ("nodes", nodes.to_string()),
            ("workers", workers.map_or("as cores".to_owned(), |workers| workers.to_string())),
            ("split", split.to_string()),
            ("parameters", parameters),
        ];
        Self { data: describe(graph), settings: owned(settings), checkpoint: false }
    }
}

/// Makes sure that all processes mean the same run, or says which one does not. `own` is an error if this process cannot
/// start. Collective; free if all nodes are in this process.
///
/// # Errors
///
/// A process that differs, or that cannot start.
pub(crate) fn agree(peers: &Peers<'_>, own: Result<Opening, TaskError>) -> Result<Agreed, TaskError> {
    let openings = peers.share(own)?;
    let settings = |opening: &Opening| opening.settings.clone();
    // Who runs another program or task may well have other settings.
    let names: Vec<String> = settings(&openings[0]).into_iter().map(|(name, _)| name).collect();
    for (index, name) in names.iter().enumerate() {
        let value = |opening: &Opening| match opening.settings.get(index) {
            Some((other, value)) if other == name => value.clone(),
            _ => "none".to_owned(),
        };
        if let Some((node, there, elsewhere)) = odd_one(openings.iter().map(value)) {
            let what = Disagreement::Setting { name: name.clone(), there, elsewhere };
            return Err(TaskError::Disagreement { node, what });
        }
    }
    if let Some((node, there, elsewhere)) = odd_one(openings.iter().map(|opening| opening.data.clone())) {
        return Err(TaskError::Disagreement { node, what: Disagreement::Data { there, elsewhere } });
    }
    Ok(Agreed { checkpoint: openings[0].checkpoint })
}

/// Workers of each node: as `asked` for, else as many as all nodes have cores for. Collective if nodes are processes.
pub(crate) fn workers(peers: &Peers<'_>, asked: Option<usize>, nodes: usize) -> Result<usize, TaskError> {
    match (asked, peers.exchange()) {
        (Some(workers), _) => Ok(workers),
        (None, Some(exchange)) => exchange::workers_for_all(exchange),
        (None, None) => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            Ok((cores / nodes).max(1))
        }
    }
}

/// The first node whose value is not the most frequent one, its value, and that one. Of equally frequent ones, that of the
/// lowest node counts.
fn odd_one(values: impl Iterator<Item = String>) -> Option<(NodeId, String, String)> {
    let values: Vec<String> = values.collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for value in &values {
        *counts.entry(value).or_default() += 1;
    }
    let most = counts.values().max()?;
    let usual = values.iter().find(|value| counts.get(value.as_str()) == Some(most))?;
    let odd = values.iter().position(|value| value != usual)?;
    Some((NodeId(u16::try_from(odd).unwrap_or(u16::MAX)), values[odd].clone(), usual.clone()))
}

fn describe(graph: &Graph) -> String {
    let [train, valid, test] = [&graph.train, &graph.valid, &graph.test].map(Vec::len);
    let (entities, relations) = (graph.entities.len(), graph.relations.len());
    let digest = digest::of_graph(graph);
    format!(
        "{train} + {valid} + {test} triples of {entities} entities and {relations} relations ({digest:016x})"
    )
}

fn program() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

fn owned<const N: usize>(settings: [(&str, String); N]) -> Vec<(String, String)> {
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kge::circle::places;
    use crate::kge::config::ConfigError;

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
            Ok(Opening::training(&graph, &config))
        };
        let agreed = agree_all(vec![opening(true), opening(false), opening(false)]);
        assert_eq!(agreed, vec![Ok(Agreed { checkpoint: true }); 3]);
    }

    #[test]
    fn the_node_with_other_data_is_named_by_all() {
        let config = TrainConfig::default();
        let graphs = [1, 1, 1].map(|seed| Graph::families(seed, 1));
        let mut openings: Vec<_> = graphs.iter().map(|graph| Ok(Opening::training(graph, &config))).collect();
        let mut changed = graphs[0].clone();
        changed.train.swap(0, 1);
        openings[0] = Ok(Opening::training(&changed, &config));
        for text in agree_all(openings) {
            let text = text.expect_err("n0 differs");
            assert!(text.starts_with("node n0 has other data: ") && text.contains("triples"), "{text}");
            assert!(!text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn the_node_with_another_choice_is_named_with_it_by_all() {
        let graph = Graph::families(1, 1);
        let opening = |learning_rate| {
            Ok(Opening::training(&graph, &TrainConfig { learning_rate, ..TrainConfig::default() }))
        };
        let expected = "node n1 has learning_rate 0.2, others have 0.1; start all nodes alike";
        for text in agree_all(vec![opening(0.1), opening(0.2)]) {
            assert_eq!(text, Err(expected.to_owned()));
        }
        let checkpoint = Checkpoint {
            model: crate::kge::ModelKind::Complex,
            dim: 2,
            reciprocal: false,
            entities: graph.entities.clone(),
            relations: graph.relations.clone(),
            values: std::sync::Arc::default(),
        };
        let evaluation = Opening::evaluation(&graph, &EvalConfig::default(), &checkpoint);
        for text in agree_all(vec![opening(0.1), opening(0.1), Ok(evaluation)]) {
            let expected = "node n2 has task evaluate, others have train; start all nodes alike";
            assert_eq!(text, Err(expected.to_owned()));
        }
    }

    #[test]
    fn what_others_say_stays_in_one_line() {
        let what = |text: &str| Disagreement::Setting {
            name: text.to_owned(),
            there: text.to_owned(),
            elsewhere: text.to_owned(),
        };
        let error = TaskError::Disagreement { node: NodeId(1), what: what("a\n\u{1b}[2J") };
        let told = "a\\n\\u{1b}[2J";
        let expected = format!("node n1 has {told} {told}, others have {told}; start all nodes alike");
        assert_eq!(error.to_string(), expected);
        let error = TaskError::Elsewhere { node: NodeId(2), reason: "b\r".to_owned() };
        assert_eq!(error.to_string(), "node n2 failed: b\\r");
    }

    #[test]
    fn a_process_that_cannot_start_is_named_by_the_others() {
        let opening = Opening::training(&Graph::families(1, 1), &TrainConfig::default());
        let ended = agree_all(vec![Ok(opening), Err(ConfigError::NoWorkers.into())]);
        let own = ConfigError::NoWorkers.to_string();
        assert_eq!(ended, [Err(format!("node n1 failed: {own}")), Err(own)]);
    }
}
