//! Update rules as additive updates: what a worker computes from a gradient and pushes.
//!
//! A value is `[parameter | accumulator]`, both `len` long. Concurrent updates add up, as the parameter manager's
//! operations are cumulative (AdaPM §3): two workers that read the same accumulator both divide by it, and their squares
//! are both added.

use crate::simd;

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
        simd::adagrad(self, value, gradient, update);
    }

    /// [`update`](Self::update) as a plain loop, to be compiled for an instruction set; whether all it wrote are finite numbers.
    #[inline(always)]
    pub(crate) fn update_lanes(self, value: &[f32], gradient: &[f32], update: &mut [f32]) -> bool {
        let (_, accumulator) = value.split_at(gradient.len());
        let (step, square) = update.split_at_mut(gradient.len());
        for (((step, square), accumulated), slope) in
            step.iter_mut().zip(square).zip(accumulator).zip(gradient)
        {
            *square = slope * slope;
            *step = -self.learning_rate * slope / (accumulated + *square).sqrt();
        }
        // Integers, as a sum of floats is one addition after the other.
        let is_none = |number: &f32| u32::from(number.to_bits() & EXPONENT == EXPONENT);
        update.iter().fold(0, |found, number| found | is_none(number)) == 0
    }
}

/// Of infinities and of what is no number, all these bits are set.
const EXPONENT: u32 = 0x7f80_0000;

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
    fn what_is_no_finite_number_is_noticed_wherever_it_is() {
        let rule = AdaGrad { learning_rate: 0.1 };
        let (value, mut update) = (vec![1.0; 74], vec![0.0; 74]);
        for at in 0..37 {
            for (slope, is_finite) in [(0.5, true), (1e19, true), (1e20, false), (f32::NAN, false)] {
                let mut gradient = vec![0.25; 37];
                gradient[at] = slope;
                assert_eq!(simd::adagrad(rule, &value, &gradient, &mut update), is_finite, "{slope} at {at}");
            }
        }
    }

    #[test]
    fn every_instruction_set_takes_the_same_steps() {
        let rule = AdaGrad { learning_rate: 0.1 };
        let value: Vec<f32> = (0..74).map(|i| 1e-6 + i as f32 * 0.37).collect();
        let gradient: Vec<f32> = (0..37).map(|i| (i as f32 - 18.0) * 0.013).collect();
        let (mut plain, mut fast) = ([0.0; 74], [1.0; 74]);
        assert!(rule.update_lanes(&value, &gradient, &mut plain));
        assert!(simd::adagrad(rule, &value, &gradient, &mut fast));
        assert_eq!(plain, fast);
    }

    #[test]
    fn a_zero_gradient_moves_nothing() {
        let mut update = [9.0; 2];
        AdaGrad { learning_rate: 0.1 }.update(&[1.0, AdaGrad::INITIAL], &[0.0], &mut update);
        assert_eq!(update, [0.0, 0.0]);
    }
}
