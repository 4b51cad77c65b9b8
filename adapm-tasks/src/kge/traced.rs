//! Which keys are worth tracing: those asked for by name, or a few between the most frequent and a typical one (as AdaPM
//! Figure 15 chooses).

use std::fmt;
use std::str::FromStr;

use adapm_core::Key;

use crate::kge::graph::{Graph, Names};

/// A key, or keys, of a graph's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyChoice {
    /// The entity of this name.
    Entity(String),
    /// The relation of this name, and its inverse if it has one.
    Relation(String),
    /// The key of this number.
    Key(u64),
}

impl FromStr for KeyChoice {
    type Err = UnknownKeyChoice;

    /// `entity:NAME`, `relation:NAME` or `key:NUMBER`.
    fn from_str(text: &str) -> Result<Self, UnknownKeyChoice> {
        match text.split_once(':') {
            Some(("entity", name)) if !name.is_empty() => Ok(Self::Entity(name.to_owned())),
            Some(("relation", name)) if !name.is_empty() => Ok(Self::Relation(name.to_owned())),
            Some(("key", number)) => number.parse().map(Self::Key).map_err(|_| UnknownKeyChoice),
            _ => Err(UnknownKeyChoice),
        }
    }
}

/// Text that is no [`KeyChoice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownKeyChoice;

impl std::error::Error for UnknownKeyChoice {}

impl fmt::Display for UnknownKeyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("give entity:NAME, relation:NAME or key:NUMBER, several separated by commas")
    }
}

/// A choice that the graph does not have. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    choice: KeyChoice,
    keys: u64,
}

impl std::error::Error for UnknownKey {}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.choice {
            KeyChoice::Entity(name) => write!(f, "no entity {name} in the data; give a name as in its files"),
            KeyChoice::Relation(name) => {
                write!(f, "no relation {name} in the data; give a name as in its files")
            }
            KeyChoice::Key(number) => write!(f, "no key {number}; keys are 0 to {}", self.keys - 1),
        }
    }
}

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
    if choices.is_empty() {
        return Ok(keys.across_the_range());
    }
    let mut chosen = Vec::new();
    for choice in choices {
        let unknown = || UnknownKey { choice: choice.clone(), keys: keys.counts.len() as u64 };
        let key = match choice {
            KeyChoice::Entity(name) => index_of(&graph.entities, name),
            KeyChoice::Relation(name) => index_of(&graph.relations, name).map(|at| keys.entities + at),
            KeyChoice::Key(number) => usize::try_from(*number).ok().filter(|key| *key < keys.counts.len()),
        };
        let key = key.ok_or_else(unknown)?;
        chosen.push(keys.described(key, ""));
        if matches!(choice, KeyChoice::Relation(_)) && reciprocal {
            chosen.push(keys.described(key + keys.relations, ""));
        }
    }
    Ok(chosen)
}

/// All keys of a graph's parameters with the number of training triples they are in.
struct Keys<'a> {
    graph: &'a Graph,
    entities: usize,
    relations: usize,
    counts: Vec<u32>,
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

    /// Keys at quantiles of frequency; of keys of the same frequency the first.
    fn across_the_range(&self) -> Vec<(Key, String)> {
        let mut ranked: Vec<usize> = (0..self.counts.len()).collect();
        ranked.sort_by_key(|key| (std::cmp::Reverse(self.counts[*key]), *key));
        let mut chosen: Vec<(Key, String)> = Vec::new();
        for (above, what) in QUANTILES {
            let rank = (ranked.len() as f64 * above) as usize;
            let Some(key) = ranked.get(rank) else { continue };
            if chosen.iter().all(|(other, _)| other.0 != *key as u64) {
                chosen.push(self.described(*key, what));
            }
        }
        chosen
    }

    fn described(&self, key: usize, what: &str) -> (Key, String) {
        let relation = key.checked_sub(self.entities);
        let name = match relation {
            None => self.graph.entities.text(key),
            Some(relation) => self.graph.relations.text(relation % self.relations.max(1)),
        };
        let kind = match relation {
            None => "entity",
            Some(relation) if relation < self.relations => "relation",
            Some(_) => "inverse of relation",
        };
        let (count, all) = (self.counts[key], self.graph.train.len());
        let what = if what.is_empty() { String::new() } else { format!(" ({what})") };
        let title = format!("{kind} {}, in {count} of {all} triples{what}", name.unwrap_or_default());
        (Key(key as u64), title)
    }
}

fn index_of(names: &Names, name: &str) -> Option<usize> {
    (0..names.len()).find(|index| names.bytes(*index) == Some(name.as_bytes()))
}

/// Share of keys that are more frequent, and what that is called.
const QUANTILES: [(f64, &str); 5] = [
    (0.0, "the most frequent"),
    (0.001, "99.9 % frequency quantile"),
    (0.01, "99 % frequency quantile"),
    (0.1, "90 % frequency quantile"),
    (0.5, "median frequency"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_to_keys() {
        let graph = Graph::families(1, 2);
        let entity = graph.entities.text(3).expect("has people").into_owned();
        let relation = graph.relations.text(1).expect("has relations").into_owned();
        let entities = graph.entities.len() as u64;
        let relations = graph.relations.len() as u64;
        let choices: Vec<KeyChoice> =
            [format!("entity:{entity}"), format!("relation:{relation}"), "key:0".to_owned()]
                .iter()
                .map(|text| text.parse().expect("a choice"))
                .collect();
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
        let frequencies: Vec<u32> = chosen.iter().map(|(key, _)| counts[key.0 as usize]).collect();
        assert_eq!(Some(&frequencies[0]), counts.iter().max());
        assert!(frequencies.is_sorted_by(|a, b| a >= b) && frequencies.len() >= 4, "{frequencies:?}");
        let mut sorted = counts.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(frequencies.last(), sorted.get(sorted.len() / 2));
    }

    #[test]
    fn what_the_graph_does_not_have_is_told() {
        let graph = Graph::families(1, 1);
        let refused = |text: &str| {
            let choice = text.parse().expect("a choice");
            traced_keys(&graph, false, &[choice]).expect_err("the graph lacks it").to_string()
        };
        assert!(refused("entity:nobody").starts_with("no entity nobody in the data"));
        assert!(refused("relation:none").starts_with("no relation none in the data"));
        assert!(refused("key:9999999").starts_with("no key 9999999; keys are 0 to "));
        for text in ["", "entity", "entity:", "key:x", "key:-1", "people:3"] {
            assert_eq!(text.parse::<KeyChoice>(), Err(UnknownKeyChoice), "{text}");
        }
    }
}
