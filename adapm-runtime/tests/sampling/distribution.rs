//! Distributions of all schemes, with and without replacement: chi-square tests of goodness of fit.
//!
//! A correct distribution is refused with probability 10^-6 per test (less where uses of one draw
//! are not independent, see [`Test::fits`]); seeds are fixed. A planted one, which redraws half of
//! the draws from the upper half, is refused by each test.

use std::collections::BTreeSet;

use adapm_core::Key;
use adapm_runtime::{Random, Sampling, Scheme, System};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::{EXACT, KEYS, cluster, home, sampled};

const ERROR: f64 = 1e-6;

/// Keys that are sampled from.
const RANGE: std::ops::Range<u64> = 10..190;

/// Observed counts of keys beside expected ones.
struct Test {
    counts: Vec<f64>,
    expected: Vec<f64>,
}

impl Test {
    /// Counts `keys`, whose shares should be `shares`.
    fn new(keys: impl IntoIterator<Item = Key>, shares: &[f64]) -> Self {
        let mut counts = vec![0.0; KEYS as usize];
        keys.into_iter().for_each(|key| counts[key.0 as usize] += 1.0);
        let n: f64 = counts.iter().sum();
        Self { counts, expected: shares.iter().map(|share| share * n).collect() }
    }

    /// Returns Pearson's statistic, infinite if a key of share 0 occurs.
    fn statistic(&self) -> f64 {
        let term = |(count, expected): (&f64, &f64)| match *expected {
            0.0 if *count > 0.0 => f64::INFINITY,
            0.0 => 0.0,
            expected => (count - expected).powi(2) / expected,
        };
        self.counts.iter().zip(&self.expected).map(term).sum()
    }

    /// Returns true if the counts can be by chance. Each draw counts `uses` times, which multiplies
    /// the variance by exactly that where all uses are spent, and at most that otherwise.
    fn fits(&self, uses: f64) -> bool {
        let freedom = self.expected.iter().filter(|expected| **expected > 0.0).count() - 1;
        let bound =
            ChiSquared::new(freedom as f64).expect("more than one key").inverse_cdf(1.0 - ERROR);
        self.statistic() / uses < bound
    }
}

/// Returns weights that fall like those of words; one key in ten has weight 0.
fn weights() -> Vec<f64> {
    let weight =
        |key: u64| if key % 10 == 3 { 0.0 } else { ((key - RANGE.start + 5) as f64).powf(-0.75) };
    RANGE.map(weight).collect()
}

/// Returns the shares of all keys, given the weights of those in the range.
fn shares(weights: &[f64]) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    (0..KEYS)
        .map(
            |key| {
                if RANGE.contains(&key) { weights[(key - RANGE.start) as usize] / sum } else { 0.0 }
            },
        )
        .collect()
}

fn even() -> Vec<f64> {
    vec![1.0; (RANGE.end - RANGE.start) as usize]
}

/// Returns a sampling by `weights`, or one that favours the lower half.
fn sampling(scheme: Scheme, weights: &[f64], planted: bool) -> Sampling {
    let keys = Key(RANGE.start)..Key(RANGE.end);
    let right = if weights == even() {
        Sampling::uniform(scheme, keys.clone(), 5)
    } else {
        Sampling::weighted(scheme, keys.clone(), weights, 5).expect("weights")
    };
    if !planted {
        return right;
    }
    let table = adapm_runtime::AliasTable::new(weights).expect("weights");
    let draw = move |random: &mut Random| loop {
        let index = table.draw(random) as u64;
        if index < 90 || random.below(2) > 0 {
            return Key(RANGE.start + index);
        }
    };
    Sampling::drawn(scheme, keys, 5, draw)
}

/// Returns how often a draw counts in the samples of a node's two workers.
fn uses(scheme: Scheme) -> f64 {
    if let Scheme::Pool { reuse, .. } = scheme { 2.0 * f64::from(reuse) } else { 1.0 }
}

#[test]
fn with_replacement_keys_come_by_their_shares() {
    for (scheme, weights, planted) in cases() {
        let cluster = cluster(System::Adapm, 2, 2, sampling(scheme, &weights, planted));
        let all = sampled(&cluster, 200, 100, 7);
        assert!(all.iter().all(|keys| keys.len() == 20_000));
        let test = Test::new(all.concat(), &shares(&weights));
        assert_eq!(
            test.fits(uses(scheme)),
            !planted,
            "{scheme}: {}, planted: {planted}",
            test.statistic()
        );
    }
}

/// Returns each scheme with even and with uneven weights, correct and with a planted mistake.
fn cases() -> Vec<(Scheme, Vec<f64>, bool)> {
    let of_scheme = |scheme| {
        [even(), weights()].into_iter().flat_map(move |weights| {
            [false, true].map(|planted| (scheme, weights.clone(), planted))
        })
    };
    EXACT.into_iter().flat_map(of_scheme).collect()
}

/// All keys of a sample of 20: each occurs equally often, a little more evenly than in independent
/// draws.
#[test]
fn without_replacement_even_keys_are_in_a_sample_equally_often() {
    const N: usize = 20;
    for (scheme, weights, planted) in
        cases().into_iter().filter(|(_, weights, _)| *weights == even())
    {
        let sampling = sampling(scheme, &weights, planted).without_replacement();
        let all = sampled(&cluster(System::Adapm, 2, 2, sampling), 500, N, 6).concat();
        for sample in all.chunks(N) {
            assert_eq!(
                sample.iter().collect::<BTreeSet<_>>().len(),
                N,
                "{scheme}: a key comes twice"
            );
        }
        let keys = weights.len() as f64;
        let thinner = 1.0 - (N as f64 - 1.0) / (keys - 1.0);
        let test = Test::new(all, &shares(&weights));
        let fits = test.fits(uses(scheme) * thinner);
        assert_eq!(fits, !planted, "{scheme}: {}, planted: {planted}", test.statistic() / thinner);
    }
}

/// The first key of a sample comes by its share, the second by its share of the rest: no part of a
/// sample is special.
#[test]
fn without_replacement_each_key_comes_by_its_share_of_what_is_left() {
    for (scheme, weights, planted) in cases() {
        let shares = shares(&weights);
        let sampling = sampling(scheme, &weights, planted).without_replacement();
        let all = sampled(&cluster(System::Adapm, 2, 2, sampling), 12_000, 2, 1).concat();
        let left = |first: &f64| first / (1.0 - first);
        let sum: f64 = shares.iter().map(left).sum();
        let second: Vec<f64> = shares.iter().map(|share| share * (sum - left(share))).collect();
        for (place, shares) in [shares, second].iter().enumerate() {
            let test = Test::new(all.iter().skip(place).step_by(2).copied(), shares);
            let fits = test.fits(uses(scheme));
            assert_eq!(
                fits,
                !planted,
                "{scheme}, place {place}: {}, planted: {planted}",
                test.statistic()
            );
        }
    }
}

/// On one node all keys are local.
#[test]
fn local_draws_by_the_shares_where_all_keys_are_local() {
    for weights in [even(), weights()] {
        for planted in [false, true] {
            let sampling = sampling(Scheme::Local, &weights, planted);
            let all = sampled(&cluster(System::Adapm, 1, 2, sampling), 200, 100, 7).concat();
            let test = Test::new(all, &shares(&weights));
            assert_eq!(test.fits(1.0), !planted, "{}, planted: {planted}", test.statistic());
        }
    }
}

/// Static partitioning, so that the local keys are known: half of the keys on each of two nodes.
/// Eight unsuccessful draws are one in 256, too few to show.
#[test]
fn local_draws_by_the_shares_among_the_local_keys() {
    for weights in [even(), weights()] {
        let cluster = cluster(System::Classic, 2, 1, sampling(Scheme::Local, &weights, false));
        for (node, keys) in sampled(&cluster, 200, 100, 5).into_iter().enumerate() {
            let here = |key: u64| usize::from(home(key, 2).0) == node;
            let local: Vec<f64> = RANGE
                .zip(&weights)
                .map(|(key, weight)| if here(key) { *weight } else { 0.0 })
                .collect();
            let test = Test::new(keys.iter().copied(), &shares(&local));
            assert!(test.fits(1.0), "{} at node {node}", test.statistic());
            let all = Test::new(keys, &shares(&weights));
            assert!(
                !all.fits(1.0),
                "half of the keys never come, and it does not show: {}",
                all.statistic()
            );
        }
        let stats = cluster.stats();
        assert_eq!((stats.local_share(), stats.remote, stats.sample_fallbacks), (1.0, 0, 0));
        assert_eq!((stats.sampled, stats.sampled_local), (40_000, 40_000));
    }
}
