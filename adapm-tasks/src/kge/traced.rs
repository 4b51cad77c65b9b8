//! Which keys are worth tracing: those asked for by name, or a few between the most frequent and a typical one (as AdaPM
//! Figure 15 chooses).

use adapm_core::Key;

use crate::kge::graph::{Graph, Names};
use crate::run::traced::{self, KeyChoice, UnknownKey};

/// What keys can be asked for by name; a relation is with its inverse if it has one.
pub const KEY_KINDS: &[&str] = &["entity", "relation"];

/// The keys that `choices` name, each with what it is; without choices five between the most frequent and a typical one.
///
/// Frequency is that in the training triples: negatives come on top, the same for all entities.
///
/// # Errors
///
/// The first choice that the graph does not have.
pub fn traced_keys(
    graph: &Graph,
    reciprocal: bool,
    choices: &[KeyChoice],
) -> Result<Vec<(Key, String)>, UnknownKey> {
    let keys = Keys::of(graph, reciprocal);
    let named = |kind: &'static str, name: &str| match kind {
        "entity" => index_of(&graph.entities, name).map(|entity| vec![entity]),
        _ => index_of(&graph.relations, name).map(|at| {
            let relation = keys.entities + at;
            if reciprocal { vec![relation, relation + keys.relations] } else { vec![relation] }
        }),
    };
    traced::chosen(choices, keys.counts.len(), &keys.counts, named, |key| keys.title(key))
}

/// All keys of a graph's parameters with the number of training triples they are in.
struct Keys<'a> {
    graph: &'a Graph,
    entities: usize,
    relations: usize,
    counts: Vec<u64>,
}

impl<'a> Keys<'a> {
    fn of(graph: &'a Graph, reciprocal: bool) -> Self {
        let (entities, relations) = (graph.entities.len(), graph.relations.len());
        let mut counts = vec![0; entities + if reciprocal { 2 * relations } else { relations }];
        for triple in &graph.train {
            let relation = entities + triple.relation as usize;
            counts[triple.subject as usize] += 1;
            if triple.subject != triple.object {
                counts[triple.object as usize] += 1;
            }
            counts[relation] += 1;
            if reciprocal {
                counts[relation + relations] += 1;
            }
        }
        Self { graph, entities, relations, counts }
    }

    fn title(&self, key: usize) -> String {
        let (name, count, all) = (name_of(self.graph, key), self.counts[key], self.graph.train.len());
        format!("{name}, in {count} of {all} triples")
    }
}

/// What a key is of: `entity Q42`, `relation part_of`, `inverse of relation part_of`.
pub(crate) fn name_of(graph: &Graph, key: usize) -> String {
    let relations = graph.relations.len();
    let (kind, name) = match key.checked_sub(graph.entities.len()) {
        None => ("entity", graph.entities.text(key)),
        Some(relation) if relation < relations => ("relation", graph.relations.text(relation)),
        Some(relation) => ("inverse of relation", graph.relations.text(relation % relations.max(1))),
    };
    format!("{kind} {}", name.unwrap_or_default())
}

fn index_of(names: &Names, name: &str) -> Option<usize> {
    (0..names.len()).find(|index| names.bytes(*index) == Some(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(text: &str) -> Vec<KeyChoice> {
        KeyChoice::list(text, KEY_KINDS).expect("choices")
    }

    #[test]
    fn names_and_numbers_lead_to_keys() {
        let graph = Graph::families(1, 2);
        let entity = graph.entities.text(3).expect("has people").into_owned();
        let relation = graph.relations.text(1).expect("has relations").into_owned();
        let entities = graph.entities.len() as u64;
        let relations = graph.relations.len() as u64;
        let choices = choices(&format!("entity:{entity},relation:{relation},key:0"));
        let keys = |reciprocal| -> Vec<u64> {
            let keys = traced_keys(&graph, reciprocal, &choices).expect("the graph has them");
            keys.iter().map(|(key, _)| key.0).collect()
        };
        assert_eq!(keys(false), [3, entities + 1, 0]);
        assert_eq!(keys(true), [3, entities + 1, entities + 1 + relations, 0]);
        let titles = traced_keys(&graph, true, &choices).expect("the graph has them");
        assert!(titles[0].1.starts_with(&format!("entity {entity}, in ")), "{titles:?}");
        assert!(titles[2].1.starts_with(&format!("inverse of relation {relation}, in ")), "{titles:?}");
    }

    #[test]
    fn the_default_goes_from_the_most_frequent_to_a_typical_key() {
        let graph = Graph::families(1, 30);
        let counts = Keys::of(&graph, false).counts;
        let chosen = traced_keys(&graph, false, &[]).expect("needs no names");
        let first = chosen.first().expect("there are keys");
        assert_eq!(Some(&counts[first.0.0 as usize]), counts.iter().max());
        assert!(first.1.ends_with("(the most frequent)") && chosen.len() >= 4, "{chosen:?}");
    }

    #[test]
    fn what_the_graph_does_not_have_is_told() {
        let graph = Graph::families(1, 1);
        let refused = |text: &str| {
            traced_keys(&graph, false, &choices(text)).expect_err("the graph lacks it").to_string()
        };
        assert!(refused("entity:nobody").starts_with("no entity nobody in the data"));
        assert!(refused("relation:none").starts_with("no relation none in the data"));
        assert!(refused("key:9999999").starts_with("no key 9999999; keys are 0 to "));
    }
}
