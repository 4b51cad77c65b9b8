//! The obvious baseline: candidates ranked by how often they are the object, or the subject, of the relation in train.
//!
//! It looks at nothing but the relation, so what a model knows of the given entity shows in how much better it ranks.

use crate::kge::counts::Counts;
use crate::kge::filter::Filter;
use crate::kge::graph::{Graph, Triple};
use crate::kge::model::Side;
use crate::metric::{Rank, RankMetrics};
use crate::run::config::Split;

/// Computes the filtered figures of the frequency baseline on a split: a candidate scores how many training facts of the relation
/// it is the object of, or the subject. Ties are treated as those of a model, and there are many.
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

/// The rank of the answer among all entities but the `known` answers.
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
mod tests {
    use super::*;
    use crate::kge::graph::{GraphCounts, GraphSource, Names};

    fn graph(entities: usize, train: &[[u32; 3]], test: &[[u32; 3]]) -> Graph {
        let triples = |facts: &[[u32; 3]]| {
            let triple = |&[subject, relation, object]: &[u32; 3]| Triple { subject, relation, object };
            facts.iter().map(triple).collect::<Vec<_>>()
        };
        let mut names = Names::default();
        (0..entities).for_each(|entity| names.push(entity.to_string().as_bytes()));
        Graph {
            train: triples(train),
            valid: Vec::new(),
            test: triples(test),
            entities: names,
            relations: Names::default(),
            counts: GraphCounts::default(),
            source: GraphSource::Generated { seed: 0 },
        }
    }

    #[test]
    fn candidates_are_ranked_by_their_count_without_the_known_ones_and_ties_count_half() {
        // As objects of relation 0: entity 1 three times, 2 twice, 3 once; of relation 1: 5 once.
        let train = [[0, 0, 1], [4, 0, 1], [5, 0, 1], [4, 0, 2], [5, 0, 2], [5, 0, 3], [0, 1, 5]];
        let objects = |test| {
            let graph = graph(6, &train, &[test]);
            let counts = Counts::new(&graph, Side::Object);
            let filter = Filter::new(&graph, &graph.test);
            rank(&counts, test[1], test[2], filter.answers(Side::Object, test[0], test[1]))
        };
        assert_eq!(objects([0, 0, 2]), Rank { better: 0, tied: 0 }, "1 is known of 0");
        assert_eq!(objects([2, 0, 2]), Rank { better: 1, tied: 0 }, "nothing is known of 2");
        assert_eq!(objects([2, 0, 4]), Rank { better: 3, tied: 2 }, "0, 4 and 5 never");
        assert_eq!(objects([5, 0, 0]), Rank { better: 0, tied: 2 });
        assert_eq!(objects([1, 1, 0]), Rank { better: 1, tied: 4 }, "of another relation");
        // Subjects of relation 0 with object 3: 4 counts two, 5 three, but is known: rank 1; the object 3 of 4 is the third, of
        // which 1 and 2 are known: rank 1 too.
        let figures = frequency_baseline(&graph(6, &train, &[[4, 0, 3]]), Split::Test);
        assert_eq!((figures.queries, figures.mrr), (2, 1.0));
    }

    #[test]
    fn it_ranks_as_a_count_of_all_candidates_does() {
        let graph = Graph::families(3, 2);
        let figures = frequency_baseline(&graph, Split::Test);
        let known =
            |fact: Triple| [&graph.train, &graph.valid, &graph.test].iter().any(|part| part.contains(&fact));
        let mut ranks = Vec::new();
        for triple in &graph.test {
            for side in [Side::Object, Side::Subject] {
                let with = |entity| match side {
                    Side::Object => Triple { object: entity, ..*triple },
                    Side::Subject => Triple { subject: entity, ..*triple },
                };
                let count = |entity: u32| {
                    let same = |fact: &&Triple| match side {
                        Side::Object => (fact.relation, fact.object) == (triple.relation, entity),
                        Side::Subject => (fact.relation, fact.subject) == (triple.relation, entity),
                    };
                    graph.train.iter().filter(same).count()
                };
                let answer = if side == Side::Object { triple.object } else { triple.subject };
                let others = (0..graph.entities.len() as u32).filter(|entity| !known(with(*entity)));
                let counts: Vec<usize> = others.map(count).collect();
                let own = count(answer);
                let of =
                    |is: &dyn Fn(usize) -> bool| counts.iter().filter(|count| is(**count)).count() as u32;
                ranks.push(Rank { better: of(&|count| count > own), tied: of(&|count| count == own) });
            }
        }
        assert_eq!(figures, RankMetrics::of(&ranks));
        assert!((0.001..0.5).contains(&figures.mrr), "{}", figures.mrr);
    }
}
