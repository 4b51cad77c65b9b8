//! Generators of random numbers for the order of the data.
//!
//! What a worker trains on, and in which order, is a function of the seed, the worker, the epoch
//! and the round: none of these generators goes on from one epoch to the next, so a loader can
//! begin anywhere ([`Cursor`](crate::run::queue::Cursor)).
//!
//! Not here: negatives that the parameter manager samples. It draws them in the order in which they
//! are asked for, and may choose keys that are near.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns the generator of random numbers for these `parts` under `seed`: equal ones for equal
/// parts, unrelated ones for others. The first part should name the purpose, the others say for
/// which worker, epoch or round. Purpose 0 is that of
/// [`WorkerSlot::deal`](crate::run::WorkerSlot::deal).
pub fn generator<const N: usize>(seed: u64, parts: [u64; N]) -> Xoshiro256PlusPlus {
    let first = Xoshiro256PlusPlus::seed_from_u64(seed);
    // A step for each part: seed 1 of part 0 is not seed 0 of part 1.
    parts.into_iter().fold(first, |mut random, part| {
        Xoshiro256PlusPlus::seed_from_u64(random.random::<u64>() ^ part.wrapping_mul(SPREAD))
    })
}

/// Odd, so that different parts stay different; about 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn equal_parts_give_equal_numbers_and_others_give_others() {
        let first = |seed, parts: [u64; 3]| generator(seed, parts).random::<u64>();
        let places = || {
            let of_seed = |seed| (0..1000).map(move |at| (seed, [at / 100, at / 10 % 10, at % 10]));
            (0..4).flat_map(of_seed)
        };
        let once: BTreeSet<u64> = places().map(|(seed, parts)| first(seed, parts)).collect();
        assert_eq!(once.len(), 4000);
        assert!(places().all(|(seed, parts)| once.contains(&first(seed, parts))));
        let pair = generator(0, [1]).random::<u64>();
        assert!(!once.contains(&pair), "fewer parts are other parts");
    }
}
