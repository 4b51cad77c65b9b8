//! Filtered ranks of the two queries of each triple, in bounded memory.
//!
//! A ranker takes a batch of queries, pulls the candidates block by block and counts those that beat the answer, so that
//! at no time more than a block of the model is on hand. A score is one sum in a fixed order ([`crate::matrix`]):
//! ranks do not depend on how queries are split over workers and nodes.

use adapm_core::Key;

use crate::kge::filter::Filter;
use crate::kge::graph::Triple;
use crate::kge::model::{Model, Side};
use crate::kge::prior::{Weighing, Weight};
use crate::kge::shape::Shape;
use crate::matrix::{Left, Panels, multiply, ordered_dot};
use crate::metric::Rank;
use crate::run::parameters::Parameters;

/// Triples that are ranked against one pass over the candidates.
pub(crate) const BATCH: usize = 512;
/// Candidates that are pulled at once.
const BLOCK: usize = 1024;

/// A worker's memory for ranking.
#[derive(Debug)]
pub(crate) struct Ranker<'a> {
    model: Model,
    shape: Shape,
    reciprocal: bool,
    weighing: Weighing<'a>,
    keys: Vec<Key>,
    values: Vec<f32>,
    queries: Vec<f32>,
    /// Score of the answer of each query.
    answers: Vec<f32>,
    scores: Vec<f32>,
    /// Places in a block of the candidates of a query that the prior knows, with what it says.
    known: Vec<(usize, f32)>,
    /// Scores of a query with the prior.
    weighed: Vec<f32>,
    panels: Panels,
    scratch: Vec<f32>,
}

/// One query: what is given, what is asked, the right answer.
#[derive(Clone, Copy)]
struct Query {
    side: Side,
    given: u32,
    relation: u32,
    answer: u32,
}

impl Query {
    /// The queries of a triple: of the object, of the subject.
    fn of(triple: &Triple) -> [Self; 2] {
        let Triple { subject, relation, object } = *triple;
        [
            Self { side: Side::Object, given: subject, relation, answer: object },
            Self { side: Side::Subject, given: object, relation, answer: subject },
        ]
    }
}

impl<'a> Ranker<'a> {
    /// A ranker for parameters of `shape`, of whose values the first half counts if they carry accumulators.
    pub(crate) fn new(model: Model, shape: Shape, reciprocal: bool, weighing: Weighing<'a>) -> Self {
        let (keys, values, queries, answers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (scores, panels, scratch) = (Vec::new(), Panels::default(), Vec::new());
        let (known, weighed) = (Vec::new(), Vec::new());
        Self {
            model,
            shape,
            reciprocal,
            weighing,
            keys,
            values,
            queries,
            answers,
            scores,
            known,
            weighed,
            panels,
            scratch,
        }
    }

    /// Appends to `ranks` two for each of at most [`BATCH`] triples, of the object and of the subject, each by all weights.
    pub(crate) fn rank<P: Parameters>(
        &mut self,
        triples: &[Triple],
        filter: &Filter,
        parameters: &mut P,
        ranks: &mut Vec<[Rank; Weight::COUNT]>,
    ) -> Result<(), P::Error> {
        let queries: Vec<Query> = triples.iter().flat_map(Query::of).collect();
        self.ask(&queries, parameters)?;
        let first = ranks.len();
        ranks.resize(first + queries.len(), <[Rank; Weight::COUNT]>::default());
        for start in (0..self.shape.entities).step_by(BLOCK) {
            let end = self.shape.entities.min(start + BLOCK as u64);
            self.score(start..end, queries.len(), parameters)?;
            let block = start as u32..end as u32;
            for (row, (query, ranks)) in queries.iter().zip(&mut ranks[first..]).enumerate() {
                self.count(row, *query, filter, block.clone(), ranks);
            }
        }
        Ok(())
    }

    /// Counts the candidates of a block for one query, by each weight.
    fn count(
        &mut self,
        row: usize,
        query: Query,
        filter: &Filter,
        block: core::ops::Range<u32>,
        ranks: &mut [Rank; Weight::COUNT],
    ) {
        let answers = filter.answers(query.side, query.given, query.relation);
        let (scores, answer) = (&self.scores[row * block.len()..][..block.len()], self.answers[row]);
        let Some(prior) = self.weighing.prior else {
            return count(query, answers, scores, answer, block, &mut ranks[0]);
        };
        let Query { side, relation, .. } = query;
        let candidates = prior.candidates(side, relation);
        let first = candidates.partition_point(|[candidate, _]| *candidate < block.start);
        let here = candidates[first..].iter().take_while(|[candidate, _]| *candidate < block.end);
        let said = |[candidate, count]: &[u32; 2]| {
            ((candidate - block.start) as usize, prior.of_count(side, relation, *count))
        };
        self.known.clear();
        self.known.extend(here.map(said));
        let of_answer = prior.of(side, relation, query.answer);
        for (weight, rank) in self.weighing.weights.iter().zip(ranks) {
            self.weighed.clear();
            self.weighed.extend_from_slice(scores);
            // To the answer's own score the same is added here and there.
            self.known.iter().for_each(|(at, said)| self.weighed[*at] += weight.factor() * said);
            let answer = answer + weight.factor() * of_answer;
            count(query, answers, &self.weighed, answer, block.clone(), rank);
        }
    }

    /// Computes the queries and the scores of their answers.
    fn ask<P: Parameters>(&mut self, queries: &[Query], parameters: &mut P) -> Result<(), P::Error> {
        let dim = self.model.dim;
        self.queries.resize(queries.len() * dim, 0.0);
        self.answers.clear();
        let (entity_len, relation_len) = (self.shape.entity_len, self.shape.relation_len);
        // In parts, so that the relations of RESCAL do not pile up.
        for (queries, vectors) in queries.chunks(64).zip(self.queries.chunks_mut(64 * dim)) {
            self.keys.clear();
            for query in queries {
                let inverse = self.reciprocal && query.side == Side::Subject;
                let offset = if inverse { self.shape.relations / 2 } else { 0 };
                let relation = self.shape.entities + offset + u64::from(query.relation);
                self.keys.extend([u64::from(query.given), u64::from(query.answer), relation].map(Key));
            }
            let len = 2 * entity_len + relation_len;
            self.values.resize(queries.len() * len, 0.0);
            parameters.pull(&self.keys, &mut self.values)?;
            let parts = self.values.chunks_exact(len).zip(vectors.chunks_exact_mut(dim));
            for (query, (values, vector)) in queries.iter().zip(parts) {
                let (given, rest) = values.split_at(entity_len);
                let (answer, relation) = rest.split_at(entity_len);
                let side = if self.reciprocal { Side::Object } else { query.side };
                self.model.query(side, &given[..dim], &relation[..self.model.relation_len()], vector);
                self.answers.push(ordered_dot(vector, &answer[..dim]));
            }
        }
        Ok(())
    }

    /// Scores all queries against a block of candidates.
    fn score<P: Parameters>(
        &mut self,
        block: core::ops::Range<u64>,
        queries: usize,
        parameters: &mut P,
    ) -> Result<(), P::Error> {
        self.keys.clear();
        self.keys.extend(block.map(Key));
        let (candidates, dim) = (self.keys.len(), self.model.dim);
        self.values.resize(candidates * self.shape.entity_len, 0.0);
        parameters.pull(&self.keys, &mut self.values)?;
        self.panels.fill_transposed(&self.values, self.shape.entity_len, dim, candidates);
        self.scores.resize(queries * candidates, 0.0);
        let left = Left { data: &self.queries, rows: queries, row_stride: dim, inner_stride: 1 };
        multiply(left, &self.panels, &mut self.scores, &mut self.scratch);
        Ok(())
    }
}

/// Adds to `rank` the candidates of a block that beat or tie the answer, but those known as answers.
fn count(
    query: Query,
    known: &[[u32; 3]],
    scores: &[f32],
    answer: f32,
    block: core::ops::Range<u32>,
    rank: &mut Rank,
) {
    // The totals are non-negative since what is taken away was counted.
    let (mut better, mut tied) = (0, 0);
    for score in scores {
        let (b, t) = standing(*score, answer);
        better += b;
        tied += t;
    }
    let here = &known[known.partition_point(|entry| entry[2] < block.start)..];
    let mut leave_out = |candidate: u32| {
        let (b, t) = standing(scores[(candidate - block.start) as usize], answer);
        better -= b;
        tied -= t;
    };
    let mut knows_answer = false;
    for entry in here.iter().take_while(|entry| entry[2] < block.end) {
        knows_answer |= entry[2] == query.answer;
        leave_out(entry[2]);
    }
    if block.contains(&query.answer) && !knows_answer {
        leave_out(query.answer);
    }
    rank.better += better;
    rank.tied += tied;
}

/// Whether a candidate is (better than, tied with) the answer. NaN is below every number; two of them are tied.
#[inline(always)]
fn standing(candidate: f32, answer: f32) -> (u32, u32) {
    let (better, tied) = (candidate > answer, candidate == answer);
    // No branch for the usual case, for the compiler to count in lanes.
    let (no_answer, no_candidate) = (answer.is_nan(), candidate.is_nan());
    (u32::from(better | (no_answer & !no_candidate)), u32::from(tied | (no_answer & no_candidate)))
}

#[cfg(test)]
mod tests;
