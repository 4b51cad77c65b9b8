//! Nodes as processes: each node a thread with a group of its own, joined over loopback as
//! processes are.

use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

use adapm_core::NodeId;
use adapm_tasks::System;
use adapm_tasks::kge::{
    ConfigError, EvalConfig, Graph, Mismatch, ModelKind, NoProgress, TaskError, TrainConfig,
    TrainReport, evaluate, train,
};
use adapm_tasks::metric::RankMetrics;
use adapm_tasks::run::{Epoch, Keep, Observer, Run};

use crate::group::as_each;
use crate::{STEADY_DIM, graph, run, small};

fn config(change: impl FnOnce(&mut TrainConfig)) -> TrainConfig {
    small(|config| {
        config.cluster.system = Some(System::Adapm);
        change(config);
    })
}

/// Trains as each node of a group, and returns the reports by node.
pub(crate) fn train_all(
    name: &str,
    nodes: usize,
    graph: &Graph,
    config: &TrainConfig,
) -> Vec<TrainReport> {
    as_each(name, nodes, |_, group| train(graph, config, &Run::in_group(group)).expect("trains"))
}

#[test]
fn processes_train_as_well_as_one_and_report_the_same() {
    let graph = graph();
    let config = config(|config| (config.dim, config.epochs) = (STEADY_DIM, 10));
    let mut in_one = config.clone();
    in_one.cluster.nodes = Some(3);
    let alone = run(&graph, &in_one).expect("trains");
    let reports = train_all("quality", 3, &graph, &config);
    let mrr = |report: &TrainReport| report.test.expect("evaluated").mrr;
    assert!(mrr(&reports[0]) > 0.9 && mrr(&alone) > 0.9, "{} {}", mrr(&reports[0]), mrr(&alone));
    for report in &reports {
        assert_eq!((report.nodes, &report.workers, report.stopped), (3, &1.into(), false));
        assert_eq!((report.test, report.stats), (reports[0].test, reports[0].stats));
        assert_eq!(report.chosen_epoch, reports[0].chosen_epoch);
        let told = |report: &TrainReport| {
            let of = |epoch: &Epoch<RankMetrics>| {
                (epoch.loss, epoch.valid, epoch.examples, epoch.epoch_stats)
            };
            report.epochs.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(told(report), told(&reports[0]));
        assert_eq!(report.epochs[9].examples, graph.train().len() as u64);
    }
    let accesses = |report: &TrainReport| {
        let stats = &report.stats;
        stats.local + stats.waited + stats.remote
    };
    assert_eq!(accesses(&reports[0]), accesses(&alone), "totals are over all nodes");

    // What node 0 has brought together is what all have ranked.
    let checkpoint = reports[0].checkpoint.as_ref().expect("on node 0");
    assert!(reports[1..].iter().all(|report| report.checkpoint.is_none()));
    let ranked = evaluate(&graph, checkpoint, &EvalConfig::default(), &Run::alone());
    assert_eq!(ranked.expect("ranks").figures, reports[0].test);
}

#[test]
fn every_system_trains_in_processes() {
    let graph = Graph::families(1, 3);
    for system in System::ALL {
        let config = config(|config| {
            (config.cluster.system, config.cluster.workers, config.epochs) =
                (Some(system), Some(2.into()), 4);
            (config.negative_count, config.run.keep) = (Some(16), Keep::Nothing);
        });
        let reports = train_all(system.name(), 2, &graph, &config);
        let losses: Vec<f64> = reports[1].epochs.iter().map(|epoch| epoch.loss).collect();
        // The second epoch alone may be worse than the first where a worker was held up for most of
        // it.
        assert!(losses[1..].iter().any(|loss| *loss < losses[0]), "{system}: {losses:?}");
        assert!(reports[0].checkpoint.is_none() && reports[1].test.is_some());
    }
}

#[test]
fn ranks_are_the_same_in_any_number_of_processes() {
    let graph = graph();
    for model in [ModelKind::Complex, ModelKind::Rescal, ModelKind::RotatE] {
        let config =
            small(|config| (config.model, config.epochs, config.reciprocal) = (model, 1, true));
        let checkpoint = run(&graph, &config).expect("trains").checkpoint.expect("asked for");
        let mut config = EvalConfig::default();
        (config.cluster.system, config.cluster.nodes) = (None, Some(1));
        let expected = evaluate(&graph, &checkpoint, &config, &Run::alone()).expect("ranks");
        for nodes in [1, 2, 4] {
            (config.cluster.system, config.cluster.workers) = (Some(System::Adapm), Some(2.into()));
            let reports = as_each(&format!("ranks-{model}-{nodes}"), nodes, |_, group| {
                evaluate(&graph, &checkpoint, &config, &Run::in_group(group)).expect("ranks")
            });
            for report in reports {
                assert_eq!((report.nodes, &report.own.ranks), (nodes, &expected.own.ranks));
                assert_eq!(report.figures, expected.figures);
            }
        }
    }
}

/// Raises its flag when an epoch is over.
struct StopAfter<'a>(u32, &'a AtomicBool);

impl Observer<RankMetrics> for StopAfter<'_> {
    fn epoch(&self, report: &Epoch<RankMetrics>) {
        if report.epoch == self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stop_raised_in_one_process_ends_all_with_their_results() {
    let (graph, config) = (graph(), config(|config| config.epochs = 1000));
    let reports = as_each("stop", 3, |node, group| {
        let stop = AtomicBool::new(false);
        let stopper = StopAfter(2, &stop);
        let progress: &dyn Observer<RankMetrics> = if node == 1 { &stopper } else { &NoProgress };
        train(&graph, &config, &Run::in_group(group).observed_by(progress).stopped_by(&stop))
            .expect("a stop is no failure")
    });
    for report in &reports {
        assert!(report.stopped && report.test.is_none());
        assert_eq!((report.epochs.len(), report.chosen_epoch), (2, reports[0].chosen_epoch));
    }
    assert!(reports[0].checkpoint.is_some());
}

/// Returns the errors of the nodes of three processes that mean different runs.
fn refused(
    name: &str,
    graph: impl Fn(usize) -> Graph + Sync,
    config: impl Fn(usize) -> TrainConfig + Sync,
) -> Vec<TaskError> {
    as_each(name, 3, |node, group| {
        train(&graph(node), &config(node), &Run::in_group(group)).expect_err("they differ")
    })
}

#[test]
fn the_node_with_other_data_or_choices_is_named_by_all() {
    let families = |node| Graph::families(1, if node == 2 { 4 } else { 3 });
    for error in refused("data", families, |_| config(|_| {})) {
        let text = error.to_string();
        assert!(text.starts_with("node n2 has other data: ") && !text.contains('\n'), "{text}");
        let what = Mismatch::Data { there: String::new(), elsewhere: String::new() };
        let TaskError::Mismatch { node: NodeId(2), what: other } = error else { panic!("{text}") };
        assert_eq!(std::mem::discriminant(&other), std::mem::discriminant(&what));
    }
    let choices = |node| config(|config| config.run.seed = if node == 1 { 7 } else { 1 });
    for error in refused("choices", |_| Graph::families(1, 3), choices) {
        assert_eq!(error.to_string(), "node n1 has seed 7, others have 1; start all nodes alike");
    }
}

#[test]
fn a_node_that_cannot_start_is_named_by_the_others() {
    let dims = |node| config(|config| config.dim = if node == 1 { 7 } else { 16 });
    let own = "dim 7: the model complex needs an even dimension".to_owned();
    let texts =
        refused("dim", |_| Graph::families(1, 3), dims).into_iter().map(|error| error.to_string());
    let elsewhere = format!("node n1 failed: {own}");
    assert!(texts.eq([elsewhere.clone(), own, elsewhere]));
    for error in refused("plain", |_| Graph::families(1, 3), |_| small(|_| {})) {
        assert!(matches!(error, TaskError::Config(ConfigError::NoSystem)), "{error}");
    }
}

#[test]
fn training_that_diverges_ends_all_with_the_same_reason() {
    let config =
        |_| config(|config| (config.learning_rate, config.negative_count) = (1e30, Some(8)));
    let errors = refused("diverges", |_| Graph::families(1, 3), config);
    assert!(errors.iter().all(|error| matches!(error, TaskError::NotFinite { .. })), "{errors:?}");
    assert!(errors.iter().all(|error| error.to_string() == errors[0].to_string()), "{errors:?}");
}

/// Panics when an epoch is over.
struct Panics;

impl Observer<RankMetrics> for Panics {
    fn epoch(&self, _: &Epoch<RankMetrics>) {
        panic::panic_any("of the test");
    }
}

#[test]
fn a_node_that_panics_is_named_by_the_others() {
    let (graph, config) = (Graph::families(1, 3), config(|config| config.epochs = 1000));
    let texts = as_each("panic", 3, |node, group| {
        let stop = AtomicBool::new(false);
        let progress: &dyn Observer<RankMetrics> = if node == 0 { &Panics } else { &NoProgress };
        let train = || {
            train(&graph, &config, &Run::in_group(group).observed_by(progress).stopped_by(&stop))
                .map(drop)
        };
        train().expect_err("n0 panics").to_string()
    });
    assert_eq!(texts[0], "worker w0 of node n0 panicked: of the test");
    for text in &texts[1..] {
        assert!(
            text.starts_with("node n0 (") && text.contains("it ended with an error of its own"),
            "{text}"
        );
    }
}

#[test]
fn a_node_that_leaves_before_the_run_is_named_by_the_others() {
    let (graph, config) = (Graph::families(1, 3), config(|_| {}));
    let texts = as_each("leaves", 3, |node, group| {
        let train = || train(&graph, &config, &Run::in_group(group));
        if node == 1 { String::new() } else { train().expect_err("n1 is gone").to_string() }
    });
    assert!(texts[0].contains("n1") && texts[2].contains("n1"), "{texts:?}");
}
