//! Training, with all nodes in this process or as one node of a group.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adapm_transport::group::Group;

use crate::mf::checkpoint::Checkpoint;
use crate::mf::config::TrainConfig;
use crate::mf::metrics::RatingMetrics;
use crate::mf::opening;
use crate::mf::prediction;
use crate::mf::ratings::Ratings;
use crate::mf::report::TrainReport;
use crate::mf::selection::Prepared;
use crate::mf::task::Factorization;
use crate::run::agreement;
use crate::run::config::Settings;
use crate::run::crew::Crew;
use crate::run::error::TaskError;
use crate::run::observer::Observer;
use crate::run::peers::Peers;
use crate::run::training::Run;

/// Trains factors of `ratings`. Raising `stop` ends the run within a chunk, with the results so far.
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
    run(ratings, config, &Peers::alone(), observer, stop)
}

/// [`train`] as one node of `group`; collective: every process makes the same call with the same ratings and choices, or
/// all end with the name of the node that differs. The report is the same on all nodes, but for the checkpoint, which is on
/// node 0.
///
/// Raising `stop` in one process ends the run in all, in this one within a chunk, in the others at the end of their epoch;
/// [`Group::on_stop`] raises it everywhere at once.
///
/// # Errors
///
/// As [`train`], on all nodes if on one; ratings or choices that differ between nodes; a node that is lost.
pub fn train_in_group(
    ratings: &Ratings,
    config: &TrainConfig,
    group: &Arc<Group>,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let peers = Peers::of(group);
    peers.told_of(|| run(ratings, config, &peers, observer, stop))
}

fn run(
    ratings: &Ratings,
    config: &TrainConfig,
    peers: &Peers<'_>,
    observer: &dyn Observer<RatingMetrics>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let config = TrainConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let prepared = config.check(ratings, peers).map(|()| Prepared::new(ratings, &config, observer, stop));
    let stopped = stop.load(Ordering::Relaxed);
    let own = prepared.as_ref().map(|prepared| opening::training(ratings, &config, prepared, stopped));
    let agreed = agreement::agree(peers, own.map_err(|error| TaskError::from(error.clone())))?;
    let prepared = prepared?;
    let prepared = &if agreed.stopped { prepared.without_choice(&config) } else { prepared };
    // What stops the preparation in one process stops the run in all, before its first epoch.
    let raised = AtomicBool::new(true);
    let stop = if agreed.stopped { &raised } else { stop };
    let crew = Crew::new(config.system, config.nodes, config.workers, peers)?;
    let task = &Factorization::new(ratings, &config, prepared, crew.nodes, crew.workers);
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
    let trained = Run { task, settings, agreed, crew, observer, stop }.train()?;
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
        checkpoint: trained.values.map(|values| Checkpoint::of(ratings, config.dim, (means, scale), values)),
        stopped: trained.stopped,
        nodes: trained.nodes,
        workers: trained.workers,
    })
}
