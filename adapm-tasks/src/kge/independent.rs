//! One training step with independent negatives: `n` objects and `n` subjects for each positive (AdaPM §5.1).
//!
//! Not here: the step with shared negatives ([`crate::kge::step`]), which is what reaches good quality per second.

use adapm_core::Key;

use crate::kge::loss::loss;
use crate::kge::model::Side;
use crate::kge::plan::{Chunk, Positive};
use crate::kge::recipe::Recipe;
use crate::matrix::{add_scaled, dot};
use crate::run::parameters::Parameters;
use crate::run::task::StepError;

/// A worker's memory for steps with independent negatives.
#[derive(Debug)]
pub(crate) struct IndependentStep {
    pub(crate) recipe: Recipe,
    keys: Vec<Key>,
    /// Values of the positive's keys, then of the negatives of the object side, then of the subject side.
    values: Vec<f32>,
    gradients: Vec<f32>,
    updates: Vec<f32>,
    query: Vec<f32>,
    query_gradient: Vec<f32>,
    scores: Vec<f32>,
}

impl IndependentStep {
    /// A step that has seen no positive.
    pub(crate) fn new(recipe: Recipe) -> Self {
        let dim = recipe.model.dim;
        Self {
            recipe,
            keys: Vec::new(),
            values: Vec::new(),
            gradients: Vec::new(),
            updates: Vec::new(),
            query: vec![0.0; dim],
            query_gradient: vec![0.0; dim],
            scores: vec![0.0; recipe.negatives],
        }
    }

    /// Trains on the positives of a chunk in turn and returns the sum of their losses. Ends a step after each.
    pub(crate) fn train<P: Parameters>(
        &mut self,
        chunk: &mut Chunk<P::Sample>,
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>> {
        let mine = chunk.keys.len() / chunk.positives.len().max(1);
        let negatives = 2 * self.recipe.negatives;
        self.values.resize(chunk.floats + negatives * self.recipe.shape.entity_len, 0.0);
        let mut total = 0.0;
        for (positive, keys) in chunk.positives.iter().zip(chunk.keys.chunks_exact(mine)) {
            self.keys.clear();
            self.keys.extend_from_slice(keys);
            self.keys.resize(mine + negatives, Key(0));
            let (own, sampled) = self.values.split_at_mut(chunk.floats);
            parameters.pull(keys, own)?;
            parameters.pull_sample(&mut chunk.sample, &mut self.keys[mine..], sampled)?;
            let loss = self.gradients(positive, chunk.floats);
            self.updates.resize(self.values.len(), 0.0);
            let blamed = self.recipe.updates(&self.keys, &self.values, &self.gradients, &mut self.updates);
            if let Some(key) = blamed.or((!loss.is_finite()).then_some(positive.subject_key)) {
                return Err(StepError::NotFinite(key));
            }
            parameters.push(&self.keys, &self.updates)?;
            parameters.advance_clock();
            total += loss;
        }
        Ok(total)
    }

    /// Computes all gradients of one positive, whose keys' values take `floats`, and returns its loss.
    fn gradients(&mut self, positive: &Positive, floats: usize) -> f64 {
        let recipe = self.recipe;
        self.gradients.clear();
        self.gradients.resize(self.values.len() / 2, 0.0);
        let Positive { subject, object, relation, inverse, subject_key, object_key } = *positive;
        let object_side =
            Query { side: Side::Object, given: subject, relation, answer: object, key: object_key };
        let side = recipe.side(Side::Subject);
        let subject_side =
            Query { side, given: object, relation: inverse, answer: subject, key: subject_key };
        let mut total = 0.0;
        let first = self.keys.len() - 2 * recipe.negatives;
        for (query, first_key) in [(object_side, first), (subject_side, first + recipe.negatives)] {
            let first_value = floats + (first_key - first) * recipe.shape.entity_len;
            total += self.ask(query, first_key, first_value);
        }
        let (dim, relation_len) = (recipe.model.dim, recipe.model.relation_len());
        for (at, len, l2) in [
            (subject, dim, recipe.l2_entity),
            (object, dim, recipe.l2_entity),
            (relation, relation_len, recipe.l2_relation),
        ] {
            recipe.penalize(l2, &self.values[at..at + len], &mut self.gradients[at / 2..][..len]);
        }
        if recipe.reciprocal {
            let vector = &self.values[inverse..inverse + relation_len];
            recipe.penalize(recipe.l2_relation, vector, &mut self.gradients[inverse / 2..][..relation_len]);
        }
        total
    }

    /// Adds the gradients of one query, whose negatives' keys start at `first_key` and their values at `first_value`.
    fn ask(&mut self, query: Query, first_key: usize, first_value: usize) -> f64 {
        let Recipe { model, shape, negatives, loss: kind, .. } = self.recipe;
        let (dim, relation_len) = (model.dim, model.relation_len());
        let given = &self.values[query.given..][..dim];
        let relation = &self.values[query.relation..][..relation_len];
        let answer = &self.values[query.answer..][..dim];
        let candidates = self.values[first_value..].chunks_exact(shape.entity_len).take(negatives);
        let keys = &self.keys[first_key..][..negatives];

        model.query(query.side, given, relation, &mut self.query);
        for ((score, candidate), key) in self.scores.iter_mut().zip(candidates.clone()).zip(keys) {
            let is_answer = *key == query.key;
            *score = if is_answer { f32::NEG_INFINITY } else { dot(&self.query, &candidate[..dim]) };
        }
        let (loss, slope) = loss(kind, dot(&self.query, answer), &mut self.scores);

        self.query_gradient.fill(0.0);
        add_scaled(&mut self.query_gradient, slope, answer);
        add_scaled(&mut self.gradients[query.answer / 2..][..dim], slope, &self.query);
        let gradients = self.gradients[first_value / 2..].chunks_exact_mut(dim);
        for ((slope, candidate), gradient) in self.scores.iter().zip(candidates).zip(gradients) {
            add_scaled(&mut self.query_gradient, *slope, &candidate[..dim]);
            add_scaled(gradient, *slope, &self.query);
        }
        let (entities, relations) = self.gradients.split_at_mut(shape.entity_len);
        let given_gradient = &mut entities[query.given / 2..][..dim];
        let relation_gradient = &mut relations[query.relation / 2 - shape.entity_len..][..relation_len];
        model.query_gradient(
            query.side,
            (given, relation),
            &self.query_gradient,
            (given_gradient, relation_gradient),
        );
        loss
    }
}

/// One query: where the values of its parts start, and the key of its answer.
#[derive(Clone, Copy)]
struct Query {
    side: Side,
    given: usize,
    relation: usize,
    answer: usize,
    key: Key,
}
