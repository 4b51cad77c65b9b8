//! Factors in files, and predictions by them.

use std::fs;

use adapm_tasks::System;
use adapm_tasks::mf::{Checkpoint, EvalConfig, RatingMetrics, Ratings, SyntheticConfig, evaluate};
use adapm_tasks::run::{CheckpointError, Run, TaskError};

use crate::{ratings, run, small};

fn predict(
    ratings: &Ratings,
    checkpoint: &Checkpoint,
    change: impl FnOnce(&mut EvalConfig),
) -> Result<RatingMetrics, TaskError> {
    let mut config = EvalConfig::default();
    change(&mut config);
    let report = evaluate(ratings, checkpoint, &config, &Run::alone())?;
    Ok(report.figures.expect("nobody stopped it"))
}

#[test]
fn the_same_factors_give_the_same_figures_on_any_number_of_nodes() {
    let ratings = ratings();
    let report = run(&ratings, &small(|config| config.epochs = Some(2))).expect("trains");
    let checkpoint = report.checkpoint.expect("asked for");
    let expected = report.test.expect("evaluated");
    assert_eq!(expected.predicted, 1_000);
    for (system, nodes) in
        [(None, 1), (Some(System::Adapm), 1), (Some(System::Adapm), 2), (Some(System::Classic), 4)]
    {
        let metrics = predict(&ratings, &checkpoint, |config| {
            (config.cluster.system, config.cluster.nodes) = (system, Some(nodes))
        });
        assert_eq!(metrics.expect("predicts"), expected, "{system:?} {nodes}");
    }
}

#[test]
fn a_file_is_read_as_it_was_written_and_refused_with_other_ratings() {
    let ratings = ratings();
    let report =
        run(&ratings, &small(|config| (config.cluster.nodes, config.epochs) = (Some(2), Some(1))))
            .expect("trains");
    let checkpoint = report.checkpoint.expect("asked for");
    let path = std::env::temp_dir().join(format!("adapm-mf-{}.ckpt", std::process::id()));
    checkpoint.save(&path).expect("writes");
    let read = Checkpoint::load(&path);
    fs::remove_file(&path).expect("is there");
    assert_eq!(read.expect("reads"), checkpoint);
    assert_eq!((checkpoint.row(0).map(<[f32]>::len), checkpoint.column(100)), (Some(4), None));

    let mut config = SyntheticConfig::default();
    (config.rows, config.columns, config.cells) = (201, 100, 5_000);
    let other = Ratings::synthetic(config).expect("there is such a matrix");
    let error = predict(&other, &checkpoint, |_| {}).expect_err("other rows");
    assert!(
        matches!(error, TaskError::Checkpoint(CheckpointError::OtherRatings { .. })),
        "{error}"
    );
    assert!(
        error.to_string().contains("(200 rows, 100 columns) than the ratings (201, 100)"),
        "{error}"
    );
}

#[test]
fn factors_of_another_generated_matrix_of_that_size_are_refused() {
    let generated = |change: &dyn Fn(&mut SyntheticConfig)| {
        let mut config = SyntheticConfig::default();
        (config.rows, config.columns, config.cells, config.test_cells) = (200, 100, 5_000, 1_000);
        change(&mut config);
        Ratings::synthetic(config).expect("there is such a matrix")
    };
    let ratings = generated(&|config| config.seed = 2);
    let checkpoint =
        run(&ratings, &small(|config| config.epochs = Some(1))).expect("trains").checkpoint;
    let checkpoint = checkpoint.expect("asked for");
    assert!(predict(&ratings, &checkpoint, |_| {}).is_ok());
    let more = generated(&|config| (config.seed, config.test_cells) = (2, 2_000));
    assert_eq!(predict(&more, &checkpoint, |_| {}).expect("the same model").predicted, 2_000);
    for other in [generated(&|_| {}), generated(&|config| (config.seed, config.noise) = (2, 0.3))] {
        let error = predict(&other, &checkpoint, |_| {}).expect_err("another matrix");
        assert!(
            matches!(
                error,
                TaskError::Checkpoint(CheckpointError::OtherTraining { of: "ratings" })
            ),
            "{error}"
        );
        assert!(error.to_string().contains("--data-seed"), "{error}");
    }
}
