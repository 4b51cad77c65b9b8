//! Choices of training and evaluating word vectors.

use adapm_core::policy::Supply;
use adapm_runtime::trace::Tracer;

use crate::run::config::named;
use crate::{Scheme, System};

/// The sharing of negatives among pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Negatives {
    /// Up to 32 words of a sentence and all their pairs share one set; each negative of it counts
    /// for a share in each pair.
    #[default]
    Sentence,
    /// The pairs of one word with its context share one set.
    Window,
    /// Every pair has its own, as in word2vec.
    Pair,
}

/// The update rule of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Optimizer {
    /// Gradient times a learning rate that falls in a line (word2vec's).
    #[default]
    Sgd,
    /// AdaGrad with a constant learning rate (the papers'); values are twice as long.
    AdaGrad,
}

/// Choices of a training run. Start from [`TrainConfig::default`] and set fields.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrainConfig {
    /// The parameter management system; `None`: plain arrays, one node, one worker, no manager.
    /// Defaults to adapm.
    pub system: Option<System>,
    /// Nodes in this process; where nodes are processes their number counts instead. Defaults to 1.
    pub nodes: usize,
    /// Workers of each node; `None`: max(1, cores / nodes). Defaults to `None`.
    pub workers: Option<usize>,
    /// Seed of initial values, thinning, windows and negatives. Defaults to 1.
    pub seed: u64,
    /// Length of a vector. Defaults to 100.
    pub dim: usize,
    /// Passes over the text; 0 leaves the initial values, `None`: as many as the text needs
    /// ([`Self::epochs_for`]). Defaults to `None`.
    pub epochs: Option<u32>,
    /// Words to each side that a context reaches at most; how far it does is drawn for each word.
    /// Defaults to 5.
    pub window: u16,
    /// Negatives of a pair, at most 500. Defaults to 5.
    pub negatives: usize,
    /// The sharing of negatives among pairs. Defaults to sentence.
    pub drawn: Negatives,
    /// The parameter manager's sampling of negatives; `None`: `preloc` on several nodes that
    /// replicate on intent, else the usual scheme of the system ([`Scheme::of`]). Plain arrays draw
    /// as the law says in any case. Defaults to `None`.
    pub scheme: Option<Scheme>,
    /// Share of the text from which on a word is thinned; 0 thins none. Defaults to 1e-3.
    pub sample: f64,
    /// The update rule of parameters. Defaults to sgd.
    pub optimizer: Optimizer,
    /// The learning rate, with `sgd` at the start. Defaults to 0.025.
    pub learning_rate: f32,
    /// Sentences between the announcement of a sentence and its turn. Defaults to 2000.
    pub ahead: usize,
    /// Clocks between `localize` and the access at most, and three quarters of them at least, under
    /// [`System::Lapse`]. Defaults to 8.
    pub localize_ahead: u64,
    /// Puts the vectors into the report; where nodes are processes they are brought together on
    /// node 0, whose choice counts. Defaults to true.
    pub checkpoint: bool,
    /// Writes what happens to some keys while training; where nodes are processes each writes its
    /// own part, if it chooses to. Defaults to `None`.
    pub trace: Option<Tracer>,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            system: Some(System::Adapm),
            nodes: 1,
            workers: None,
            seed: 1,
            dim: 100,
            epochs: None,
            window: 5,
            negatives: 5,
            drawn: Negatives::Sentence,
            scheme: None,
            sample: 1e-3,
            optimizer: Optimizer::Sgd,
            learning_rate: 0.025,
            ahead: 2000,
            localize_ahead: 8,
            checkpoint: true,
            trace: None,
        }
    }
}

impl TrainConfig {
    /// Passes over a text of `words` words of a vocabulary of `distinct` ones: as many as show each
    /// of these 5,000 times on average, or 50 million words in all, but 5 at least, as in word2vec,
    /// and 50 at most. After five passes over a short text, vectors answer fewer questions than the
    /// baseline (`docs/wv.md` has the figures).
    #[must_use]
    pub fn epochs_for(&self, words: u64, distinct: usize) -> u32 {
        let wanted = SHOWN.saturating_mul(distinct as u64).min(WORDS_SEEN);
        let usual = (wanted / words.max(1)).clamp(EPOCHS_MIN, EPOCHS_MAX);
        self.epochs.unwrap_or(usual as u32)
    }

    /// Returns the scheme by which negatives are sampled; `None` without a manager.
    ///
    /// # Departure
    /// NuPS samples word vectors from what is local. On Wikipedia text four nodes then answer two
    /// of a hundred questions fewer than with keys drawn ahead (`docs/wv.md` has the figures).
    #[must_use]
    pub fn sampling(&self) -> Option<Scheme> {
        let usual = |system: System| match Scheme::of(system) {
            Scheme::Local if self.nodes > 1 && system.supply() == Supply::Intent => Scheme::Preloc,
            usual => usual,
        };
        self.system.map(|system| self.scheme.unwrap_or_else(|| usual(system)))
    }
}

/// Times that training shows each word of the vocabulary on average.
const SHOWN: u64 = 5_000;
/// Words that are enough for any vocabulary.
const WORDS_SEEN: u64 = 50_000_000;
const EPOCHS_MIN: u64 = 5;
const EPOCHS_MAX: u64 = 50;

/// Choices of an evaluation. Start from [`EvalConfig::default`] and set fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EvalConfig {
    /// The parameter management system; `None`: plain arrays. Defaults to adapm.
    pub system: Option<System>,
    /// Nodes in this process; where nodes are processes their number counts instead. Defaults to 1.
    pub nodes: usize,
    /// Workers of each node; `None`: max(1, cores / nodes). Defaults to `None`.
    pub workers: Option<usize>,
    /// The most frequent words that can be asked for and be answers; `None`: all. Defaults to
    /// `None`.
    pub words: Option<usize>,
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self { system: Some(System::Adapm), nodes: 1, workers: None, words: None }
    }
}

named!(
    Negatives,
    Negatives::Sentence => "sentence", Negatives::Window => "window", Negatives::Pair => "pair"
);
named!(Optimizer, Optimizer::Sgd => "sgd", Optimizer::AdaGrad => "adagrad");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_read_more_often_unless_asked_otherwise() {
        let usual = TrainConfig::default();
        let words = [20_000, 1_000_000, 4_000_000, 9_300_000, 1 << 40];
        assert_eq!(words.map(|words| usual.epochs_for(words, 60_000)), [50, 50, 12, 5, 5]);
        // A text that shows each of few words often.
        assert_eq!([100, 2_000].map(|distinct| usual.epochs_for(500_000, distinct)), [5, 20]);
        assert_eq!(usual.epochs_for(0, 0), 5);
        assert_eq!(TrainConfig { epochs: Some(0), ..usual }.epochs_for(20_000, 60_000), 0);
    }

    #[test]
    fn negatives_are_drawn_ahead_where_what_is_local_is_not_all() {
        let sampling = |system, nodes, scheme| {
            TrainConfig { system, nodes, scheme, ..TrainConfig::default() }.sampling()
        };
        let usual = |system, nodes| sampling(Some(system), nodes, None);
        assert_eq!(
            [1, 2].map(|nodes| usual(System::Adapm, nodes)),
            [Some(Scheme::Local), Some(Scheme::Preloc)]
        );
        for system in [System::Classic, System::Full, System::Lapse, System::AdapmNoReplication] {
            assert_eq!(usual(system, 4), Some(Scheme::of(system)), "{system}");
        }
        assert_eq!(sampling(Some(System::Adapm), 4, Some(Scheme::Local)), Some(Scheme::Local));
        assert_eq!(sampling(None, 1, Some(Scheme::Local)), None);
    }
}
