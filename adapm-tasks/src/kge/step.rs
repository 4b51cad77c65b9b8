//! One training step: a chunk of positives, one set of negatives for both of their sides
//! ([`SharedStep`]).
//!
//! ```text
//!   pull(keys of the chunk)   pull_sample(N entities)
//!        |                          |
//!   queries Q [2B x d]        negatives E [N x d]
//!        +------ S = Q E^T ---------+            scores, then score gradients of the loss W [2B x N]
//!        |  dQ = W E     dE = W^T Q |            (distances: `comparison`)
//!   gradients of subjects, relations, objects    gradients of negatives
//!        +---------- AdaGrad -------+
//!                     |
//!            push(all keys of both)
//! ```
//!
//! Or one positive with negatives of its own, `n` objects and `n` subjects (AdaPM §5.1;
//! [`IndependentStep`]). Shared negatives are what reaches good quality per second.
//!
//! Not here: how chunks are cut and intent is signaled ([`crate::kge::loader`]).
//!
//! # Samples that are not uniform
//!
//! Local sampling (NuPS; AdaPM §A.5) prefers keys that happen to be local, which are those in use:
//! frequent entities are sampled more often than rare ones, and would be pushed below them. Softmax
//! over a sample estimates softmax over all if each score is lowered by the logarithm of how much
//! likelier than on average its candidate is sampled. That likelihood is not known, but it shows in
//! what a worker has sampled before.
//!
//! FB15k-237 on 4 nodes, filtered test MRR: 0.307 without, 0.319 with; uniform samples reach 0.321.

use adapm_core::Key;
use adapm_core::update::AdaGrad;
use adapm_runtime::Scheme;

use crate::kge::comparison::{Comparer, Rows};
use crate::kge::config::{LossKind, Sizes, TrainConfig};
use crate::kge::loader::{Chunk, Positive};
use crate::kge::loss::loss;
use crate::kge::model::{Model, Shape, Side};
use crate::matrix::add_scaled;
use crate::optim;
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
    score_gradients: Vec<f32>,
    query_gradients: Vec<f32>,
    comparer: Comparer,
    /// Negatives by key, to find the answer among them.
    order: Vec<(Key, usize)>,
    frequencies: Option<Frequencies>,
    /// Corrections to the scores of the negatives; empty if they are uniform.
    corrections: Vec<f32>,
}

impl SharedStep {
    /// Returns a step that has seen no chunk.
    pub(crate) fn new(recipe: Recipe) -> Self {
        Self {
            recipe,
            values: Vec::new(),
            gradients: Vec::new(),
            updates: Vec::new(),
            keys: Vec::new(),
            queries: Vec::new(),
            score_gradients: Vec::new(),
            query_gradients: Vec::new(),
            comparer: Comparer::new(recipe.model.comparison(), recipe.model.dim),
            order: Vec::new(),
            frequencies: recipe
                .corrects_frequencies()
                .then(|| Frequencies::new(recipe.shape.entities)),
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
        self.build_queries(chunk);
        let loss = self.score(chunk);
        self.backward(chunk);
        self.updates.resize(self.values.len(), 0.0);
        let blamed =
            self.recipe.updates(&self.keys, &self.values, &self.gradients, &mut self.updates);
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
        self.order
            .extend(self.keys[chunk.keys.len()..].iter().enumerate().map(|(at, key)| (*key, at)));
        self.order.sort_unstable();
        Ok(())
    }

    /// Computes the queries.
    fn build_queries<S>(&mut self, chunk: &Chunk<S>) {
        let Recipe { model, .. } = self.recipe;
        self.queries.resize(2 * chunk.positives.len() * model.dim, 0.0);
        for (positive, queries) in
            chunk.positives.iter().zip(self.queries.chunks_exact_mut(2 * model.dim))
        {
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

    /// Scores the queries against the negatives, replaces scores by score gradients and starts the
    /// gradients: of negatives, answers, queries. Returns the sum of the losses.
    fn score<S>(&mut self, chunk: &Chunk<S>) -> f64 {
        let Recipe { model, shape, negatives, loss: kind, .. } = self.recipe;
        let (rows, dim) = (2 * chunk.positives.len(), model.dim);
        let data = &self.values[chunk.floats..];
        let candidates = Rows { data, stride: shape.entity_len, count: negatives };
        self.score_gradients.resize(rows * negatives, 0.0);
        self.comparer.score(&self.queries, candidates, &mut self.score_gradients);

        self.gradients.clear();
        self.gradients.resize(self.values.len() / 2, 0.0);
        self.query_gradients.resize(rows * dim, 0.0);
        let mut total = 0.0;
        let mut answer_gradients = Vec::with_capacity(rows);
        for row in 0..rows {
            let positive = &chunk.positives[row / 2];
            let (at, key) = if row % 2 == 0 {
                (positive.object, positive.object_key)
            } else {
                (positive.subject, positive.subject_key)
            };
            let score_gradients = &mut self.score_gradients[row * negatives..][..negatives];
            for (score, correction) in score_gradients.iter_mut().zip(&self.corrections) {
                *score += correction;
            }
            let first = self.order.partition_point(|(negative, _)| *negative < key);
            for (_, column) in
                self.order[first..].iter().take_while(|(negative, _)| *negative == key)
            {
                score_gradients[*column] = f32::NEG_INFINITY;
            }
            let query = &self.queries[row * dim..][..dim];
            let answer = model.comparison().score(query, &self.values[at..at + dim]);
            let (row_loss, score_gradient) = loss(kind, answer, score_gradients);
            total += row_loss;
            answer_gradients.push(score_gradient);
        }
        let gradients = (&mut self.query_gradients[..], &mut self.gradients[chunk.floats / 2..]);
        self.comparer.backward(&self.queries, candidates, &mut self.score_gradients, gradients);
        for (row, score_gradient) in answer_gradients.into_iter().enumerate() {
            let positive = &chunk.positives[row / 2];
            let at = if row % 2 == 0 { positive.object } else { positive.subject };
            let of_query = &mut self.query_gradients[row * dim..][..dim];
            let of_answer = &mut self.gradients[at / 2..][..dim];
            let pair = (&self.queries[row * dim..][..dim], &self.values[at..at + dim]);
            model.comparison().add_gradients(score_gradient, pair, (of_query, of_answer));
        }
        total
    }

    /// Completes the gradients: from the queries to their parts, penalties.
    fn backward<S>(&mut self, chunk: &Chunk<S>) {
        let recipe = self.recipe;
        let model = recipe.model;
        let (dim, relation_len) = (model.dim, model.relation_len());
        let (entities, relations) = self.gradients.split_at_mut(chunk.relation_floats / 2);
        for (positive, score_gradients) in
            chunk.positives.iter().zip(self.query_gradients.chunks_exact(2 * dim))
        {
            let value = |at: usize, len: usize| &self.values[at..at + len];
            let (subject, object) = (value(positive.subject, dim), value(positive.object, dim));
            let (relation, inverse) =
                (value(positive.relation, relation_len), value(positive.inverse, relation_len));
            let relation_at = |at: usize| (at - chunk.relation_floats) / 2;
            {
                let into = &mut entities[positive.subject / 2..][..dim];
                let relation_into =
                    &mut relations[relation_at(positive.relation)..][..relation_len];
                model.query_gradient(
                    Side::Object,
                    (subject, relation),
                    &score_gradients[..dim],
                    (into, relation_into),
                );
                recipe.penalize(recipe.l2_entity, subject, into);
                recipe.penalize(recipe.l2_relation, relation, relation_into);
            }
            let into = &mut entities[positive.object / 2..][..dim];
            let inverse_into = &mut relations[relation_at(positive.inverse)..][..relation_len];
            let side = recipe.side(Side::Subject);
            model.query_gradient(
                side,
                (object, inverse),
                &score_gradients[dim..],
                (into, inverse_into),
            );
            recipe.penalize(recipe.l2_entity, object, into);
            if recipe.reciprocal {
                recipe.penalize(recipe.l2_relation, inverse, inverse_into);
            }
        }
    }
}

/// The recipe of a step, the same for every chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    pub(crate) model: Model,
    pub(crate) shape: Shape,
    pub(crate) loss: LossKind,
    pub(crate) optimizer: AdaGrad,
    /// Steps at once on an entity's row, and on a relation's.
    pub(crate) at_once: [f32; 2],
    pub(crate) l2_entity: f32,
    pub(crate) l2_relation: f32,
    pub(crate) n3: f32,
    /// Inverse relations predict subjects.
    pub(crate) reciprocal: bool,
    /// Negatives of a chunk, or of each side of a positive.
    pub(crate) negatives: usize,
    /// Negatives are not uniform: the sampling prefers local keys, and not all are local.
    pub(crate) prefers_local: bool,
}

impl Recipe {
    /// Returns the recipe of a configuration for parameters of `shape` and steps of these sizes.
    pub(crate) fn new(config: &TrainConfig, shape: Shape, sizes: Sizes) -> Self {
        Self {
            model: Model { kind: config.model, dim: config.dim },
            shape,
            loss: config.loss,
            optimizer: AdaGrad { learning_rate: config.learning_rate },
            at_once: sizes.at_once,
            l2_entity: config.l2_entity,
            l2_relation: config.l2_relation,
            n3: config.n3_of(),
            reciprocal: config.reciprocal,
            negatives: sizes.negatives,
            prefers_local: config.cluster.nodes > Some(1)
                && config.sampling() == Some(Scheme::Local),
        }
    }

    /// Returns the side a query is computed as: with inverse relations every query asks for an
    /// object.
    pub(crate) fn side(self, side: Side) -> Side {
        if self.reciprocal { Side::Object } else { side }
    }

    /// Returns true if scores are corrected for how often entities are sampled: the theory is
    /// softmax's.
    pub(crate) fn corrects_frequencies(self) -> bool {
        self.prefers_local && self.loss == LossKind::Softmax
    }

    /// Adds the gradient of the penalties of one occurrence of a positive's vector.
    pub(crate) fn penalize(self, l2: f32, vector: &[f32], gradient: &mut [f32]) {
        if l2 != 0.0 {
            add_scaled(gradient, 2.0 * l2, vector);
        }
        if self.n3 != 0.0 {
            self.model.n3_gradient(self.n3, vector, gradient);
        }
    }

    /// Computes the updates of `keys` from their values and gradients, which are half as long.
    /// Returns the first key with an update that is no finite number.
    pub(crate) fn updates(
        self,
        keys: &[Key],
        values: &[f32],
        gradients: &[f32],
        updates: &mut [f32],
    ) -> Option<Key> {
        let mut start = 0;
        let mut blamed = None;
        let [entity_steps, relation_steps] = self.at_once;
        for key in keys {
            let len = self.shape.len_of(*key);
            let update = &mut updates[start..start + len];
            let (value, gradient) =
                (&values[start..start + len], &gradients[start / 2..][..len / 2]);
            let steps = if key.0 < self.shape.entities { entity_steps } else { relation_steps };
            if !optim::step_among(self.optimizer, steps, value, gradient, update)
                && blamed.is_none()
            {
                blamed = Some(*key);
            }
            start += len;
        }
        blamed
    }
}

/// Counts of a worker's sampled entities: 4 bytes an entity.
#[derive(Clone, Debug)]
pub(crate) struct Frequencies {
    counts: Vec<u32>,
    sampled: u64,
}

impl Frequencies {
    /// No entity sampled so far, of this many.
    pub(crate) fn new(entities: u64) -> Self {
        Self { counts: vec![0; entities as usize], sampled: 0 }
    }

    /// Writes what to add to the score of each sampled entity, then counts the sample.
    pub(crate) fn correct(&mut self, sample: &[Key], corrections: &mut Vec<f32>) {
        let mean = self.sampled as f32 / self.counts.len() as f32;
        let correction =
            |key: &Key| ((mean + PRIOR) / (self.counts[key.0 as usize] as f32 + PRIOR)).ln();
        corrections.clear();
        corrections.extend(sample.iter().map(correction));
        for key in sample {
            let count = &mut self.counts[key.0 as usize];
            *count = count.saturating_add(1);
        }
        self.sampled += sample.len() as u64;
    }
}

/// A worker's memory for steps with independent negatives.
#[derive(Debug)]
pub(crate) struct IndependentStep {
    pub(crate) recipe: Recipe,
    keys: Vec<Key>,
    /// Values of the positive's keys, then of the negatives of the object side, then of the subject
    /// side.
    values: Vec<f32>,
    gradients: Vec<f32>,
    updates: Vec<f32>,
    query: Vec<f32>,
    query_gradient: Vec<f32>,
    scores: Vec<f32>,
}

impl IndependentStep {
    /// Returns a step that has seen no positive.
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

    /// Trains on the positives of a chunk in turn and returns the sum of their losses. Ends a step
    /// after each.
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
            let blamed =
                self.recipe.updates(&self.keys, &self.values, &self.gradients, &mut self.updates);
            if let Some(key) = blamed.or((!loss.is_finite()).then_some(positive.subject_key)) {
                return Err(StepError::NotFinite(key));
            }
            parameters.push(&self.keys, &self.updates)?;
            parameters.advance_clock();
            total += loss;
        }
        Ok(total)
    }

    /// Computes all gradients of one positive, whose keys' values take `floats`, and returns its
    /// loss.
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
            total += self.train_query(query, first_key, first_value);
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
            recipe.penalize(
                recipe.l2_relation,
                vector,
                &mut self.gradients[inverse / 2..][..relation_len],
            );
        }
        total
    }

    /// Adds the gradients of one query, whose negatives' keys start at `first_key` and their values
    /// at `first_value`.
    fn train_query(&mut self, query: Query, first_key: usize, first_value: usize) -> f64 {
        let Recipe { model, shape, negatives, loss: kind, .. } = self.recipe;
        let (dim, relation_len) = (model.dim, model.relation_len());
        let given = &self.values[query.given..][..dim];
        let relation = &self.values[query.relation..][..relation_len];
        let answer = &self.values[query.answer..][..dim];
        let candidates = self.values[first_value..].chunks_exact(shape.entity_len).take(negatives);
        let keys = &self.keys[first_key..][..negatives];

        let comparison = model.comparison();
        model.query(query.side, given, relation, &mut self.query);
        for ((score, candidate), key) in self.scores.iter_mut().zip(candidates.clone()).zip(keys) {
            let is_answer = *key == query.key;
            *score = if is_answer {
                f32::NEG_INFINITY
            } else {
                comparison.score(&self.query, &candidate[..dim])
            };
        }
        let of_answer = comparison.score(&self.query, answer);
        let (loss, score_gradient) = loss(kind, of_answer, &mut self.scores);

        self.query_gradient.fill(0.0);
        let of_answer = &mut self.gradients[query.answer / 2..][..dim];
        let of_query = self.query_gradient.as_mut_slice();
        comparison.add_gradients(score_gradient, (&self.query, answer), (of_query, of_answer));
        let gradients = self.gradients[first_value / 2..].chunks_exact_mut(dim);
        for ((score_gradient, candidate), gradient) in
            self.scores.iter().zip(candidates).zip(gradients)
        {
            let pair = (self.query.as_slice(), &candidate[..dim]);
            let of_query = self.query_gradient.as_mut_slice();
            comparison.add_gradients(*score_gradient, pair, (of_query, gradient));
        }
        let (entities, relations) = self.gradients.split_at_mut(shape.entity_len);
        let given_gradient = &mut entities[query.given / 2..][..dim];
        let relation_gradient =
            &mut relations[query.relation / 2 - shape.entity_len..][..relation_len];
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

/// Times that every entity counts as sampled before the first: the less, the noisier the first
/// epoch.
const PRIOR: f32 = 5.0;

#[cfg(test)]
mod tests;
