//! Training, and how far the predictions of a checkpoint are off: with all nodes in this process,
//! or as one node of a group. Failures are reported as [`TaskError`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use adapm_transport::group::Group;

use crate::mf::checkpoint::Checkpoint;
use crate::mf::config::{EvalConfig, Selection, TrainConfig};
use crate::mf::prediction::{self, Prediction, RatingMetrics, Scale};
use crate::mf::ratings::Ratings;
use crate::mf::selection::Prepared;
use crate::mf::task::Factorization;
use crate::run::config::{Settings, Split};
use crate::run::consistency::{self, RunFingerprint, equal, or_default};
use crate::run::error::TaskError;
use crate::run::managed::BestParameters;
use crate::run::observer::{Epoch, ManagerStats, Observer};
use crate::run::peers::Peers;
use crate::run::task::Evaluation;
use crate::run::topology::{self, Topology};
use crate::run::training::{EvaluationRun, Run};

/// Trains factors of `ratings`. Raising `stop` ends the run within a chunk, with the results so
/// far.
///
/// # Errors
///
/// A configuration that makes no sense, training that diverges, or a cluster that fails.
pub fn train(
    ratings: &Ratings,
    config: &TrainConfig,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    train_as(ratings, config, &Peers::alone(), observer, stop)
}

/// [`train`] as one node of `group`; collective: every process makes the same call with the same
/// ratings and choices, or all end with the name of the node that differs. The report is the same
/// on all nodes, but for the checkpoint, which is on node 0.
///
/// Raising `stop` in one process ends the run in all, in this one within a chunk, in the others at
/// the end of their epoch; [`Group::on_stop`] raises it everywhere at once.
///
/// # Errors
///
/// As [`train`], on all nodes if on one; ratings or choices that differ between nodes; a node that
/// is lost.
pub fn train_in_group(
    ratings: &Ratings,
    config: &TrainConfig,
    group: &Arc<Group>,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let peers = Peers::of(group);
    peers.told_of(|| train_as(ratings, config, &peers, observer, stop))
}

fn train_as(
    ratings: &Ratings,
    config: &TrainConfig,
    peers: &Peers<'_>,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let config = TrainConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let prepared =
        config.check(ratings, peers).map(|()| Prepared::new(ratings, &config, observer, stop));
    let stopped = stop.load(Ordering::Relaxed);
    let own =
        prepared.as_ref().map(|prepared| train_fingerprint(ratings, &config, prepared, stopped));
    let agreed = consistency::check(peers, own.map_err(|error| TaskError::from(error.clone())))?;
    let prepared = prepared?;
    let prepared = &if agreed.stopped { prepared.without_choice(&config) } else { prepared };
    // What stops the preparation in one process stops the run in all, before its first epoch.
    let raised = AtomicBool::new(true);
    let stop = if agreed.stopped { &raised } else { stop };
    let topology = Topology::new(config.system, config.nodes, config.workers, peers)?;
    let task = &Factorization::new(ratings, &config, prepared, topology.nodes, topology.workers);
    let settings = Settings {
        system: config.system,
        nodes: config.nodes,
        workers: config.workers,
        seed: config.seed,
        epochs: prepared.epochs,
        evaluate: config.evaluate,
        valid_every: config.valid_every,
        trace: config.trace.as_ref(),
    };
    let trained = Run { task, settings, agreed, topology, observer, stop }.train()?;
    let chosen = trained.epochs.iter().find(|epoch| epoch.epoch == trained.chosen_epoch);
    let selected = chosen.and_then(|epoch| epoch.valid).or(prepared.cross_fitted);
    let gain = chosen.and_then(|epoch| epoch.valid).map_or(prepared.gain, |valid| valid.gain);
    let (means, scale) = (prepared.residuals.means(), prepared.residuals.deviation() * gain);
    let range = config.clip.then_some(ratings.range);
    Ok(TrainReport {
        epochs: trained.epochs,
        epochs_max: prepared.epochs,
        chosen_epoch: trained.chosen_epoch,
        selection: prepared.selection,
        selected,
        gain,
        means: trained.test.map(|_| prediction::figures(&ratings.test, means, 0.0, &[], range)),
        test: trained.test,
        test_seconds: trained.test_seconds,
        stats: trained.stats,
        checkpoint: trained
            .values
            .map(|values| Checkpoint::of(ratings, config.dim, (means, scale), values)),
        stopped: trained.stopped,
        nodes: trained.nodes,
        workers: trained.workers,
    })
}

/// Predicts a split with the parameters of `checkpoint`. The figures do not depend on the number of
/// nodes and workers. Raising `stop` ends it early, without figures.
///
/// # Errors
///
/// A configuration that makes no sense, a checkpoint of other data, or a cluster that fails.
pub fn evaluate(
    ratings: &Ratings,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    evaluate_as(ratings, checkpoint, config, &Peers::alone(), observer, stop)
}

/// [`evaluate`] as one node of `group`; collective. The report is the same on all nodes.
///
/// # Errors
///
/// As [`evaluate`], on all nodes if on one; ratings, parameters or choices that differ between
/// nodes; a node that is lost.
pub fn evaluate_in_group(
    ratings: &Ratings,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    group: &Arc<Group>,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let peers = Peers::of(group);
    peers.told_of(|| evaluate_as(ratings, checkpoint, config, &peers, observer, stop))
}

fn evaluate_as(
    ratings: &Ratings,
    checkpoint: &Checkpoint,
    config: &EvalConfig,
    peers: &Peers<'_>,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let config = EvalConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let EvalConfig { system, nodes, workers, split, clip } = config;
    let checked = topology::check(system, nodes, workers, peers).map_err(TaskError::from);
    let checked = checked.and_then(|()| Ok(checkpoint.check_data(ratings)?));
    consistency::check(
        peers,
        checked.map(|()| evaluate_fingerprint(ratings, &config, checkpoint)),
    )?;
    let topology = Topology::new(system, nodes, workers, peers)?;

    let began = Instant::now();
    let (dim, shape) = (checkpoint.dim(), ratings.shape(checkpoint.dim()));
    let best = BestParameters::all(shape.clone(), Arc::clone(&checkpoint.values));
    let held = match split {
        Split::Valid => &ratings.valid,
        Split::Test => &ratings.test,
    };
    let (means, range) = (&checkpoint.means, clip.then_some(ratings.range));
    let (scale, rows) = (Scale::Known(checkpoint.scale), ratings.rows);
    let evaluation = &Prediction { split, held, means, scale, rows, dim, value_len: dim, range };
    let evaluated =
        EvaluationRun { evaluation, shape, topology, observer, stop }.run(best.initial())?;
    let metrics = (!evaluated.stopped).then(|| evaluation.figures(&evaluated.answers));
    Ok(EvalReport {
        metrics,
        means: metrics.map(|_| prediction::figures(held, means, 0.0, &[], range)),
        seconds: began.elapsed().as_secs_f64(),
        stats: evaluated.stats,
        stopped: evaluated.stopped,
        nodes: topology.nodes,
        workers: topology.workers,
    })
}

/// Returns the fingerprint of training, equal on all nodes; the run may have been stopped while it
/// was prepared.
pub(crate) fn train_fingerprint(
    ratings: &Ratings,
    config: &TrainConfig,
    prepared: &Prepared<'_>,
    stopped: bool,
) -> RunFingerprint {
    let settings = equal!(config: TrainConfig {
        seed,
        order => config.order(prepared.selection).to_string(),
        optimizer, dim,
        epochs => or_default(*epochs),
        learning_rate => config.rate().to_string(),
        bold_driver,
        l2 => penalty_of(config, prepared),
        penalty, initial_deviation, clip, localize_ahead, evaluate, holds_back, valid_every
    } beside system, nodes, workers, checkpoint, trace);
    let TrainConfig { system, nodes, workers, checkpoint, .. } = *config;
    RunFingerprint::new(
        "train mf",
        describe(ratings),
        checkpoint,
        (system, nodes, workers),
        settings,
    )
    .found(prepared.found(), stopped)
}

/// Returns the penalty, and that it falls unless it was given.
fn penalty_of(config: &TrainConfig, prepared: &Prepared<'_>) -> String {
    let falls = if config.l2.is_none() { ", falling" } else { "" };
    format!("{}{falls}", config.penalty_first(prepared.selection))
}

/// Returns the fingerprint of evaluating `checkpoint`, equal on all nodes.
pub(crate) fn evaluate_fingerprint(
    ratings: &Ratings,
    config: &EvalConfig,
    checkpoint: &Checkpoint,
) -> RunFingerprint {
    let EvalConfig { system, nodes, workers, split, clip } = config;
    let settings = [
        ("split", split.to_string()),
        ("clip", clip.to_string()),
        ("parameters", format!("{} {:016x}", checkpoint.dim(), checkpoint.digest())),
    ];
    RunFingerprint::new(
        "evaluate mf",
        describe(ratings),
        false,
        (*system, *nodes, *workers),
        settings,
    )
}

fn describe(ratings: &Ratings) -> String {
    let (train, valid, test) = (ratings.train_len(), ratings.valid_len(), ratings.test_len());
    let (rows, columns, digest) = (ratings.rows, ratings.columns, ratings.digest());
    format!(
        "{train} + {valid} + {test} ratings of {rows} rows and {columns} columns ({digest:016x})"
    )
}

/// Result of a training run, complete or stopped: the same on all nodes if they are processes, but
/// for `checkpoint`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrainReport {
    /// Every finished epoch.
    pub epochs: Vec<Epoch<RatingMetrics>>,
    /// Epochs that there were to be, at most.
    pub epochs_max: u32,
    /// The epoch whose parameters are in `checkpoint`: best on what is selected on between epochs,
    /// else the last; 0 = none, the means alone.
    pub chosen_epoch: u32,
    /// The cells that epochs were selected on.
    pub selection: Selection,
    /// Figures there of the chosen epoch, or of the predictions of cross-fitting.
    pub selected: Option<RatingMetrics>,
    /// The share of the products that is predicted: 0 if the factors did not predict better than
    /// the means what they were selected on.
    pub gain: f64,
    /// Figures of the means alone on test, if that was evaluated: the baseline.
    pub means: Option<RatingMetrics>,
    /// Figures on test with the chosen parameters; `None` without evaluation, without test data, or
    /// if stopped.
    pub test: Option<RatingMetrics>,
    /// Seconds of the evaluation of test.
    pub test_seconds: f64,
    /// The manager's counts of training, evaluation not counted.
    pub stats: ManagerStats,
    /// Parameters of the chosen epoch, if
    /// [`TrainConfig::checkpoint`](crate::mf::TrainConfig::checkpoint) asks for them; on node 0
    /// only if nodes are processes.
    pub checkpoint: Option<Checkpoint>,
    /// The stop flag ended the run early.
    pub stopped: bool,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers per node that took part.
    pub workers: usize,
}

/// Result of an evaluation, the same on all nodes if they are processes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EvalReport {
    /// The figures; `None` if stopped.
    pub metrics: Option<RatingMetrics>,
    /// Figures of the means alone: the baseline; `None` if stopped.
    pub means: Option<RatingMetrics>,
    /// Seconds it took.
    pub seconds: f64,
    /// The manager's counts.
    pub stats: ManagerStats,
    /// The stop flag ended the evaluation early: no figures.
    pub stopped: bool,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers per node that took part.
    pub workers: usize,
}
