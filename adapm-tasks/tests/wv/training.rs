//! The quality of training, that it can be repeated, and how it ends.

use std::sync::atomic::{AtomicBool, Ordering};

use adapm_tasks::System;
use adapm_tasks::run::{Epoch, Observer, Run, TaskError};
use adapm_tasks::wv::{Analogies, AnalogyReport, Negatives, Optimizer, TrainReport, train};

use crate::{corpus, run, small};

fn accuracy(report: &TrainReport) -> f64 {
    let total = report.test.as_ref().expect("asked").total();
    assert_eq!(total.coverage(), 1.0);
    total.accuracy()
}

fn bits(report: &TrainReport) -> Vec<u32> {
    let vectors = report.checkpoint.as_ref().expect("is asked for").vectors();
    vectors.values().iter().map(|value| value.to_bits()).collect()
}

#[test]
fn generated_analogies_are_learnt_whoever_shares_negatives_and_however_vectors_move() {
    let corpus = corpus(5_000);
    for (drawn, optimizer) in [
        (Negatives::Sentence, Optimizer::Sgd),
        (Negatives::Window, Optimizer::Sgd),
        (Negatives::Pair, Optimizer::Sgd),
        (Negatives::Sentence, Optimizer::AdaGrad),
        (Negatives::Window, Optimizer::AdaGrad),
    ] {
        let report = run(
            &corpus,
            &small(|config| {
                (config.drawn, config.optimizer, config.dim, config.epochs) =
                    (drawn, optimizer, 32, Some(5));
                config.sample = 0.0;
            }),
        )
        .expect("trains");
        println!("{drawn} {optimizer}: {:.3}", accuracy(&report));
        assert!(accuracy(&report) > 0.8, "{drawn} {optimizer}: {:?}", report.test);
        assert!(report.epochs.is_sorted_by(|a, b| a.loss > b.loss), "{drawn} {optimizer}");
    }
}

#[test]
fn one_worker_repeats_itself_bit_by_bit_and_another_seed_is_another_run() {
    let corpus = corpus(1000);
    for system in [None, Some(System::Adapm)] {
        let of = |seed| {
            let config = small(|config| (config.cluster.system, config.run.seed) = (system, seed));
            bits(&run(&corpus, &config).expect("trains"))
        };
        assert_eq!(of(1), of(1), "{system:?}");
        assert_ne!(of(1), of(2), "{system:?}");
    }
}

#[test]
fn all_words_of_the_vocabulary_are_examples_also_those_that_are_thinned() {
    let corpus = corpus(2000);
    let report = run(&corpus, &small(|config| config.sample = 1e-4)).expect("trains");
    for epoch in &report.epochs {
        let missing = corpus.words() - epoch.examples;
        // The words after the last sentence of two kept words.
        assert!(missing < 200, "{missing} of {}", corpus.words());
    }
}

#[test]
fn no_epochs_leave_the_initial_vectors() {
    let report = run(&corpus(200), &small(|config| config.epochs = Some(0))).expect("ends");
    assert!(report.epochs.is_empty() && report.test.is_some());
    let checkpoint = report.checkpoint.expect("is asked for");
    assert!(checkpoint.vectors().values().iter().all(|value| value.abs() <= 0.5 / 16.0));
}

struct StopAfter<'a>(u32, &'a AtomicBool);

impl Observer<AnalogyReport> for StopAfter<'_> {
    fn epoch(&self, epoch: &Epoch<AnalogyReport>) {
        if epoch.epoch == self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stopped_run_keeps_its_epochs_and_vectors() {
    let corpus = corpus(300);
    for (system, nodes) in [(None, 1), (Some(System::Adapm), 2)] {
        let stop = AtomicBool::new(false);
        let config = small(|config| {
            (config.cluster.system, config.cluster.nodes, config.epochs) =
                (system, Some(nodes), Some(1000))
        });
        let questions = Analogies::generated();
        let report = train(
            &corpus,
            Some(&questions),
            &config,
            &Run::alone().observed_by(&StopAfter(2, &stop)).stopped_by(&stop),
        )
        .expect("stops");
        assert!(report.stopped && report.test.is_none() && report.checkpoint.is_some());
        assert!((2..1000).contains(&report.epochs.len()), "{}", report.epochs.len());
    }
}

#[test]
fn a_learning_rate_far_too_large_is_an_error_that_says_so() {
    let config = small(|config| config.learning_rate = 1e30);
    let questions = Analogies::generated();
    let error = train(&corpus(500), Some(&questions), &config, &Run::alone());
    let error = error.expect_err("diverges");
    assert!(matches!(error, TaskError::NotFinite { .. }), "{error}");
    assert!(error.to_string().contains("lower it"));
}
