//! The prior's values, and that it counts where it is all there is to know.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::data::names::Names;
use crate::kge::graph::{GraphCounts, GraphSource, Triple};
use crate::kge::training::train;
use crate::kge::{TrainConfig, TrainReport};
use crate::run::{ClusterConfig, Run, RunConfig};

fn graph(entities: usize, relations: usize, train: Vec<Triple>) -> Graph {
    let names = |count: usize| {
        let mut names = Names::default();
        (0..count).for_each(|index| names.push(index.to_string().as_bytes()));
        names
    };
    let (entities, relations) = (names(entities), names(relations));
    let (counts, source) = (GraphCounts::default(), GraphSource::Generated { seed: 0 });
    Graph { train, valid: Vec::new(), test: Vec::new(), entities, relations, counts, source }
}

#[test]
fn frequent_candidates_are_likelier_and_nothing_is_known_where_all_come_once() {
    let fact = |subject, relation, object| Triple { subject, relation, object };
    // As objects of relation 0: entity 7 three times, 8 once; of relation 1 four once each; of
    // relation 2 none.
    let mut facts = vec![fact(0, 0, 7), fact(1, 0, 7), fact(2, 0, 7), fact(3, 0, 8)];
    facts.extend((0..4).map(|entity| fact(9, 1, entity)));
    let prior = Prior::new(&graph(10, 3, facts));
    assert_eq!(prior.candidates(Side::Object, 0), [[7, 3], [8, 1]]);
    assert_eq!(prior.candidates(Side::Object, 2), [] as [[u32; 2]; 0]);
    // 10 entities, 4 facts, 1 once: 10 * 3.5 / (4 * 1.5).
    let slope: f32 = 10.0 * 3.5 / (4.0 * 1.5);
    let near =
        |said: f32, expected: f32| assert!((said - expected).abs() < 1e-5, "{said} {expected}");
    near(prior.of(Side::Object, 0, 7), (3.0 * slope).ln_1p());
    near(prior.of(Side::Object, 0, 8), slope.ln_1p());
    near(prior.of(Side::Object, 0, 0), 0.0);
    near(prior.of(Side::Object, 1, 0), (10.0 * 0.5 / (4.0 * 4.5f32)).ln_1p());
    near(prior.of(Side::Subject, 1, 9), (4.0 * 10.0 * 4.5 / (4.0 * 0.5f32)).ln_1p());
}

#[test]
fn the_weight_of_the_best_epoch_is_kept() {
    let chosen = Chosen::default();
    assert_eq!(chosen.weight(), Weight::ALL[0]);
    for (mrr, weight) in [(0.1, 1), (0.3, 3), (0.2, 2), (0.3, 1), (f64::NAN, 2)] {
        chosen.offer(mrr, Weight::ALL[weight]);
    }
    assert_eq!(chosen.weight(), Weight::ALL[3]);
}

/// Subjects and objects are drawn without regard to each other, some far more often than others.
fn popularity() -> Vec<Triple> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut facts: Vec<Triple> = Vec::new();
    while facts.len() < 3_000 {
        let mut entity = |shift: u32| {
            let drawn: f64 = random.random();
            ((200.0 * drawn * drawn * drawn) as u32 + shift) % 200
        };
        let fact = Triple { subject: entity(0), relation: 0, object: entity(100) };
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts
}

fn ends(graph: &Graph, prior: bool, seed: u64) -> TrainReport {
    let cluster = ClusterConfig { system: None, ..ClusterConfig::default() };
    let run = RunConfig { seed, ..RunConfig::default() };
    let config = TrainConfig { run, cluster, dim: 64, epochs: 3, prior, ..TrainConfig::default() };
    train(graph, &config, &Run::alone()).expect("trains")
}

#[test]
fn where_only_frequency_tells_training_ends_as_well_as_it_with_valid_and_without() {
    let mut whole = graph(200, 1, popularity());
    whole.test = whole.train.split_off(2_500);
    let mut divided = whole.clone();
    divided.valid = divided.train.split_off(2_250);
    for (graph, held_back) in [(divided, 0), (whole, 125)] {
        // Of 30 seeds, one to four end more than 3 % below the baseline, so a mean decides.
        let reports = [true, false].map(|prior| [1, 2, 3, 4].map(|seed| ends(&graph, prior, seed)));
        let figures = |reports: &[TrainReport; 4]| {
            let mrrs = reports.each_ref().map(|report| report.test.expect("evaluated").mrr);
            (mrrs.iter().sum::<f64>() / 4.0, reports[0].own.baseline.expect("as well").mrr)
        };
        let [(mrr, baseline), (alone, same)] = reports.each_ref().map(figures);
        assert!(mrr > 0.97 * baseline, "{mrr} {baseline}");
        assert!(alone < 0.95 * mrr && same == baseline, "{alone} {baseline}");
        let [with, without] = reports;
        assert!(with.iter().all(|report| report.own.frequency_weight > 0.0));
        assert!(without.iter().all(|report| report.own.frequency_weight == 0.0));
        assert!(with.iter().all(|report| report.own.held_back == held_back));
    }
}
