//! The quantile of the Poisson distribution that Algorithm 1 needs (AdaPM §4.2.1).
//!
//! Exact up to a mean of 1e6, a normal approximation above. Not here: the choice of the mean
//! ([`super::timing`]).

use libm::{erfc, floor, lgamma, log, sqrt};

/// The largest mean with an exact quantile.
pub const EXACT_MEAN_MAX: f64 = 1e6;

/// Returns the smallest `k` with `P(X <= k) >= p` for `X ~ Poisson(mean)`; 0 for a mean of 0. `p`
/// must be in `0.5..1`.
///
/// Above [`EXACT_MEAN_MAX`], returns the quantile of the normal distribution with the same mean and
/// variance, rounded down and saturating at `u64::MAX`. Costs some `12 * sqrt(mean)`
/// multiplications.
#[must_use]
pub fn quantile(mean: f64, p: f64) -> u64 {
    debug_assert!(mean >= 0.0 && (0.5..1.0).contains(&p), "a mean and an upper quantile");
    if mean <= 0.0 {
        0
    } else if mean <= EXACT_MEAN_MAX {
        exact(mean, p)
    } else {
        // A cast from float to integer saturates.
        floor(mean + normal_quantile(p) * sqrt(mean)) as u64
    }
}

/// Sums the upper tail from its vanishing end, smallest terms first, until it outgrows `1 - p`.
fn exact(mean: f64, p: f64) -> u64 {
    let tail_max = 1.0 - p;
    let log_mean = log(mean);
    let log_mass = |k: f64| k * log_mean - mean - lgamma(k + 1.0);
    let mut k = floor(mean + 10.0 * sqrt(mean) + 20.0);
    while log_mass(k) < LOG_MASS_MIN {
        k -= 1.0;
    }
    let mut mass = libm::exp(log_mass(k));
    let mut tail = mass;
    while tail <= tail_max && k > 0.0 {
        mass *= k / mean;
        k -= 1.0;
        tail += mass;
    }
    k as u64
}

/// Returns the upper quantile of the standard normal distribution, by bisection of its upper tail.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 10.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let tail = 0.5 * erfc(middle / core::f64::consts::SQRT_2);
        if tail > 1.0 - p {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Below this a mass is so small that the recursion would start from zero.
const LOG_MASS_MIN: f64 = -600.0;

#[cfg(test)]
mod tests {
    use statrs::distribution::{DiscreteCDF, Poisson};

    use super::*;

    const P: f64 = 0.9999;

    #[test]
    fn equals_the_golden_values() {
        let means = [0.02, 0.2, 1.0, 2.0, 4.0, 10.0, 20.0, 40.0, 100.0, 200.0, 400.0, 600.0];
        let golden = [2, 3, 6, 9, 13, 24, 39, 66, 139, 255, 476, 693];
        assert_eq!(means.map(|mean| quantile(mean, P)), golden);
        assert_eq!(quantile(0.0, P), 0);
    }

    #[test]
    fn equals_an_independent_implementation() {
        let mut mean = 1e-3;
        while mean < EXACT_MEAN_MAX {
            assert_is_quantile(mean);
            mean *= 1.011;
        }
        assert_is_quantile(EXACT_MEAN_MAX);
    }

    /// Checks the definition with the other implementation, without a search.
    fn assert_is_quantile(mean: f64) {
        let theirs = Poisson::new(mean).expect("a positive mean");
        let ours = quantile(mean, P);
        assert!(theirs.cdf(ours) >= P, "the {P} quantile for mean {mean} is above {ours}");
        assert!(
            ours == 0 || theirs.cdf(ours - 1) < P,
            "the {P} quantile for mean {mean} is below {ours}"
        );
    }

    #[test]
    fn is_approximated_for_large_means() {
        let normal = |mean: f64| mean + 3.719_016_485 * mean.sqrt();
        for mean in [EXACT_MEAN_MAX + 1.0, 2e6, 1e7, 1e12] {
            assert!(
                (quantile(mean, P) as f64 - normal(mean)).abs() <= 1.0 + mean * 1e-12,
                "mean {mean}"
            );
        }
        assert!(
            quantile(2e6, P).abs_diff(2_005_259) <= 2
                && quantile(1e7, P).abs_diff(10_011_760) <= 20
        );
        assert_eq!(quantile(f64::MAX, P), u64::MAX);
    }

    #[test]
    fn tiny_means_do_not_underflow() {
        for (mean, k) in [(1e-300, 0), (1e-20, 0), (9.9e-5, 0), (1.1e-4, 1)] {
            assert_eq!(quantile(mean, P), k, "mean {mean}");
        }
    }

    #[test]
    fn grows_with_the_mean() {
        let quantiles = (0..4_000).map(|tenths| quantile(f64::from(tenths) / 10.0, P));
        assert!(quantiles.is_sorted());
    }
}
