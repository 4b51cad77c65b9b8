//! One training step with shared negatives: a chunk of positives, one set of negatives for both of their sides.
//!
//! ```text
//!   pull(keys of the chunk)   pull_sample(N entities)
//!        |                          |
//!   queries Q [2B x d]        negatives E [N x d]
//!        +------ S = Q E^T ---------+            scores, then slopes of the loss W [2B x N]
//!        |  dQ = W E     dE = W^T Q |
//!   gradients of subjects, relations, objects    gradients of negatives
//!        +---------- AdaGrad -------+
//!                     |
//!            push(all keys of both)
//! ```
//!
//! Not here: how chunks are cut and announced ([`crate::kge::plan`]), one set of negatives per positive
//! ([`crate::kge::independent`]).

use adapm_core::Key;

use crate::kge::frequency::Frequencies;
use crate::kge::loss::loss;
use crate::kge::model::Side;
use crate::kge::plan::Chunk;
use crate::kge::recipe::Recipe;
use crate::matrix::{Left, Panels, add_scaled, dot, multiply};
use crate::run::parameters::Parameters;
use crate::run::task::StepError;

/// A worker's memory for steps with shared negatives, kept from chunk to chunk.
#[derive(Debug)]
pub(crate) struct SharedStep {
    pub(crate) recipe: Recipe,
    /// Values of the chunk's keys, then of the negatives.
    values: Vec<f32>,
    /// Gradients of the chunk's keys, each half as long as its value; then of the negatives.
    gradients: Vec<f32>,
    updates: Vec<f32>,
    keys: Vec<Key>,
    /// Two queries a positive: of the object side, of the subject side.
    queries: Vec<f32>,
    slopes: Vec<f32>,
    query_gradients: Vec<f32>,
    panels: Panels,
    scratch: Vec<f32>,
    /// Negatives by key, to find the answer among them.
    order: Vec<(Key, usize)>,
    frequencies: Option<Frequencies>,
    /// What to add to the scores of the negatives; empty if they are uniform.
    corrections: Vec<f32>,
}

impl SharedStep {
    /// A step that has seen no chunk.
    pub(crate) fn new(recipe: Recipe) -> Self {
        Self {
            recipe,
            values: Vec::new(),
            gradients: Vec::new(),
            updates: Vec::new(),
            keys: Vec::new(),
            queries: Vec::new(),
            slopes: Vec::new(),
            query_gradients: Vec::new(),
            panels: Panels::default(),
            scratch: Vec::new(),
            order: Vec::new(),
            frequencies: recipe.corrects_frequencies().then(|| Frequencies::new(recipe.shape.entities)),
            corrections: Vec::new(),
        }
    }

    /// Trains on one chunk, which is not empty, and returns the sum of its losses. Ends the step.
    pub(crate) fn train<P: Parameters>(
        &mut self,
        chunk: &mut Chunk<P::Sample>,
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>> {
        self.pull(chunk, parameters)?;
        self.ask(chunk);
        let loss = self.score(chunk);
        self.spread(chunk);
        self.updates.resize(self.values.len(), 0.0);
        let blamed = self.recipe.updates(&self.keys, &self.values, &self.gradients, &mut self.updates);
        if let Some(key) = blamed.or((!loss.is_finite()).then_some(chunk.keys[0])) {
            return Err(StepError::NotFinite(key));
        }
        parameters.push(&self.keys, &self.updates)?;
        parameters.advance_clock();
        Ok(loss)
    }

    fn pull<P: Parameters>(
        &mut self,
        chunk: &mut Chunk<P::Sample>,
        parameters: &mut P,
    ) -> Result<(), P::Error> {
        let (shape, negatives) = (self.recipe.shape, self.recipe.negatives);
        self.keys.clear();
        self.keys.extend_from_slice(&chunk.keys);
        self.keys.resize(chunk.keys.len() + negatives, Key(0));
        self.values.resize(chunk.floats + negatives * shape.entity_len, 0.0);
        let (mine, sampled) = self.values.split_at_mut(chunk.floats);
        parameters.pull(&chunk.keys, mine)?;
        parameters.pull_sample(&mut chunk.sample, &mut self.keys[chunk.keys.len()..], sampled)?;
        if let Some(frequencies) = &mut self.frequencies {
            frequencies.correct(&self.keys[chunk.keys.len()..], &mut self.corrections);
        }
        self.order.clear();
        self.order.extend(self.keys[chunk.keys.len()..].iter().enumerate().map(|(at, key)| (*key, at)));
        self.order.sort_unstable();
        Ok(())
    }

    /// Computes the queries.
    fn ask<S>(&mut self, chunk: &Chunk<S>) {
        let Recipe { model, .. } = self.recipe;
        self.queries.resize(2 * chunk.positives.len() * model.dim, 0.0);
        for (positive, queries) in chunk.positives.iter().zip(self.queries.chunks_exact_mut(2 * model.dim)) {
            let (object_query, subject_query) = queries.split_at_mut(model.dim);
            let value = |at: usize, len: usize| &self.values[at..at + len];
            let subject = value(positive.subject, model.dim);
            let object = value(positive.object, model.dim);
            let relation = value(positive.relation, model.relation_len());
            let inverse = value(positive.inverse, model.relation_len());
            model.query(Side::Object, subject, relation, object_query);
            model.query(self.recipe.side(Side::Subject), object, inverse, subject_query);
        }
    }

    /// Scores the queries against the negatives, replaces scores by slopes and starts the gradients: of the answers, of
    /// the queries. Returns the sum of the losses.
    fn score<S>(&mut self, chunk: &Chunk<S>) -> f64 {
        let Recipe { model, shape, negatives, loss: kind, .. } = self.recipe;
        let (rows, dim) = (2 * chunk.positives.len(), model.dim);
        let sampled = &self.values[chunk.floats..];
        self.panels.fill_transposed(sampled, shape.entity_len, dim, negatives);
        self.slopes.resize(rows * negatives, 0.0);
        let queries = Left { data: &self.queries, rows, row_stride: dim, inner_stride: 1 };
        multiply(queries, &self.panels, &mut self.slopes, &mut self.scratch);

        self.gradients.clear();
        self.gradients.resize(self.values.len() / 2, 0.0);
        self.query_gradients.resize(rows * dim, 0.0);
        let mut total = 0.0;
        let mut answer_slopes = Vec::with_capacity(rows);
        for row in 0..rows {
            let positive = &chunk.positives[row / 2];
            let (at, key) = if row % 2 == 0 {
                (positive.object, positive.object_key)
            } else {
                (positive.subject, positive.subject_key)
            };
            let slopes = &mut self.slopes[row * negatives..][..negatives];
            for (score, correction) in slopes.iter_mut().zip(&self.corrections) {
                *score += correction;
            }
            let first = self.order.partition_point(|(negative, _)| *negative < key);
            for (_, column) in self.order[first..].iter().take_while(|(negative, _)| *negative == key) {
                slopes[*column] = f32::NEG_INFINITY;
            }
            let query = &self.queries[row * dim..][..dim];
            let (row_loss, slope) = loss(kind, dot(query, &self.values[at..at + dim]), slopes);
            total += row_loss;
            add_scaled(&mut self.gradients[at / 2..][..dim], slope, query);
            answer_slopes.push(slope);
        }
        self.panels.fill(sampled, shape.entity_len, negatives, dim);
        let slopes = Left { data: &self.slopes, rows, row_stride: negatives, inner_stride: 1 };
        multiply(slopes, &self.panels, &mut self.query_gradients, &mut self.scratch);
        for (row, slope) in answer_slopes.into_iter().enumerate() {
            let positive = &chunk.positives[row / 2];
            let at = if row % 2 == 0 { positive.object } else { positive.subject };
            add_scaled(&mut self.query_gradients[row * dim..][..dim], slope, &self.values[at..at + dim]);
        }
        total
    }

    /// Completes the gradients: from the queries to their parts, from the slopes to the negatives, penalties.
    fn spread<S>(&mut self, chunk: &Chunk<S>) {
        let recipe = self.recipe;
        let Recipe { model, negatives, .. } = recipe;
        let (rows, dim, relation_len) = (2 * chunk.positives.len(), model.dim, model.relation_len());
        self.panels.fill(&self.queries, dim, rows, dim);
        let slopes = Left { data: &self.slopes, rows: negatives, row_stride: 1, inner_stride: negatives };
        multiply(slopes, &self.panels, &mut self.gradients[chunk.floats / 2..], &mut self.scratch);

        let (entities, relations) = self.gradients.split_at_mut(chunk.relation_floats / 2);
        for (positive, slopes) in chunk.positives.iter().zip(self.query_gradients.chunks_exact(2 * dim)) {
            let value = |at: usize, len: usize| &self.values[at..at + len];
            let (subject, object) = (value(positive.subject, dim), value(positive.object, dim));
            let (relation, inverse) =
                (value(positive.relation, relation_len), value(positive.inverse, relation_len));
            let relation_at = |at: usize| (at - chunk.relation_floats) / 2;
            {
                let into = &mut entities[positive.subject / 2..][..dim];
                let relation_into = &mut relations[relation_at(positive.relation)..][..relation_len];
                model.query_gradient(
                    Side::Object,
                    (subject, relation),
                    &slopes[..dim],
                    (into, relation_into),
                );
                recipe.penalize(recipe.l2_entity, subject, into);
                recipe.penalize(recipe.l2_relation, relation, relation_into);
            }
            let into = &mut entities[positive.object / 2..][..dim];
            let inverse_into = &mut relations[relation_at(positive.inverse)..][..relation_len];
            let side = recipe.side(Side::Subject);
            model.query_gradient(side, (object, inverse), &slopes[dim..], (into, inverse_into));
            recipe.penalize(recipe.l2_entity, object, into);
            if recipe.reciprocal {
                recipe.penalize(recipe.l2_relation, inverse, inverse_into);
            }
        }
    }
}

#[cfg(test)]
mod tests;
