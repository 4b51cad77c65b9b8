//! How embeddings are judged: by the filtered ranks of the triples of a split. On valid, by the weight of the prior that is best there.

use std::ops::Range;

use crate::kge::filter::Filter;
use crate::kge::graph::{Graph, Triple};
use crate::kge::model::Model;
use crate::kge::prior::{Chosen, Weighing, Weight};
use crate::kge::rank::{BATCH, Ranker};
use crate::kge::shape::Shape;
use crate::metric::{Rank, RankMetrics};
use crate::run::config::Split;
use crate::run::parameters::Parameters;
use crate::run::task::Examination;

/// What is ranked, and how. An item is a triple, its answer the ranks of its object and of its subject by each weight.
pub(crate) struct Ranking<'a> {
    split: Split,
    triples: &'a [Triple],
    filter: Filter,
    model: Model,
    shape: Shape,
    reciprocal: bool,
    weighing: Weighing<'a>,
    /// Which weight was best, where that is asked for.
    chosen: Option<&'a Chosen>,
}

impl<'a> Ranking<'a> {
    /// Ranks a split of `graph` with parameters of `shape`, of whose values the first half counts if they carry accumulators.
    pub(crate) fn new(graph: &'a Graph, split: Split, model: Model, shape: Shape, reciprocal: bool) -> Self {
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

    /// The same where frequency counts.
    pub(crate) fn weighing(self, weighing: Weighing<'a>) -> Self {
        Self { weighing, ..self }
    }

    /// The same, which tells the weight that is best.
    pub(crate) fn choosing(self, chosen: &'a Chosen) -> Self {
        Self { chosen: Some(chosen), ..self }
    }

    /// The ranks by one of the weights, two a triple: of the object, then of the subject.
    pub(crate) fn ranks(answers: &[Answer], nth: usize) -> Vec<Rank> {
        answers.as_flattened().iter().map(|ranks| ranks[nth]).collect()
    }
}

/// The ranks of a triple's object and of its subject, by each weight.
pub(crate) type Answer = [[Rank; Weight::COUNT]; 2];

impl<'a> Examination for Ranking<'a> {
    type Answer = Answer;
    type Figures = RankMetrics;
    type Examiner = Ranker<'a>;

    fn split(&self) -> Split {
        self.split
    }

    fn items(&self) -> usize {
        self.triples.len()
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn examiner(&self) -> Ranker<'a> {
        Ranker::new(self.model, self.shape, self.reciprocal, self.weighing)
    }

    fn examine<P: Parameters>(
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

    /// Of several weights, the figures of the one that is best; of the last, where frequency decides, unless another is better by a
    /// standard error: what a few queries say is not worth more.
    fn figures(&self, answers: &[Answer]) -> RankMetrics {
        let weights = self.weighing.weights;
        let ranks: Vec<Vec<Rank>> = (0..weights.len()).map(|nth| Self::ranks(answers, nth)).collect();
        let figures: Vec<RankMetrics> = ranks.iter().map(|ranks| RankMetrics::of(ranks)).collect();
        // Of equally good ones the first: the vectors alone, if they do.
        let better = |best: usize, nth: usize| if figures[nth].mrr > figures[best].mrr { nth } else { best };
        let (best, last) = ((0..weights.len()).fold(0, better), weights.len() - 1);
        let is_sure = figures[best].mrr - figures[last].mrr > standard_error(&ranks[best], &ranks[last]);
        let chosen = if is_sure { best } else { last };
        let offer = |to: &Chosen| to.offer(figures[chosen].mrr, weights[chosen]);
        self.chosen.into_iter().for_each(offer);
        figures[chosen]
    }
}

/// The standard error of the difference of two mean reciprocal ranks over the same queries; infinite for one query.
fn standard_error(one: &[Rank], other: &[Rank]) -> f64 {
    let reciprocal = |rank: &Rank| 1.0 / f64::from(rank.mean());
    let differences = || one.iter().zip(other).map(|(one, other)| reciprocal(one) - reciprocal(other));
    let queries = one.len() as f64;
    let mean = differences().sum::<f64>() / queries;
    let variance = differences().map(|difference| (difference - mean).powi(2)).sum::<f64>() / (queries - 1.0);
    if one.len() < 2 { f64::INFINITY } else { (variance / queries).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kge::config::ModelKind;
    use crate::kge::prior::Prior;

    #[test]
    fn a_weight_is_taken_for_what_many_queries_say_and_frequency_decides_where_few_say_it() {
        let graph = Graph::families(1, 1);
        let (model, prior, chosen) =
            (Model { kind: ModelKind::Complex, dim: 2 }, Prior::new(&graph), Chosen::default());
        let ranking = Ranking::new(&graph, Split::Valid, model, Shape::of(&graph, model, false, 1), false);
        let ranking = ranking.weighing(Weighing::all(&prior)).choosing(&chosen);
        let rank = |better| Rank { better, tied: 0 };
        // By the weights in order; every fourth query is hard for the second, which is better all the same.
        let answer =
            |query: u32| [rank(2), rank(if query.is_multiple_of(4) { 9 } else { 0 }), rank(3), rank(1)];
        let answers = |triples: u32| -> Vec<Answer> {
            (0..triples).map(|triple| [answer(2 * triple), answer(2 * triple + 1)]).collect()
        };
        assert_eq!(ranking.figures(&answers(1)).mrr, 0.5);
        assert_eq!(chosen.weight(), Weight::ALL[3]);
        assert!((ranking.figures(&answers(50)).mrr - (25.0 * 0.1 + 75.0) / 100.0).abs() < 1e-9);
        assert_eq!(chosen.weight(), Weight::ALL[1]);
    }
}
