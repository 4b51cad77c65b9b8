//! The results of training, and that they are the same on every topology.

use std::sync::atomic::{AtomicBool, Ordering};

use adapm_tasks::System;
use adapm_tasks::mf::{Optimizer, Order, Penalty, RatingMetrics, train};
use adapm_tasks::run::{Epoch, Observer, Run};

use crate::{ratings, rmse, run, small, steady};

#[test]
fn every_system_converges_to_the_same_error() {
    let ratings = ratings();
    let best = ratings.best_rmse().expect("is generated");
    let alone =
        rmse(&run(&ratings, &steady(|config| config.cluster.system = None)).expect("trains"));
    assert!(best < 0.11 && alone < 1.2 * best, "{best} {alone}");
    for system in System::ALL {
        for (nodes, workers) in [(1, 2), (2, 1), (4, 1)] {
            let config = steady(|config| {
                (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
                    (Some(system), Some(nodes), Some(workers.into()));
            });
            let report = run(&ratings, &config).expect("trains");
            let rmse = rmse(&report);
            assert!(rmse < 1.05 * alone, "{system} on {nodes} x {workers}: {rmse}, alone {alone}");
            assert_eq!(report.epochs.last().expect("trained").examples, 5_000);
        }
    }
}

#[test]
fn every_order_optimizer_and_penalty_learns() {
    let ratings = ratings();
    for order in [Order::Columnwise, Order::Dsgd, Order::Plain] {
        for (optimizer, learning_rate) in [(Optimizer::AdaGrad, 0.1), (Optimizer::Sgd, 0.03)] {
            for (system, nodes, workers) in [(None, 1, 1), (Some(System::Adapm), 2, 2)] {
                let config = small(|config| {
                    (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
                        (system, Some(nodes), Some(workers.into()));
                    config.epochs = Some(10);
                    (config.order, config.optimizer) = (Some(order), optimizer);
                    (config.learning_rate, config.penalty, config.l2) =
                        (Some(learning_rate), Penalty::Vector, Some(0.2));
                });
                let rmse = rmse(&run(&ratings, &config).expect("trains"));
                assert!(rmse < 0.5, "{order} {optimizer} {system:?}: {rmse}");
            }
        }
    }
}

#[test]
fn one_worker_does_the_same_with_a_manager_and_without_and_every_time() {
    let ratings = ratings();
    for order in [Order::Columnwise, Order::Dsgd, Order::Plain] {
        let of = |system| {
            let config = small(|config| {
                (config.cluster.system, config.order, config.epochs) =
                    (system, Some(order), Some(3))
            });
            let report = run(&ratings, &config).expect("trains");
            let losses: Vec<f64> = report.epochs.iter().map(|epoch| epoch.loss).collect();
            (report.checkpoint.expect("asked for"), losses, report.test)
        };
        let alone = of(None);
        assert!(
            alone == of(None)
                && alone == of(Some(System::Adapm))
                && alone == of(Some(System::Classic))
        );
    }
}

#[test]
fn in_blocks_nobody_meets_so_systems_and_nodes_make_no_difference_beyond_the_blocks() {
    let ratings = ratings();
    let of = |system, nodes, workers: usize| {
        let config = small(|config| {
            (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
                (Some(system), Some(nodes), Some(workers.into()));
            (config.order, config.epochs) = (Some(Order::Dsgd), Some(3));
        });
        run(&ratings, &config).expect("trains").checkpoint.expect("asked for")
    };
    let expected = of(System::Classic, 1, 4);
    for (system, nodes, workers) in
        [(System::Classic, 4, 1), (System::Lapse, 2, 2), (System::Adapm, 2, 2)]
    {
        assert!(of(system, nodes, workers) == expected, "{system} on {nodes} x {workers}");
    }
}

#[test]
fn the_bold_driver_lowers_a_rate_that_is_too_high() {
    let ratings = ratings();
    let loss = |bold| {
        let config = small(|config| {
            (config.bold_driver, config.learning_rate, config.epochs) = (bold, Some(1.0), Some(30));
        });
        run(&ratings, &config).expect("trains").epochs.last().expect("trained").loss
    };
    assert!(loss(true) < 0.95 * loss(false), "{} {}", loss(true), loss(false));
}

struct StopAfter<'a>(u32, &'a AtomicBool);

impl Observer<RatingMetrics> for StopAfter<'_> {
    fn epoch(&self, epoch: &Epoch<RatingMetrics>) {
        if epoch.epoch == self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stopped_run_keeps_its_epochs() {
    for order in [Order::Columnwise, Order::Dsgd] {
        let stop = AtomicBool::new(false);
        let config = small(|config| {
            (config.cluster.nodes, config.cluster.workers, config.order, config.epochs) =
                (Some(2), Some(2.into()), Some(order), Some(10_000));
        });
        let report = train(
            &ratings(),
            &config,
            &Run::alone().observed_by(&StopAfter(2, &stop)).stopped_by(&stop),
        )
        .expect("stops");
        assert!(report.stopped && report.test.is_none() && report.checkpoint.is_some());
        assert!((2..10_000).contains(&report.epochs.len()), "{}", report.epochs.len());
    }
}
