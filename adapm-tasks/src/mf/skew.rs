//! Shares that fall as a power of the rank, and which row has which rank.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Ranks `0..len` with shares that fall as a power: rank `r` has the integral of `(x + flat)^-exponent` from `r` to `r + 1`,
/// so that cumulative shares and their inverse are closed forms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skew {
    len: u32,
    /// The exponent less 1.
    power: f64,
    flat: f64,
    first: f64,
    span: f64,
}

impl Skew {
    /// The least flattened shares of which none exceeds `share_max`, which has to be above `1 / len`; an exponent above 1.
    pub(crate) fn flattened(exponent: f64, len: u32, share_max: f64) -> Self {
        let mut flat = 1.0;
        loop {
            let skew = Self::new(exponent, len, flat);
            // An end for shares that are equal up to rounding.
            if skew.cumulative(1) <= share_max || flat > 1e6 * f64::from(len) {
                return skew;
            }
            flat *= 1.5;
        }
    }

    fn new(exponent: f64, len: u32, flat: f64) -> Self {
        let power = exponent - 1.0;
        let first = flat.powf(-power);
        Self { len, power, flat, first, span: first - (f64::from(len) + flat).powf(-power) }
    }

    /// Share of the ranks below `rank`.
    pub(crate) fn cumulative(&self, rank: u64) -> f64 {
        (self.first - (rank as f64 + self.flat).powf(-self.power)) / self.span
    }

    /// The rank at which the cumulative share reaches `share` in 0..1.
    pub(crate) fn rank(&self, share: f64) -> u32 {
        let position = (self.first - share * self.span).powf(-1.0 / self.power) - self.flat;
        (position as u32).min(self.len - 1)
    }

    /// How many of `total` fall on a rank; all ranks together have exactly `total`.
    pub(crate) fn count(&self, rank: u32, total: u64) -> u64 {
        let below = |rank: u32| match rank {
            0 => 0,
            rank if rank == self.len => total,
            rank => ((self.cumulative(u64::from(rank)) * total as f64).round() as u64).min(total),
        };
        below(rank + 1).saturating_sub(below(rank))
    }
}

/// A permutation of `0..len`, so that ranks are spread over the rows: multiplication by a number without common divisor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shuffle {
    len: u64,
    factor: u64,
    inverse: u64,
    offset: u64,
}

impl Shuffle {
    pub(crate) fn new(len: u32, seed: u64) -> Self {
        let len = u64::from(len);
        // Far from multiples of it, neighbours get far apart.
        let mut factor = ((len as f64 * 0.618) as u64).max(1);
        while divisor(factor, len) != 1 {
            factor += 1;
        }
        let offset = Xoshiro256PlusPlus::seed_from_u64(seed).random_range(0..len);
        Self { len, factor, inverse: inverse(factor, len), offset }
    }

    /// The row of a rank.
    pub(crate) fn of_rank(self, rank: u32) -> u32 {
        ((u64::from(rank) * self.factor + self.offset) % self.len) as u32
    }

    /// The rank of a row.
    pub(crate) fn rank_of(self, row: u32) -> u32 {
        let moved = (u64::from(row) + self.len - self.offset) % self.len;
        (moved * self.inverse % self.len) as u32
    }
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// The number whose product with `factor` leaves 1 modulo `len`, by Euclid's algorithm.
fn inverse(factor: u64, len: u64) -> u64 {
    let (mut rest, mut next_rest) = (len as i128, factor as i128 % len as i128);
    let (mut times, mut next_times) = (0, 1);
    while next_rest != 0 {
        let quotient = rest / next_rest;
        (rest, next_rest) = (next_rest, rest - quotient * next_rest);
        (times, next_times) = (next_times, times - quotient * next_times);
    }
    times.rem_euclid(len as i128) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_cumulative_shares_are_inverse() {
        let skew = Skew::flattened(1.1, 10_000, 0.01);
        assert!(skew.cumulative(1) <= 0.01 && skew.cumulative(1) > 0.001);
        assert!((skew.cumulative(10_000) - 1.0).abs() < 1e-12);
        for rank in [0, 1, 17, 9_998, 9_999] {
            let middle = 0.5 * (skew.cumulative(rank) + skew.cumulative(rank + 1));
            assert_eq!(u64::from(skew.rank(middle)), rank);
        }
        assert_eq!((skew.rank(0.0), skew.rank(1.0)), (0, 9_999));
    }

    #[test]
    fn counts_fall_with_the_rank_and_add_up() {
        for (len, total) in [(1, 5), (10, 3), (1_000, 77_777)] {
            let skew = Skew::flattened(1.1, len, 2.0 / f64::from(len));
            let counts: Vec<u64> = (0..len).map(|rank| skew.count(rank, total)).collect();
            assert_eq!(counts.iter().sum::<u64>(), total);
            assert!(counts.windows(2).all(|two| two[1] <= two[0] + 1), "but for rounding");
        }
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_knows_its_inverse() {
        for len in [1, 2, 3, 10, 97, 1_000] {
            let shuffle = Shuffle::new(len, 5);
            let mut rows: Vec<u32> = (0..len).map(|rank| shuffle.of_rank(rank)).collect();
            assert!((0..len).all(|rank| shuffle.rank_of(shuffle.of_rank(rank)) == rank), "{len}");
            rows.sort_unstable();
            assert!(rows.into_iter().eq(0..len));
        }
        let large = Shuffle::new(u32::MAX, 5);
        assert_eq!(large.rank_of(large.of_rank(4_000_000_000)), 4_000_000_000);
    }
}
