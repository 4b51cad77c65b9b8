//! Ranks whose frequency falls as a power of the rank.

use rand::distr::Distribution as _;
use rand_distr::Zipf;

use super::Chance;

/// Ranks `0..len` with frequencies proportional to `1 / (rank + 1 + flat)^exponent`
/// (Zipf-Mandelbrot).
///
/// `flat` takes the peak off the first ranks, where finite data cannot follow a pure power law.
#[derive(Clone, Copy, Debug)]
pub struct Ranks {
    len: u64,
    flat: u64,
    exponent: f64,
    zipf: Zipf<f64>,
}

impl Ranks {
    /// Creates ranks `0..len`, at least one.
    #[must_use]
    pub fn new(len: u64, exponent: f64, flat: u64) -> Self {
        let len = len.max(1);
        let zipf =
            Zipf::new((len + flat) as f64, exponent).expect("a positive length and exponent");
        Self { len, flat, exponent, zipf }
    }

    /// Draws a rank with the probability of its frequency.
    pub fn draw(&self, chance: &mut Chance) -> u64 {
        loop {
            // Ranks on the flattened peak are drawn again.
            let rank = self.zipf.sample(chance) as u64;
            if rank > self.flat {
                return (rank - 1 - self.flat).min(self.len - 1);
            }
        }
    }

    /// Returns the share of `rank` in all draws.
    #[must_use]
    pub fn share(&self, rank: u64) -> f64 {
        self.weight(rank) / self.weights(self.len)
    }

    /// Returns the number of ranks whose share is at least `share`.
    #[must_use]
    pub fn at_least(&self, share: f64) -> u64 {
        let reach = (share * self.weights(self.len)).powf(-1.0 / self.exponent) - self.flat as f64;
        (reach.max(0.0) as u64).min(self.len)
    }

    fn weight(&self, rank: u64) -> f64 {
        ((rank + 1 + self.flat) as f64).powf(-self.exponent)
    }

    /// Returns the sum of the weights of the first `len` ranks: the exact sum up to 1,000 ranks,
    /// the integral for the rest.
    fn weights(&self, len: u64) -> f64 {
        let head = len.min(1_000);
        let sum: f64 = (0..head).map(|rank| self.weight(rank)).sum();
        let (from, to) = ((head + self.flat) as f64 + 0.5, (len + self.flat) as f64 + 0.5);
        let tail = if (self.exponent - 1.0).abs() < 1e-9 {
            (to / from).ln()
        } else {
            (to.powf(1.0 - self.exponent) - from.powf(1.0 - self.exponent)) / (1.0 - self.exponent)
        };
        sum + tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::simulate::chance;

    #[test]
    fn shares_are_those_of_the_draws() {
        let ranks = Ranks::new(100_000, 1.1, 3);
        let mut chance = chance(7, 0, 0);
        let draws = 200_000;
        let mut counts = [0_u32; 20];
        for _ in 0..draws {
            if let Some(count) = counts.get_mut(ranks.draw(&mut chance) as usize) {
                *count += 1;
            }
        }
        for (rank, count) in counts.iter().enumerate() {
            let expected = ranks.share(rank as u64) * f64::from(draws);
            let deviation = (f64::from(*count) - expected).abs();
            assert!(deviation < 5.0 * expected.sqrt(), "rank {rank}: {count} for {expected}");
        }
        let sum: f64 = (0..100_000).map(|rank| ranks.share(rank)).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    }

    #[test]
    fn hot_ranks_are_those_above_the_share() {
        let ranks = Ranks::new(1_000_000, 1.0, 10);
        for share in [0.01, 1e-4, 1e-6] {
            let hot = ranks.at_least(share);
            assert!(hot == 0 || ranks.share(hot - 1) >= share * 0.999, "{share} {hot}");
            assert!(ranks.share(hot + 1) < share, "{share} {hot}");
        }
        assert_eq!(Ranks::new(5, 1.0, 0).at_least(0.0), 5);
    }
}
