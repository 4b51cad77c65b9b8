//! Ranks against a brute-force oracle that follows the definition word by word, what is left out of
//! them, and the baseline.

use adapm_core::Key;

use super::*;
use crate::data::names::Names;
use crate::kge::graph::{Graph, GraphCounts, GraphSource};
use crate::kge::model::ModelKind;
use crate::kge::prior::Prior;
use crate::run::managed::Arrays;

/// More candidates than a block, so that ranks are counted over several.
const ENTITIES: u32 = 2500;

fn graph() -> Graph {
    let triple =
        |i: u32| Triple { subject: i * 7 % 50, relation: i % 2, object: i * 13 % ENTITIES };
    Graph {
        train: (0..900).map(triple).collect(),
        valid: (900..950).map(triple).collect(),
        test: (950..1010).map(triple).collect(),
        entities: Names::default(),
        relations: Names::default(),
        counts: GraphCounts::default(),
        source: GraphSource::Generated { seed: 0 },
    }
}

/// Small integers, so that many candidates tie; entity 3 is NaN.
fn parameters(shape: Shape) -> Arrays {
    Arrays::new(shape.groups(), None, |key, value| {
        for (i, cell) in value.iter_mut().enumerate() {
            let nan = key.0 == 3;
            *cell = if nan { f32::NAN } else { ((key.0 * 31 + i as u64 * 17) % 5) as f32 - 2.0 };
        }
    })
}

/// `rank = 1 + G + floor(T / 2)`, by the definition.
fn oracle(scores: &[f32], answer: u32, others_known: &[u32]) -> Rank {
    let of = |candidate: u32| {
        if scores[candidate as usize].is_nan() {
            f32::NEG_INFINITY
        } else {
            scores[candidate as usize]
        }
    };
    let competitors =
        (0..scores.len() as u32).filter(|c| *c != answer && !others_known.contains(c));
    let (mut better, mut tied) = (0, 0);
    for candidate in competitors {
        better += u32::from(of(candidate) > of(answer));
        tied += u32::from(of(candidate) == of(answer));
    }
    Rank { better, tied }
}

#[test]
fn ranks_equal_those_of_the_definition_with_ties_and_nan() {
    const DIM: usize = 4;
    for kind in ModelKind::ALL {
        let (model, dim) = (Model { kind: *kind, dim: DIM }, DIM);
        let (entity_len, relation_len) = (dim, model.relation_len());
        let shape = Shape { entities: u64::from(ENTITIES), relations: 2, entity_len, relation_len };
        let (graph, mut parameters) = (graph(), parameters(shape));
        let filter = Filter::new(&graph, &graph.test);
        let mut ranks = Vec::new();
        Ranker::new(model, shape, false, Weighing::default())
            .rank(&graph.test, &filter, &mut parameters, &mut ranks)
            .expect("infallible");

        let mut value = |key: u64| {
            let mut value = vec![0.0; shape.len_of(Key(key))];
            parameters.pull(&[Key(key)], &mut value).expect("infallible");
            value
        };
        let facts: Vec<Triple> =
            graph.train.iter().chain(&graph.valid).chain(&graph.test).copied().collect();
        let mut ties = 0;
        for (triple, ranks) in graph.test.iter().zip(ranks.chunks(2)) {
            let relation = value(u64::from(ENTITIES + triple.relation));
            let mut scores = |side, given: u32| -> Vec<f32> {
                let mut query = vec![0.0; dim];
                model.query(side, &value(u64::from(given)), &relation, &mut query);
                (0..ENTITIES)
                    .map(|candidate| {
                        model.comparison().ordered_score(&query, &value(u64::from(candidate)))
                    })
                    .collect()
            };
            let of_objects = scores(Side::Object, triple.subject);
            let known = facts
                .iter()
                .filter(|f| (f.subject, f.relation) == (triple.subject, triple.relation));
            let known: Vec<u32> =
                known.map(|fact| fact.object).filter(|object| *object != triple.object).collect();
            assert_eq!(ranks[0][0], oracle(&of_objects, triple.object, &known));
            let of_subjects = scores(Side::Subject, triple.object);
            let known =
                facts.iter().filter(|f| (f.relation, f.object) == (triple.relation, triple.object));
            let known: Vec<u32> = known
                .map(|fact| fact.subject)
                .filter(|subject| *subject != triple.subject)
                .collect();
            assert_eq!(ranks[1][0], oracle(&of_subjects, triple.subject, &known));
            ties += ranks[0][0].tied;
        }
        assert!(ties > 1000, "{kind}: the numbers are to tie often");
    }
}

#[test]
fn each_weight_ranks_by_the_sum_of_what_vectors_and_frequency_say() {
    let mut graph = graph();
    (0..ENTITIES).for_each(|entity| graph.entities.push(entity.to_string().as_bytes()));
    (0..2).for_each(|relation: u32| graph.relations.push(relation.to_string().as_bytes()));
    // Objects from both blocks, some of them often.
    let often = |i: u32| Triple {
        subject: i,
        relation: 0,
        object: if i.is_multiple_of(3) { 7 } else { 2400 },
    };
    graph.train.extend((60..80).map(often));
    let (model, prior) = (Model { kind: ModelKind::Complex, dim: 4 }, Prior::new(&graph));
    let shape = Shape::of(&graph, model, false, 1);
    let (mut parameters, filter) = (parameters(shape), Filter::new(&graph, &graph.test));
    let mut ranks = Vec::new();
    let mut ranker = Ranker::new(model, shape, false, Weighing::all(&prior));
    ranker.rank(&graph.test, &filter, &mut parameters, &mut ranks).expect("infallible");
    let mut value = |key: u32| {
        let mut value = vec![0.0; shape.len_of(Key(u64::from(key)))];
        parameters.pull(&[Key(u64::from(key))], &mut value).expect("infallible");
        value
    };
    let mut differing = 0;
    for (triple, ranks) in graph.test.iter().zip(ranks.chunks(2)) {
        let mut query = vec![0.0; model.dim];
        model.query(
            Side::Object,
            &value(triple.subject),
            &value(ENTITIES + triple.relation),
            &mut query,
        );
        let known = filter.answers(Side::Object, triple.subject, triple.relation);
        let known: Vec<u32> =
            known.iter().map(|entry| entry[2]).filter(|other| *other != triple.object).collect();
        for (weight, rank) in Weight::ALL.iter().zip(&ranks[0]) {
            let mut score = |candidate: u32| {
                let said = prior.of(Side::Object, triple.relation, candidate);
                let alone = model.comparison().ordered_score(&query, &value(candidate));
                alone + weight.factor() * said
            };
            let scores: Vec<f32> = (0..ENTITIES).map(&mut score).collect();
            assert_eq!(*rank, oracle(&scores, triple.object, &known), "{weight:?}");
        }
        differing += u32::from(ranks[0][0] != ranks[0][3]);
    }
    assert!(differing > 30, "{differing}");
}

#[test]
fn nan_ranks_last() {
    assert_eq!(standing(f32::NAN, -1e30), (0, 0));
    assert_eq!(standing(-1e30, f32::NAN), (1, 0));
    assert_eq!(standing(f32::NAN, f32::NAN), (0, 1));
}

#[test]
fn ranks_do_not_depend_on_how_triples_are_batched() {
    let model = Model { kind: ModelKind::Complex, dim: 10 };
    let shape =
        Shape { entities: u64::from(ENTITIES), relations: 2, entity_len: 20, relation_len: 20 };
    let graph = graph();
    let filter = Filter::new(&graph, &graph.test);
    let initial =
        |key: Key, value: &mut [f32]| crate::kge::model::initial_value(1, 0.1, key, value);
    let mut parameters = Arrays::new(shape.groups(), None, initial);
    let mut ranker = Ranker::new(model, shape, false, Weighing::default());
    let mut ranks = |size: usize| {
        let mut ranks = Vec::new();
        for batch in graph.test.chunks(size) {
            ranker.rank(batch, &filter, &mut parameters, &mut ranks).expect("infallible");
        }
        ranks
    };
    assert_eq!(ranks(60), ranks(7));
}

#[test]
fn a_weight_is_taken_for_what_many_queries_say_and_frequency_decides_where_few_say_it() {
    let graph = Graph::families(1, 1);
    let (model, prior, chosen) =
        (Model { kind: ModelKind::Complex, dim: 2 }, Prior::new(&graph), Chosen::default());
    let ranking =
        Ranking::new(&graph, Split::Valid, model, Shape::of(&graph, model, false, 1), false);
    let ranking = ranking.weighing(Weighing::all(&prior)).choosing(&chosen);
    let rank = |better| Rank { better, tied: 0 };
    // By the weights in order; every fourth query is hard for the second, which is better all the
    // same.
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
    let answers = |side, given| {
        filter.answers(side, given, 0).iter().map(|entry| entry[2]).collect::<Vec<_>>()
    };
    assert_eq!(answers(Side::Object, 0), [1, 2, 3]);
    assert_eq!(answers(Side::Subject, 1), [0, 4]);
    assert!(answers(Side::Object, 4).is_empty(), "not asked");
}

fn graph_of(entities: usize, train: &[[u32; 3]], test: &[[u32; 3]]) -> Graph {
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
        let graph = graph_of(6, &train, &[test]);
        let counts = Counts::new(&graph, Side::Object);
        let filter = Filter::new(&graph, &graph.test);
        rank(&counts, test[1], test[2], filter.answers(Side::Object, test[0], test[1]))
    };
    assert_eq!(objects([0, 0, 2]), Rank { better: 0, tied: 0 }, "1 is known of 0");
    assert_eq!(objects([2, 0, 2]), Rank { better: 1, tied: 0 }, "nothing is known of 2");
    assert_eq!(objects([2, 0, 4]), Rank { better: 3, tied: 2 }, "0, 4 and 5 never");
    assert_eq!(objects([5, 0, 0]), Rank { better: 0, tied: 2 });
    assert_eq!(objects([1, 1, 0]), Rank { better: 1, tied: 4 }, "of another relation");
    // Subjects of relation 0 with object 3: 4 counts two, 5 three, but is known: rank 1; the object
    // 3 of 4 is the third, but the two before it, 1 and 2, are known: rank 1 too.
    let figures = frequency_baseline(&graph_of(6, &train, &[[4, 0, 3]]), Split::Test);
    assert_eq!((figures.queries, figures.mrr), (2, 1.0));
}

#[test]
fn it_ranks_as_a_count_of_all_candidates_does() {
    let graph = Graph::families(3, 2);
    let figures = frequency_baseline(&graph, Split::Test);
    let known = |fact: Triple| {
        [&graph.train, &graph.valid, &graph.test].iter().any(|part| part.contains(&fact))
    };
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
            let of = |is: &dyn Fn(usize) -> bool| {
                counts.iter().filter(|count| is(**count)).count() as u32
            };
            ranks.push(Rank { better: of(&|count| count > own), tied: of(&|count| count == own) });
        }
    }
    assert_eq!(figures, RankMetrics::of(&ranks));
    assert!((0.001..0.5).contains(&figures.mrr), "{}", figures.mrr);
}
