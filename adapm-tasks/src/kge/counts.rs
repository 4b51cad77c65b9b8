//! How often each entity is the subject, or the object, of each relation in train.

use crate::kge::graph::{Graph, Triple};
use crate::kge::model::Side;

/// Counts of one side: 8 bytes for each entity that is there with a relation, and 4 for the order of counts.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    entities: u32,
    /// Of all relations, where their entries end.
    ends: Vec<usize>,
    /// Of one relation after the other: entity and count, ascending by entity; those that are never there left out.
    entries: Vec<[u32; 2]>,
    /// The same entries' counts, of each relation ascending.
    ordered: Vec<u32>,
}

impl Counts {
    /// Counts the answers to queries of this side.
    pub(crate) fn new(graph: &Graph, side: Side) -> Self {
        let answer = |triple: &Triple| match side {
            Side::Object => [triple.relation, triple.object],
            Side::Subject => [triple.relation, triple.subject],
        };
        let mut pairs: Vec<[u32; 2]> = graph.train.iter().map(answer).collect();
        pairs.sort_unstable();
        let relations = graph.relations.len().max(pairs.last().map_or(0, |last| last[0] as usize + 1));
        let (mut ends, mut entries) = (Vec::with_capacity(relations), Vec::new());
        for same in pairs.chunk_by(|one, other| one == other) {
            ends.resize(ends.len().max(same[0][0] as usize), entries.len());
            entries.push([same[0][1], same.len() as u32]);
        }
        ends.resize(relations, entries.len());
        let mut counts = Self { entities: graph.entities.len() as u32, ends, entries, ordered: Vec::new() };
        counts.ordered = counts.entries.iter().map(|[_, count]| *count).collect();
        for relation in 0..relations as u32 {
            let range = counts.range(relation);
            counts.ordered[range].sort_unstable();
        }
        counts
    }

    /// Entities of the graph.
    pub(crate) fn entities(&self) -> u32 {
        self.entities
    }

    /// The entities that are there with a relation, ascending, each with its count.
    pub(crate) fn of(&self, relation: u32) -> &[[u32; 2]] {
        &self.entries[self.range(relation)]
    }

    /// How often an entity is there with a relation.
    pub(crate) fn count(&self, relation: u32, entity: u32) -> u32 {
        let entries = self.of(relation);
        let at = entries.binary_search_by_key(&entity, |[entity, _]| *entity);
        at.map_or(0, |at| entries[at][1])
    }

    /// Entities that are there with a relation more often than `count`.
    pub(crate) fn above(&self, relation: u32, count: u32) -> u32 {
        let ordered = &self.ordered[self.range(relation)];
        (ordered.len() - ordered.partition_point(|other| *other <= count)) as u32
    }

    fn range(&self, relation: u32) -> std::ops::Range<usize> {
        let relation = relation as usize;
        let end = |relation: usize| self.ends.get(relation).copied().unwrap_or(self.entries.len());
        let start = if relation == 0 { 0 } else { end(relation - 1) };
        start..end(relation)
    }
}
