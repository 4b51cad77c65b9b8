//! Several boards, one for each node, as if nodes were processes; the cluster itself is in this process.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::thread;

use adapm_core::Key;
use adapm_runtime::System;

use super::*;
use crate::kge::initial;
use crate::kge::model::Model;
use crate::kge::report::{EpochReport, Stage};
use crate::kge::shape::Shape;
use crate::metric::RankMetrics;
use crate::run::circle::places;
use crate::run::harness::{self, Ended, NODES, WORKERS, flags};
use crate::run::kept::Kept;
use crate::run::observer::{NoProgress, Observer};

fn config(change: impl FnOnce(&mut TrainConfig)) -> TrainConfig {
    let mut config = TrainConfig {
        system: Some(System::Classic),
        nodes: NODES,
        workers: Some(WORKERS),
        dim: 8,
        chunk: Some(64),
        negative_count: Some(16),
        epochs: 3,
        valid_every: Some(1),
        ..TrainConfig::default()
    };
    change(&mut config);
    config
}

/// Trains with a board for each node; `progress` and `stops` are those of each.
fn train(
    config: &TrainConfig,
    progress: &[&dyn Progress; NODES],
    stops: &[AtomicBool],
) -> Vec<Ended<RankMetrics>> {
    train_each(&[config; NODES], progress, stops)
}

/// Trains with configurations that may differ, which processes that have agreed do not.
fn train_each(
    configs: &[&TrainConfig; NODES],
    progress: &[&dyn Progress; NODES],
    stops: &[AtomicBool],
) -> Vec<Ended<RankMetrics>> {
    let graph = &Graph::families(1, 4);
    let parts = [Parts::new(), Parts::new(), Parts::new()];
    let chosen = Chosen::default();
    let tasks = [0, 1, 2].map(|node| Embeddings {
        graph,
        config: configs[node],
        parts: &parts[node],
        sizes: Sizes::new(graph, configs[node], NODES * WORKERS),
        priors: None,
        chosen: &chosen,
    });
    let observed = progress.map(Observed);
    let observers = [0, 1, 2].map(|node| &observed[node] as &dyn Observer<RankMetrics>);
    harness::train_each(&[0, 1, 2].map(|node| &tasks[node]), settings(configs[0], graph), &observers, stops)
}

#[test]
fn all_processes_decide_the_same_and_report_totals() {
    let config = config(|_| {});
    let progress: [&dyn Progress; NODES] = [&NoProgress; NODES];
    let ended = train(&config, &progress, &flags());
    let triples = Graph::families(1, 4).train.len() as u64;
    for process in &ended {
        assert_eq!((process.best, process.chosen), (ended[0].best, ended[0].chosen));
        assert_eq!(process.epochs.len(), 3);
        for (epoch, first) in process.epochs.iter().zip(&ended[0].epochs) {
            assert_eq!((epoch.loss, epoch.valid, epoch.examples), (first.loss, first.valid, triples));
            assert_eq!((epoch.stats, epoch.epoch_stats), (first.stats, first.epoch_stats));
        }
        // Training and ranking of each epoch.
        assert_eq!(process.rounds, 6);
    }
    let epochs = &ended[0].epochs;
    assert!(epochs[2].loss < epochs[0].loss && epochs[0].epoch_stats.local > 0);
    // A static partition of three nodes: a third is local, so counts of all nodes are in the total.
    assert!((epochs[0].epoch_stats.local_share() - 1.0 / 3.0).abs() < 0.1);
    assert!(ended[0].best.is_some_and(|best| best.mrr > 0.0));
}

#[test]
fn parts_of_processes_make_up_the_parameters_of_one() {
    let config = config(|config| config.epochs = 0);
    let progress: [&dyn Progress; NODES] = [&NoProgress; NODES];
    let ended = train(&config, &progress, &flags());
    let graph = Graph::families(1, 4);
    let model = Model { kind: config.model, dim: config.dim };
    let shape = |halves| Shape::of(&graph, model, false, halves).groups();
    let (with, without) = (shape(2), &shape(1));
    let mut expected = Vec::new();
    for key in (0..with.keys()).map(Key) {
        let mut value = vec![0.0; with.len_of(key)];
        initial::value(config.seed, config.initial_deviation, key, &mut value);
        expected.extend_from_slice(&value[..value.len() / 2]);
    }

    let gathered: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = places(NODES)
            .into_iter()
            .zip(ended)
            .map(|(place, process)| {
                scope.spawn(move || {
                    let parts = process.outcome.expect("trained");
                    let peers = Peers::among(&place);
                    let kept = Kept::new(without.clone(), parts, &peers);
                    // What is here is written, what is elsewhere is left alone.
                    let initial = kept.initial();
                    let mut written = vec![f32::NAN; without.offset(Key(without.keys()))];
                    for key in (0..without.keys()).map(Key) {
                        let start = without.offset(key);
                        initial(key, &mut written[start..start + without.len_of(key)]);
                    }
                    // Pieces of a few keys each.
                    (written, kept.gather(&peers, 40, &|_, _| {}).expect("all take part"))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("does not panic")).collect()
    });
    let (values, rest) = (gathered[0].1.as_ref().expect("on node 0"), &gathered[1..]);
    assert_eq!(**values, expected);
    assert!(rest.iter().all(|(_, values)| values.is_none()));
    let writers = (0..expected.len()).map(|at| {
        let mut here = gathered.iter().map(|(written, _)| written[at]).filter(|value| !value.is_nan());
        (here.next(), here.next())
    });
    assert!(writers.eq(expected.iter().map(|value| (Some(*value), None))));
}

/// Raises its flag when the epoch is over.
struct StopAfter<'a>(u32, &'a AtomicBool);

impl Progress for StopAfter<'_> {
    fn epoch(&self, report: &EpochReport) {
        if report.epoch == self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

/// Raises its flag in the middle of a ranking.
struct StopInRanking<'a>(&'a AtomicBool);

impl Progress for StopInRanking<'_> {
    fn stage(&self, stage: Stage) {
        if matches!(stage, Stage::Evaluating(..)) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stop_raised_in_one_process_ends_all_at_the_same_point() {
    let stops = flags();
    let stopper = StopAfter(2, &stops[1]);
    let progress: [&dyn Progress; NODES] = [&NoProgress, &stopper, &NoProgress];
    for process in train(&config(|config| config.epochs = 1000), &progress, &stops) {
        assert_eq!(process.epochs.len(), 2);
        assert!(process.epochs[1].valid.is_some() && process.chosen.is_some());
        assert!(process.outcome.expect("a stop is no failure").iter().any(|part| !part.is_empty()));
    }
    assert!(!stops[0].load(Ordering::Relaxed), "it was raised in one process only");

    let stops = flags();
    let stopper = StopInRanking(&stops[2]);
    let progress: [&dyn Progress; NODES] = [&NoProgress, &NoProgress, &stopper];
    let config = config(|config| config.valid_every = Some(2));
    for process in train(&config, &progress, &stops) {
        // Some share of the ranks may be complete, but the next epoch is not.
        assert_eq!(process.epochs.len(), 2);
    }
}

#[test]
fn training_that_diverges_in_one_process_ends_all_with_the_same_reason() {
    let stops = flags();
    let progress: [&dyn Progress; NODES] = [&NoProgress; NODES];
    let sound = config(|config| config.epochs = 1000);
    // No update of such a rate is pushed: nobody else sees a number that is none.
    let diverging = TrainConfig { learning_rate: f32::INFINITY, ..sound.clone() };
    let ended = train_each(&[&sound, &diverging, &sound], &progress, &stops);
    let texts = ended.into_iter().map(|process| match process.outcome {
        Err(error @ TaskError::NotFinite { learning_rate: f32::INFINITY, .. }) => error.to_string(),
        other => panic!("{other:?}"),
    });
    let texts: Vec<String> = texts.collect();
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
}

/// Panics when an epoch is over.
struct Panics;

impl Progress for Panics {
    fn epoch(&self, _: &EpochReport) {
        panic::panic_any("of the test");
    }
}

#[test]
fn a_panic_in_one_process_leaves_no_other_waiting() {
    let progress: [&dyn Progress; NODES] = [&NoProgress, &NoProgress, &Panics];
    let config = config(|config| config.epochs = 1000);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| train(&config, &progress, &flags()).len()));
    let payload = outcome.expect_err("the panic comes out in the end");
    // As the error of the run that says which worker it was.
    let told = payload.downcast_ref::<String>().expect("a text");
    assert!(told.contains("WorkerPanicked") && told.contains("of the test"), "{told}");
}
