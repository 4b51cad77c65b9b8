//! Default settings on matrices of many shapes: never worse than trivial means.

use std::path::PathBuf;

use adapm_tasks::System;
use adapm_tasks::mf::{
    Checkpoint, EvalConfig, Ratings, Selection, TrainConfig, TrainReport, evaluate,
};
use adapm_tasks::run::Run;

use crate::shapes_support::{NAMES, Shape};
use crate::{rmse, run};

/// Returns the ratings of a shape, read as a user's are.
pub(crate) fn ratings(name: &str, test: &str) -> (Ratings, Shape) {
    let shape = Shape::new(name);
    let folder: PathBuf =
        std::env::temp_dir().join(format!("adapm-mf-{test}-{name}-{}", std::process::id()));
    shape.write(&folder).expect("writes");
    let ratings = Ratings::load(&folder);
    std::fs::remove_dir_all(&folder).expect("is there");
    (ratings.expect("reads"), shape)
}

fn defaults(change: impl FnOnce(&mut TrainConfig)) -> TrainConfig {
    let mut config = TrainConfig::default();
    config.cluster.workers = Some(1.into());
    change(&mut config);
    config
}

#[test]
fn no_shape_ends_worse_than_trivial_means() {
    // Up to 20,000 cells: seconds without optimization.
    for name in &NAMES[..10] {
        let (ratings, shape) = ratings(name, "baseline");
        let baseline = shape.baseline();
        for nodes in [1, 2] {
            if ratings.rows() + ratings.columns() < 100 && nodes > 1 {
                continue;
            }
            let report = run(&ratings, &defaults(|config| config.cluster.nodes = Some(nodes)))
                .expect("trains");
            let means = report.own.means.expect("evaluated").rmse;
            assert!(
                rmse(&report) <= 1.01 * baseline,
                "{name} on {nodes}: {} {means} {baseline}",
                rmse(&report)
            );
        }
    }
}

#[test]
fn factors_are_used_where_they_help_and_only_there() {
    let gain = |name: &str| {
        let (ratings, _) = ratings(name, "gain");
        let report = run(&ratings, &defaults(|_| {})).expect("trains");
        (
            report.own.gain,
            report.epochs.len(),
            rmse(&report),
            report.own.means.expect("evaluated").rmse,
        )
    };
    let (small, epochs, error, means) = gain("small");
    assert!(small > 0.9 && epochs > 5 && error < 0.8 * means, "{small} {epochs} {error} {means}");
    let (none, epochs, error, means) = gain("additive");
    assert!(none == 0.0 && epochs == 0 && error == means, "{none} {epochs} {error} {means}");
}

#[test]
fn what_is_selected_on_depends_on_the_data_and_on_choices() {
    let (ratings, _) = ratings("noise", "selection");
    assert_eq!(ratings.train_len(), 18_000);
    let planned = |change: &dyn Fn(&mut TrainConfig)| {
        Selection::planned(&ratings, &defaults(|config| change(config)))
    };
    assert_eq!(planned(&|_| {}), Selection::HeldBack { cells: 900, of: 18_000 });
    assert_eq!(planned(&|config| config.no_hold_back = true), Selection::Nothing);
    assert_eq!(planned(&|config| config.run.no_eval = true), Selection::Nothing);
    let report = run(&ratings, &defaults(|config| config.epochs = Some(2))).expect("trains");
    assert_eq!(report.own.selection, Selection::HeldBack { cells: 900, of: 18_000 });
    assert!(report.epochs.iter().all(|epoch| epoch.examples == 17_100 && epoch.valid.is_some()));
    assert_eq!((report.epochs.len(), report.epochs_max), (2, 2), "as many as are asked for");
    let all =
        run(&ratings, &defaults(|config| (config.no_hold_back, config.epochs) = (true, Some(2))));
    assert!(all.expect("trains").epochs.iter().all(|epoch| epoch.examples == 18_000));
    let (small, _) = self::ratings("small", "selection");
    assert_eq!(
        Selection::planned(&small, &defaults(|_| {})),
        Selection::CrossFitted { cells: 4_500 }
    );
}

#[test]
fn one_worker_repeats_bit_for_bit_and_a_checkpoint_predicts_the_same() {
    for name in ["small", "noise", "unseen"] {
        let (ratings, _) = ratings(name, "repeats");
        let of = |system| {
            let config = defaults(|config| {
                (config.cluster.system, config.dim) = (system, 4);
                config.epochs = (name == "unseen").then_some(2);
            });
            run(&ratings, &config).expect("trains")
        };
        let (first, second) = (of(None), of(Some(System::Adapm)));
        let told = |report: &TrainReport| {
            let losses: Vec<f64> = report.epochs.iter().map(|epoch| epoch.loss).collect();
            (losses, report.test, report.own.selected, report.own.gain, report.checkpoint.clone())
        };
        assert!(told(&first) == told(&second), "{name}");
        let checkpoint: Checkpoint = first.checkpoint.expect("asked for");
        for nodes in [1, 2, 3] {
            let mut config = EvalConfig::default();
            (config.cluster.nodes, config.cluster.workers) = (Some(nodes), Some(1.into()));
            let report = evaluate(&ratings, &checkpoint, &config, &Run::alone());
            let report = report.expect("predicts");
            assert_eq!(
                (report.figures, report.own.means),
                (first.test, first.own.means),
                "{name} on {nodes}"
            );
        }
    }
}

#[test]
fn means_of_what_is_known_are_predicted_where_the_rest_is_not() {
    let folder = std::env::temp_dir().join(format!("adapm-mf-known-{}", std::process::id()));
    // Rows differ by 10 each, columns by 1; row 9 and column 9 are not in train.
    let value = |row: u32, column: u32| 10 * row + column;
    let points = |rows: &[u32], columns: &[u32]| {
        let all = rows.iter().flat_map(|row| columns.iter().map(move |column| (*row, *column)));
        all.map(|(row, column)| (row, column, value(row, column) as f32)).collect::<Vec<_>>()
    };
    let shape = Shape {
        train: points(&[0, 1, 2, 3, 4, 5, 6, 7], &[0, 1, 2, 3, 4, 5, 6, 7]),
        test: vec![(7, 9, 73.5), (9, 0, 35.0), (9, 9, 38.5)],
    };
    shape.write(&folder).expect("writes");
    let ratings = Ratings::load(&folder);
    std::fs::remove_dir_all(&folder).expect("is there");
    let report = run(&ratings.expect("reads"), &defaults(|_| {})).expect("trains");
    let test = report.test.expect("evaluated");
    assert_eq!((test.predicted, test.unseen), (3, 3));
    assert!(test.rmse < 0.5, "{}", test.rmse);
}
