//! Initial values, word2vec's: a pure function of seed and key, so that any node can compute any of them.

use adapm_core::Key;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::optim::AdaGrad;
use crate::wv::sentence::Keys;

/// Fills a value: an input vector uniform in -0.5 / dim to 0.5 / dim, an output vector 0, AdaGrad's accumulator behind it if
/// the value is twice as long as a vector.
pub(crate) fn value(seed: u64, keys: Keys, dim: usize, key: Key, value: &mut [f32]) {
    let (vector, accumulator) = value.split_at_mut(dim);
    accumulator.fill(AdaGrad::INITIAL);
    vector.fill(0.0);
    if key.0 < keys.words {
        // Keys are spread over the seeds by a multiplication; the generator mixes its seed itself.
        let place = key.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ place);
        vector.fill_with(|| (random.random::<f32>() - 0.5) / dim as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_small_and_different_and_outputs_are_zero() {
        let of = |seed, key| {
            let mut cells = vec![9.0; 200];
            value(seed, Keys { words: 10 }, 100, Key(key), &mut cells);
            cells
        };
        assert_eq!(of(1, 3), of(1, 3));
        assert_ne!(of(1, 3), of(1, 4));
        assert_ne!(of(1, 3), of(2, 3));
        assert!(of(1, 9)[..100].iter().all(|x| x.abs() <= 0.005));
        assert!(of(1, 9)[..100].iter().any(|x| x.abs() > 0.004));
        assert_eq!(of(1, 10)[..100], [0.0; 100]);
        assert_eq!(of(1, 10)[100..], [AdaGrad::INITIAL; 100]);
    }
}
