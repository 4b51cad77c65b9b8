//! Training, with all nodes in this process or as one of several.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use adapm_transport::group::Group;

use crate::run::agreement;
use crate::run::config::{ConfigError, Settings};
use crate::run::crew::{self, Crew};
use crate::run::error::TaskError;
use crate::run::observer::Observer;
use crate::run::peers::Peers;
use crate::run::training::Run;
use crate::wv::analogy::{Analogies, AnalogyReport};
use crate::wv::checkpoint::Checkpoint;
use crate::wv::config::TrainConfig;
use crate::wv::corpus::Corpus;
use crate::wv::opening;
use crate::wv::report::TrainReport;
use crate::wv::task::WordVectors;

/// Trains vectors for the words of `corpus`, and answers `questions` with them in the end. Raising `stop` ends the run within
/// a sentence, with the results so far.
///
/// # Errors
///
/// A configuration that makes no sense, training that diverges, or a cluster that fails.
pub fn train(
    corpus: &Corpus,
    questions: Option<&Analogies>,
    config: &TrainConfig,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    run(corpus, questions, config, &Peers::alone(), observer, stop)
}

/// [`train`] as one node of `group`; collective. The report is the same on all nodes, but for the checkpoint, which is on
/// node 0. All nodes read the whole text once to count words, and then their shares of it.
///
/// Raising `stop` in one process ends the run in all, in this one within a sentence, in the others at the end of their epoch;
/// [`Group::on_stop`] raises it everywhere at once.
///
/// # Errors
///
/// As [`train`], on all nodes if on one; data or choices that differ between nodes; a node that is lost.
pub fn train_in_group(
    corpus: &Corpus,
    questions: Option<&Analogies>,
    config: &TrainConfig,
    group: &Arc<Group>,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let peers = Peers::of(group);
    peers.told_of(|| run(corpus, questions, config, &peers, observer, stop))
}

/// Trains with all nodes in this process, or as the node that `peers` say.
fn run(
    corpus: &Corpus,
    questions: Option<&Analogies>,
    config: &TrainConfig,
    peers: &Peers<'_>,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let config = &TrainConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let own = check(config, peers).map(|()| opening::training(corpus, questions, config));
    let agreed = agreement::agree(peers, own.map_err(TaskError::from))?;
    let TrainConfig { system, nodes, workers, seed, ref trace, .. } = *config;
    let epochs = config.epochs_for(corpus.words());
    let evaluate = questions.is_some();
    let settings =
        Settings { system, nodes, workers, seed, epochs, evaluate, valid_every: 1, trace: trace.as_ref() };
    let crew = Crew::new(system, nodes, workers, peers)?;
    let task = WordVectors::new(corpus, questions, config)?;
    let trained = Run { task: &task, settings, agreed, crew, observer, stop }.train()?;
    let checkpoint = |values| Checkpoint::new(corpus.vocabulary(), config.dim, values);
    Ok(TrainReport {
        epochs: trained.epochs,
        analogies: trained.test,
        analogies_seconds: trained.test_seconds,
        stats: trained.stats,
        checkpoint: trained.values.map(checkpoint),
        stopped: trained.stopped,
        nodes: trained.nodes,
        workers: trained.workers,
    })
}

/// Checks the choices of a training run.
fn check(config: &TrainConfig, peers: &Peers<'_>) -> Result<(), ConfigError> {
    crew::check(config.system, config.nodes, config.workers, peers)?;
    if config.dim == 0 || config.dim > DIM_MAX {
        return Err(ConfigError::Dimension { dim: config.dim });
    }
    let positive = [
        ("learning_rate", config.learning_rate > 0.0 && config.learning_rate.is_finite()),
        ("window", config.window > 0),
        ("ahead", config.ahead > 0),
        ("localize_ahead", config.localize_ahead > 0),
    ];
    if let Some((field, _)) = positive.iter().find(|(_, holds)| !holds) {
        return Err(ConfigError::NotPositive { field });
    }
    if !(config.sample >= 0.0 && config.sample.is_finite()) {
        return Err(ConfigError::Negative { field: "sample" });
    }
    if config.negatives > NEGATIVES_MAX {
        return Err(ConfigError::TooMany { field: "negatives", max: NEGATIVES_MAX });
    }
    Ok(())
}

/// Length of a vector that is supported.
const DIM_MAX: usize = 1 << 16;
/// Far more than helps: word2vec advises 5 to 20.
const NEGATIVES_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_that_make_no_sense_are_named() {
        let check = |change: fn(&mut TrainConfig)| {
            let mut config = TrainConfig::default();
            change(&mut config);
            super::check(&config, &Peers::alone())
        };
        assert_eq!(check(|_| {}), Ok(()));
        assert_eq!(check(|config| config.nodes = 0), Err(ConfigError::NoNodes));
        assert_eq!(check(|config| config.workers = Some(0)), Err(ConfigError::NoWorkers));
        assert_eq!(check(|config| config.dim = 0), Err(ConfigError::Dimension { dim: 0 }));
        assert_eq!(check(|config| config.window = 0), Err(ConfigError::NotPositive { field: "window" }));
        assert_eq!(check(|config| config.ahead = 0), Err(ConfigError::NotPositive { field: "ahead" }));
        assert_eq!(check(|config| config.sample = f64::NAN), Err(ConfigError::Negative { field: "sample" }));
        let error = check(|config| config.negatives = 501).unwrap_err();
        assert_eq!(error.to_string(), "negatives can be at most 500; give fewer");
        for rate in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let config = TrainConfig { learning_rate: rate, ..TrainConfig::default() };
            let expected = ConfigError::NotPositive { field: "learning_rate" };
            assert_eq!(super::check(&config, &Peers::alone()), Err(expected));
        }
    }
}
