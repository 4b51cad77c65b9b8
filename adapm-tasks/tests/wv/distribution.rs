//! The same task on several nodes, under every system.

use adapm_tasks::System;
use adapm_tasks::run::Run;
use adapm_tasks::wv::{Analogies, EvalConfig, evaluate};

use crate::{corpus, run, small};

#[test]
fn every_system_trains_on_three_nodes() {
    let corpus = corpus(600);
    for system in System::ALL {
        let config = small(|config| {
            (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
                (Some(system), Some(3), Some(2.into()));
            (config.sample, config.epochs) = (0.0, Some(8));
        });
        let report = run(&corpus, &config).unwrap_or_else(|error| panic!("{system}: {error}"));
        let losses = [report.epochs[0].loss, report.epochs[7].loss];
        println!("{system}: {losses:.3?}");
        assert!(losses[1] < 0.9 * losses[0], "{system}: {losses:?}");
        // A worker may end with a sentence of one known word.
        assert!(corpus.words() - report.epochs[7].examples < 30, "{system}");
        assert!(report.test.is_some() && report.stats.bytes_sent > 0, "{system}");
    }
}

#[test]
fn several_nodes_learn_as_well_as_one() {
    let corpus = corpus(5_000);
    for nodes in [2, 4] {
        let config = small(|config| {
            (config.cluster.system, config.cluster.nodes, config.dim, config.epochs) =
                (Some(System::Adapm), Some(nodes), 32, Some(5));
            config.sample = 0.0;
        });
        let report = run(&corpus, &config).expect("trains");
        let accuracy = report.test.expect("asked").total().accuracy();
        println!("{nodes} nodes: {accuracy:.3}");
        assert!(accuracy > 0.8, "{nodes} nodes: {accuracy}");
    }
}

#[test]
fn answers_are_the_same_on_any_number_of_nodes_and_workers() {
    let report = run(&corpus(3000), &small(|_| {})).expect("trains");
    let (checkpoint, questions) =
        (report.checkpoint.expect("is asked for"), Analogies::generated());
    assert_eq!(Some(questions.evaluate(&checkpoint.vectors(), usize::MAX, 2)), report.test);
    for (system, nodes, workers) in [
        (None, 1, 1),
        (Some(System::Adapm), 1, 2),
        (Some(System::Classic), 3, 1),
        (Some(System::Adapm), 4, 2),
    ] {
        let mut config = EvalConfig::default();
        (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
            (system, Some(nodes), Some(workers.into()));
        let evaluated = evaluate(&checkpoint.vectors(), &questions, &config, &Run::alone());
        assert_eq!(evaluated.expect("answers").figures, report.test, "{system:?} {nodes}");
        config.words = Some(300);
        let fewer = evaluate(&checkpoint.vectors(), &questions, &config, &Run::alone());
        let expected = questions.evaluate(&checkpoint.vectors(), 300, 1);
        assert_eq!(fewer.expect("answers").figures, Some(expected), "{system:?} {nodes}");
    }
}
