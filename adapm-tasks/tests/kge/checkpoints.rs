//! Parameters in files: complete, the same for any number of nodes, and never trusted.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use adapm_tasks::System;
use adapm_tasks::kge::{
    Checkpoint, CheckpointError, EvalConfig, Graph, GraphOptions, ModelKind, NoProgress, TaskError,
    TrainConfig, evaluate,
};

use crate::{graph, run, small};

/// A file that is gone when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("adapm-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn trained(graph: &Graph, config: &TrainConfig) -> Checkpoint {
    run(graph, config).expect("trains").checkpoint.expect("asked for")
}

#[test]
fn parameters_are_kept_only_if_asked_for() {
    let config = small(|config| (config.epochs, config.checkpoint) = (1, false));
    let report = run(&graph(), &config).expect("trains");
    assert!(report.checkpoint.is_none() && report.test.is_some());
}

#[test]
fn initial_values_are_the_same_bytes_from_any_number_of_nodes() {
    let graph = graph();
    let mut saved = Vec::new();
    for (nodes, system) in
        [(1, None), (1, Some(System::Adapm)), (2, Some(System::Full)), (4, Some(System::Lapse))]
    {
        let config = small(|config| {
            (config.nodes, config.system, config.epochs, config.evaluate) =
                (nodes, system, 0, false);
        });
        let file = Scratch::new(&format!("initial-{nodes}"));
        trained(&graph, &config).save(&file.0).expect("saves");
        saved.push(fs::read(&file.0).expect("is there"));
    }
    assert!(saved.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn ranks_are_the_same_on_any_number_of_nodes() {
    let graph = graph();
    for model in [ModelKind::Complex, ModelKind::Rescal] {
        let config =
            small(|config| (config.model, config.epochs, config.reciprocal) = (model, 1, true));
        let report = run(&graph, &config).expect("trains");
        let checkpoint = report.checkpoint.expect("asked for");
        let file = Scratch::new(model.name());
        checkpoint.save(&file.0).expect("saves");
        let loaded = Checkpoint::load(&file.0).expect("loads");
        assert_eq!(loaded, checkpoint);

        let ranks = |system, nodes| {
            let mut config = EvalConfig::default();
            (config.system, config.nodes, config.workers) = (system, nodes, Some(2));
            let report = evaluate(&graph, &loaded, &config, &NoProgress, &AtomicBool::new(false))
                .expect("ranks");
            assert_eq!(report.ranks.len(), 2 * graph.test().len());
            (report.metrics, report.ranks)
        };
        let expected = ranks(None, 1);
        assert_eq!(Some(expected.0), report.test);
        for nodes in [1, 2, 4] {
            assert_eq!(ranks(Some(System::Adapm), nodes), expected, "{nodes} nodes");
        }
    }
}

#[test]
fn parameters_of_other_data_are_refused() {
    let config = small(|config| (config.epochs, config.evaluate) = (0, false));
    let checkpoint = trained(&graph(), &config);
    let other = Graph::families(1, 5);
    let outcome =
        evaluate(&other, &checkpoint, &EvalConfig::default(), &NoProgress, &AtomicBool::new(false));
    assert!(matches!(outcome, Err(TaskError::Checkpoint(CheckpointError::OtherData { .. }))));
}

#[test]
fn parameters_trained_on_other_facts_of_the_same_names_are_refused() {
    let file = Scratch::new("parts.tsv");
    let facts: String =
        (0..200).map(|at| format!("e{}\tr{}\te{}\n", at % 20, at % 3, at * 7 % 20)).collect();
    fs::write(&file.0, facts).expect("writes");
    let graph = |seed| {
        let mut options = GraphOptions::default();
        options.seed = seed;
        Graph::load_with(&file.0, &options).expect("reads")
    };
    let (graph, other) = (graph(7), graph(1));
    assert_eq!(graph.entities(), other.entities());
    // Whether some of train was held back to select on or not.
    for holds_back in [false, true] {
        let config = small(|config| (config.epochs, config.evaluate) = (1, holds_back));
        let checkpoint = trained(&graph, &config);
        let rank = |graph| {
            evaluate(
                graph,
                &checkpoint,
                &EvalConfig::default(),
                &NoProgress,
                &AtomicBool::new(false),
            )
        };
        assert!(rank(&graph).is_ok());
        let error = rank(&other).expect_err("other facts");
        assert!(
            matches!(
                error,
                TaskError::Checkpoint(CheckpointError::OtherTraining { of: "triples" })
            ),
            "{error}"
        );
        assert!(error.to_string().contains("--data-seed"), "{error}");
    }
}

#[test]
fn a_damaged_file_is_an_error_of_one_line() {
    let config = small(|config| (config.epochs, config.evaluate) = (0, false));
    let file = Scratch::new("damaged");
    trained(&Graph::families(1, 1), &config).save(&file.0).expect("saves");
    let bytes = fs::read(&file.0).expect("is there");
    let load = |bytes: &[u8]| {
        fs::write(&file.0, bytes).expect("writes");
        let outcome = Checkpoint::load(&file.0);
        if let Err(error) = &outcome {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.contains("damaged"), "{text}");
        }
        outcome.map(drop)
    };
    assert_eq!(load(&bytes), Ok(()));
    for len in (0..bytes.len()).step_by(97) {
        assert!(load(&bytes[..len]).is_err(), "cut at {len}");
    }
    for at in (0..bytes.len()).step_by(61) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        assert!(load(&bytes).is_err(), "flipped at {at}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(load(&longer), Err(CheckpointError::Corrupt { .. })));
    for version in [1, 9] {
        let mut other = bytes.clone();
        other[8] = version;
        let expected =
            CheckpointError::Version { path: file.0.clone(), found: version.into(), read: 2 };
        assert_eq!(load(&other), Err(expected));
    }
    assert!(matches!(load(b"no checkpoint at all"), Err(CheckpointError::Foreign { .. })));
    let missing = Checkpoint::load(&file.0.with_extension("missing"));
    assert!(
        matches!(missing, Err(CheckpointError::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound)
    );
}
