//! Initial values: a pure function of seed and key, so that any node can compute any of them.

use adapm_core::Key;
use adapm_runtime::Random;

use crate::mf::config::TrainConfig;

/// How values begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Start {
    pub(crate) seed: u64,
    /// Number of factors.
    pub(crate) dim: usize,
    /// Standard deviation of a factor.
    pub(crate) deviation: f32,
}

impl Start {
    /// How values begin by these choices but the seed.
    pub(crate) fn of(config: &TrainConfig, seed: u64) -> Self {
        Self { seed, dim: config.dim, deviation: config.initial_deviation }
    }

    /// Fills a value: uniform factors, AdaGrad's initial accumulators behind them if there is room. Uniform, since it needs
    /// no function whose last bit depends on the machine.
    pub(crate) fn value(self, key: Key, value: &mut [f32]) {
        // Keys are spread over the seeds by a multiplication; the generator mixes its seed itself.
        let place = key.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = Random::new(self.seed ^ place);
        let bound = self.deviation * 3f32.sqrt();
        let (factors, accumulators) = value.split_at_mut(self.dim);
        factors.fill_with(|| bound * (2.0 * random.unit() as f32 - 1.0));
        accumulators.fill(ACCUMULATOR);
    }
}

/// AdaGrad's initial accumulator: about the square of a first gradient. From a smaller one the first steps are as long as the rate
/// whatever the gradient, which is far for factors that begin near 0.
const ACCUMULATOR: f32 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    const START: Start = Start { seed: 1, dim: 1000, deviation: 0.02 };

    fn of(start: Start, key: u64) -> Vec<f32> {
        let mut value = vec![0.0; 2 * start.dim];
        start.value(Key(key), &mut value);
        value
    }

    #[test]
    fn values_depend_on_seed_and_key_alone_and_have_the_deviation() {
        assert_eq!(of(START, 2), of(START, 2));
        assert_ne!(of(START, 2), of(START, 3));
        assert_ne!(of(START, 2), of(Start { seed: 2, ..START }, 2));
        let value = of(START, 2);
        let square = value[..1000].iter().map(|x| x * x).sum::<f32>() / 1000.0;
        assert!((square.sqrt() - 0.02).abs() < 0.002, "{}", square.sqrt());
        assert!(value[1000..].iter().all(|x| *x == ACCUMULATOR));
    }
}
