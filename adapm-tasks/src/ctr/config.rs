//! Choices of training, and checks of them.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::run::config::{
    ClusterConfig, Config, ConfigError, RunConfig, dimension, named, not_negative, positive,
    share_below_all, whole,
};
use crate::run::flags::{TRAINING, one_of, positive_count};

/// The model of clicks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Model {
    /// Wide & Deep (Cheng et al., DLRS 2016): weights of features, and a perceptron on their
    /// embeddings.
    #[default]
    WideDeep,
    /// Deep & Cross (Wang et al., ADKDD 2017): cross layers beside a perceptron.
    DeepCross,
    /// DeepFM (Guo et al., IJCAI 2017): products of pairs of embeddings beside both.
    DeepFm,
}

/// Units of the hidden layers, the first layer first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden(pub Vec<usize>);

/// Choices of a training run. Start from [`TrainConfig::default`] and set fields.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TrainConfig {
    /// Model: Wide & Deep, Deep & Cross, or DeepFM
    #[arg(long, value_name = "NAME", default_value_t, value_parser = one_of::<Model>(Model::NAMES), help_heading = "Model")]
    pub model: Model,
    /// Length of the embedding of a feature
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().dim, help_heading = "Model")]
    pub dim: usize,
    /// Units of the hidden layers, such as 256,256,256; 0: none
    #[arg(long, value_name = "N,...", default_value_t = TrainConfig::default().hidden, help_heading = "Model")]
    #[serde(with = "crate::run::flags::by_text")]
    pub hidden: Hidden,
    /// Cross layers of dcn
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().cross_layers, help_heading = "Model")]
    pub cross_layers: usize,
    /// Standard deviation of the initial embeddings
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().initial_deviation, help_heading = "Model")]
    pub initial_deviation: f32,
    /// Passes over the training data [default: as many as make 2 million examples, from 2 to 20]
    #[arg(long, value_name = "N", value_parser = positive_count, help_heading = TRAINING)]
    pub epochs: Option<u32>,
    /// Examples of a step
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().batch, help_heading = TRAINING)]
    pub batch: usize,
    /// Learning rate of AdaGrad, at first; it falls linearly, to a twentieth
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().learning_rate, help_heading = TRAINING)]
    pub learning_rate: f32,
    /// Share of hidden units that are left out of a step
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().dropout, help_heading = TRAINING)]
    pub dropout: f32,
    /// Weight of the squared norms of the embeddings and weights of a batch's features
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().l2, help_heading = TRAINING)]
    pub l2: f32,
    /// Weight of a click in the loss, that of another example being 1; probabilities are
    /// corrected by it
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().positive_weight, help_heading = TRAINING)]
    pub positive_weight: f32,
    /// Epochs between two evaluations of valid (the last epoch is always evaluated)
    #[arg(long, value_name = "EPOCHS", default_value_t = TrainConfig::default().valid_every, value_parser = positive_count, help_heading = TRAINING)]
    pub valid_every: u32,
    /// Nodes, workers, system.
    #[command(flatten)]
    #[serde(flatten)]
    pub cluster: ClusterConfig,
    /// Settings that all tasks have; a clock is a batch.
    #[command(flatten)]
    #[serde(flatten)]
    pub run: RunConfig,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            model: Model::default(),
            dim: 16,
            hidden: Hidden(vec![256, 256, 256]),
            cross_layers: 3,
            initial_deviation: 0.01,
            epochs: None,
            batch: 128,
            learning_rate: 0.05,
            dropout: 0.0,
            l2: 0.0,
            positive_weight: 1.0,
            valid_every: 1,
            cluster: ClusterConfig::default(),
            run: RunConfig::default(),
        }
    }
}

impl TrainConfig {
    /// Returns the passes over so many training examples.
    #[must_use]
    pub fn passes(&self, examples: usize) -> u32 {
        let enough = EXAMPLES_ENOUGH.div_ceil(examples.max(1)).clamp(2, 20) as u32;
        self.epochs.unwrap_or(enough)
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
        8
    }

    fn check(&self) -> Result<(), ConfigError> {
        dimension(self.dim)?;
        for units in &self.hidden.0 {
            whole("hidden", *units as u64, 1, UNITS_MAX)?;
        }
        whole("cross_layers", self.cross_layers as u64, 1, LAYERS_MAX)?;
        whole("batch", self.batch as u64, 1, BATCH_MAX)?;
        positive("initial_deviation", self.initial_deviation)?;
        positive("learning_rate", self.learning_rate)?;
        share_below_all("dropout", f64::from(self.dropout))?;
        not_negative("l2", self.l2)?;
        positive("positive_weight", self.positive_weight)?;
        whole("valid_every", self.valid_every.into(), 1, u64::MAX)?;
        self.run.check(&self.cluster)
    }
}

impl fmt::Display for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("0");
        }
        let units: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&units.join(","))
    }
}

impl FromStr for Hidden {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "0" {
            return Ok(Self(Vec::new()));
        }
        let units = text.split(',').map(|units| units.trim().parse().ok().filter(|n| *n > 0));
        units.collect::<Option<_>>().map(Self).ok_or("give whole numbers between commas, or 0")
    }
}

named!(Model, Model::WideDeep => "wd", Model::DeepCross => "dcn", Model::DeepFm => "deepfm");

/// Examples, each as often as it is trained on, that are enough to learn from: more passes over
/// many examples only learn them by heart.
const EXAMPLES_ENOUGH: usize = 2_000_000;
/// Units of a hidden layer that are supported.
const UNITS_MAX: u64 = 1 << 16;
/// Cross layers that are supported.
const LAYERS_MAX: u64 = 64;
/// Examples of a batch that are supported.
const BATCH_MAX: u64 = 1 << 20;
