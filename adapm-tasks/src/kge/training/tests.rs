//! Several states, one for each node, as if nodes were processes; the cluster itself is in this
//! process.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use adapm_core::Key;
use adapm_runtime::System;

use super::*;
use crate::kge::graph::Triple;
use crate::kge::model::{self, Model, Shape};
use crate::kge::prior::Weight;
use crate::metric::RankMetrics;
use crate::run::circle::places;
use crate::run::config::{ClusterConfig, ConfigError, Keep, Pacing, RunConfig};
use crate::run::consistency;
use crate::run::error::TaskError;
use crate::run::harness::{self, Ended, NODES, WORKERS, flags};
use crate::run::managed::BestParameters;
use crate::run::observer::{Epoch, NoProgress, Observer};
use crate::run::peers::Peers;

fn config(change: impl FnOnce(&mut TrainConfig)) -> TrainConfig {
    let mut config = TrainConfig {
        cluster: ClusterConfig {
            system: Some(System::Classic),
            nodes: Some(NODES),
            workers: Some(WORKERS.into()),
            pacing: Pacing::default(),
        },
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

/// Trains with a state for each node; `progress` and `stops` are those of each.
fn train(
    config: &TrainConfig,
    progress: &[&dyn Observer<RankMetrics>; NODES],
    stops: &[AtomicBool],
) -> Vec<Ended<RankMetrics>> {
    train_each(&[config; NODES], progress, stops)
}

/// Trains with configurations that may differ, which processes that have agreed do not.
fn train_each(
    configs: &[&TrainConfig; NODES],
    progress: &[&dyn Observer<RankMetrics>; NODES],
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
        workers: &[WORKERS; NODES],
        priors: None,
        chosen: &chosen,
        partition: None,
    });
    let settings = Settings::of(configs[0], configs[0].epochs, configs[0].valid_every.unwrap_or(1));
    let tasks = &[0, 1, 2].map(|node| &tasks[node]);
    harness::train_each(System::Classic, tasks, settings, progress, stops)
}

#[test]
fn all_processes_decide_the_same_and_report_totals() {
    let config = config(|_| {});
    let progress: [&dyn Observer<RankMetrics>; NODES] = [&NoProgress; NODES];
    let ended = train(&config, &progress, &flags());
    let triples = Graph::families(1, 4).train.len() as u64;
    for process in &ended {
        assert_eq!((process.best, process.chosen), (ended[0].best, ended[0].chosen));
        assert_eq!(process.epochs.len(), 3);
        for (epoch, first) in process.epochs.iter().zip(&ended[0].epochs) {
            assert_eq!(
                (epoch.loss, epoch.valid, epoch.examples),
                (first.loss, first.valid, triples)
            );
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
    let progress: [&dyn Observer<RankMetrics>; NODES] = [&NoProgress; NODES];
    let ended = train(&config, &progress, &flags());
    let graph = Graph::families(1, 4);
    let model = Model { kind: config.model, dim: config.dim };
    let shape = |halves| Shape::of(&graph, model, false, halves).groups();
    let (with, without) = (shape(2), &shape(1));
    let mut expected = Vec::new();
    for key in (0..with.keys()).map(Key) {
        let mut value = vec![0.0; with.len_of(key)];
        model::initial_value(config.run.seed, config.initial_deviation, key, &mut value);
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
                    let best = BestParameters::new(without.clone(), parts, &peers);
                    // What is here is written, what is elsewhere is left alone.
                    let initial = best.initial();
                    let mut written = vec![f32::NAN; without.offset(Key(without.keys()))];
                    for key in (0..without.keys()).map(Key) {
                        let start = without.offset(key);
                        initial(key, &mut written[start..start + without.len_of(key)]);
                    }
                    // Pieces of a few keys each.
                    (written, best.gather(&peers, 40, &|_, _| {}).expect("all take part"))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("does not panic")).collect()
    });
    let (values, rest) = (gathered[0].1.as_ref().expect("on node 0"), &gathered[1..]);
    assert_eq!(values.in_memory(), Some(&*expected));
    assert!(rest.iter().all(|(_, values)| values.is_none()));
    let writers = (0..expected.len()).map(|at| {
        let mut here =
            gathered.iter().map(|(written, _)| written[at]).filter(|value| !value.is_nan());
        (here.next(), here.next())
    });
    assert!(writers.eq(expected.iter().map(|value| (Some(*value), None))));
}

/// Raises its flag when the epoch is over.
struct StopAfter<'a>(u32, &'a AtomicBool);

impl Observer<RankMetrics> for StopAfter<'_> {
    fn epoch(&self, report: &Epoch<RankMetrics>) {
        if report.epoch == self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

/// Raises its flag in the middle of a ranking.
struct StopInRanking<'a>(&'a AtomicBool);

impl Observer<RankMetrics> for StopInRanking<'_> {
    fn evaluating(&self, _: Split, _: u64, _: u64) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_stop_raised_in_one_process_ends_all_at_the_same_point() {
    let stops = flags();
    let stopper = StopAfter(2, &stops[1]);
    let progress: [&dyn Observer<RankMetrics>; NODES] = [&NoProgress, &stopper, &NoProgress];
    for process in train(&config(|config| config.epochs = 1000), &progress, &stops) {
        assert_eq!(process.epochs.len(), 2);
        assert!(process.epochs[1].valid.is_some() && process.chosen.is_some());
        assert!(process.outcome.expect("a stop is no failure").iter().any(|part| !part.is_empty()));
    }
    assert!(!stops[0].load(Ordering::Relaxed), "it was raised in one process only");

    let stops = flags();
    let stopper = StopInRanking(&stops[2]);
    let progress: [&dyn Observer<RankMetrics>; NODES] = [&NoProgress, &NoProgress, &stopper];
    let config = config(|config| config.valid_every = Some(2));
    for process in train(&config, &progress, &stops) {
        // Some share of the ranks may be complete, but the next epoch is not.
        assert_eq!(process.epochs.len(), 2);
    }
}

#[test]
fn training_that_diverges_in_one_process_ends_all_with_the_same_reason() {
    let stops = flags();
    let progress: [&dyn Observer<RankMetrics>; NODES] = [&NoProgress; NODES];
    let sound = config(|config| config.epochs = 1000);
    // No update of such a rate is pushed: no other worker sees a NaN.
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

impl Observer<RankMetrics> for Panics {
    fn epoch(&self, _: &Epoch<RankMetrics>) {
        panic::panic_any("of the test");
    }
}

#[test]
fn a_panic_in_one_process_leaves_no_other_waiting() {
    let progress: [&dyn Observer<RankMetrics>; NODES] = [&NoProgress, &NoProgress, &Panics];
    let config = config(|config| config.epochs = 1000);
    let outcome =
        panic::catch_unwind(AssertUnwindSafe(|| train(&config, &progress, &flags()).len()));
    let payload = outcome.expect_err("the panic comes out in the end");
    // As the error of the run that says which worker it was.
    let told = payload.downcast_ref::<String>().expect("a text");
    assert!(told.contains("WorkerPanicked") && told.contains("of the test"), "{told}");
}

fn of_seed(seed: u64) -> TrainConfig {
    TrainConfig { run: RunConfig { seed, ..RunConfig::default() }, ..TrainConfig::default() }
}

#[test]
fn a_twentieth_is_held_back_and_every_name_stays_in_train() {
    let mut graph = Graph::families(1, 4);
    assert!(hold_back(&graph, &of_seed(1)).is_none(), "it has a valid set");
    graph.valid.clear();
    let divided = hold_back(&graph, &of_seed(1)).expect("there are triples to spare");
    assert_eq!(divided.train.len() + divided.valid.len(), graph.train.len());
    assert_eq!(divided.valid.len(), graph.train.len().div_ceil(20));
    let mut all = [divided.train.clone(), divided.valid.clone()].concat();
    let mut before = graph.train.clone();
    all.sort_unstable();
    before.sort_unstable();
    assert_eq!(all, before);
    let names = |graph: &Graph| {
        let mut names: Vec<u32> =
            graph.train.iter().flat_map(|fact| [fact.subject, fact.object]).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    assert_eq!(names(&divided), names(&graph));
    assert_eq!(hold_back(&graph, &of_seed(1)).expect("as before").valid, divided.valid);
    assert_ne!(hold_back(&graph, &of_seed(2)).expect("as before").valid, divided.valid);
}

#[test]
fn a_chain_and_a_few_triples_spare_nothing() {
    let mut graph = Graph::families(1, 1);
    (graph.valid, graph.train) = (Vec::new(), graph.train[..10].to_vec());
    assert!(hold_back(&graph, &of_seed(1)).is_none(), "too few");
    let fact = |index: u32| Triple { subject: 2 * index, relation: 0, object: 2 * index + 1 };
    graph.train = (0..40).map(fact).collect();
    graph.entities = Default::default();
    (0..80).for_each(|index: u32| graph.entities.push(index.to_string().as_bytes()));
    assert!(hold_back(&graph, &of_seed(1)).is_none(), "each entity has one triple");
}

/// Checks the consistency of these fingerprints, one a process, and returns the result of each.
fn agree_all(fingerprints: Vec<Result<RunFingerprint, TaskError>>) -> Vec<Result<Keep, String>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = places(fingerprints.len())
            .into_iter()
            .zip(fingerprints)
            .map(|(place, own)| {
                let check = move || {
                    consistency::check(&Peers::among(&place), own)
                        .map_err(|error| error.to_string())
                };
                scope.spawn(check)
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("does not panic")).collect()
    })
}

#[test]
fn processes_that_mean_the_same_agree_and_node_0_chooses_the_checkpoint() {
    let graph = Graph::families(1, 1);
    let fingerprint = |keep| {
        let run = RunConfig { keep, ..RunConfig::default() };
        let config = TrainConfig { run, ..TrainConfig::default() };
        Ok(train_fingerprint(&graph, &config))
    };
    let agreed = agree_all([Keep::BestAndLast, Keep::Nothing, Keep::Best].map(fingerprint).into());
    assert_eq!(agreed, vec![Ok(Keep::BestAndLast); 3]);
}

#[test]
fn the_node_with_other_data_is_named_by_all() {
    let config = TrainConfig::default();
    let graphs = [1, 1, 1].map(|seed| Graph::families(seed, 1));
    let mut fingerprints: Vec<_> =
        graphs.iter().map(|graph| Ok(train_fingerprint(graph, &config))).collect();
    let mut changed = graphs[0].clone();
    changed.train.swap(0, 1);
    fingerprints[0] = Ok(train_fingerprint(&changed, &config));
    for text in agree_all(fingerprints) {
        let text = text.expect_err("n0 differs");
        assert!(text.starts_with("node n0 has other data: ") && text.contains("triples"), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
}

#[test]
fn the_node_with_another_choice_is_named_with_it_by_all() {
    let graph = Graph::families(1, 1);
    let fingerprint = |learning_rate| {
        Ok(train_fingerprint(&graph, &TrainConfig { learning_rate, ..TrainConfig::default() }))
    };
    let expected = "node n1 has learning_rate 0.2, others have 0.1; start all nodes alike";
    for text in agree_all(vec![fingerprint(0.1), fingerprint(0.2)]) {
        assert_eq!(text, Err(expected.to_owned()));
    }
    let chunked =
        |chunk| Ok(train_fingerprint(&graph, &TrainConfig { chunk, ..TrainConfig::default() }));
    let expected = "node n1 has chunk by default, others have 16; start all nodes alike";
    for text in agree_all(vec![chunked(Some(16)), chunked(None), chunked(Some(16))]) {
        assert_eq!(text, Err(expected.to_owned()));
    }
    let checkpoint = Checkpoint {
        model: crate::kge::ModelKind::Complex,
        dim: 2,
        reciprocal: false,
        weight: Weight::default(),
        entities: graph.entities.clone(),
        relations: graph.relations.clone(),
        trained_on: checkpoint::digest_of_train(&graph),
        values: Default::default(),
    };
    let other = evaluate_fingerprint(&graph, &EvalConfig::default(), &checkpoint);
    for text in agree_all(vec![fingerprint(0.1), fingerprint(0.1), Ok(other)]) {
        let expected =
            "node n2 runs evaluate kge, the others train kge; start all nodes with the same task";
        assert_eq!(text, Err(expected.to_owned()));
    }
}

#[test]
fn a_process_that_cannot_start_is_named_by_the_others() {
    let fingerprint = train_fingerprint(&Graph::families(1, 1), &TrainConfig::default());
    let ended = agree_all(vec![Ok(fingerprint), Err(ConfigError::NoWorkers.into())]);
    let own = ConfigError::NoWorkers.to_string();
    assert_eq!(ended, [Err(format!("node n1 failed: {own}")), Err(own)]);
}
