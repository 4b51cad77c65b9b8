//! Answers agree with an evaluation, whatever the model, with facts and without, from memory and
//! from a file.

use std::{env, fs, process};

use super::*;
use crate::kge::config::{EvalConfig, TrainConfig};
use crate::kge::model::ModelKind;
use crate::kge::prior::Weight;
use crate::kge::training::{evaluate, train};
use crate::run::config::{Split, Wanted};
use crate::run::start::Run;

/// Returns a model of `graph` of this kind that was hardly trained, in which frequency has this
/// weight.
fn checkpoint(graph: &Graph, model: ModelKind, reciprocal: bool, weight: usize) -> Checkpoint {
    let mut config = TrainConfig::default();
    (config.model, config.reciprocal, config.dim) = (model, reciprocal, 8);
    (config.epochs, config.run.no_eval, config.cluster.system) = (1, true, None);
    let trained = train(graph, &config, &Run::alone()).expect("it trains");
    let weight = Weight::at(weight).expect("there is such a weight");
    Checkpoint { weight, ..trained.checkpoint.expect("is asked for by default") }
}

/// Returns the ranks of the test part, of each triple its object's, then its subject's.
fn evaluated(graph: &Graph, checkpoint: &Checkpoint) -> Vec<Rank> {
    let config = EvalConfig { split: Split::Test, ..EvalConfig::default() };
    evaluate(graph, checkpoint, &config, &Run::alone()).expect("it is of the graph").own.ranks
}

fn entities(answer: &Answer) -> &[Candidate] {
    let Answer::Entities(entities) = answer else { panic!("an end is open: {answer:?}") };
    entities
}

#[test]
fn ranks_of_triples_are_those_of_an_evaluation() {
    // More entities than a block, and more triples than a batch.
    let graph = Graph::families(1, 30);
    let path = env::temp_dir().join(format!("adapm-kge-predict-{}", process::id()));
    for (model, reciprocal, weight) in [
        (ModelKind::Complex, false, 0),
        (ModelKind::Complex, true, 1),
        (ModelKind::TransE, true, 3),
        (ModelKind::Rescal, false, 2),
    ] {
        let checkpoint = checkpoint(&graph, model, reciprocal, weight);
        let expected = evaluated(&graph, &checkpoint);
        checkpoint.save(&path).expect("the folder for temporary files can be written");
        for predictor in
            [Predictor::new(&checkpoint), Predictor::open(&path).expect("it was just written")]
        {
            let mut predictor = predictor.with_facts(&graph).expect("it is of the graph");
            let queries: Vec<Query> =
                graph.test.iter().map(|triple| Query::Triple(*triple)).collect();
            let answers = predictor.answer(&queries, 1).expect("all names are known");
            let ranks = answers.iter().flat_map(|answer| match answer {
                Answer::Triple { object, subject, is_known: true } => [object.rank, subject.rank],
                answer => panic!("{answer:?} of a known triple"),
            });
            assert_eq!(ranks.collect::<Vec<_>>(), expected, "{model} {reciprocal} {weight}");
        }
    }
    fs::remove_file(path).expect("it was just written");
}

#[test]
fn the_best_entities_are_those_of_the_best_ranks_and_make_no_known_fact() {
    let graph = Graph::families(1, 30);
    let checkpoint = checkpoint(&graph, ModelKind::Complex, true, 1);
    let all = graph.entities.len();
    let facts: Vec<&Triple> = graph.train.iter().chain(&graph.valid).chain(&graph.test).collect();
    let mut predictor = Predictor::new(&checkpoint).with_facts(&graph).expect("it is of the graph");
    for triple in graph.test.iter().step_by(97) {
        let Triple { subject, relation, object } = *triple;
        let queries = [Query::Objects { subject, relation }, Query::Subjects { relation, object }];
        let answers = predictor.answer(&queries, all).expect("all names are known");
        let known = |make: &dyn Fn(u32) -> Triple| {
            (0..all as u32).filter(|entity| facts.contains(&&make(*entity))).count()
        };
        let made: [&dyn Fn(u32) -> Triple; 2] =
            [&|object| Triple { subject, relation, object }, &|subject| Triple {
                subject,
                relation,
                object,
            }];
        for (side, (answer, made)) in answers.iter().zip(made).enumerate() {
            let entities = entities(answer);
            assert_eq!(entities.len(), all - known(made));
            assert!(entities.is_sorted_by(|a, b| a.score >= b.score));
            // Each has the rank of its place, but for ties.
            let place = entities.len() / 2;
            let query = Query::Triple(made(entities[place].entity));
            let judged = predictor.answer(&[query], 1).expect("all names are known");
            let Answer::Triple { object: of_object, subject: of_subject, is_known } = &judged[0]
            else {
                panic!("a triple is judged")
            };
            let standing = [of_object, of_subject][side];
            assert_eq!(standing.score, entities[place].score);
            let rank = standing.rank;
            assert!((rank.better..=rank.better + rank.tied).contains(&(place as u32)));
            assert!(!is_known);
        }
    }
}

#[test]
fn known_facts_are_among_the_answers_if_asked_for_or_if_none_are_given() {
    let graph = Graph::families(1, 2);
    let checkpoint = checkpoint(&graph, ModelKind::DistMult, false, 3);
    let all = graph.entities.len();
    let Triple { subject, relation, object } = graph.train[0];
    let query = [Query::Objects { subject, relation }];
    let new = || Predictor::new(&checkpoint);
    let without = new().answer(&query, all).expect("all names are known");
    let with = new().with_facts(&graph).expect("it is of the graph").with_known(true);
    assert!(with.facts().is_some() && new().facts().is_none());
    let with = { with }.answer(&query, all).expect("all names are known");
    let of = |answers: &[Answer]| {
        let found = entities(&answers[0]).iter().find(|found| found.entity == object);
        *found.expect("all entities are there")
    };
    assert_eq!((entities(&with[0]).len(), entities(&without[0]).len()), (all, all));
    assert!(of(&with).is_known && !of(&without).is_known);
    // Frequency decides, where it is known.
    assert!(of(&with).score > of(&without).score + 100.0);
}

#[test]
fn indices_beyond_the_last_and_other_graphs_are_refused() {
    let graph = Graph::families(1, 2);
    let checkpoint = checkpoint(&graph, ModelKind::Complex, false, 0);
    let last = graph.entities.len() as u32 - 1;
    let mut predictor = Predictor::new(&checkpoint);
    for (field, query) in [
        ("subject", Query::Objects { subject: last + 1, relation: 0 }),
        ("relation", Query::Subjects { relation: u32::MAX, object: 0 }),
        ("object", Query::Triple(Triple { subject: last, relation: 0, object: last + 1 })),
    ] {
        let error = predictor.answer(&[query], 1).expect_err("there is no such name");
        let is_named = matches!(
            &error,
            TaskError::Config(ConfigError::Value { field: of, wanted: Wanted::Whole { .. }, .. })
                if *of == field
        );
        assert!(is_named, "{error:?}");
    }
    let other = Graph::families(2, 2);
    assert!(matches!(
        predictor.with_facts(&other),
        Err(CheckpointError::OtherData { .. } | CheckpointError::OtherTraining { .. })
    ));
}

#[test]
fn damage_anywhere_in_a_file_is_seen_before_an_answer_is_given() {
    let graph = Graph::families(1, 1);
    let checkpoint = checkpoint(&graph, ModelKind::Complex, true, 0);
    let bytes = checkpoint.write_to(Vec::new()).expect("memory takes all bytes");
    let path = env::temp_dir().join(format!("adapm-kge-predict-damage-{}", process::id()));
    for at in (0..bytes.len()).step_by(101) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&path, changed).expect("the folder for temporary files can be written");
        let answered = Predictor::open(&path).map_err(TaskError::from).and_then(|mut predictor| {
            predictor.answer(&[Query::Objects { subject: 0, relation: 0 }], 1)
        });
        assert!(answered.is_err(), "changed at {at}");
    }
    fs::remove_file(path).expect("it was just written");
}
