//! The preparation of samples, with one random stream per worker and per intent handle, and the
//! reuse of draws for scheme `pool`: a pool of keys, each used several times, in random order
//! (NuPS).
//!
//! ```text
//!   sequence of the node   d0 d1 d2 d3 | d4 d5 d6 d7 | ...      pool size 4: the same for all workers of a node
//!   one worker's samples   d2 d0 d2 d3 d1 d0 d3 d1 | d5 ...     reuse 2: an order of its own
//! ```
//!
//! # Departure
//! The workers of a node share the *keys* of pools, not the places in them: each computes the
//! node's sequence for itself and goes through it in an order of its own. So there is no lock, a
//! worker's samples do not depend on the speed of others, and workers that are about equally far
//! still use the same keys at the same time. In NuPS workers take turns in one list.
//!
//! Deliberately absent: NuPS's postponing of keys that are not local yet, which would make samples
//! depend on the network.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key, NodeId, WorkerId};
use foldhash::fast::FixedState;

use super::{DRAWS_IN_VAIN, Random, Sample, SamplePreparer, Sampling, Scheme};

/// Prepares the samples of one worker, or of one of its intent handles.
#[derive(Debug)]
pub(crate) struct Sampler {
    sampling: Option<Arc<Sampling>>,
    seeds: Random,
    pool: Option<Pool>,
}

impl Sampler {
    /// Creates the sampler of stream `stream` (0 is the worker's own) of a worker.
    pub(crate) fn new(
        sampling: Option<Arc<Sampling>>,
        node: NodeId,
        worker: WorkerId,
        stream: u64,
    ) -> Self {
        let seed = sampling.as_ref().map_or(0, |sampling| sampling.seed);
        // Two steps, so that seed 1 of worker 0 is not seed 0 of worker 1.
        let of = |place: u64| {
            Random::new(Random::new(seed).bits() ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        };
        let node = u64::from(node.0) << 48;
        let pool = sampling.as_ref().and_then(|sampling| match sampling.scheme {
            // A place that no stream uses.
            Scheme::Pool { size, reuse } => {
                Some(Pool::new(of(node | u64::from(u32::MAX)), size, reuse))
            }
            _ => None,
        });
        Self { sampling, seeds: of(node | u64::from(worker.0) << 32 | stream), pool }
    }

    /// Leaves out so many samples, as if they had been prepared. Pools are not gone through.
    pub(crate) fn skip(&mut self, samples: u64) {
        for _ in 0..samples {
            self.seeds.bits();
        }
    }

    /// Prepares a sample of `n` keys for its owner.
    pub(crate) fn prepare(
        &mut self,
        n: usize,
        clocks: Range<Clock>,
        preparer: SamplePreparer,
    ) -> Result<Sample, OpError> {
        let sampling = self.sampling.clone().ok_or(OpError::NoSampling)?;
        if n > Sample::KEYS_MAX {
            return Err(OpError::SampleSize { asked: n, max: Sample::KEYS_MAX });
        }
        if !sampling.with_replacement && n as u64 > sampling.drawable() {
            return Err(OpError::SampleExhausted { left: sampling.drawable() as usize, asked: n });
        }
        let mut random = Random::new(self.seeds.bits());
        match &mut self.pool {
            None => Ok(Sample::new(sampling, random, clocks, n, preparer)),
            Some(pool) => {
                let keys = pool.take(&sampling, &mut random, n);
                Ok(Sample::of_keys(sampling, random, clocks, keys, preparer))
            }
        }
    }
}

/// The pools of one random stream, one after the other.
#[derive(Debug)]
struct Pool {
    /// The source of pools: the same for all streams of a node.
    draws: Random,
    size: u32,
    reuse: u32,
    /// Draws with uses left.
    open: Vec<Draw>,
}

#[derive(Debug)]
struct Draw {
    key: Key,
    uses_left: u32,
}

impl Pool {
    fn new(draws: Random, size: u32, reuse: u32) -> Self {
        Self { draws, size, reuse, open: Vec::new() }
    }

    /// Takes the next `n` keys, in an order given by `random`.
    fn take(&mut self, sampling: &Sampling, random: &mut Random, n: usize) -> Vec<Key> {
        if sampling.with_replacement {
            (0..n).map(|_| self.next(sampling, random)).collect()
        } else {
            self.take_distinct(sampling, random, n)
        }
    }

    fn next(&mut self, sampling: &Sampling, random: &mut Random) -> Key {
        if self.open.is_empty() {
            self.draw_more(sampling);
        }
        let index = random.below(self.open.len() as u64) as usize;
        let draw = &mut self.open[index];
        let key = draw.key;
        draw.uses_left -= 1;
        if draw.uses_left == 0 {
            self.open.swap_remove(index);
        }
        key
    }

    /// No draw is used twice for one sample; a use whose key is already in the sample is spent in
    /// vain, as a draw without a pool would be. Where the sample needs more draws than are open,
    /// another pool is opened beside them.
    fn take_distinct(&mut self, sampling: &Sampling, random: &mut Random, n: usize) -> Vec<Key> {
        let mut keys = Vec::with_capacity(n);
        let mut used = HashSet::<Key, FixedState>::default();
        let (mut looked_at, mut in_vain) = (0, 0);
        while keys.len() < n {
            if looked_at == self.open.len() {
                self.draw_more(sampling);
            }
            let index = looked_at + random.below((self.open.len() - looked_at) as u64) as usize;
            self.open.swap(looked_at, index);
            let draw = &mut self.open[looked_at];
            draw.uses_left -= 1;
            looked_at += 1;
            let mut key = draw.key;
            if used.contains(&key) {
                in_vain += 1;
                if in_vain < DRAWS_IN_VAIN {
                    continue;
                }
                key = sampling.next_unused(key, |key| used.contains(&key));
            }
            in_vain = 0;
            used.insert(key);
            keys.push(key);
        }
        self.open.retain(|draw| draw.uses_left > 0);
        keys
    }

    fn draw_more(&mut self, sampling: &Sampling) {
        for _ in 0..self.size {
            self.open.push(Draw { key: sampling.draw(&mut self.draws), uses_left: self.reuse });
        }
    }
}

#[cfg(all(test, not(adapm_loom)))]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Scheme;
    use super::*;

    const SCHEME: Scheme = Scheme::Pool { size: 10, reuse: 4 };

    fn pool() -> Pool {
        Pool::new(Random::new(1), 10, 4)
    }

    fn uniform(keys: u64) -> Sampling {
        Sampling::uniform(SCHEME, Key(0)..Key(keys), 0)
    }

    fn counts(keys: &[Key]) -> BTreeMap<Key, u32> {
        let mut counts = BTreeMap::new();
        keys.iter().for_each(|key| *counts.entry(*key).or_default() += 1);
        counts
    }

    #[test]
    fn each_draw_of_a_pool_is_used_as_often_as_said_before_the_next_pool() {
        let (mut pool, sampling) = (pool(), uniform(1 << 60));
        let mut drawn = Random::new(1);
        for seed in 0..5 {
            let taken = pool.take(&sampling, &mut Random::new(seed), 40);
            let expected: BTreeMap<Key, u32> =
                (0..10).map(|_| (sampling.draw(&mut drawn), 4)).collect();
            assert_eq!(counts(&taken), expected);
            assert_ne!(taken[..10], taken[10..20], "in the same order twice");
        }
    }

    #[test]
    fn streams_share_the_keys_of_a_pool_and_not_their_order() {
        let sampling = uniform(1 << 60);
        let streams = [2, 3].map(|seed| pool().take(&sampling, &mut Random::new(seed), 40));
        assert_eq!(counts(&streams[0]), counts(&streams[1]));
        assert_ne!(streams[0], streams[1]);
    }

    #[test]
    fn without_replacement_a_draw_is_used_once_a_sample_and_as_often_as_said() {
        let (mut pool, sampling) = (pool(), uniform(1 << 60).without_replacement());
        let mut random = Random::new(9);
        let samples: Vec<Vec<Key>> =
            (0..8).map(|_| pool.take(&sampling, &mut random, 15)).collect();
        assert!(samples.iter().all(|sample| counts(sample).len() == 15));
        // 120 uses of draws used 4 times each: 30 draws if none is left over, as three pools of 10
        // have.
        let all = counts(&samples.concat());
        assert!(all.values().all(|uses| *uses <= 4));
        assert!((30..=50).contains(&all.len()), "{} draws", all.len());
    }

    #[test]
    fn without_replacement_pools_end_where_few_keys_can_be_drawn() {
        let rare = |random: &mut Random| Key(u64::from(random.below(1_000) == 0));
        let sampling = Sampling::drawn(SCHEME, Key(0)..Key(5), 0, rare).without_replacement();
        let mut pool = pool();
        for _ in 0..20 {
            let mut sample = pool.take(&sampling, &mut Random::new(4), 5);
            sample.sort_unstable();
            assert_eq!(sample, [0, 1, 2, 3, 4].map(Key));
            assert!(
                pool.open.len() < 10 * 5 * DRAWS_IN_VAIN as usize,
                "{} open draws",
                pool.open.len()
            );
        }
    }
}
