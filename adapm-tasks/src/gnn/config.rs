//! Settings of training, and checks of them.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use serde::Serialize;

use crate::gnn::graph::{Features, Graph};
use crate::gnn::model::{Architecture, Inputs};
use crate::gnn::sampling::Counts;
use crate::run::config::named;
use crate::run::flags::{TRAINING, name_if_given, one_of, positive_count};
use crate::run::{ClusterConfig, Config, ConfigError, RunConfig, TaskError, checks};

/// The features that a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeatureSource {
    /// Those of the data.
    Given,
    /// A vector of each node, which is trained.
    Learned,
}

/// The scale of given features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scale {
    /// Those of a node add up to 1, signs aside.
    Rows,
    /// As the data has them.
    Raw,
}

/// The way in which training nodes are dealt to the nodes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Partition {
    /// By parts grown in the graph.
    Grown,
    /// At random.
    Random,
}

/// Numbers of neighbours that are drawn: of a node to classify, and of each of those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fanout(pub(crate) Counts);

/// A text that is no [`Fanout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give two whole numbers of at least 1, such as 10,25: direct neighbours, and theirs")]
pub struct InvalidFanout;

impl FromStr for Fanout {
    type Err = InvalidFanout;

    fn from_str(text: &str) -> Result<Self, InvalidFanout> {
        let (direct, further) = text.split_once(',').ok_or(InvalidFanout)?;
        let count = |text: &str| text.trim().parse().ok().filter(|count| *count > 0);
        Ok(Self([count(direct).ok_or(InvalidFanout)?, count(further).ok_or(InvalidFanout)?]))
    }
}

impl fmt::Display for Fanout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([direct, further]) = self;
        write!(f, "{direct},{further}")
    }
}

impl Serialize for Fanout {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Choices of a training run. Start from [`TrainConfig::default`] and set fields.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TrainConfig {
    /// Units of the first layer
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().hidden, help_heading = "Model")]
    pub hidden: usize,
    /// Features of nodes: those of the data, or a vector of each that is learned [default: given if
    /// the data has any]
    #[arg(long, value_name = "SOURCE", value_parser = one_of::<FeatureSource>(FeatureSource::NAMES), help_heading = "Model")]
    #[serde(serialize_with = "name_if_given")]
    pub features: Option<FeatureSource>,
    /// Numbers of a vector that is learned
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().dim, help_heading = "Model")]
    pub dim: usize,
    /// Given features: those of a node divided by their sum, or as they are [default: rows if most
    /// are 0, else raw]
    #[arg(long, value_name = "SCALE", value_parser = one_of::<Scale>(Scale::NAMES), help_heading = "Model")]
    #[serde(serialize_with = "name_if_given")]
    pub scale: Option<Scale>,
    /// Passes over the training nodes [default: half a million nodes in all, from 10 to 100 passes]
    #[arg(long, value_name = "N", value_parser = positive_count, help_heading = TRAINING)]
    pub epochs: Option<u32>,
    /// Neighbours that are drawn in training: of a node, and of each of these
    #[arg(long, value_name = "N,N", default_value_t = TrainConfig::default().fanout, help_heading = TRAINING)]
    pub fanout: Fanout,
    /// Training nodes of a batch, which is a clock
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().batch, help_heading = TRAINING)]
    pub batch: usize,
    /// Learning rate of AdaGrad
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().learning_rate, help_heading = TRAINING)]
    pub learning_rate: f32,
    /// Weight of the squared norm of the first layer's weights [default: 0.12 by the number of
    /// training nodes]
    #[arg(long, value_name = "X", help_heading = TRAINING)]
    pub l2: Option<f32>,
    /// Share of features and of hidden units that a step leaves out
    #[arg(long, value_name = "SHARE", default_value_t = TrainConfig::default().dropout, help_heading = TRAINING)]
    pub dropout: f32,
    /// Parts of the training nodes that the nodes of a run train on, if no file says so [default:
    /// grown if features are learned, else random]
    #[arg(long, value_name = "HOW", value_parser = one_of::<Partition>(Partition::NAMES), help_heading = TRAINING)]
    #[serde(serialize_with = "name_if_given")]
    pub partition: Option<Partition>,
    /// Epochs between two evaluations of valid (the last epoch is always evaluated)
    #[arg(long, value_name = "EPOCHS", default_value_t = TrainConfig::default().valid_every, value_parser = positive_count, help_heading = TRAINING)]
    pub valid_every: u32,
    /// Nodes, workers, system.
    #[command(flatten)]
    #[serde(flatten)]
    pub cluster: ClusterConfig,
    /// Settings that all tasks have.
    #[command(flatten)]
    #[serde(flatten)]
    pub run: RunConfig,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            hidden: 64,
            features: None,
            dim: 64,
            scale: None,
            epochs: None,
            fanout: Fanout([10, 25]),
            batch: 128,
            learning_rate: 0.05,
            l2: None,
            dropout: 0.5,
            partition: None,
            valid_every: 1,
            cluster: ClusterConfig::default(),
            run: RunConfig::default(),
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
        4
    }

    fn check(&self) -> Result<(), ConfigError> {
        checks::whole("hidden", self.hidden as u64, 1, HIDDEN_MAX)?;
        checks::dimension(self.dim)?;
        checks::whole("batch", self.batch as u64, 1, BATCH_MAX)?;
        checks::positive("learning_rate", self.learning_rate)?;
        checks::not_negative("l2", self.l2.unwrap_or(0.0))?;
        checks::share_below_all("dropout", self.dropout.into())?;
        checks::whole("valid_every", self.valid_every.into(), 1, u64::MAX)?;
        self.run.check(&self.cluster)
    }
}

impl TrainConfig {
    /// Returns the passes over so many training nodes.
    #[must_use]
    pub fn passes(&self, nodes: usize) -> u32 {
        let enough = NODES_ENOUGH.div_ceil(nodes.max(1)).clamp(10, 100) as u32;
        self.epochs.unwrap_or(enough)
    }

    /// Returns the weight of the squared norm for so many training nodes. The loss is a mean over
    /// nodes, so what is known of the weights beforehand counts the less, the more nodes there are.
    #[must_use]
    pub fn l2(&self, nodes: usize) -> f32 {
        self.l2.unwrap_or(PRIOR / nodes.max(1) as f32)
    }

    /// Returns how training nodes are dealt. Parts that are grown share few nodes whose features
    /// are learned; given features are local anyway, and batches of nodes from all of the graph
    /// train better: those of a part have some classes more often than others.
    pub(crate) fn partition(&self, model: &Architecture) -> Partition {
        let is_learned = model.inputs == Inputs::Learned;
        self.partition.unwrap_or(if is_learned { Partition::Grown } else { Partition::Random })
    }

    /// Returns the form of the model of a graph.
    ///
    /// # Errors
    ///
    /// Given features that the graph does not have.
    pub(crate) fn architecture(&self, graph: &Graph) -> Result<Architecture, TaskError> {
        let usual = match graph.features {
            Features::Missing => FeatureSource::Learned,
            _ => FeatureSource::Given,
        };
        let inputs = match (self.features.unwrap_or(usual), &graph.features) {
            (FeatureSource::Learned, _) => Inputs::Learned,
            (FeatureSource::Given, Features::Sparse(_)) => Inputs::Sparse,
            (FeatureSource::Given, Features::Dense { .. }) => Inputs::Dense,
            (FeatureSource::Given, Features::Missing) => {
                let text = "the data has no features; leave out --features given";
                return Err(TaskError::Own(text.to_owned()));
            }
        };
        let usual = if inputs == Inputs::Sparse { Scale::Rows } else { Scale::Raw };
        let is_learned = inputs == Inputs::Learned;
        Ok(Architecture {
            inputs,
            nodes: if is_learned { graph.nodes() as u64 } else { 0 },
            width: if is_learned { self.dim } else { graph.features.width() },
            scaled: !is_learned && self.scale.unwrap_or(usual) == Scale::Rows,
            hidden: self.hidden,
            classes: graph.classes(),
        })
    }
}

named!(FeatureSource, FeatureSource::Given => "given", FeatureSource::Learned => "learned");
named!(Scale, Scale::Rows => "rows", Scale::Raw => "raw");
named!(Partition, Partition::Grown => "grown", Partition::Random => "random");

/// Training nodes, each as often as it is trained on, that are enough to learn from.
const NODES_ENOUGH: usize = 500_000;
/// The default weight of the squared norm beside the summed loss of all training nodes: the largest
/// of those tried that cost generated graphs of 200 to 10,000 training nodes less than 0.01 of
/// their accuracy, as graphs of few nodes with many features (Citeseer) gain by it.
const PRIOR: f32 = 0.12;
const HIDDEN_MAX: u64 = 1 << 14;
const BATCH_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fanouts_are_two_positive_numbers() {
        assert_eq!("10,25".parse(), Ok(Fanout([10, 25])));
        assert_eq!(Fanout([3, 4]).to_string().parse(), Ok(Fanout([3, 4])));
        for text in ["", "10", "0,5", "5,0", "a,b", "1,2,3", "-1,2"] {
            assert_eq!(text.parse::<Fanout>(), Err(InvalidFanout), "{text}");
        }
    }

    #[test]
    fn the_norm_counts_less_with_more_nodes_if_no_weight_is_given() {
        let mut config = TrainConfig::default();
        assert_eq!([0, 1, 2, 4].map(|nodes| config.l2(nodes)), [0.12, 0.12, 0.06, 0.03]);
        config.l2 = Some(0.0);
        assert_eq!(config.l2(120), 0.0);
    }

    #[test]
    fn values_that_make_no_sense_are_refused_by_name() {
        let refused = |change: fn(&mut TrainConfig)| {
            let mut config = TrainConfig::default();
            change(&mut config);
            config.check().expect_err("it is refused").to_string()
        };
        assert!(refused(|config| config.hidden = 0).starts_with("hidden 0"));
        assert!(refused(|config| config.dropout = 1.0).starts_with("dropout 1"));
        assert!(refused(|config| config.l2 = Some(f32::NAN)).starts_with("l2 NaN"));
        assert!(refused(|config| config.batch = 0).starts_with("batch 0"));
        assert!(TrainConfig::default().check().is_ok());
    }
}
