//! Update rules as additive updates: what a worker computes from a gradient and pushes.
//!
//! A value is `[parameter | accumulator]`, both `len` long. Concurrent updates add up, as the
//! parameter manager's operations are cumulative (AdaPM §3): two workers that read the same
//! accumulator both divide by it, and their squares are both added.

use crate::simd::{self, Kernel};

/// AdaGrad: the step shrinks with the root of the sum of squared gradients, element by element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaGrad {
    /// Factor of every step.
    pub learning_rate: f32,
}

impl AdaGrad {
    /// Initial accumulator.
    pub const INITIAL: f32 = 1e-6;

    /// Writes the update of a value for `gradient`: `-lr * g / sqrt(acc + g^2)` into its first half
    /// and `g^2` into its second.
    ///
    /// # Shapes
    ///
    /// `gradient` `[len]`, `value` and `update` `[2 * len]`.
    pub fn update(self, value: &[f32], gradient: &[f32], update: &mut [f32]) {
        self.update_among(1.0, value, gradient, update);
    }

    /// [`update`](Self::update) where `steps` steps on the value are expected to be taken at once,
    /// this one counted: `-lr * g / sqrt(acc + steps * g^2)`, as if the others had the same
    /// gradient and were applied before. One step is `update`, bit for bit.
    pub fn update_among(self, steps: f32, value: &[f32], gradient: &[f32], update: &mut [f32]) {
        self.update_finite(steps, value, gradient, update);
    }

    /// Does the same as [`update_among`](Self::update_among). Returns true if all that it wrote are
    /// finite numbers: then the update can be pushed.
    ///
    /// # Shapes
    ///
    /// `gradient` `[len]`, `value` and `update` `[2 * len]`.
    pub fn update_finite(
        self,
        steps: f32,
        value: &[f32],
        gradient: &[f32],
        update: &mut [f32],
    ) -> bool {
        simd::run(Update { rule: self, steps, value, gradient, update })
    }

    #[inline(always)]
    fn update_lanes(self, steps: f32, value: &[f32], gradient: &[f32], update: &mut [f32]) -> bool {
        let (_, accumulator) = value.split_at(gradient.len());
        let (step, square) = update.split_at_mut(gradient.len());
        for (((step, square), accumulated), slope) in
            step.iter_mut().zip(square).zip(accumulator).zip(gradient)
        {
            *square = slope * slope;
            *step = -self.learning_rate * slope / (accumulated + steps * *square).sqrt();
        }
        // Integers, as a sum of floats is one addition after the other.
        let is_none = |number: &f32| u32::from(number.to_bits() & EXPONENT == EXPONENT);
        update.iter().fold(0, |found, number| found | is_none(number)) == 0
    }
}

/// The loop of [`AdaGrad::update_among`].
struct Update<'a> {
    rule: AdaGrad,
    steps: f32,
    value: &'a [f32],
    gradient: &'a [f32],
    update: &'a mut [f32],
}

impl Kernel for Update<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> bool {
        self.rule.update_lanes(self.steps, self.value, self.gradient, self.update)
    }
}

/// The bits that infinities and NaN have set.
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
    fn steps_at_once_move_as_far_as_one_after_the_other_and_one_is_the_plain_rule() {
        let rule = AdaGrad { learning_rate: 0.1 };
        let (value, gradient) = ([7.0, 0.25], [0.5]);
        let step = |steps| {
            let mut update = [0.0; 2];
            rule.update_among(steps, &value, &gradient, &mut update);
            update
        };
        // 0.25 + 3 * 0.25 is 1: the accumulator after three steps of that gradient, whose square is
        // pushed once.
        assert_eq!(step(3.0), [-0.05, 0.25]);
        let mut plain = [0.0; 2];
        rule.update(&value, &gradient, &mut plain);
        assert_eq!(step(1.0).map(f32::to_bits), plain.map(f32::to_bits));
        assert!(step(1.0)[0] < step(2.0)[0] && step(2.0)[0] < step(3.0)[0]);
    }

    #[test]
    fn what_is_no_finite_number_is_noticed_wherever_it_is() {
        let rule = AdaGrad { learning_rate: 0.1 };
        let (value, mut update) = (vec![1.0; 74], vec![0.0; 74]);
        for at in 0..37 {
            for (slope, is_finite) in [(0.5, true), (1e19, true), (1e20, false), (f32::NAN, false)]
            {
                let mut gradient = vec![0.25; 37];
                gradient[at] = slope;
                assert_eq!(
                    rule.update_finite(1.0, &value, &gradient, &mut update),
                    is_finite,
                    "{slope} at {at}"
                );
            }
        }
    }

    #[test]
    fn every_instruction_set_takes_the_same_steps() {
        let rule = AdaGrad { learning_rate: 0.1 };
        let value: Vec<f32> = (0..74).map(|i| 1e-6 + i as f32 * 0.37).collect();
        let gradient: Vec<f32> = (0..37).map(|i| (i as f32 - 18.0) * 0.013).collect();
        let (mut plain, mut fast) = ([0.0; 74], [1.0; 74]);
        assert!(rule.update_lanes(1.0, &value, &gradient, &mut plain));
        assert!(rule.update_finite(1.0, &value, &gradient, &mut fast));
        assert_eq!(plain, fast);
    }

    #[test]
    fn a_zero_gradient_moves_nothing() {
        let mut update = [9.0; 2];
        AdaGrad { learning_rate: 0.1 }.update(&[1.0, AdaGrad::INITIAL], &[0.0], &mut update);
        assert_eq!(update, [0.0, 0.0]);
    }
}
