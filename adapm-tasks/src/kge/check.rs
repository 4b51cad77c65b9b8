//! Which choices of a training run make sense.

use crate::kge::config::{ModelKind, TrainConfig};
use crate::kge::graph::Graph;
use crate::run::config::ConfigError;
use crate::run::crew;
use crate::run::peers::Peers;

/// Checks the choices of a training run.
pub(crate) fn training(graph: &Graph, config: &TrainConfig, peers: &Peers<'_>) -> Result<(), ConfigError> {
    crew::check(config.system, config.nodes, config.workers, peers)?;
    if graph.train.is_empty() {
        return Err(ConfigError::NothingToTrain);
    }
    let is_odd = config.model == ModelKind::Complex && !config.dim.is_multiple_of(2);
    if config.dim == 0 || config.dim > DIM_MAX || is_odd {
        return Err(ConfigError::Dimension { dim: config.dim });
    }
    let positive = [
        ("learning_rate", config.learning_rate > 0.0 && config.learning_rate.is_finite()),
        ("initial_deviation", config.initial_deviation > 0.0 && config.initial_deviation.is_finite()),
        ("chunk", config.chunk > 0),
        ("negative_count", config.negatives_of_a_set() > 0),
        ("valid_every", config.valid_every > 0),
        ("localize_ahead", config.localize_ahead > 0),
    ];
    let not_negative =
        [("l2_entity", config.l2_entity), ("l2_relation", config.l2_relation), ("n3", config.n3)];
    let wrong = positive.iter().find(|(_, holds)| !holds).map(|(field, _)| *field);
    if let Some(field) = wrong {
        return Err(ConfigError::NotPositive { field });
    }
    match not_negative.iter().find(|(_, weight)| !(*weight >= 0.0 && weight.is_finite())) {
        Some((field, _)) => Err(ConfigError::Negative { field }),
        None => Ok(()),
    }
}

/// Reals of an entity that are supported.
const DIM_MAX: usize = 1 << 16;
