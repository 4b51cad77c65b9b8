//! Which choices of a training run make sense.

use crate::kge::config::{ModelKind, Negatives, TrainConfig};
use crate::kge::graph::Graph;
use crate::run::config::{ConfigError, Wanted, dimension, ensure, not_negative, positive, whole};
use crate::run::crew;
use crate::run::peers::Peers;

/// Checks the choices of a training run.
pub(crate) fn training(graph: &Graph, config: &TrainConfig, peers: &Peers<'_>) -> Result<(), ConfigError> {
    crew::check(config.system, config.nodes, config.workers, peers)?;
    if graph.train.is_empty() {
        return Err(ConfigError::NothingToTrain);
    }
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
        let is_even = self.model != ModelKind::Complex || self.dim.is_multiple_of(2);
        ensure(is_even, "dim", self.dim, Wanted::Even)?;
        positive("learning_rate", self.learning_rate)?;
        positive("initial_deviation", self.initial_deviation)?;
        let chunk = self.chunk_of(usize::MAX, 1) as u64;
        whole("chunk", chunk, 1, CHUNK_MAX)?;
        let is_shared = self.negatives == Negatives::Shared;
        let count_max = if is_shared { SCORES_MAX / chunk } else { CHUNK_MAX };
        whole("negative_count", self.negative_count.unwrap_or(1) as u64, 1, count_max)?;
        whole("valid_every", self.valid_every.unwrap_or(1).into(), 1, u64::MAX)?;
        whole("localize_ahead", self.localize_ahead, 1, u64::MAX)?;
        not_negative("l2_entity", self.l2_entity)?;
        not_negative("l2_relation", self.l2_relation)?;
        not_negative("n3", self.n3)
    }
}

/// Triples of a chunk, and negatives of a triple, that are supported.
const CHUNK_MAX: u64 = 1 << 16;
/// Scores of a chunk that are supported: a gigabyte of each worker.
const SCORES_MAX: u64 = 1 << 28;
