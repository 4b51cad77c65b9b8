//! The head of a saved model: what it takes to predict with it.

use serde::{Deserialize, Serialize};

use crate::ctr::clicks::{Clicks, Origin};
use crate::ctr::config::TrainConfig;
use crate::ctr::encoder::Encoder;
use crate::ctr::synthetic::SyntheticConfig;

/// The head of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub(crate) config: TrainConfig,
    pub(crate) encoder: Encoder,
    /// The digest of the data that it was trained on.
    pub(crate) trained_on: u64,
    /// The generator of these data.
    pub(crate) generated: Option<SyntheticConfig>,
}

impl Head {
    /// Returns the head of a model of these clicks.
    pub(crate) fn of(clicks: &Clicks, config: &TrainConfig) -> Self {
        let generated = match clicks.origin {
            Origin::Generated(config, _) => Some(config),
            Origin::Files(_) => None,
        };
        let (config, encoder) = (config.clone(), clicks.encoder.clone());
        Self { config, encoder, trained_on: clicks.digest, generated }
    }
}
