//! The evaluation of embeddings: the filtered ranks of the triples of a split. On valid, by the
//! weight of the prior that is best there.
//!
//! # Ranks
//! Ranks are filtered, of the two queries of each triple, in bounded memory.
//!
//! A ranker takes a batch of queries, pulls the candidates block by block and counts those that
//! beat the answer, so that at no time more than a block of the model is on hand. A score is one
//! sum in a fixed order ([`crate::matrix`]): ranks do not depend on how queries are split over
//! workers and nodes.
//!
//! # Baseline
//! The obvious baseline ranks candidates by how often they are the object, or the subject, of the
//! relation in train.
//!
//! It looks at nothing but the relation, so what a model knows of the given entity shows in how
//! much better it ranks.

use std::ops::Range;

use adapm_core::Key;

use crate::kge::comparison::{Comparer, Rows};
use crate::kge::graph::{Graph, Triple};
use crate::kge::model::{Model, Shape, Side};
use crate::kge::prior::{Chosen, Counts, Weighing, Weight};
use crate::metric::{Rank, RankMetrics};
use crate::run::config::Split;
use crate::run::parameters::Parameters;
use crate::run::task::Evaluation;

/// A ranking of a split. An item is a triple, its answer the ranks of its object and of its subject
/// by each weight.
pub(crate) struct Ranking<'a> {
    split: Split,
    triples: &'a [Triple],
    filter: Filter,
    model: Model,
    shape: Shape,
    reciprocal: bool,
    weighing: Weighing<'a>,
    /// The best weight so far, where that is asked for.
    chosen: Option<&'a Chosen>,
}

impl<'a> Ranking<'a> {
    /// Ranks a split of `graph` with parameters of `shape`. If their values carry accumulators,
    /// only the first half of each value is used.
    pub(crate) fn new(
        graph: &'a Graph,
        split: Split,
        model: Model,
        shape: Shape,
        reciprocal: bool,
    ) -> Self {
        let triples = graph.part(split);
        Self {
            split,
            triples,
            filter: Filter::new(graph, triples),
            model,
            shape,
            reciprocal,
            weighing: Weighing::default(),
            chosen: None,
        }
    }

    /// Returns the same where frequency counts.
    pub(crate) fn weighing(self, weighing: Weighing<'a>) -> Self {
        Self { weighing, ..self }
    }

    /// Returns the same ranking, which also reports the best weight.
    pub(crate) fn choosing(self, chosen: &'a Chosen) -> Self {
        Self { chosen: Some(chosen), ..self }
    }

    /// Returns the ranks by one of the weights, two a triple: of the object, then of the subject.
    pub(crate) fn ranks(answers: &[Answer], nth: usize) -> Vec<Rank> {
        answers.as_flattened().iter().map(|ranks| ranks[nth]).collect()
    }
}

/// The ranks of a triple's object and of its subject, by each weight.
pub(crate) type Answer = [[Rank; Weight::COUNT]; 2];

impl<'a> Evaluation for Ranking<'a> {
    type Answer = Answer;
    type Figures = RankMetrics;
    type Evaluator = Ranker<'a>;

    fn split(&self) -> Split {
        self.split
    }

    fn items(&self) -> usize {
        self.triples.len()
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn evaluator(&self) -> Ranker<'a> {
        Ranker::new(self.model, self.shape, self.reciprocal, self.weighing)
    }

    fn evaluate<P: Parameters>(
        &self,
        ranker: &mut Ranker<'a>,
        items: Range<usize>,
        parameters: &mut P,
        answers: &mut Vec<Answer>,
    ) -> Result<(), P::Error> {
        let mut ranks = Vec::new();
        ranker.rank(&self.triples[items], &self.filter, parameters, &mut ranks)?;
        answers.extend_from_slice(ranks.as_chunks().0);
        Ok(())
    }

    /// Returns the figures of the best weight if it beats the last weight, with which frequency
    /// decides, by a standard error; else those of the last. A smaller difference may be chance.
    fn figures(&self, answers: &[Answer]) -> RankMetrics {
        let weights = self.weighing.weights;
        let ranks: Vec<Vec<Rank>> =
            (0..weights.len()).map(|nth| Self::ranks(answers, nth)).collect();
        let figures: Vec<RankMetrics> = ranks.iter().map(|ranks| RankMetrics::of(ranks)).collect();
        // The first of equally good ones: the vectors alone, if these are as good.
        let better =
            |best: usize, nth: usize| if figures[nth].mrr > figures[best].mrr { nth } else { best };
        let (best, last) = ((0..weights.len()).fold(0, better), weights.len() - 1);
        let is_sure =
            figures[best].mrr - figures[last].mrr > standard_error(&ranks[best], &ranks[last]);
        let chosen = if is_sure { best } else { last };
        let offer = |to: &Chosen| to.offer(figures[chosen].mrr, weights[chosen]);
        self.chosen.into_iter().for_each(offer);
        figures[chosen]
    }
}

/// Returns the standard error of the difference of two mean reciprocal ranks over the same queries;
/// infinite for one query.
fn standard_error(one: &[Rank], other: &[Rank]) -> f64 {
    let reciprocal = |rank: &Rank| 1.0 / f64::from(rank.mean());
    let differences =
        || one.iter().zip(other).map(|(one, other)| reciprocal(one) - reciprocal(other));
    let queries = one.len() as f64;
    let mean = differences().sum::<f64>() / queries;
    let variance =
        differences().map(|difference| (difference - mean).powi(2)).sum::<f64>() / (queries - 1.0);
    if one.len() < 2 { f64::INFINITY } else { (variance / queries).sqrt() }
}

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
    comparer: Comparer,
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
    /// Returns the queries of a triple: of the object, of the subject.
    fn of(triple: &Triple) -> [Self; 2] {
        let Triple { subject, relation, object } = *triple;
        [
            Self { side: Side::Object, given: subject, relation, answer: object },
            Self { side: Side::Subject, given: object, relation, answer: subject },
        ]
    }
}

impl<'a> Ranker<'a> {
    /// Returns a ranker for parameters of `shape`. If their values carry accumulators, only the
    /// first half of each value is used.
    pub(crate) fn new(
        model: Model,
        shape: Shape,
        reciprocal: bool,
        weighing: Weighing<'a>,
    ) -> Self {
        let (keys, values, queries, answers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (scores, known, weighed) = (Vec::new(), Vec::new(), Vec::new());
        let comparer = Comparer::new(model.comparison(), model.dim);
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
            comparer,
        }
    }

    /// Appends to `ranks` two for each of at most [`BATCH`] triples, of the object and of the
    /// subject, each by all weights.
    pub(crate) fn rank<P: Parameters>(
        &mut self,
        triples: &[Triple],
        filter: &Filter,
        parameters: &mut P,
        ranks: &mut Vec<[Rank; Weight::COUNT]>,
    ) -> Result<(), P::Error> {
        let queries: Vec<Query> = triples.iter().flat_map(Query::of).collect();
        self.build_queries(&queries, parameters)?;
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
        let (scores, answer) =
            (&self.scores[row * block.len()..][..block.len()], self.answers[row]);
        let Some(prior) = self.weighing.prior else {
            return count(query.answer, answers, scores, answer, block, &mut ranks[0]);
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
            count(query.answer, answers, &self.weighed, answer, block.clone(), rank);
        }
    }

    /// Computes the queries and the scores of their answers.
    fn build_queries<P: Parameters>(
        &mut self,
        queries: &[Query],
        parameters: &mut P,
    ) -> Result<(), P::Error> {
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
                self.keys
                    .extend([u64::from(query.given), u64::from(query.answer), relation].map(Key));
            }
            let len = 2 * entity_len + relation_len;
            self.values.resize(queries.len() * len, 0.0);
            parameters.pull(&self.keys, &mut self.values)?;
            let parts = self.values.chunks_exact(len).zip(vectors.chunks_exact_mut(dim));
            for (query, (values, vector)) in queries.iter().zip(parts) {
                let (given, rest) = values.split_at(entity_len);
                let (answer, relation) = rest.split_at(entity_len);
                let side = if self.reciprocal { Side::Object } else { query.side };
                self.model.query(
                    side,
                    &given[..dim],
                    &relation[..self.model.relation_len()],
                    vector,
                );
                let score = self.model.comparison().ordered_score(vector, &answer[..dim]);
                self.answers.push(score);
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
        let (count, stride) = (self.keys.len(), self.shape.entity_len);
        self.values.resize(count * stride, 0.0);
        parameters.pull(&self.keys, &mut self.values)?;
        self.scores.resize(queries * count, 0.0);
        let candidates = Rows { data: &self.values, stride, count };
        self.comparer.score(&self.queries, candidates, &mut self.scores);
        Ok(())
    }
}

/// Adds to `rank` the candidates of a block that beat or tie the entity `of`, whose score is
/// `answer`, but those known as answers.
pub(super) fn count(
    of: u32,
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
        knows_answer |= entry[2] == of;
        leave_out(entry[2]);
    }
    if block.contains(&of) && !knows_answer {
        leave_out(of);
    }
    rank.better += better;
    rank.tied += tied;
}

/// Compares a candidate with the answer: (better, tied). NaN is below every number; two of them are
/// tied.
#[inline(always)]
fn standing(candidate: f32, answer: f32) -> (u32, u32) {
    let (better, tied) = (candidate > answer, candidate == answer);
    // No branch for the usual case, for the compiler to count in lanes.
    let (no_answer, no_candidate) = (answer.is_nan(), candidate.is_nan());
    (u32::from(better | (no_answer & !no_candidate)), u32::from(tied | (no_answer & no_candidate)))
}

/// The answers that train, valid or test know for every query that a split can ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// (given entity, relation, answer), ascending; one list per side.
    object: Vec<[u32; 3]>,
    subject: Vec<[u32; 3]>,
}

impl Filter {
    /// Collects the answers of `graph` to the queries of `asked`.
    pub(crate) fn new(graph: &Graph, asked: &[Triple]) -> Self {
        let facts = || graph.train.iter().chain(&graph.valid).chain(&graph.test);
        let side = |entry: fn(&Triple) -> [u32; 3]| {
            let mut queries: Vec<[u32; 2]> =
                asked.iter().map(|triple| [entry(triple)[0], entry(triple)[1]]).collect();
            queries.sort_unstable();
            queries.dedup();
            let is_asked = |[given, relation, _]: &[u32; 3]| {
                queries.binary_search(&[*given, *relation]).is_ok()
            };
            let mut known: Vec<[u32; 3]> = facts().map(entry).filter(is_asked).collect();
            known.sort_unstable();
            known.dedup();
            known
        };
        Self {
            object: side(|triple| [triple.subject, triple.relation, triple.object]),
            subject: side(|triple| [triple.object, triple.relation, triple.subject]),
        }
    }

    /// Returns the known answers of a query, ascending, each once, as the last element.
    pub(crate) fn answers(&self, side: Side, given: u32, relation: u32) -> &[[u32; 3]] {
        let known = match side {
            Side::Object => &self.object,
            Side::Subject => &self.subject,
        };
        let start = known.partition_point(|entry| entry[..2] < [given, relation][..]);
        let len = known[start..].partition_point(|entry| entry[..2] == [given, relation]);
        &known[start..start + len]
    }
}

/// Computes the filtered figures of the frequency baseline on a split: a candidate scores how many
/// training facts of the relation it is the object of, or the subject. Ties are treated as those of
/// a model, and there are many.
#[must_use]
pub fn frequency_baseline(graph: &Graph, split: Split) -> RankMetrics {
    let asked = graph.part(split);
    let filter = Filter::new(graph, asked);
    let [objects, subjects] = [Side::Object, Side::Subject].map(|side| Counts::new(graph, side));
    let ranks = asked.iter().flat_map(|triple| {
        let Triple { subject, relation, object } = *triple;
        [
            rank(&objects, relation, object, filter.answers(Side::Object, subject, relation)),
            rank(&subjects, relation, subject, filter.answers(Side::Subject, object, relation)),
        ]
    });
    RankMetrics::of(&ranks.collect::<Vec<_>>())
}

/// Returns the rank of the answer among all entities but the `known` answers.
fn rank(counts: &Counts, relation: u32, answer: u32, known: &[[u32; 3]]) -> Rank {
    let count = counts.count(relation, answer);
    let better = counts.above(relation, count);
    let at_least = if count == 0 { counts.entities() } else { counts.above(relation, count - 1) };
    let mut rank = Rank { better, tied: at_least - better - 1 };
    for [.., other] in known.iter().filter(|entry| entry[2] != answer) {
        match counts.count(relation, *other) {
            above if above > count => rank.better -= 1,
            same if same == count => rank.tied -= 1,
            _ => {}
        }
    }
    rank
}

#[cfg(test)]
mod tests;
