//! Choices of training and evaluating word vectors.

use adapm_core::policy::Supply;
use clap::Args;
use serde::Serialize;

use crate::run::config::{
    ClusterConfig, Config, ConfigError, RunConfig, dimension, named, positive, share, whole,
};
use crate::run::flags::{SCHEMES, TRAINING, name_if_given, one_of, positive_count};
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
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[command(next_help_heading = TRAINING)]
#[non_exhaustive]
pub struct TrainConfig {
    /// Length of a vector
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().dim)]
    pub dim: usize,
    /// Passes over the text [default: 5, more over a short text, 50 at most]
    #[arg(long, value_name = "N", value_parser = positive_count)]
    pub epochs: Option<u32>,
    /// Words to each side that a context reaches at most; how far it does is drawn for each word
    #[arg(long, value_name = "WORDS", default_value_t = TrainConfig::default().window)]
    pub window: u16,
    /// Negatives of a pair, at most 500
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().negatives)]
    pub negatives: usize,
    /// Sharing of negatives: among the pairs of a sentence, those of one word, or none (word2vec's
    /// way)
    #[arg(long, value_name = "WAY", default_value_t, value_parser = one_of::<Negatives>(Negatives::NAMES))]
    pub drawn: Negatives,
    /// Sampling of negatives: any words, as they come (naive), brought here ahead (preloc), from a
    /// pool that is used again (pool), such as are here (local) [default: as for kge, but preloc on
    /// several nodes where the system replicates on intent]
    #[arg(long = "sampling", value_name = "SCHEME", value_parser = one_of::<Scheme>(SCHEMES))]
    #[serde(serialize_with = "name_if_given")]
    pub scheme: Option<Scheme>,
    /// Share of the text from which on a word is thinned; 0 thins none
    #[arg(long, value_name = "SHARE", default_value_t = TrainConfig::default().sample)]
    pub sample: f64,
    /// Update rule of parameters: word2vec's falling rate, or the papers' AdaGrad
    #[arg(long, value_name = "NAME", default_value_t, value_parser = one_of::<Optimizer>(Optimizer::NAMES))]
    pub optimizer: Optimizer,
    /// Learning rate, with sgd at the start
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().learning_rate)]
    pub learning_rate: f32,
    /// Nodes, workers, system.
    #[command(flatten)]
    #[serde(flatten)]
    pub cluster: ClusterConfig,
    /// Settings that all tasks have; a clock is a sentence.
    #[command(flatten)]
    #[serde(flatten)]
    pub run: RunConfig,
    /// Sentences between the announcement of a sentence and its turn, under all systems but lapse
    #[arg(long, value_name = "SENTENCES", default_value_t = TrainConfig::default().ahead, help_heading = "Cluster")]
    pub ahead: usize,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            dim: 100,
            epochs: None,
            window: 5,
            negatives: 5,
            drawn: Negatives::default(),
            scheme: None,
            sample: 1e-3,
            optimizer: Optimizer::default(),
            learning_rate: 0.025,
            ahead: 2000,
            run: RunConfig::default(),
            cluster: ClusterConfig::default(),
        }
    }
}

impl Config for TrainConfig {
    fn common(&self) -> (&ClusterConfig, &RunConfig) {
        (&self.cluster, &self.run)
    }

    fn common_mut(&mut self) -> (&mut ClusterConfig, &mut RunConfig) {
        (&mut self.cluster, &mut self.run)
    }

    fn batches_per_clock(&self) -> u32 {
        512
    }

    fn check(&self) -> Result<(), ConfigError> {
        dimension(self.dim)?;
        positive("learning_rate", self.learning_rate)?;
        whole("window", self.window.into(), 1, u64::from(u16::MAX))?;
        whole("ahead", self.ahead as u64, 1, u64::MAX)?;
        share("sample", self.sample)?;
        whole("negatives", self.negatives as u64, 0, NEGATIVES_MAX)?;
        self.run.check(&self.cluster)
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
            Scheme::Local if self.cluster.nodes > Some(1) && system.supply() == Supply::Intent => {
                Scheme::Preloc
            }
            usual => usual,
        };
        self.cluster.system.map(|system| self.scheme.unwrap_or_else(|| usual(system)))
    }
}

/// Times that training shows each word of the vocabulary on average.
const SHOWN: u64 = 5_000;
/// Words that are enough for any vocabulary.
const WORDS_SEEN: u64 = 50_000_000;
const EPOCHS_MIN: u64 = 5;
const EPOCHS_MAX: u64 = 50;

/// Far more than helps: word2vec advises 5 to 20.
const NEGATIVES_MAX: u64 = 500;

/// Choices of an evaluation. Start from [`EvalConfig::default`] and set fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EvalConfig {
    /// The most frequent words that can be asked for and be answers; `None`: all. Defaults to
    /// `None`.
    pub words: Option<usize>,
    /// Nodes, workers, system.
    #[serde(flatten)]
    pub cluster: ClusterConfig,
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
            let cluster = ClusterConfig { system, nodes: Some(nodes), ..ClusterConfig::default() };
            TrainConfig { cluster, scheme, ..TrainConfig::default() }.sampling()
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

    #[test]
    fn choices_that_make_no_sense_are_named() {
        let check = |change: fn(&mut TrainConfig)| {
            let mut config = TrainConfig::default();
            change(&mut config);
            config.check()
        };
        assert_eq!(check(|_| {}), Ok(()));
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
            assert_eq!(config.check().unwrap_err().to_string(), expected);
        }
        for rate in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let config = TrainConfig { learning_rate: rate, ..TrainConfig::default() };
            let expected = format!("learning_rate {rate}: give a positive number");
            assert_eq!(config.check().unwrap_err().to_string(), expected);
        }
    }
}
