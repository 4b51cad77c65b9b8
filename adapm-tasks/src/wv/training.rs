//! Training, with all nodes in this process or as one of several.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use adapm_transport::group::Group;

use crate::run::agreement;
use crate::run::config::{ConfigError, Settings, dimension, positive, share, whole};
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
    let epochs = config.epochs_for(corpus.words(), corpus.vocabulary().len());
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
    config.check_values()
}

impl TrainConfig {
    /// Checks that each field has a value that it can have, whatever the data.
    ///
    /// # Errors
    ///
    /// The first field that has not.
    pub fn check_values(&self) -> Result<(), ConfigError> {
        dimension(self.dim)?;
        positive("learning_rate", self.learning_rate)?;
        whole("window", self.window.into(), 1, u64::from(u16::MAX))?;
        whole("ahead", self.ahead as u64, 1, u64::MAX)?;
        whole("localize_ahead", self.localize_ahead, 1, u64::MAX)?;
        share("sample", self.sample)?;
        whole("negatives", self.negatives as u64, 0, NEGATIVES_MAX)
    }
}

/// Far more than helps: word2vec advises 5 to 20.
const NEGATIVES_MAX: u64 = 500;

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
        let wrong = |change: fn(&mut TrainConfig)| check(change).unwrap_err().to_string();
        assert_eq!(wrong(|config| config.dim = 0), "dim 0: give a whole number from 1 to 65536");
        assert_eq!(wrong(|config| config.window = 0), "window 0: give a whole number from 1 to 65535");
        assert_eq!(wrong(|config| config.ahead = 0), "ahead 0: give a whole number of at least 1");
        assert_eq!(
            wrong(|config| config.negatives = 501),
            "negatives 501: give a whole number from 0 to 500"
        );
        for share in [f64::NAN, -0.1, 1.1, 2.0, f64::INFINITY] {
            let config = TrainConfig { sample: share, ..TrainConfig::default() };
            let expected = format!("sample {share}: give a share, from 0 to 1");
            assert_eq!(config.check_values().unwrap_err().to_string(), expected);
        }
        for rate in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let config = TrainConfig { learning_rate: rate, ..TrainConfig::default() };
            let expected = format!("learning_rate {rate}: give a positive number");
            assert_eq!(config.check_values().unwrap_err().to_string(), expected);
        }
    }
}
