//! Known answers of each query: what a filtered rank leaves out.

use crate::kge::graph::{Graph, Triple};
use crate::kge::model::Side;

/// The answers that train, valid or test know for every query that a split can ask.
#[derive(Clone, Debug)]
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
            let is_asked =
                |[given, relation, _]: &[u32; 3]| queries.binary_search(&[*given, *relation]).is_ok();
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

    /// The known answers of a query, ascending, each once, as the last element.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kge::graph::{GraphCounts, GraphSource, Names};

    #[test]
    fn answers_come_from_all_three_splits_each_once() {
        let triple = |subject, relation, object| Triple { subject, relation, object };
        let graph = Graph {
            train: vec![triple(0, 0, 3), triple(0, 0, 1), triple(0, 1, 2)],
            valid: vec![triple(0, 0, 2), triple(0, 0, 1)],
            test: vec![triple(4, 0, 1)],
            entities: Names::default(),
            relations: Names::default(),
            counts: GraphCounts::default(),
            source: GraphSource::Generated { seed: 0 },
        };
        let filter = Filter::new(&graph, &graph.valid);
        let answers =
            |side, given| filter.answers(side, given, 0).iter().map(|entry| entry[2]).collect::<Vec<_>>();
        assert_eq!(answers(Side::Object, 0), [1, 2, 3]);
        assert_eq!(answers(Side::Subject, 1), [0, 4]);
        assert!(answers(Side::Object, 4).is_empty(), "not asked");
    }
}
