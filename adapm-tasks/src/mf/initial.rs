//! Initial values: a pure function of seed and key, so that any node can compute any of them.

use adapm_core::Key;
use adapm_runtime::Random;

use crate::optim::AdaGrad;

/// How values begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Start {
    pub(crate) seed: u64,
    /// Number of rows: keys below are rows, those above columns.
    pub(crate) rows: u64,
    /// Number of factors.
    pub(crate) dim: usize,
    /// What the products of rows and columns are near to.
    pub(crate) mean: f64,
    /// Standard deviation of a factor.
    pub(crate) deviation: f32,
}

impl Start {
    /// Fills a value: uniform factors, AdaGrad's initial accumulators behind them if there is room. Uniform, since it needs
    /// no function whose last bit depends on the machine.
    pub(crate) fn value(self, key: Key, value: &mut [f32]) {
        // Keys are spread over the seeds by a multiplication; the generator mixes its seed itself.
        let place = key.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = Random::new(self.seed ^ place);
        let root = (self.mean.abs() / self.dim as f64).sqrt() as f32;
        let center = if self.mean < 0.0 && key.0 >= self.rows { -root } else { root };
        let bound = self.deviation * 3f32.sqrt();
        let (factors, accumulators) = value.split_at_mut(self.dim);
        factors.fill_with(|| center + bound * (2.0 * random.unit() as f32 - 1.0));
        accumulators.fill(AdaGrad::INITIAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Start = Start { seed: 1, rows: 10, dim: 1000, mean: 3.0, deviation: 0.02 };

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
        let value = of(Start { mean: 0.0, ..START }, 2);
        let square = value[..1000].iter().map(|x| x * x).sum::<f32>() / 1000.0;
        assert!((square.sqrt() - 0.02).abs() < 0.002, "{}", square.sqrt());
        assert!(value[1000..].iter().all(|x| *x == AdaGrad::INITIAL));
    }

    #[test]
    fn products_are_near_the_mean_whatever_its_sign() {
        for mean in [3.0, -3.0] {
            let start = Start { mean, ..START };
            let product: f32 = of(start, 9)[..1000].iter().zip(&of(start, 10)).map(|(a, b)| a * b).sum();
            assert!((f64::from(product) - mean).abs() < 0.3, "{product}");
        }
    }
}
