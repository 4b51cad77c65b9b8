//! AdaGrad (Duchi, Hazan, Singer: JMLR 12, 2011), element by element.

#[cfg(not(feature = "std"))]
use libm::sqrtf as root;

use crate::update::UpdateRule;

/// AdaGrad: the step shrinks with the root of the sum of squared gradients, element by element.
///
/// A value is `[parameter | accumulator]`, both `dim` long. Concurrent updates add up (AdaPM §3):
/// two workers that read the same accumulator both divide by its root, and the squares of both are
/// added to it.
///
/// # Departure
/// The paper divides by `delta + sqrt(sum)`. Here the sum begins above zero, at
/// [`AdaGrad::INITIAL`] or at what the layout's initial values have, and takes the place of `delta`:
/// the step for a zero gradient is then zero.
///
/// # Example
/// ```
/// use adapm_core::update::{AdaGrad, UpdateRule};
///
/// let rule = AdaGrad { learning_rate: 0.1 };
/// let (value, mut update) = ([7.0, 0.75], [0.0; 2]);
/// assert!(rule.step(&value, &[0.5], &mut update));
/// assert_eq!(update, [-0.05, 0.25]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaGrad {
    /// Factor of every step.
    pub learning_rate: f32,
}

impl AdaGrad {
    /// Initial accumulator.
    pub const INITIAL: f32 = 1e-6;

    /// Takes a step where `steps` steps on the value are expected to be taken at once, this one
    /// counted: writes `-lr * g / sqrt(acc + steps * g^2)` for the parameter, as if the others had
    /// the same gradient and were applied before, and `g^2` for the accumulator. Returns true if
    /// all that it wrote is finite.
    ///
    /// Is inlined, so that it is compiled for the instructions of its caller; the results are the
    /// same bits under each.
    ///
    /// # Shapes
    /// `gradient` `[dim]`, `value` and `update` `[2 * dim]`.
    #[inline(always)]
    pub fn step_among(
        self,
        steps: f32,
        value: &[f32],
        gradient: &[f32],
        update: &mut [f32],
    ) -> bool {
        let (_, accumulator) = value.split_at(gradient.len());
        let (step, square) = update.split_at_mut(gradient.len());
        for (((step, square), accumulated), slope) in
            step.iter_mut().zip(square).zip(accumulator).zip(gradient)
        {
            *square = slope * slope;
            *step = -self.learning_rate * slope / root(accumulated + steps * *square);
        }
        // Integers, as a sum of floats is one addition after the other.
        let is_none = |number: &f32| u32::from(number.to_bits() & EXPONENT == EXPONENT);
        update.iter().fold(0, |found, number| found | is_none(number)) == 0
    }
}

impl UpdateRule<f32> for AdaGrad {
    fn state_len(&self, dim: usize) -> usize {
        dim
    }

    /// One step: `-lr * g / sqrt(acc + g^2)` for the parameter, `g^2` for the accumulator.
    fn step(&self, value: &[f32], gradient: &[f32], update: &mut [f32]) -> bool {
        self.step_among(1.0, value, gradient, update)
    }
}

/// Returns the square root by the machine's instruction, of several numbers at once in a loop. It
/// rounds correctly, as `libm` does, so both return the same bits.
#[cfg(feature = "std")]
#[inline(always)]
fn root(x: f32) -> f32 {
    x.sqrt()
}

/// The bits that infinities and NaN have set.
const EXPONENT: u32 = 0x7f80_0000;

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use super::*;

    const RULE: AdaGrad = AdaGrad { learning_rate: 0.1 };

    #[test]
    fn adagrad_takes_the_golden_step() {
        let (value, mut update) = ([7.0, AdaGrad::INITIAL], [0.0; 2]);
        assert!(RULE.step(&value, &[0.5], &mut update));
        assert!((update[0] - -0.099_999_8).abs() < 1e-7, "{}", update[0]);
        assert!((value[1] + update[1] - 0.250_001).abs() < 1e-7, "{}", update[1]);
    }

    #[test]
    fn a_value_is_parameters_and_as_many_accumulators() {
        assert_eq!((RULE.state_len(16), RULE.dim(32), RULE.dim(33)), (16, Some(16), None));
    }

    #[test]
    fn steps_at_once_move_as_far_as_one_after_the_other_and_one_is_the_plain_rule() {
        let (value, gradient) = ([7.0, 0.25], [0.5]);
        let step = |steps| {
            let mut update = [0.0; 2];
            assert!(RULE.step_among(steps, &value, &gradient, &mut update));
            update
        };
        // 0.25 + 3 * 0.25 is 1: the accumulator after three steps of that gradient, whose square is
        // pushed once.
        assert_eq!(step(3.0), [-0.05, 0.25]);
        let mut plain = [0.0; 2];
        assert!(RULE.step(&value, &gradient, &mut plain));
        assert_eq!(step(1.0).map(f32::to_bits), plain.map(f32::to_bits));
        assert!(step(1.0)[0] < step(2.0)[0] && step(2.0)[0] < step(3.0)[0]);
    }

    #[test]
    fn a_number_that_is_not_finite_is_noticed_wherever_it_is() {
        let (value, mut update) = (vec![1.0; 74], vec![0.0; 74]);
        for at in 0..37 {
            for (slope, is_finite) in [(0.5, true), (1e19, true), (1e20, false), (f32::NAN, false)]
            {
                let mut gradient = vec![0.25; 37];
                gradient[at] = slope;
                assert_eq!(RULE.step(&value, &gradient, &mut update), is_finite, "{slope} at {at}");
            }
        }
    }

    #[test]
    fn a_zero_gradient_moves_nothing() {
        let mut update = [9.0; 2];
        assert!(RULE.step(&[1.0, AdaGrad::INITIAL], &[0.0], &mut update));
        assert_eq!(update, [0.0, 0.0]);
    }

    #[test]
    fn both_square_roots_return_the_same_bits() {
        // Each exponent with mantissas spread over it, and its ends.
        let numbers: Vec<u32> = (0..0x7f80_0000).step_by(9_973).collect();
        for bits in numbers.into_iter().chain([1, 0x007f_ffff, 0x0080_0000, 0x7f7f_ffff]) {
            let x = f32::from_bits(bits);
            assert_eq!(libm::sqrtf(x).to_bits(), x.sqrt().to_bits(), "of {x:e}");
        }
    }
}
