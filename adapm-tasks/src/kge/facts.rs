//! Facts as they were read, and what is odd about them: repeated, in several splits, about names that train does not know.

use std::collections::HashSet;

use crate::data::DataError;
use crate::kge::graph::{Graph, GraphCounts, GraphFiles, GraphSource, Names, Triple};

/// What was read.
pub(crate) struct Facts {
    /// Of train, valid and test.
    pub(crate) splits: [Vec<Triple>; 3],
    /// Facts that were left out, as train has them.
    pub(crate) repeated: u64,
    pub(crate) entities: Names,
    pub(crate) relations: Names,
    pub(crate) source: GraphFiles,
}

impl Facts {
    pub(crate) fn new(
        splits: [Vec<Triple>; 3],
        entities: Names,
        relations: Names,
        source: GraphFiles,
    ) -> Self {
        Self { splits, repeated: 0, entities, relations, source }
    }

    /// The graph: each training fact once, the others as they are.
    ///
    /// # Errors
    ///
    /// No training fact.
    pub(crate) fn graph(self) -> Result<Graph, DataError> {
        let Self { splits: [train, valid, test], repeated, entities, relations, source } = self;
        let read = train.len();
        let mut known = HashSet::with_capacity(read);
        let train: Vec<Triple> = train.into_iter().filter(|triple| known.insert(*triple)).collect();
        if train.is_empty() {
            let [path, ..] = source.files;
            return Err(DataError::Empty { path: path.unwrap_or(source.path) });
        }
        let known = Known {
            facts: known,
            entities: seen(&train, entities.len()),
            relations: seen_relations(&train, relations.len()),
        };
        let duplicates = repeated + (read - train.len()) as u64;
        let mut counts = GraphCounts { duplicates, ..GraphCounts::default() };
        let valid_facts: HashSet<&Triple> = valid.iter().collect();
        let test_facts: HashSet<&Triple> = test.iter().collect();
        counts.duplicates_valid = (valid.len() - valid_facts.len()) as u64;
        counts.duplicates_test = (test.len() - test_facts.len()) as u64;
        counts.overlap_valid = count(&valid, |triple| known.facts.contains(triple));
        counts.overlap_test = count(&test, |triple| known.facts.contains(triple));
        counts.valid_in_test = count(&valid, |triple| test_facts.contains(triple));
        counts.unknown_valid = count(&valid, |triple| !known.all_of(triple));
        counts.unknown_test = count(&test, |triple| !known.all_of(triple));
        let held_out: Vec<Triple> = valid.iter().chain(&test).copied().collect();
        counts.unknown_entities = unknown(&known.entities, &seen(&held_out, entities.len()));
        counts.unknown_relations = unknown(&known.relations, &seen_relations(&held_out, relations.len()));
        let source = GraphSource::Files(source);
        Ok(Graph { train, valid, test, entities, relations, counts, source })
    }
}

/// What train knows.
struct Known {
    facts: HashSet<Triple>,
    entities: Vec<bool>,
    relations: Vec<bool>,
}

impl Known {
    /// Returns true if train knows entities and relation of `triple`.
    fn all_of(&self, triple: &Triple) -> bool {
        let Triple { subject, relation, object } = *triple;
        [subject, object].iter().all(|entity| self.entities[*entity as usize])
            && self.relations[relation as usize]
    }
}

fn count(triples: &[Triple], is_counted: impl Fn(&Triple) -> bool) -> u64 {
    triples.iter().filter(|triple| is_counted(triple)).count() as u64
}

/// Which of `all` entities occur.
fn seen(triples: &[Triple], all: usize) -> Vec<bool> {
    let mut seen = vec![false; all];
    triples.iter().flat_map(|t| [t.subject, t.object]).for_each(|entity| seen[entity as usize] = true);
    seen
}

/// Which of `all` relations occur.
fn seen_relations(triples: &[Triple], all: usize) -> Vec<bool> {
    let mut seen = vec![false; all];
    triples.iter().for_each(|triple| seen[triple.relation as usize] = true);
    seen
}

/// Those that occur and are not known.
fn unknown(known: &[bool], seen: &[bool]) -> u64 {
    known.iter().zip(seen).filter(|(known, seen)| **seen && !**known).count() as u64
}
