//! Choices that make no sense and training that diverges are errors of one line.

use adapm_tasks::mf::{Optimizer, TrainConfig};
use adapm_tasks::run::{ConfigError, TaskError};

use crate::{ratings, run, small};

#[test]
fn choices_that_make_no_sense_are_named() {
    let ratings = ratings();
    let refused =
        |change: &dyn Fn(&mut TrainConfig)| match run(&ratings, &small(|config| change(config))) {
            Err(TaskError::Config(error)) => error,
            other => panic!("{other:?}"),
        };
    assert_eq!(refused(&|config| config.cluster.nodes = Some(0)), ConfigError::NoNodes);
    assert_eq!(refused(&|config| config.cluster.workers = Some(0.into())), ConfigError::NoWorkers);
    let text = |change: &dyn Fn(&mut TrainConfig)| refused(change).to_string();
    assert_eq!(text(&|config| config.dim = 0), "dim 0: give a whole number from 1 to 65536");
    assert_eq!(
        text(&|config| config.dim = 1 << 17),
        "dim 131072: give a whole number from 1 to 65536"
    );
    for rate in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let expected = format!("learning_rate {rate}: give a positive number");
        assert_eq!(text(&|config| config.learning_rate = Some(rate)), expected);
    }
    assert_eq!(text(&|config| config.l2 = Some(-0.1)), "l2 -0.1: give 0 or a positive number");
    assert_eq!(
        refused(&|config| config.cluster.nodes = Some(301)),
        ConfigError::MoreNodesThanKeys { nodes: 301, keys: 300 }
    );
}

#[test]
fn training_that_diverges_names_key_step_and_learning_rate() {
    for (nodes, workers) in [(1, 1), (2, 2)] {
        let config = small(|config| {
            (config.optimizer, config.learning_rate) = (Optimizer::Sgd, Some(1e6));
            (config.cluster.nodes, config.cluster.workers) = (Some(nodes), Some(workers.into()));
        });
        let error = run(&ratings(), &config).expect_err("diverges");
        let text = error.to_string();
        let TaskError::NotFinite { key, learning_rate, .. } = error else { panic!("{text}") };
        assert!(key < 300 && learning_rate == 1e6 && !text.contains('\n'), "{text}");
    }
}
