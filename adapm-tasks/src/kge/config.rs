//! Choices of training and evaluation, checks of them, and the sizes of a step that follow.

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};
use serde::Serialize;

use crate::Scheme;
use crate::kge::comparison::Comparison;
use crate::kge::graph::Graph;
use crate::kge::model::ModelKind;
use crate::run::config::{
    ClusterConfig, Config, ConfigError, RunConfig, Split, Wanted, dimension, ensure, named,
    not_negative, positive, whole,
};
use crate::run::flags::{SCHEMES, TRAINING, at_least_one, name_if_given, one_of, positive_count};

/// The sampling of negatives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Negatives {
    /// The positives of a chunk share one set of negatives, used for the subject and for the object
    /// side. The clock counts chunks.
    #[default]
    Shared,
    /// Every positive has `n` negatives for the subject and `n` for the object side (AdaPM §5.1).
    /// The clock counts data points.
    Independent,
}

/// The loss that is minimised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossKind {
    /// Cross entropy of the answer among the answer and its negatives.
    #[default]
    Softmax,
    /// Binary cross entropy of the answer and of each negative (the papers').
    Logistic,
}

/// Choices of a training run. Start from [`TrainConfig::default`] and set fields.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TrainConfig {
    /// Function that scores a triple
    #[arg(long, value_name = "NAME", default_value_t, value_parser = one_of::<ModelKind>(ModelKind::NAMES), help_heading = "Model")]
    pub model: ModelKind,
    /// Length of an entity's vector, in reals (complex numbers: half real, half imaginary parts)
    #[arg(long, value_name = "REALS", default_value_t = TrainConfig::default().dim, help_heading = "Model")]
    pub dim: usize,
    /// Give every relation an inverse with a vector of its own, which predicts subjects;
    /// --reciprocal=false takes it back
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true",
        action = ArgAction::Set, hide_default_value = true, hide_possible_values = true, value_parser = BoolishValueParser::new(), help_heading = "Model")]
    pub reciprocal: bool,
    /// Let the frequency of a candidate with the relation count in ranking, as much as is best on
    /// valid; --prior=false: vectors alone
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true",
        action = ArgAction::Set, hide_default_value = true, hide_possible_values = true, value_parser = BoolishValueParser::new(), help_heading = "Model")]
    pub prior: bool,
    /// Standard deviation of the initial values
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().initial_deviation, help_heading = "Model")]
    pub initial_deviation: f32,
    /// Passes over the training data
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().epochs, value_parser = positive_count, help_heading = TRAINING)]
    pub epochs: u32,
    /// Loss to minimise: cross entropy over the negatives (softmax) or of each (logistic)
    #[arg(long, value_name = "NAME", default_value_t, value_parser = one_of::<LossKind>(LossKind::NAMES), help_heading = TRAINING)]
    pub loss: LossKind,
    /// Negatives: one set for a whole chunk of triples, or a set for each triple
    #[arg(long, value_name = "WAY", default_value_t, value_parser = one_of::<Negatives>(Negatives::NAMES), help_heading = TRAINING)]
    pub negatives: Negatives,
    /// Negatives of a chunk (shared), or of each side of a triple (independent) [default: twice the
    /// entities, at most 1000; or 50]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = TRAINING)]
    pub negative_count: Option<usize>,
    /// Sampling of negatives: any entities, as they come (naive), brought here ahead (preloc), from
    /// a pool that is used again (pool), such as are here (local) [default: naive under classic,
    /// preloc under lapse and adapm-no-replication, else local]
    #[arg(long = "sampling", value_name = "SCHEME", value_parser = one_of::<Scheme>(SCHEMES), help_heading = TRAINING)]
    #[serde(serialize_with = "name_if_given")]
    pub scheme: Option<Scheme>,
    /// Triples of a chunk, with shared negatives [default: a fortieth of what a worker has in an
    /// epoch, 16 to 256]
    #[arg(long, value_name = "TRIPLES", value_parser = at_least_one, help_heading = TRAINING)]
    pub chunk: Option<usize>,
    /// Learning rate of AdaGrad
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().learning_rate, help_heading = TRAINING)]
    pub learning_rate: f32,
    /// Weight of the squared norm of a triple's entities
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().l2_entity, help_heading = TRAINING)]
    pub l2_entity: f32,
    /// Weight of the squared norm of a triple's relation
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().l2_relation, help_heading = TRAINING)]
    pub l2_relation: f32,
    /// Weight of the cubed absolute values of a triple's vectors [default: 0.05; 0 where scores
    /// are distances]
    #[arg(long, value_name = "X", help_heading = TRAINING)]
    pub n3: Option<f32>,
    /// Epochs between two evaluations of valid (the last epoch is always evaluated) [default: 1 to
    /// 5, a tenth of the time]
    #[arg(long, value_name = "EPOCHS", value_parser = positive_count, help_heading = TRAINING)]
    pub valid_every: Option<u32>,
    /// Nodes, workers, system.
    #[command(flatten)]
    #[serde(flatten)]
    pub cluster: ClusterConfig,
    /// Settings that all tasks have. Without valid triples, a twentieth of the training triples, at
    /// most 10,000, is held back to select the epoch on.
    #[command(flatten)]
    #[serde(flatten)]
    pub run: RunConfig,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            model: ModelKind::default(),
            dim: 128,
            reciprocal: false,
            prior: true,
            initial_deviation: 0.1,
            epochs: 10,
            loss: LossKind::default(),
            negatives: Negatives::default(),
            negative_count: None,
            scheme: None,
            chunk: None,
            learning_rate: 0.1,
            l2_entity: 0.0,
            l2_relation: 0.0,
            n3: None,
            valid_every: None,
            run: RunConfig::default(),
            cluster: ClusterConfig::default(),
        }
    }
}

impl TrainConfig {
    /// Negatives of a chunk (shared) or of each side of a positive (independent), of a graph with
    /// so many entities.
    ///
    /// Negatives are drawn with replacement: of twice as many as there are entities, a chunk misses
    /// every seventh. UMLS (135 entities) reaches the same with 270 as with 1000, in a quarter of
    /// the time.
    #[must_use]
    pub fn negatives_of(&self, entities: usize) -> usize {
        self.negative_count.unwrap_or(match self.negatives {
            Negatives::Shared => entities.saturating_mul(2).clamp(1, NEGATIVES_MAX),
            Negatives::Independent => 50,
        })
    }

    /// Positives of a step where `workers` of all nodes train on `examples`: of a chunk, or one if
    /// negatives are independent.
    ///
    /// A chunk is one step of AdaGrad for each of its rows: where a worker has only a few of them
    /// in an epoch they are too few, and the more workers there are, the more rows are stepped on
    /// from the same values at once.
    #[must_use]
    pub fn chunk_of(&self, examples: usize, workers: usize) -> usize {
        match self.negatives {
            Negatives::Shared => {
                let usual = examples / CHUNKS_OF_WORKER.saturating_mul(workers).max(1);
                self.chunk.unwrap_or(usual.clamp(CHUNK_MIN, CHUNK_MAX))
            }
            Negatives::Independent => 1,
        }
    }

    /// Epochs between two evaluations of `valid` triples where an epoch trains on `train` of them,
    /// of a graph with so many entities.
    ///
    /// Valid is ranked against all entities, a training triple against its negatives, whose
    /// gradients cost twice as much again.
    #[must_use]
    pub fn valid_every_of(&self, train: usize, valid: usize, entities: usize) -> u32 {
        let ranked = valid as f64 * entities as f64;
        let trained = 3.0 * train as f64 * self.negatives_of(entities) as f64;
        let usual =
            (RANKED_PER_TRAINED * ranked / trained.max(1.0)).ceil().clamp(1.0, VALID_EVERY_MAX);
        self.valid_every.unwrap_or(usual as u32)
    }

    /// Triples that are held back of `train` to select on, if they can be spared: a twentieth, at
    /// most 10,000; none where there are `valid` ones, nothing is evaluated, or train has fewer
    /// than twenty.
    #[must_use]
    pub fn held_back_of(&self, train: usize, valid: usize) -> usize {
        let is_whole = self.run.no_eval || valid > 0 || train < PART;
        if is_whole { 0 } else { train.div_ceil(PART).min(HELD_MAX) }
    }

    /// Weight of the cubed absolute values of a positive's vectors.
    ///
    /// An inner product grows with the lengths of its vectors, which have to be held; a distance
    /// grows with their difference.
    #[must_use]
    pub fn n3_of(&self) -> f32 {
        self.n3.unwrap_or(match self.model.comparison() {
            Comparison::InnerProduct => N3,
            Comparison::Euclidean | Comparison::Moduli => 0.0,
        })
    }

    /// Returns the scheme by which negatives are sampled; `None` without a manager.
    #[must_use]
    pub fn sampling(&self) -> Option<Scheme> {
        self.cluster.system.map(|system| self.scheme.unwrap_or(Scheme::of(system)))
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
        match self.negatives {
            // A batch is a chunk.
            Negatives::Shared => 2,
            // A batch is a fact.
            Negatives::Independent => 64,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        dimension(self.dim)?;
        let is_even = !self.model.needs_even() || self.dim.is_multiple_of(2);
        ensure(is_even, "dim", self.dim, Wanted::Even { model: self.model.name() })?;
        positive("learning_rate", self.learning_rate)?;
        positive("initial_deviation", self.initial_deviation)?;
        let chunk = self.chunk_of(usize::MAX, 1) as u64;
        whole("chunk", chunk, 1, SUPPORTED_MAX)?;
        let is_shared = self.negatives == Negatives::Shared;
        let count_max = if is_shared { SCORES_MAX / chunk } else { SUPPORTED_MAX };
        whole("negative_count", self.negative_count.unwrap_or(1) as u64, 1, count_max)?;
        whole("valid_every", self.valid_every.unwrap_or(1).into(), 1, u64::MAX)?;
        not_negative("l2_entity", self.l2_entity)?;
        not_negative("l2_relation", self.l2_relation)?;
        not_negative("n3", self.n3_of())?;
        self.run.check(&self.cluster)
    }
}

/// Choices of an evaluation. Start from [`EvalConfig::default`] and set fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EvalConfig {
    /// The evaluated part. Defaults to test.
    pub split: Split,
    /// Nodes, workers, system.
    #[serde(flatten)]
    pub cluster: ClusterConfig,
}

/// Sizes of the steps of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sizes {
    /// Positives of a step.
    pub(crate) chunk: usize,
    /// Negatives of a step, or of each side of its positive.
    pub(crate) negatives: usize,
    /// Steps on the row of an entity, and on that of a relation, that start from the same value, on
    /// average.
    pub(crate) at_once: [f32; 2],
}

impl Sizes {
    /// Returns the sizes where `workers` of all nodes train on `graph`.
    pub(crate) fn new(graph: &Graph, config: &TrainConfig, workers: usize) -> Self {
        let chunk = config.chunk_of(graph.train.len(), workers);
        let (entities, relations) = (graph.entities.len(), graph.relations.len());
        let negatives = config.negatives_of(entities);
        let sides = if config.negatives == Negatives::Independent { 2 } else { 1 };
        let at_once = [(2 * chunk + sides * negatives, entities), (chunk, relations)];
        let at_once =
            at_once.map(|(rows, all)| at_once_of(workers, rows as f32 / all.max(1) as f32));
        Self { chunk, negatives, at_once }
    }
}

/// Steps on a row at once, itself counted, where each of `workers` touches this share of all rows
/// in a step.
///
/// Steps that are taken at once are applied one after the other, so each comes after half of the
/// others on average. The result is 1 for one worker, and close to 1 for any number of workers if a
/// step touches few of the rows.
fn at_once_of(workers: usize, share: f32) -> f32 {
    let others = workers.saturating_sub(1) as f32;
    1.0 + others / 2.0 * share.min(1.0)
}

/// The weight of N3 of inner products.
const N3: f32 = 0.05;
/// Negatives of a chunk, at most.
const NEGATIVES_MAX: usize = 1000;
/// Chunks of a worker in an epoch, at least, until they are too small.
const CHUNKS_OF_WORKER: usize = 40;
const CHUNK_MIN: usize = 16;
const CHUNK_MAX: usize = 256;
/// Evaluations take a part of the time of training, one in so many.
const RANKED_PER_TRAINED: f64 = 10.0;
const VALID_EVERY_MAX: f64 = 5.0;

/// One in so many is held back.
const PART: usize = 20;
const HELD_MAX: usize = 10_000;
/// Triples of a chunk, and negatives of a triple, that are supported.
const SUPPORTED_MAX: u64 = 1 << 16;
/// Scores of a chunk that are supported: a gigabyte of each worker.
const SCORES_MAX: u64 = 1 << 28;

named!(Negatives, Negatives::Shared => "shared", Negatives::Independent => "independent");
named!(LossKind, LossKind::Softmax => "softmax", LossKind::Logistic => "logistic");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_and_negatives_follow_the_data_and_the_workers_unless_they_are_given() {
        let config = TrainConfig::default();
        // UMLS, Kinships, CoDEx-S, FB15k-237, the generated families.
        let umls = [1, 2, 4, 8, 40].map(|workers| config.chunk_of(5_216, workers));
        assert_eq!(umls, [130, 65, 32, 16, 16]);
        assert_eq!(
            [8_544, 32_888, 272_115].map(|examples| config.chunk_of(examples, 1)),
            [213, 256, 256]
        );
        assert_eq!([0, 12].map(|examples| config.chunk_of(examples, 4)), [16, 16]);
        assert_eq!(
            [0, 1, 104, 135, 2_034].map(|entities| config.negatives_of(entities)),
            [1, 2, 208, 270, 1000]
        );
        // The same, and a graph with far fewer facts in train than in valid.
        let valid = [
            (5_216, 652, 135),
            (32_888, 1_827, 2_034),
            (272_115, 17_535, 14_541),
            (1_000, 100_000, 1_000_000),
        ];
        let every =
            valid.map(|(train, valid, entities)| config.valid_every_of(train, valid, entities));
        assert_eq!(every, [1, 1, 4, 5]);
        let given = TrainConfig { chunk: Some(7), negative_count: Some(3), ..config.clone() };
        assert_eq!((given.chunk_of(1 << 20, 1), given.negatives_of(1 << 20)), (7, 3));
        let independent = TrainConfig { negatives: Negatives::Independent, ..config };
        assert_eq!((independent.chunk_of(1 << 20, 4), independent.negatives_of(10)), (1, 50));
    }

    #[test]
    fn inner_products_are_penalized_and_distances_are_not_unless_asked_for() {
        for model in ModelKind::ALL {
            let config = TrainConfig { model: *model, ..TrainConfig::default() };
            let is_product = model.comparison() == Comparison::InnerProduct;
            assert_eq!(config.n3_of(), if is_product { 0.05 } else { 0.0 }, "{model}");
            assert_eq!(TrainConfig { n3: Some(0.2), ..config }.n3_of(), 0.2, "{model}");
        }
    }

    #[test]
    fn the_more_workers_share_rows_the_more_steps_are_at_once_and_one_worker_is_alone() {
        // A family is 44 people, and relations are few: a chunk of 16 touches them all.
        let graph = Graph::families(1, 1);
        let config = TrainConfig { chunk: Some(64), ..TrainConfig::default() };
        let at_once = |config: &TrainConfig, workers| Sizes::new(&graph, config, workers).at_once;
        let expected = [(1, 1.0), (2, 1.5), (4, 2.5), (8, 4.5)];
        assert!(expected.iter().all(|(workers, steps)| at_once(&config, *workers) == [*steps; 2]));
        // Two entities and two negatives of each side in a step, of all there are.
        let few =
            TrainConfig { negatives: Negatives::Independent, negative_count: Some(2), ..config };
        let [entity, relation] = at_once(&few, 3);
        assert!((entity - (1.0 + 6.0 / graph.entities.len() as f32)).abs() < 1e-6, "{entity}");
        assert!((relation - (1.0 + 1.0 / graph.relations.len() as f32)).abs() < 1e-6, "{relation}");
        assert_eq!(at_once(&few, 1), [1.0; 2]);
    }
}
