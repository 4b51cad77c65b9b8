//! A small deterministic source of choices for schedules: one seed, one run.

use core::ops::Range;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// A stream of numbers that depends on nothing but its seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: mix(seed) }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number of `range`, which must not be empty.
    pub fn within(&mut self, range: Range<usize>) -> usize {
        debug_assert!(range.start < range.end, "there is something to choose from");
        range.start + (self.bits() % (range.end - range.start) as u64) as usize
    }

    /// Whether an event of `percent` % happens.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.bits() % 100 < percent
    }

    /// One of `items`, which must not be empty.
    pub fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.within(0..items.len())]
    }
}

/// A bijective mix of 64 bits in which every input bit reaches every output bit: the first number of SplitMix64.
pub(crate) fn mix(x: u64) -> u64 {
    SplitMix64::seed_from_u64(x).next_u64()
}
