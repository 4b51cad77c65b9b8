//! Initial values: a pure function of seed and key, so that any node can compute any of them.

use adapm_core::Key;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::optim::AdaGrad;

/// Fills a value `[parameter | accumulator]`: uniform parameters of mean 0 and the given standard deviation, AdaGrad's
/// initial accumulator. Uniform, since it needs no function whose last bit depends on the machine.
pub(crate) fn value(seed: u64, deviation: f32, key: Key, value: &mut [f32]) {
    // Keys are spread over the seeds by a multiplication; the generator mixes its seed itself.
    let mut random =
        Xoshiro256PlusPlus::seed_from_u64(seed ^ key.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let half = value.len() / 2;
    let (parameter, accumulator) = value.split_at_mut(half);
    let bound = deviation * 3f32.sqrt();
    parameter.fill_with(|| bound * (2.0 * random.random::<f32>() - 1.0));
    accumulator.fill(AdaGrad::INITIAL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_depend_on_seed_and_key_alone_and_have_the_deviation() {
        let of = |seed, key| {
            let mut cells = vec![0.0; 2000];
            value(seed, 0.1, Key(key), &mut cells);
            cells
        };
        assert_eq!(of(1, 2), of(1, 2));
        assert_ne!(of(1, 2), of(1, 3));
        assert_ne!(of(1, 2), of(2, 2));
        let cells = of(1, 2);
        let square = cells[..1000].iter().map(|x| x * x).sum::<f32>() / 1000.0;
        assert!((square.sqrt() - 0.1).abs() < 0.01, "{}", square.sqrt());
        assert!(cells[1000..].iter().all(|x| *x == AdaGrad::INITIAL));
    }
}
