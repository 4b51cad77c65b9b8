//! How embeddings are judged: by the filtered ranks of the triples of a split.

use std::ops::Range;

use crate::kge::filter::Filter;
use crate::kge::graph::{Graph, Triple};
use crate::kge::model::Model;
use crate::kge::rank::{BATCH, Ranker};
use crate::kge::shape::Shape;
use crate::metric::{Rank, RankMetrics};
use crate::run::config::Split;
use crate::run::parameters::Parameters;
use crate::run::task::Examination;

/// What is ranked, and how. An item is a triple, its answer the ranks of its object and of its subject.
pub(crate) struct Ranking<'a> {
    split: Split,
    triples: &'a [Triple],
    filter: Filter,
    model: Model,
    shape: Shape,
    reciprocal: bool,
}

impl<'a> Ranking<'a> {
    /// Ranks a split of `graph` with parameters of `shape`, of whose values the first half counts if they carry accumulators.
    pub(crate) fn new(graph: &'a Graph, split: Split, model: Model, shape: Shape, reciprocal: bool) -> Self {
        let triples = graph.part(split);
        Self { split, triples, filter: Filter::new(graph, triples), model, shape, reciprocal }
    }
}

impl Examination for Ranking<'_> {
    type Answer = [Rank; 2];
    type Figures = RankMetrics;
    type Examiner = Ranker;

    fn split(&self) -> Split {
        self.split
    }

    fn items(&self) -> usize {
        self.triples.len()
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn examiner(&self) -> Ranker {
        Ranker::new(self.model, self.shape, self.reciprocal)
    }

    fn examine<P: Parameters>(
        &self,
        ranker: &mut Ranker,
        items: Range<usize>,
        parameters: &mut P,
        answers: &mut Vec<[Rank; 2]>,
    ) -> Result<(), P::Error> {
        let mut ranks = Vec::new();
        ranker.rank(&self.triples[items], &self.filter, parameters, &mut ranks)?;
        answers.extend_from_slice(ranks.as_chunks().0);
        Ok(())
    }

    fn figures(&self, answers: &[[Rank; 2]]) -> RankMetrics {
        RankMetrics::of(answers.as_flattened())
    }
}
