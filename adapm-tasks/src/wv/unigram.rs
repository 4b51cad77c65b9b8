//! Which words are drawn as negatives: in proportion to their frequency to the power 3/4 (Mikolov et al., NIPS 2013, §2.2).
//!
//! # Departure
//! word2vec draws from a list of 10^8 places, in which a rare word may have none; here every word has its chance.

use adapm_runtime::AliasTable;

/// A table that draws words of these counts, of which there are some, none of them 0.
pub(crate) fn table(counts: &[u64]) -> AliasTable {
    let weights: Vec<f64> = counts.iter().map(|count| (*count as f64).powf(0.75)).collect();
    AliasTable::new(&weights).expect("a vocabulary has words, and each of them occurs")
}

#[cfg(test)]
mod tests {
    use adapm_runtime::Random;

    use super::*;

    /// Chi-square of a million draws of words of these counts against a law.
    fn chi_square(counts: &[u64], law: impl Fn(u64) -> f64) -> f64 {
        let (table, mut random) = (table(counts), Random::new(1));
        let mut seen = vec![0.0_f64; counts.len()];
        (0..DRAWS).for_each(|_| seen[table.draw(&mut random)] += 1.0);
        let total: f64 = counts.iter().map(|count| law(*count)).sum();
        let term = |(seen, count): (&f64, &u64)| {
            let expected = law(*count) / total * DRAWS as f64;
            (seen - expected).powi(2) / expected
        };
        seen.iter().zip(counts).map(term).sum()
    }

    #[test]
    fn words_are_drawn_by_their_frequency_to_the_power_three_quarters() {
        let counts: Vec<u64> = (1..=100).map(|rank| 1_000_000 / rank).collect();
        // With 99 degrees of freedom, 161 is exceeded once in 10^4.
        let found = chi_square(&counts, |count| (count as f64).powf(0.75));
        assert!(found < 161.0, "{found}");
        assert!(chi_square(&counts, |count| count as f64) > 1e4, "another distribution shows");
    }

    const DRAWS: usize = 1_000_000;
}
