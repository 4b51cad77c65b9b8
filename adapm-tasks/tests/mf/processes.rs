//! Nodes as processes: each node a thread with a group of its own, joined over loopback as
//! processes are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs, process};

use adapm_core::NodeId;
use adapm_tasks::mf::{
    Checkpoint, EvalConfig, Optimizer, Order, RatingMetrics, Selection, TrainReport, evaluate,
    train,
};
use adapm_tasks::run::{Mismatch, Observer, Run, TaskError, Work};

use crate::group::as_each;
use crate::{ratings, rmse, run, shapes, small, steady};

#[test]
fn processes_train_as_well_as_one_and_report_the_same() {
    let ratings = ratings();
    let alone = rmse(&run(&ratings, &steady(|_| {})).expect("trains"));
    for (name, order) in [("columns", Order::Columnwise), ("blocks", Order::Dsgd)] {
        let config = steady(|config| config.order = Some(order));
        let reports: Vec<TrainReport> = as_each(name, 2, |_, group| {
            train(&ratings, &config, &Run::in_group(group)).expect("trains")
        });
        assert!(rmse(&reports[0]) < 1.05 * alone, "{order}: {} {alone}", rmse(&reports[0]));
        for report in &reports {
            assert_eq!((report.nodes, &report.workers, report.stopped), (2, &1.into(), false));
            assert_eq!((report.test, report.stats), (reports[0].test, reports[0].stats));
            assert!(report.epochs.iter().all(|epoch| epoch.examples == 5_000));
        }
        let checkpoint = reports[0].checkpoint.as_ref().expect("on node 0");
        assert!(reports[1].checkpoint.is_none());
        let config = EvalConfig::default();
        let here = evaluate(&ratings, checkpoint, &config, &Run::alone());
        assert_eq!(here.expect("predicts").figures, reports[0].test);
        let there = as_each(&format!("{name}-again"), 2, |_, group| {
            evaluate(&ratings, checkpoint, &config, &Run::in_group(group))
                .expect("predicts")
                .figures
        });
        assert_eq!(there, [reports[0].test; 2]);
    }
}

#[test]
fn processes_find_damage_in_a_model_together() {
    let (ratings, config) = (ratings(), EvalConfig::default());
    let trained = run(&ratings, &small(|_| {})).expect("trains").checkpoint;
    let model = trained.expect("is kept by default");
    let whole = model.write_to(Vec::new()).expect("memory takes all bytes");
    let path = env::temp_dir().join(format!("adapm-mf-damage-{}", process::id()));
    let evaluated = |name: &str, byte: Option<usize>| {
        let mut file = whole.clone();
        byte.into_iter().for_each(|byte| file[byte] ^= 1);
        fs::write(&path, file).expect("the folder for temporary files can be written");
        as_each(name, 2, |_, group| {
            let model = Checkpoint::open(&path).expect("the head is whole");
            let report = evaluate(&ratings, &model, &config, &Run::in_group(group));
            report.map(|report| report.figures).map_err(|error| error.to_string())
        })
    };
    let expected = evaluate(&ratings, &model, &config, &Run::alone()).expect("predicts").figures;
    assert_eq!(evaluated("whole", None), [Ok(expected), Ok(expected)]);
    // Numbers that stay finite; in the share of one process each.
    let row = model.row(0).expect("there is one").iter().flat_map(|value| value.to_le_bytes());
    let row = row.collect::<Vec<_>>();
    let first = whole.windows(row.len()).position(|window| *window == row).expect("it was written");
    let last = first + 4 * model.dim() * (model.rows() + model.columns()) - 4;
    let refused = Err(format!("{} is damaged; save it again", path.display()));
    for byte in [first, last] {
        assert_eq!(evaluated("damaged", Some(byte)), [refused.clone(), refused.clone()]);
    }
    fs::remove_file(path).expect("it was written");
}

#[test]
fn a_node_with_other_choices_is_named_by_all() {
    let ratings = ratings();
    let errors = as_each("choices", 2, |node, group| {
        let config = small(|config| config.l2 = Some(if node == 1 { 0.5 } else { 0.01 }));
        train(&ratings, &config, &Run::in_group(group)).expect_err("they differ")
    });
    for error in errors {
        let TaskError::Mismatch { node, what: Mismatch::Setting { name, .. } } = error else {
            panic!("{error}");
        };
        assert_eq!((node, name.as_str()), (NodeId(1), "l2"));
    }
}

/// Raises a flag in an epoch of cross-fitting.
struct StopAt<'a> {
    epoch: u64,
    stop: &'a AtomicBool,
}

impl Observer<RatingMetrics> for StopAt<'_> {
    fn working(&self, work: Work, done: u64, _: u64) {
        if work == Work::Selecting && done == self.epoch {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stop_in_cross_fitting_ends_all_processes_without_an_epoch() {
    let (ratings, _) = shapes::ratings("small", "stopped");
    for l2 in [None, Some(0.1)] {
        let config =
            small(|config| (config.epochs, config.no_hold_back, config.l2) = (Some(4), false, l2));
        assert!(matches!(Selection::planned(&ratings, &config), Selection::CrossFitted { .. }));
        // Node 0 is not stopped, or later than node 1.
        for epochs in [[u64::MAX, 2], [3, 2]] {
            let reports = as_each("stopped", 2, |node, group| {
                let stop = AtomicBool::new(false);
                let observer = StopAt { epoch: epochs[node], stop: &stop };
                train(
                    &ratings,
                    &config,
                    &Run::in_group(group).observed_by(&observer).stopped_by(&stop),
                )
                .expect("stops")
            });
            for report in reports {
                assert!(report.stopped && report.epochs.is_empty() && report.test.is_none());
                assert_eq!((report.own.selected, report.checkpoint), (None, None));
            }
        }
    }
}

#[test]
fn training_that_diverges_in_one_process_ends_all_with_the_same_error() {
    let ratings = ratings();
    let config = small(|config| {
        (config.optimizer, config.learning_rate, config.order) =
            (Optimizer::Sgd, Some(1e6), Some(Order::Dsgd));
    });
    let errors = as_each("diverges", 2, |_, group| {
        train(&ratings, &config, &Run::in_group(group)).expect_err("diverges").to_string()
    });
    assert!(errors[0].starts_with("training diverged") && errors[0] == errors[1], "{errors:?}");
}
