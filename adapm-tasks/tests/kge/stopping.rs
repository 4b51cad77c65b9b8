//! The stop flag ends a run at once, with what there is.

use std::sync::atomic::{AtomicBool, Ordering};

use adapm_tasks::System;
use adapm_tasks::kge::train;
use adapm_tasks::metric::RankMetrics;
use adapm_tasks::run::{Epoch, Observer, Run, Split};

use crate::{graph, small};

struct StopAfter<'a> {
    epoch: u32,
    stop: &'a AtomicBool,
}

impl Observer<RankMetrics> for StopAfter<'_> {
    fn epoch(&self, report: &Epoch<RankMetrics>) {
        if report.epoch == self.epoch {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

struct StopInEvaluation<'a>(&'a AtomicBool);

impl Observer<RankMetrics> for StopInEvaluation<'_> {
    fn evaluating(&self, _: Split, _: u64, _: u64) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_stopped_run_keeps_its_epochs_and_best_parameters() {
    for (system, nodes, workers) in [(None, 1, 1), (Some(System::Adapm), 2, 2)] {
        let stop = AtomicBool::new(false);
        let config = small(|config| {
            (config.cluster.system, config.cluster.nodes, config.cluster.workers) =
                (system, Some(nodes), Some(workers.into()));
            config.epochs = 1000;
        });
        let report = train(
            &graph(),
            &config,
            &Run::alone().observed_by(&StopAfter { epoch: 2, stop: &stop }).stopped_by(&stop),
        )
        .expect("stops");
        assert!(report.stopped && report.test.is_none());
        assert_eq!(
            (report.epochs.len(), report.checkpoint.expect("asked for").dim()),
            (2, config.dim)
        );
        assert!((1..=2).contains(&report.chosen_epoch));
    }
}

#[test]
fn a_run_stopped_before_it_starts_has_no_epochs() {
    let stop = AtomicBool::new(true);
    let report = train(
        &graph(),
        &small(|config| config.cluster.system = Some(System::Adapm)),
        &Run::alone().stopped_by(&stop),
    );
    let report = report.expect("stops");
    assert!(report.stopped && report.epochs.is_empty());
    assert_eq!((report.chosen_epoch, report.test), (0, None));
}

#[test]
fn a_run_stopped_in_evaluation_has_its_epoch_without_figures() {
    let stop = AtomicBool::new(false);
    let config = small(|config| {
        (config.cluster.system, config.cluster.nodes) = (Some(System::Adapm), Some(2))
    });
    let report = train(
        &graph(),
        &config,
        &Run::alone().observed_by(&StopInEvaluation(&stop)).stopped_by(&stop),
    )
    .expect("stops");
    assert!(report.stopped && report.test.is_none());
    assert_eq!((report.epochs.len(), report.chosen_epoch), (1, 1));
}
