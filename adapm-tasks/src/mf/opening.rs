//! What has to be equal on all nodes before ratings are factorized or predicted.

use crate::mf::checkpoint::Checkpoint;
use crate::mf::config::{EvalConfig, TrainConfig};
use crate::mf::ratings::Ratings;
use crate::mf::selection::Prepared;
use crate::run::agreement::{Opening, or_default};

/// A training run, which may have been stopped while it was prepared.
pub(crate) fn training(
    ratings: &Ratings,
    config: &TrainConfig,
    prepared: &Prepared<'_>,
    stopped: bool,
) -> Opening {
    // Field by field, so that a field that is new cannot be forgotten.
    let TrainConfig {
        system,
        nodes,
        workers,
        seed,
        order: _,
        optimizer,
        dim,
        epochs,
        learning_rate: _,
        bold_driver,
        l2: _,
        penalty,
        initial_deviation,
        clip,
        localize_ahead,
        evaluate,
        holds_back,
        valid_every,
        checkpoint,
        // Whether a process traces is its own affair.
        trace: _,
    } = config;
    let settings = [
        ("seed", seed.to_string()),
        ("order", config.order(prepared.selection).to_string()),
        ("optimizer", optimizer.to_string()),
        ("dim", dim.to_string()),
        ("epochs", or_default(*epochs)),
        ("learning_rate", config.rate().to_string()),
        ("bold_driver", bold_driver.to_string()),
        ("l2", penalty_of(config, prepared)),
        ("penalty", penalty.to_string()),
        ("initial_deviation", initial_deviation.to_string()),
        ("clip", clip.to_string()),
        ("localize_ahead", localize_ahead.to_string()),
        ("evaluate", evaluate.to_string()),
        ("holds_back", holds_back.to_string()),
        ("valid_every", valid_every.to_string()),
    ];
    Opening::new("train mf", describe(ratings), *checkpoint, (*system, *nodes, *workers), settings)
        .found(prepared.found(), stopped)
}

/// The penalty, and that it falls unless it was given.
fn penalty_of(config: &TrainConfig, prepared: &Prepared<'_>) -> String {
    let falls = if config.l2.is_none() { ", falling" } else { "" };
    format!("{}{falls}", config.penalty_first(prepared.selection))
}

/// An evaluation of `checkpoint`.
pub(crate) fn evaluation(ratings: &Ratings, config: &EvalConfig, checkpoint: &Checkpoint) -> Opening {
    let EvalConfig { system, nodes, workers, split, clip } = config;
    let settings = [
        ("split", split.to_string()),
        ("clip", clip.to_string()),
        ("parameters", format!("{} {:016x}", checkpoint.dim(), checkpoint.digest())),
    ];
    Opening::new("evaluate mf", describe(ratings), false, (*system, *nodes, *workers), settings)
}

fn describe(ratings: &Ratings) -> String {
    let (train, valid, test) = (ratings.train_len(), ratings.valid_len(), ratings.test_len());
    let (rows, columns, digest) = (ratings.rows, ratings.columns, ratings.digest());
    format!("{train} + {valid} + {test} ratings of {rows} rows and {columns} columns ({digest:016x})")
}
