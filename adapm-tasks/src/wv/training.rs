//! Training, and answers to analogy questions with trained vectors: with all nodes in this process,
//! or as one of several. An [`Observer`] receives its progress.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use adapm_transport::group::Group;

use crate::run::config::{ConfigError, Settings, dimension, positive, share, whole};
use crate::run::consistency::{self, Digest, RunFingerprint, equal, or_default};
use crate::run::error::TaskError;
use crate::run::managed::BestParameters;
use crate::run::observer::{Epoch, ManagerStats, Observer};
use crate::run::parameters::Shape;
use crate::run::peers::Peers;
use crate::run::task::Evaluation as _;
use crate::run::topology::{self, Topology};
use crate::run::training::{EvaluationRun, Run};
use crate::wv::analogy::{Analogies, AnalogyReport, Answering};
use crate::wv::checkpoint::Checkpoint;
use crate::wv::config::{EvalConfig, TrainConfig};
use crate::wv::corpus::Corpus;
use crate::wv::task::WordVectors;
use crate::wv::vectors::Vectors;

/// Trains vectors for the words of `corpus`, and answers `questions` with them in the end. Raising
/// `stop` ends the run within a sentence, with the results so far.
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
    train_as(corpus, questions, config, &Peers::alone(), observer, stop)
}

/// [`train`] as one node of `group`; collective. The report is the same on all nodes, but for the
/// checkpoint, which is on node 0. All nodes read the whole text once to count words, and then
/// their shares of it.
///
/// Raising `stop` in one process ends the run in all, in this one within a sentence, in the others
/// at the end of their epoch; [`Group::on_stop`] raises it everywhere at once.
///
/// # Errors
///
/// As [`train`], on all nodes if on one; data or choices that differ between nodes; a node that is
/// lost.
pub fn train_in_group(
    corpus: &Corpus,
    questions: Option<&Analogies>,
    config: &TrainConfig,
    group: &Arc<Group>,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let peers = Peers::of(group);
    peers.told_of(|| train_as(corpus, questions, config, &peers, observer, stop))
}

/// Trains with all nodes in this process, or as the node that `peers` say.
fn train_as(
    corpus: &Corpus,
    questions: Option<&Analogies>,
    config: &TrainConfig,
    peers: &Peers<'_>,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<TrainReport, TaskError> {
    let config = &TrainConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let own = check(config, peers).map(|()| train_fingerprint(corpus, questions, config));
    let agreed = consistency::check(peers, own.map_err(TaskError::from))?;
    let TrainConfig { system, nodes, workers, seed, ref trace, .. } = *config;
    let epochs = config.epochs_for(corpus.words(), corpus.vocabulary().len());
    let evaluate = questions.is_some();
    let settings = Settings {
        system,
        nodes,
        workers,
        seed,
        epochs,
        evaluate,
        valid_every: 1,
        trace: trace.as_ref(),
    };
    let topology = Topology::new(system, nodes, workers, peers)?;
    let task = WordVectors::new(corpus, questions, config)?;
    let trained = Run { task: &task, settings, agreed, topology, observer, stop }.train()?;
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
    topology::check(config.system, config.nodes, config.workers, peers)?;
    config.check_values()
}

impl TrainConfig {
    /// Checks that each field has a value that is valid for any data.
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

/// Answers `questions` with vectors of any origin. The answers do not depend on the number of nodes
/// and workers. Raising `stop` ends it early, without figures.
///
/// # Errors
///
/// A configuration that makes no sense, or a cluster that fails.
pub fn evaluate(
    vectors: &Vectors,
    questions: &Analogies,
    config: &EvalConfig,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    evaluate_as(vectors, questions, config, &Peers::alone(), observer, stop)
}

/// [`evaluate`] as one node of `group`; collective. The report is the same on all nodes.
///
/// # Errors
///
/// As [`evaluate`], on all nodes if on one; questions, vectors or choices that differ between
/// nodes; a node that is lost.
pub fn evaluate_in_group(
    vectors: &Vectors,
    questions: &Analogies,
    config: &EvalConfig,
    group: &Arc<Group>,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let peers = Peers::of(group);
    peers.told_of(|| evaluate_as(vectors, questions, config, &peers, observer, stop))
}

/// Evaluates with all nodes in this process, or as the node that `peers` say.
fn evaluate_as(
    vectors: &Vectors,
    questions: &Analogies,
    config: &EvalConfig,
    peers: &Peers<'_>,
    observer: &dyn Observer<AnalogyReport>,
    stop: &AtomicBool,
) -> Result<EvalReport, TaskError> {
    let config = EvalConfig { nodes: peers.nodes(config.nodes), ..config.clone() };
    let EvalConfig { system, nodes, workers, words } = config;
    let checked = topology::check(system, nodes, workers, peers).map_err(TaskError::from);
    consistency::check(peers, checked.map(|()| evaluate_fingerprint(vectors, questions, &config)))?;
    let topology = Topology::new(system, nodes, workers, peers)?;

    let began = Instant::now();
    let (dim, limit) = (vectors.dim(), words.unwrap_or(usize::MAX));
    // Only input vectors take part: the vector of word `w` is key `w`, as in training.
    let shape = Shape::new(&[(vectors.words().len() as u64, dim)]);
    let best = BestParameters::all(shape.clone(), Arc::clone(&vectors.values));
    let evaluation = &Answering::new(questions, vectors.words(), dim, limit);
    let evaluated =
        EvaluationRun { evaluation, shape, topology, observer, stop }.run(best.initial())?;
    Ok(EvalReport {
        analogies: (!evaluated.stopped).then(|| evaluation.figures(&evaluated.answers)),
        seconds: began.elapsed().as_secs_f64(),
        stats: evaluated.stats,
        stopped: evaluated.stopped,
        nodes: topology.nodes,
        workers: topology.workers,
    })
}

/// Returns the fingerprint of training, equal on all nodes.
pub(crate) fn train_fingerprint(
    corpus: &Corpus,
    questions: Option<&Analogies>,
    config: &TrainConfig,
) -> RunFingerprint {
    let settings = equal!(config: TrainConfig {
        seed, dim,
        epochs => or_default(*epochs),
        window, negatives, drawn,
        scheme => or_default(scheme.map(|scheme| format!("{scheme:?}"))),
        sample, optimizer, learning_rate, ahead, localize_ahead
    } beside system, nodes, workers, checkpoint, trace);
    let questions = [("questions", questions.map_or("none".to_owned(), Analogies::describe))];
    let settings = settings.into_iter().chain(questions);
    let TrainConfig { system, nodes, workers, checkpoint, .. } = *config;
    RunFingerprint::new(
        "train wv",
        corpus.describe(),
        checkpoint,
        (system, nodes, workers),
        settings,
    )
}

/// Returns the fingerprint of evaluating `vectors`, equal on all nodes.
pub(crate) fn evaluate_fingerprint(
    vectors: &Vectors,
    questions: &Analogies,
    config: &EvalConfig,
) -> RunFingerprint {
    let EvalConfig { system, nodes, workers, words } = config;
    let (names, mut digest) = (vectors.words(), Digest::new());
    (0..names.len()).for_each(|n| digest.bytes(names.bytes(n).unwrap_or_default()));
    digest.values(vectors.values());
    let settings = [
        ("words", words.map_or("all".to_owned(), |words| words.to_string())),
        ("parameters", format!("{vectors:?} {:016x}", digest.sum())),
    ];
    RunFingerprint::new(
        "evaluate wv",
        questions.describe(),
        false,
        (*system, *nodes, *workers),
        settings,
    )
}

/// Result of a training run, complete or stopped: the same on all nodes if they are processes, but
/// for `checkpoint`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrainReport {
    /// Every finished epoch. Examples are words of the vocabulary, also those that were thinned;
    /// the loss is the mean over the pairs of a sample of the text that is the same for all epochs.
    pub epochs: Vec<Epoch<AnalogyReport>>,
    /// Answers with the vectors of the last epoch; `None` without questions, or if stopped.
    pub analogies: Option<AnalogyReport>,
    /// Seconds that answering took.
    pub analogies_seconds: f64,
    /// The manager's counts of training.
    pub stats: ManagerStats,
    /// The vectors of the last epoch, if
    /// [`TrainConfig::checkpoint`](crate::wv::TrainConfig::checkpoint) asks for them; on node 0
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
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EvalReport {
    /// The answers; `None` if stopped.
    pub analogies: Option<AnalogyReport>,
    /// Seconds it took.
    pub seconds: f64,
    /// The manager's counts.
    pub stats: ManagerStats,
    /// The stop flag ended the evaluation early.
    pub stopped: bool,
    /// Nodes that took part.
    pub nodes: usize,
    /// Workers per node that took part.
    pub workers: usize,
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
        assert_eq!(
            wrong(|config| config.window = 0),
            "window 0: give a whole number from 1 to 65535"
        );
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
