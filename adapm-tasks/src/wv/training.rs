//! Training, and answers to analogy questions with trained vectors.

use crate::run::config::Config as _;
use crate::run::consistency::{Digest, RunFingerprint};
use crate::run::error::TaskError;
use crate::run::parameters::Shape;
use crate::run::report;
use crate::run::settings::Settings;
use crate::run::start::Run;
use crate::run::task::Evaluation as _;
use crate::wv::analogy::{Analogies, AnalogyReport, Answering};
use crate::wv::checkpoint::Checkpoint;
use crate::wv::config::{EvalConfig, TrainConfig};
use crate::wv::corpus::Corpus;
use crate::wv::task::WordVectors;
use crate::wv::vectors::Vectors;

/// Trains vectors for the words of `corpus`, and answers `questions` with them in the end. All
/// nodes read the whole text once to count words, and then their shares of it.
///
/// # Errors
///
/// A configuration that makes no sense, training that diverges, or a cluster that fails; in a group
/// also data or choices that differ between nodes, and a node that is lost.
pub fn train(
    corpus: &Corpus,
    questions: Option<&Analogies>,
    config: &TrainConfig,
    run: &Run<'_, AnalogyReport>,
) -> Result<TrainReport, TaskError> {
    let config = &TrainConfig { cluster: run.cluster(&config.cluster), ..config.clone() };
    let checked = config.check().map_err(TaskError::from);
    let fingerprint = || train_fingerprint(corpus, questions, config);
    run.start(&config.cluster, checked, fingerprint, |started| {
        let epochs = config.epochs_for(corpus.words(), corpus.vocabulary().len());
        let mut task = WordVectors::new(corpus, questions, config)?;
        let trained = started.train(&mut task, Settings::of(config, epochs, 1))?;
        Ok(trained.with((), |values| Checkpoint::new(corpus.vocabulary(), config.dim, values)))
    })
}

/// Answers `questions` with vectors of any origin. The answers do not depend on the number of nodes
/// and workers.
///
/// # Errors
///
/// A configuration that makes no sense, or a cluster that fails; in a group also questions, vectors
/// or choices that differ between nodes, and a node that is lost.
pub fn evaluate(
    vectors: &Vectors,
    questions: &Analogies,
    config: &EvalConfig,
    run: &Run<'_, AnalogyReport>,
) -> Result<EvalReport, TaskError> {
    let fingerprint = || evaluate_fingerprint(vectors, questions, config);
    run.start(&config.cluster, Ok(()), fingerprint, |started| {
        let (dim, limit) = (vectors.dim(), config.words.unwrap_or(usize::MAX));
        // Only input vectors take part: the vector of word `w` is key `w`, as in training.
        let shape = Shape::new(&[(vectors.words().len() as u64, dim)]);
        let evaluation = &Answering::new(questions, vectors.words(), dim, limit);
        let (report, answers) = started.evaluate_saved(evaluation, shape, &vectors.values)?;
        let figures = (!report.stopped).then(|| evaluation.figures(&answers));
        Ok(EvalReport { figures, ..report })
    })
}

/// Returns the fingerprint of training, equal on all nodes.
pub(crate) fn train_fingerprint(
    corpus: &Corpus,
    questions: Option<&Analogies>,
    config: &TrainConfig,
) -> RunFingerprint {
    RunFingerprint::of_training(NAME, corpus.describe(), config)
        .with("questions", questions.map_or("none".to_owned(), Analogies::describe))
}

/// Returns the fingerprint of evaluating `vectors`, equal on all nodes.
pub(crate) fn evaluate_fingerprint(
    vectors: &Vectors,
    questions: &Analogies,
    config: &EvalConfig,
) -> RunFingerprint {
    let (names, mut digest) = (vectors.words(), Digest::new());
    (0..names.len()).for_each(|n| digest.bytes(names.bytes(n).unwrap_or_default()));
    digest.word(vectors.values.digest());
    RunFingerprint::of_evaluation(NAME, questions.describe(), &config.cluster, config)
        .with("parameters", format!("{vectors:?} {:016x}", digest.sum()))
}

/// Result of a training run: of its last epoch. Examples are words of the vocabulary, also those
/// that were thinned; the loss is the mean over the pairs of a sample of the text that is the same
/// for all epochs. `test` are the answers to the questions.
pub type TrainReport = report::TrainReport<AnalogyReport, Checkpoint>;

/// Result of an evaluation.
pub type EvalReport = report::EvalReport<AnalogyReport>;

/// The name of the task.
pub(crate) const NAME: &str = "wv";
