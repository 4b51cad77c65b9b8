//! What has to be equal on all nodes before word vectors are trained or evaluated.

use crate::run::agreement::{Opening, or_default};
use crate::run::digest::Digest;
use crate::wv::analogy::Analogies;
use crate::wv::config::{EvalConfig, TrainConfig};
use crate::wv::corpus::Corpus;
use crate::wv::vectors::Vectors;

/// A training run.
pub(crate) fn training(corpus: &Corpus, questions: Option<&Analogies>, config: &TrainConfig) -> Opening {
    // Field by field, so that a field that is new cannot be forgotten.
    let TrainConfig {
        system,
        nodes,
        workers,
        seed,
        dim,
        epochs,
        window,
        negatives,
        drawn,
        scheme,
        sample,
        optimizer,
        learning_rate,
        ahead,
        localize_ahead,
        checkpoint,
        // Whether a process traces is its own affair.
        trace: _,
    } = config;
    let settings = [
        ("seed", seed.to_string()),
        ("dim", dim.to_string()),
        ("epochs", or_default(*epochs)),
        ("window", window.to_string()),
        ("negatives", negatives.to_string()),
        ("drawn", drawn.to_string()),
        ("scheme", or_default(scheme.map(|scheme| format!("{scheme:?}")))),
        ("sample", sample.to_string()),
        ("optimizer", optimizer.to_string()),
        ("learning_rate", learning_rate.to_string()),
        ("ahead", ahead.to_string()),
        ("localize_ahead", localize_ahead.to_string()),
        ("questions", questions.map_or("none".to_owned(), Analogies::describe)),
    ];
    Opening::new("train wv", corpus.describe(), *checkpoint, (*system, *nodes, *workers), settings)
}

/// An evaluation of `vectors`.
pub(crate) fn evaluation(vectors: &Vectors, questions: &Analogies, config: &EvalConfig) -> Opening {
    let EvalConfig { system, nodes, workers, words } = config;
    let (names, mut digest) = (vectors.words(), Digest::new());
    (0..names.len()).for_each(|n| digest.bytes(names.bytes(n).unwrap_or_default()));
    digest.values(vectors.values());
    let settings = [
        ("words", words.map_or("all".to_owned(), |words| words.to_string())),
        ("parameters", format!("{vectors:?} {:016x}", digest.sum())),
    ];
    Opening::new("evaluate wv", questions.describe(), false, (*system, *nodes, *workers), settings)
}
