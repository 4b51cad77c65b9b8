//! Which key is what: entity `e` is key `e`, relation `r` is key `entities + r`.

use adapm_core::Key;

use crate::kge::graph::Graph;
use crate::kge::model::Model;
use crate::run;
use crate::run::draws::Draws;

/// The lengths of values: of entities, which come first, and of relations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) entities: u64,
    pub(crate) relations: u64,
    /// Floats of an entity's value.
    pub(crate) entity_len: usize,
    /// Floats of a relation's value.
    pub(crate) relation_len: usize,
}

impl Shape {
    /// The shape of a graph's parameters; `halves` is 2 with accumulators, else 1.
    pub(crate) fn of(graph: &Graph, model: Model, reciprocal: bool, halves: usize) -> Self {
        let relations = graph.relations.len() as u64;
        Self {
            entities: graph.entities.len() as u64,
            relations: if reciprocal { 2 * relations } else { relations },
            entity_len: halves * model.dim,
            relation_len: halves * model.relation_len(),
        }
    }

    /// Floats of the value of `key`.
    pub(crate) fn len_of(self, key: Key) -> usize {
        if key.0 < self.entities { self.entity_len } else { self.relation_len }
    }

    /// As a run sees it.
    pub(crate) fn groups(self) -> run::shape::Shape {
        run::shape::Shape::new(&[(self.entities, self.entity_len), (self.relations, self.relation_len)])
    }

    /// Negatives are drawn from the entities.
    pub(crate) fn draws(self) -> Draws {
        Draws::Uniform(Key(0)..Key(self.entities))
    }
}
