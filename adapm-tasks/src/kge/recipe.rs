//! What a step does, whichever way its negatives are drawn: model, loss, penalties, update rule.

use adapm_core::Key;
use adapm_runtime::Scheme;

use crate::kge::config::{LossKind, TrainConfig};
use crate::kge::model::{Model, Side};
use crate::kge::shape::Shape;
use crate::kge::sizes::Sizes;
use crate::matrix::add_scaled;
use crate::optim::AdaGrad;
use crate::simd;

/// What a step does, the same for every chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    pub(crate) model: Model,
    pub(crate) shape: Shape,
    pub(crate) loss: LossKind,
    pub(crate) optimizer: AdaGrad,
    /// Steps at once on an entity's row, and on a relation's.
    pub(crate) at_once: [f32; 2],
    pub(crate) l2_entity: f32,
    pub(crate) l2_relation: f32,
    pub(crate) n3: f32,
    /// Inverse relations predict subjects.
    pub(crate) reciprocal: bool,
    /// Negatives of a chunk, or of each side of a positive.
    pub(crate) negatives: usize,
    /// Negatives are not uniform: the sampling prefers local keys, and not all are local.
    pub(crate) prefers_local: bool,
}

impl Recipe {
    /// The recipe of a configuration for parameters of `shape` and steps of these sizes.
    pub(crate) fn new(config: &TrainConfig, shape: Shape, sizes: Sizes) -> Self {
        Self {
            model: Model { kind: config.model, dim: config.dim },
            shape,
            loss: config.loss,
            optimizer: AdaGrad { learning_rate: config.learning_rate },
            at_once: sizes.at_once,
            l2_entity: config.l2_entity,
            l2_relation: config.l2_relation,
            n3: config.n3,
            reciprocal: config.reciprocal,
            negatives: sizes.negatives,
            prefers_local: config.nodes > 1 && config.sampling() == Some(Scheme::Local),
        }
    }

    /// The side a query is computed as: with inverse relations every query asks for an object.
    pub(crate) fn side(self, side: Side) -> Side {
        if self.reciprocal { Side::Object } else { side }
    }

    /// Whether scores are corrected for how often entities are sampled: the theory is softmax's.
    pub(crate) fn corrects_frequencies(self) -> bool {
        self.prefers_local && self.loss == LossKind::Softmax
    }

    /// Adds the gradient of the penalties of one occurrence of a positive's vector.
    pub(crate) fn penalize(self, l2: f32, vector: &[f32], gradient: &mut [f32]) {
        if l2 != 0.0 {
            add_scaled(gradient, 2.0 * l2, vector);
        }
        if self.n3 != 0.0 {
            self.model.n3_gradient(self.n3, vector, gradient);
        }
    }

    /// Computes the updates of `keys` from their values and gradients, which are half as long. Returns the first key with
    /// an update that is no finite number.
    pub(crate) fn updates(
        self,
        keys: &[Key],
        values: &[f32],
        gradients: &[f32],
        updates: &mut [f32],
    ) -> Option<Key> {
        let mut start = 0;
        let mut blamed = None;
        let [entity_steps, relation_steps] = self.at_once;
        for key in keys {
            let len = self.shape.len_of(*key);
            let update = &mut updates[start..start + len];
            let (value, gradient) = (&values[start..start + len], &gradients[start / 2..][..len / 2]);
            let steps = if key.0 < self.shape.entities { entity_steps } else { relation_steps };
            if !simd::adagrad(self.optimizer, steps, value, gradient, update) && blamed.is_none() {
                blamed = Some(*key);
            }
            start += len;
        }
        blamed
    }
}
