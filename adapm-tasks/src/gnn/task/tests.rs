//! The task learns, and comes to the same wherever it runs.

use adapm_runtime::System;

use super::*;
use crate::gnn::config::{FeatureSource, Scale};
use crate::gnn::{SyntheticConfig, evaluate, train};
use crate::run::loading::assert_begins_anywhere;
use crate::run::{ClusterConfig, Run, TaskError};

fn graph(nodes: u32) -> Graph {
    let config = SyntheticConfig { nodes, classes: 4, ..SyntheticConfig::default() };
    Graph::synthetic(config).expect("there is such a graph")
}

fn cluster(system: Option<System>, nodes: usize) -> ClusterConfig {
    let (nodes, workers) = (Some(nodes), Some(1.into()));
    ClusterConfig { system, nodes, workers, ..ClusterConfig::default() }
}

fn config(features: FeatureSource, cluster: ClusterConfig) -> TrainConfig {
    let is_learned = features == FeatureSource::Learned;
    let epochs = if is_learned { 30 } else { 100 };
    TrainConfig {
        features: Some(features),
        epochs: Some(epochs),
        hidden: 16,
        dim: 16,
        batch: 20,
        cluster,
        ..TrainConfig::default()
    }
}

#[test]
fn it_learns_under_every_system_and_is_judged_alike_on_any_number_of_nodes() {
    let graph = graph(800);
    let managed = System::ALL.into_iter().map(|system| (Some(system), 2));
    let runs: Vec<_> = managed.chain([(None, 1), (Some(System::Adapm), 4)]).collect();
    for (features, least) in [(FeatureSource::Given, 0.75), (FeatureSource::Learned, 0.7)] {
        for (system, nodes) in &runs {
            let config = config(features, cluster(*system, *nodes));
            let report = train(&graph, &config, &Run::alone()).expect("trains");
            let test = report.test.expect("there are nodes for test");
            assert!(test.accuracy > least, "{features:?} {system:?}: {test:?}");
            let model = report.checkpoint.expect("is asked for by default");
            for nodes in [1, 2, 4] {
                let cluster = cluster(Some(System::Adapm), nodes);
                let judged = evaluate(&graph, &model, Split::Test, &cluster, &Run::alone());
                assert_eq!(judged.expect("can be evaluated").figures, Some(test), "{system:?}");
            }
        }
    }
}

#[test]
fn a_loader_begins_at_any_batch_and_each_node_is_trained_on_once_an_epoch() {
    let graph = graph(600);
    for (features, partition) in [
        (FeatureSource::Given, Partition::Grown),
        (FeatureSource::Learned, Partition::Grown),
        (FeatureSource::Learned, Partition::Random),
    ] {
        let mut config = config(features, ClusterConfig::default());
        (config.batch, config.partition) = (10, Some(partition));
        let model = config.architecture(&graph).expect("there are features");
        for workers in [&[1][..], &[2], &[1, 1], &[2, 2], &[1, 1, 1], &[3, 1]] {
            let mut seen = Vec::new();
            let task = Network::new(&graph, &graph.features, &model, &config, workers);
            let fair = graph.train().len() / workers.iter().sum::<usize>();
            for slot in WorkerSlot::all_of(workers, true) {
                assert!(assert_begins_anywhere(&task, slot, 2) > 2);
                let dealt = task.dealt(slot, 1);
                assert!(dealt.len().abs_diff(fair) <= 1 + fair / 5, "{} {workers:?}", dealt.len());
                seen.extend(dealt);
                assert_ne!(task.dealt(slot, 1), task.dealt(slot, 2));
            }
            seen.sort_unstable();
            assert_eq!(seen, graph.train());
        }
    }
}

#[test]
fn samples_and_dropout_of_a_batch_do_not_depend_on_the_number_of_nodes() {
    let graph = graph(600);
    let content = |nodes: usize| {
        let config = config(FeatureSource::Given, cluster(Some(System::Adapm), nodes));
        let model = config.architecture(&graph).expect("there are features");
        let workers = vec![1; nodes];
        let task = Network::new(&graph, &graph.features, &model, &config, &workers);
        task.dealt(WorkerSlot::of(&workers, (0, 0), true), 1);
        task.content(1, &graph.train()[..5])
    };
    let (one, four) = (content(1), content(4));
    assert_eq!((one.block, one.step), (four.block, four.step));
}

#[test]
fn a_model_of_another_graph_and_features_that_there_are_not_are_refused() {
    let (graph, other) = (graph(600), graph(700));
    let mut config = config(FeatureSource::Learned, cluster(Some(System::Adapm), 1));
    config.epochs = Some(1);
    let model = train(&graph, &config, &Run::alone()).expect("trains").checkpoint.expect("kept");
    let judged = evaluate(&other, &model, Split::Test, &config.cluster, &Run::alone());
    let error = judged.expect_err("other nodes").to_string();
    assert!(error.contains("the data has 700 nodes where the model has 600"), "{error}");
    let mut bare = graph.clone();
    bare.features = Features::Missing;
    config.features = Some(FeatureSource::Given);
    let error = train(&bare, &config, &Run::alone()).expect_err("no features");
    assert!(matches!(error, TaskError::Own(_)), "{error}");
    config.features = None;
    assert_eq!(config.architecture(&bare).expect("learned").inputs, Inputs::Learned);
}

#[test]
fn training_that_diverges_ends_with_an_error() {
    let graph = graph(600);
    let mut config = config(FeatureSource::Given, cluster(Some(System::Adapm), 1));
    (config.learning_rate, config.scale) = (1e30, Some(Scale::Raw));
    assert!(train(&graph, &config, &Run::alone()).is_err());
}

#[test]
fn keys_are_named_and_traced_by_the_number_of_their_node() {
    let graph = graph(600);
    let config = config(FeatureSource::Learned, ClusterConfig::default());
    let model = config.architecture(&graph).expect("learned");
    assert_eq!(name_of(&model, Key(17)), "node 17");
    assert_eq!(name_of(&model, Key(601)), "part 1 of the layers");
    let traced = |text: &str| {
        let choices = KeyChoice::list(text, KEY_KINDS).expect("a choice");
        traced_keys(&graph, &model, &choices)
    };
    assert_eq!(traced("node:5").expect("there is node 5"), [(Key(5), "node 5".to_owned())]);
    assert!(traced("node:600").is_err());
}
