//! The head of a saved model: what it takes to predict with it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ctr::NAME;
use crate::ctr::clicks::{Clicks, Origin};
use crate::ctr::config::TrainConfig;
use crate::ctr::encoder::Encoder;
use crate::ctr::network::Network;
use crate::ctr::synthetic::SyntheticConfig;
use crate::run::{CheckpointError, Config as _, Saved, Tensor};

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

    /// Opens a model: its values stay in the file.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is of another task, or damaged; values that are not as they were
    /// written are not seen.
    pub(crate) fn open(path: &Path) -> Result<Saved<Self>, CheckpointError> {
        let model: Saved<Self> = Saved::open(NAME, path)?;
        let corrupt = || CheckpointError::Corrupt { path: path.to_path_buf() };
        let tensors = model.head.is_sound().then(|| model.head.tensors()).ok_or_else(corrupt)?;
        model.with(tensors).ok_or_else(corrupt)
    }

    /// Returns the tensors of the parameters.
    pub(crate) fn tensors(&self) -> Vec<Tensor> {
        let Encoder { fields, numbers, .. } = &self.encoder;
        Network::new(&self.config, fields.len(), numbers.len()).tensors(self.encoder.keys())
    }

    /// Returns true if its parts go together: a file may say anything.
    fn is_sound(&self) -> bool {
        let Encoder { form, numeric, hash_bits, numbers, fields, .. } = &self.encoder;
        self.config.check().is_ok()
            && hash_bits.is_none_or(|bits| (1..=31).contains(&bits))
            && numbers.len() == form.numbers(*numeric).len()
            && fields.len() + numbers.len() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctr::form::{Form, Numeric};

    #[test]
    fn a_head_whose_parts_do_not_go_together_is_refused() {
        let (config, mut encoder) = (TrainConfig::default(), Encoder::default());
        encoder.fields.push(Default::default());
        let head = Head { config, encoder, trained_on: 0, generated: None };
        let sound = |change: fn(&mut Head)| {
            let mut head = head.clone();
            change(&mut head);
            head.is_sound()
        };
        assert!(sound(|_| {}) && sound(|head| head.encoder.hash_bits = Some(31)));
        assert!(!sound(|head| head.encoder.hash_bits = Some(64)));
        assert!(!sound(|head| head.config.dim = 0));
        assert!(!sound(|head| head.encoder.fields.clear()), "nothing to predict by");
        assert!(!sound(|head| {
            (head.encoder.form, head.encoder.numeric) = (Form::Criteo, Numeric::Dense);
        }));
    }
}
