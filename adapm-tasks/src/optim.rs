//! Update rules as additive updates: what a worker computes from a gradient and pushes.
//!
//! A value is `[parameter | accumulator]`, both `len` long. Concurrent updates add up, as the parameter manager's
//! operations are cumulative (AdaPM §3): two workers that read the same accumulator both divide by it, and their squares
//! are both added.

/// AdaGrad: the step shrinks with the root of the sum of squared gradients, element by element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaGrad {
    /// Factor of every step.
    pub learning_rate: f32,
}

impl AdaGrad {
    /// Initial accumulator.
    pub const INITIAL: f32 = 1e-6;

    /// Writes the update of a value for `gradient`: `-lr * g / sqrt(acc + g^2)` into its first half and `g^2` into its
    /// second.
    ///
    /// # Shapes
    ///
    /// `gradient` `[len]`, `value` and `update` `[2 * len]`.
    pub fn update(self, value: &[f32], gradient: &[f32], update: &mut [f32]) {
        let (_, accumulator) = value.split_at(gradient.len());
        let (step, square) = update.split_at_mut(gradient.len());
        for (((step, square), accumulated), slope) in
            step.iter_mut().zip(square).zip(accumulator).zip(gradient)
        {
            *square = slope * slope;
            *step = -self.learning_rate * slope / (accumulated + *square).sqrt();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adagrad_takes_the_golden_step() {
        let (value, mut update) = ([7.0, AdaGrad::INITIAL], [0.0; 2]);
        AdaGrad { learning_rate: 0.1 }.update(&value, &[0.5], &mut update);
        assert!((update[0] - -0.099_999_8).abs() < 1e-7, "{}", update[0]);
        assert!((value[1] + update[1] - 0.250_001).abs() < 1e-7, "{}", update[1]);
    }

    #[test]
    fn a_zero_gradient_moves_nothing() {
        let mut update = [9.0; 2];
        AdaGrad { learning_rate: 0.1 }.update(&[1.0, AdaGrad::INITIAL], &[0.0], &mut update);
        assert_eq!(update, [0.0, 0.0]);
    }
}
