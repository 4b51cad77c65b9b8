//! Choices from a seed: everything random in a simulation comes from here.

use core::ops::Range;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of choices that depends on nothing but its seed, on every machine.
#[derive(Clone, Debug)]
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    /// The stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number of `range`; the start of an empty one.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        let span = range.end.saturating_sub(range.start).max(1);
        // The high half of a product: even enough for any span that is small against 2^64.
        range.start + ((u128::from(self.bits()) * u128::from(span)) >> 64) as u64
    }

    /// Whether an event of `percent` % happens.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.within(0..100) < percent
    }

    /// One of `items`.
    ///
    /// # Panics
    /// If there is none.
    pub fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.within(0..items.len() as u64) as usize]
    }
}
