//! Training, and how far the predictions of a checkpoint are off.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::mf::checkpoint::Checkpoint;
use crate::mf::config::{EvalConfig, Selection, TrainConfig};
use crate::mf::prediction::{self, Prediction, RatingMetrics, Scale};
use crate::mf::ratings::Ratings;
use crate::mf::selection::Prepared;
use crate::mf::task::Factorization;
use crate::run::config::{Config as _, ConfigError, Split};
use crate::run::consistency::{self, RunFingerprint};
use crate::run::error::TaskError;
use crate::run::report;
use crate::run::settings::Settings;
use crate::run::start::Run;
use crate::run::task::Evaluation;
use crate::run::training::Started;

/// Trains factors of `ratings`.
///
/// # Errors
///
/// A configuration that makes no sense, training that diverges, or a cluster that fails; in a group
/// also ratings or choices that differ between nodes, and a node that is lost.
pub fn train(
    ratings: &Ratings,
    config: &TrainConfig,
    run: &Run<'_, RatingMetrics>,
) -> Result<TrainReport, TaskError> {
    let config = &TrainConfig { cluster: run.cluster(&config.cluster), ..config.clone() };
    let empty = (ratings.train_len() == 0).then_some(ConfigError::NothingToTrain);
    let checked = empty.map_or(Ok(()), Err).and_then(|()| config.check());
    let fingerprint = || train_fingerprint(ratings, config);
    run.start(&config.cluster, checked.map_err(TaskError::from), fingerprint, |started| {
        train_started(ratings, config, started)
    })
}

fn train_started(
    ratings: &Ratings,
    config: &TrainConfig,
    started: &Started<'_, RatingMetrics>,
) -> Result<TrainReport, TaskError> {
    let Started { topology, observer, stop, .. } = *started;
    let prepared = Prepared::new(ratings, config, observer, stop);
    let stopped = stop.load(Ordering::Relaxed);
    // What stops the preparation in one process stops the run in all, before its first epoch.
    let stopped = consistency::check_found(topology.peers, FOUND, prepared.found(), stopped)?;
    let prepared = &if stopped { prepared.without_choice(config) } else { prepared };
    let raised = AtomicBool::new(true);
    let started = &Started { stop: if stopped { &raised } else { stop }, ..*started };
    let task = &mut Factorization::new(ratings, config, prepared, topology.workers);
    let settings = Settings::of(config, prepared.epochs, config.valid_every);
    let trained = started.train(task, settings)?;
    let valid = trained.chosen_valid().copied();
    let gain = valid.map_or(prepared.gain, |valid| valid.gain);
    let (means, scale) = (prepared.residuals.means(), prepared.residuals.deviation() * gain);
    let range = config.clip.then_some(ratings.range);
    let found = Found {
        selection: prepared.selection,
        selected: valid.or(prepared.cross_fitted),
        gain,
        means: trained.test.map(|_| prediction::figures(&ratings.test, means, 0.0, &[], range)),
    };
    Ok(trained.with(found, |values| Checkpoint::of(ratings, config.dim, (means, scale), values)))
}

/// Predicts a split with the parameters of `checkpoint`. The figures do not depend on the number of
/// nodes and workers.
///
/// # Errors
///
/// A configuration that makes no sense, a checkpoint of other data, or a cluster that fails; in a
/// group also ratings, parameters or choices that differ between nodes, and a node that is lost.
pub fn evaluate(
    ratings: &Ratings,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    run: &Run<'_, RatingMetrics>,
) -> Result<EvalReport, TaskError> {
    let checked = checkpoint.check_data(ratings).map_err(TaskError::from);
    let fingerprint = || evaluate_fingerprint(ratings, config, checkpoint);
    run.start(&config.cluster, checked, fingerprint, |started| {
        let EvalConfig { split, clip, .. } = *config;
        let (dim, shape) = (checkpoint.dim(), ratings.shape(checkpoint.dim()));
        let held = match split {
            Split::Valid => &ratings.valid,
            Split::Test => &ratings.test,
        };
        let (means, range) = (&checkpoint.means, clip.then_some(ratings.range));
        let (scale, rows) = (Scale::Known(checkpoint.scale), ratings.rows);
        let evaluation =
            &Prediction { split, held, means, scale, rows, dim, value_len: dim, range };
        let (report, answers) = started.evaluate_saved(evaluation, shape, &checkpoint.values)?;
        let figures = (!report.stopped).then(|| evaluation.figures(&answers));
        let means = figures.map(|_| prediction::figures(held, means, 0.0, &[], range));
        Ok(report::EvalReport { figures, ..report }.with(Predicted { means }))
    })
}

/// Returns the fingerprint of training, equal on all nodes.
pub(crate) fn train_fingerprint(ratings: &Ratings, config: &TrainConfig) -> RunFingerprint {
    RunFingerprint::of_training(NAME, describe(ratings), config)
}

/// Returns the fingerprint of evaluating `checkpoint`, equal on all nodes.
pub(crate) fn evaluate_fingerprint(
    ratings: &Ratings,
    config: &EvalConfig,
    checkpoint: &Checkpoint,
) -> RunFingerprint {
    let parameters = format!("{} {:016x}", checkpoint.dim(), checkpoint.digest());
    RunFingerprint::of_evaluation(NAME, describe(ratings), &config.cluster, config)
        .with("parameters", parameters)
}

fn describe(ratings: &Ratings) -> String {
    let (train, valid, test) = (ratings.train_len(), ratings.valid_len(), ratings.test_len());
    let (rows, columns, digest) = (ratings.rows, ratings.columns, ratings.digest());
    format!(
        "{train} + {valid} + {test} ratings of {rows} rows and {columns} columns ({digest:016x})"
    )
}

/// Result of a training run. Its chosen epoch is best on what is selected on between epochs, else
/// the last; 0 = none, the means alone.
pub type TrainReport = report::TrainReport<RatingMetrics, Checkpoint, Found>;

/// Results of training beside the figures.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Found {
    /// The cells that epochs were selected on.
    pub selection: Selection,
    /// Figures there of the chosen epoch, or of the predictions of cross-fitting.
    pub selected: Option<RatingMetrics>,
    /// The share of the products that is predicted: 0 if the factors did not predict better than
    /// the means what they were selected on.
    pub gain: f64,
    /// Figures of the means alone on test, if that was evaluated: the baseline.
    pub means: Option<RatingMetrics>,
}

/// Result of an evaluation.
pub type EvalReport = report::EvalReport<RatingMetrics, Predicted>;

/// Results of an evaluation beside the figures.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Predicted {
    /// Figures of the means alone: the baseline; `None` if stopped.
    pub means: Option<RatingMetrics>,
}

/// The name of the task.
pub(crate) const NAME: &str = "mf";

/// The name of the findings before training, in errors.
const FOUND: &str = "found by cross-fitting";
