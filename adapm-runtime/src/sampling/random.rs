//! Random numbers with a reproducible sequence, for samples and for whoever needs some beside them.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A source of random numbers with a reproducible sequence.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The sequence of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number below `end`, 0 if `end` is 0. Exact: draws again rather than favour some numbers.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        loop {
            let product = u128::from(self.bits()) * u128::from(end);
            // Of 2^64 draws, `2^64 mod end` would fall twice: those are the lowest low halves. They are below `end`, as hardly any
            // is, and few are divided.
            let low = product as u64;
            if low >= end || low >= end.wrapping_neg() % end {
                return (product >> 64) as u64;
            }
        }
    }

    /// A uniform number in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
