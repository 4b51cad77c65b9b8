//! Matrix factorization through the public API: every system, order and number of nodes, stopping,
//! checkpoints, bad input.

use adapm_tasks::mf::{
    Optimizer, Penalty, Ratings, SyntheticConfig, TrainConfig, TrainReport, train,
};
use adapm_tasks::run::{Run, TaskError};

#[path = "../support/group.rs"]
mod group;
#[path = "../support/shapes.rs"]
mod shapes_support;

mod bad_input;
mod checkpoints;
mod processes;
mod real_data;
mod shapes;
mod training;

/// Returns a small generated matrix: an untrained model is off by 1, the best possible one by 0.1.
fn ratings() -> Ratings {
    let mut config = SyntheticConfig::default();
    (config.rows, config.columns, config.cells, config.test_cells) = (200, 100, 5_000, 1_000);
    (config.rank, config.noise) = (2, 0.1);
    Ratings::synthetic(config).expect("there is such a matrix")
}

/// Returns a configuration that learns it in a moment, and selects nothing.
fn small(change: impl FnOnce(&mut TrainConfig)) -> TrainConfig {
    let mut config = TrainConfig::default();
    (config.cluster.workers, config.dim, config.epochs, config.no_hold_back) =
        (Some(1.into()), 4, Some(15), true);
    (config.learning_rate, config.l2, config.initial_deviation) = (Some(0.1), Some(0.01), 0.3);
    change(&mut config);
    config
}

/// As [`small`], for tests of quality: 180 runs on one node to four ended within 1.01 of each
/// other.
///
/// Its epochs take a moment, so that steps of all nodes for one column add up before any node sees
/// them. With three times this step size, a good one for one node, one run in 60 on four nodes
/// ended at 1.3, under full replication, too.
fn steady(change: impl FnOnce(&mut TrainConfig)) -> TrainConfig {
    small(|config| {
        (config.optimizer, config.learning_rate, config.epochs) =
            (Optimizer::Sgd, Some(0.01), Some(60));
        (config.penalty, config.l2) = (Penalty::Vector, Some(0.2));
        change(config);
    })
}

fn run(ratings: &Ratings, config: &TrainConfig) -> Result<TrainReport, TaskError> {
    train(ratings, config, &Run::alone())
}

fn rmse(report: &TrainReport) -> f64 {
    report.test.expect("evaluated").rmse
}
