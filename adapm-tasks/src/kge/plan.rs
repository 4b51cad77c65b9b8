//! What a step needs to know before it starts: the positives of a chunk, its keys, where each value will lie.

use adapm_core::{Clock, Key};

use crate::kge::config::Negatives;
use crate::kge::graph::Triple;
use crate::kge::shape::Shape;

/// A positive of a chunk: its entities' keys, and where the values of its parts start among those that are pulled
/// with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Positive {
    pub(crate) subject_key: Key,
    pub(crate) object_key: Key,
    pub(crate) subject: usize,
    pub(crate) relation: usize,
    /// The inverse relation; the relation itself without inverse relations.
    pub(crate) inverse: usize,
    pub(crate) object: usize,
}

/// Positives that are prepared together.
#[derive(Clone, Debug)]
pub(crate) struct Chunk<S> {
    pub(crate) positives: Vec<Positive>,
    /// What is pulled: with shared negatives the keys of the chunk, ascending, each once; with independent ones
    /// [`Planner::keys_of_positive`] keys for each positive in turn.
    pub(crate) keys: Vec<Key>,
    /// Floats of the values of `keys`, with shared negatives; of those of one positive, with independent ones.
    pub(crate) floats: usize,
    /// Where the relations' values start among them.
    pub(crate) relation_floats: usize,
    /// The worker's clock at the first step of the chunk.
    pub(crate) clock: Clock,
    /// Negatives, prepared.
    pub(crate) sample: S,
    /// How far the clock advances.
    pub(crate) steps: u64,
}

/// Cuts chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planner {
    pub(crate) shape: Shape,
    pub(crate) negatives: Negatives,
    /// Relations of the graph if every relation has an inverse, else `None`.
    pub(crate) inverse_offset: Option<u64>,
}

impl Planner {
    /// The keys of a triple: subject, object, relation, and its inverse if relations have one (else the relation again).
    fn keys_of(self, triple: &Triple) -> [Key; 4] {
        let relation = self.shape.entities + u64::from(triple.relation);
        [
            Key(u64::from(triple.subject)),
            Key(u64::from(triple.object)),
            Key(relation),
            Key(relation + self.inverse_offset.unwrap_or(0)),
        ]
    }

    /// Keys that a positive has to itself with independent negatives.
    pub(crate) fn keys_of_positive(self) -> usize {
        if self.inverse_offset.is_some() { 4 } else { 3 }
    }

    /// Plans a chunk of `triples` that starts at `clock`, with a prepared sample.
    pub(crate) fn chunk<S>(
        self,
        triples: impl Iterator<Item = Triple> + Clone,
        clock: Clock,
        sample: S,
    ) -> Chunk<S> {
        match self.negatives {
            Negatives::Shared => self.shared(triples, clock, sample),
            Negatives::Independent => self.independent(triples, clock, sample),
        }
    }

    fn shared<S>(self, triples: impl Iterator<Item = Triple> + Clone, clock: Clock, sample: S) -> Chunk<S> {
        let mut keys: Vec<Key> = triples.clone().flat_map(|triple| self.keys_of(&triple)).collect();
        keys.sort_unstable();
        keys.dedup();
        let entities = keys.partition_point(|key| key.0 < self.shape.entities);
        let relation_floats = entities * self.shape.entity_len;
        let start = |key: Key| {
            let at = keys.partition_point(|other| *other < key);
            at.min(entities) * self.shape.entity_len + at.saturating_sub(entities) * self.shape.relation_len
        };
        let positives = triples.map(|triple| {
            let [subject_key, object_key, relation, inverse] = self.keys_of(&triple);
            Positive {
                subject_key,
                object_key,
                subject: start(subject_key),
                relation: start(relation),
                inverse: start(inverse),
                object: start(object_key),
            }
        });
        let positives = positives.collect();
        let floats = relation_floats + (keys.len() - entities) * self.shape.relation_len;
        Chunk { positives, keys, floats, relation_floats, clock, sample, steps: 1 }
    }

    fn independent<S>(self, triples: impl Iterator<Item = Triple>, clock: Clock, sample: S) -> Chunk<S> {
        let Shape { entity_len, relation_len, .. } = self.shape;
        let (mut positives, mut keys) = (Vec::new(), Vec::new());
        let relation = 2 * entity_len;
        let inverse = relation + if self.inverse_offset.is_some() { relation_len } else { 0 };
        for triple in triples {
            let of_triple = self.keys_of(&triple);
            let [subject_key, object_key, ..] = of_triple;
            positives.push(Positive {
                subject_key,
                object_key,
                subject: 0,
                object: entity_len,
                relation,
                inverse,
            });
            keys.extend_from_slice(&of_triple[..self.keys_of_positive()]);
        }
        let (floats, steps) = (inverse + relation_len, positives.len() as u64);
        Chunk { positives, keys, floats, relation_floats: relation, clock, sample, steps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { entities: 10, relations: 4, entity_len: 4, relation_len: 6 };

    fn triples() -> [Triple; 2] {
        let triple = |subject, relation, object| Triple { subject, relation, object };
        [triple(7, 1, 2), triple(2, 0, 2)]
    }

    #[test]
    fn a_shared_chunk_lists_each_key_once_and_knows_where_its_value_lies() {
        let planner = Planner { shape: SHAPE, negatives: Negatives::Shared, inverse_offset: Some(2) };
        let chunk = planner.chunk(triples().into_iter(), Clock(0), ());
        assert_eq!(chunk.keys, [2, 7, 10, 11, 12, 13].map(Key));
        assert_eq!((chunk.relation_floats, chunk.floats, chunk.steps), (8, 32, 1));
        let first = chunk.positives[0];
        assert_eq!((first.subject, first.relation, first.inverse, first.object), (4, 14, 26, 0));
        let second = chunk.positives[1];
        assert_eq!((second.subject, second.relation, second.inverse, second.object), (0, 8, 20, 0));
        let without = Planner { inverse_offset: None, ..planner }.chunk(triples().into_iter(), Clock(0), ());
        assert_eq!(without.positives[0].inverse, without.positives[0].relation);
    }

    #[test]
    fn independent_positives_have_their_keys_to_themselves() {
        let planner = Planner { shape: SHAPE, negatives: Negatives::Independent, inverse_offset: None };
        let chunk = planner.chunk(triples().into_iter(), Clock(5), ());
        assert_eq!(chunk.keys, [7, 2, 11, 2, 2, 10].map(Key));
        assert_eq!((chunk.floats, chunk.relation_floats, chunk.steps), (14, 8, 2));
        let positive = chunk.positives[1];
        assert_eq!((positive.subject, positive.object, positive.relation, positive.inverse), (0, 4, 8, 8));
    }
}
