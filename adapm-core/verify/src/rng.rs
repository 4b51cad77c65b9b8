//! The random source of schedules and simulations: one seed, one run.

use core::ops::Range;

use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// A stream of choices that depends on nothing but its seed, on every machine (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// Creates the stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number in `range`, or the start of an empty one.
    pub fn number(&mut self, range: Range<u64>) -> u64 {
        let span = range.end.saturating_sub(range.start).max(1);
        // The high half of a product: even enough for any span that is small against 2^64.
        range.start + ((u128::from(self.bits()) * u128::from(span)) >> 64) as u64
    }

    /// Returns an index in `range`, which must not be empty; see [`Rng::number`].
    pub fn within(&mut self, range: Range<usize>) -> usize {
        debug_assert!(range.start < range.end, "there is something to choose from");
        self.number(range.start as u64..range.end as u64) as usize
    }

    /// Returns true in `percent` % of all calls.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.number(0..100) < percent
    }

    /// Returns one of `items`.
    ///
    /// # Panics
    /// If there is none.
    pub fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.within(0..items.len())]
    }
}

/// Returns a bijective mix of 64 bits in which every input bit reaches every output bit: the first
/// number of SplitMix64.
pub(crate) fn mix(x: u64) -> u64 {
    SplitMix64::seed_from_u64(x).next_u64()
}
