//! The step of AdaGrad with the machine's widest instructions.
//!
//! Not here: the rule ([`AdaGrad`]).

use adapm_core::update::AdaGrad;

use crate::simd::{self, Kernel};

/// The name of AdaGrad's state, an accumulator for each parameter, in tables.
pub(crate) const ADAGRAD: &str = "adagrad";

/// Does what [`AdaGrad::step_among`] does, to the same bits.
///
/// # Shapes
/// `gradient` `[dim]`, `value` and `update` `[2 * dim]`.
pub(crate) fn step_among(
    rule: AdaGrad,
    steps: f32,
    value: &[f32],
    gradient: &[f32],
    update: &mut [f32],
) -> bool {
    simd::run(Step { rule, steps, value, gradient, update })
}

struct Step<'a> {
    rule: AdaGrad,
    steps: f32,
    value: &'a [f32],
    gradient: &'a [f32],
    update: &'a mut [f32],
}

impl Kernel for Step<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> bool {
        self.rule.step_among(self.steps, self.value, self.gradient, self.update)
    }
}

#[cfg(test)]
mod tests {
    use adapm_core::update::UpdateRule as _;

    use super::*;

    #[test]
    fn every_instruction_set_takes_the_same_steps() {
        let rule = AdaGrad { learning_rate: 0.1 };
        let value: Vec<f32> = (0..74).map(|i| 1e-6 + i as f32 * 0.37).collect();
        let mut gradient: Vec<f32> = (0..37).map(|i| (i as f32 - 18.0) * 0.013).collect();
        let (mut plain, mut fast) = ([0.0; 74], [1.0; 74]);
        assert!(rule.step(&value, &gradient, &mut plain));
        assert!(step_among(rule, 1.0, &value, &gradient, &mut fast));
        assert_eq!(plain, fast);
        gradient[36] = 1e20;
        assert!(!step_among(rule, 1.0, &value, &gradient, &mut fast));
    }
}
