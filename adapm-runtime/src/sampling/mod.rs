//! Sampling: access to keys that the parameter manager may choose, such as negative samples (NuPS;
//! AdaPM §A.5).
//!
//! The *drawing function* is the distribution that a task asks for ([`Sampling::uniform`],
//! [`Sampling::weighted`], [`Sampling::drawn`]). A *scheme* decides when keys are chosen, and how
//! far it may deviate from the drawing function for keys that are local:
//!
//! | scheme | keys are chosen | distribution | cost of `n` keys | good for |
//! | --- | --- | --- | --- | --- |
//! | `naive` | when a sample is prepared | the drawing function's | 2 messages for each other node at the pull, which waits for them | static partitioning; exactness where little is sampled |
//! | `preloc` | when a sample is prepared, with intent for its window | the drawing function's | `n` intents; each key that is elsewhere is brought here, until the window ends | exactness without waiting, where workers are far enough ahead |
//! | `pool` | as `preloc`, from pools of `size` draws that a worker uses `reuse` times each | the drawing function's in the long run; samples of a pool depend on each other | `n / reuse` draws, and intents as in `preloc` for these | the same with fewer keys to bring here |
//! | `local` | when they are pulled, or a step before by [`crate::Worker::choose_sample`]: the first local one of eight draws, else the next local one, scanning upward with wrap past at most 1,024 keys | nearly the drawing function's among the local keys | nothing is brought here, so next to no messages; up to 1,032 checks a key where few are local | most training: samples need not be exact as long as the set of local keys changes |
//!
//! [`Scheme::of`] returns the usual scheme of a system: `naive` under `classic`, where the set of
//! local keys never changes; `preloc` under `lapse` and `adapm-no-replication`, where only keys in
//! recent use are local; else `local`. Systems that ignore intent ignore that of samples, too:
//! under `classic` and `full`, `preloc` and `pool` only choose keys (under `full` all are local
//! anyway). Under `lapse` keys are localized when the sample is prepared, as in NuPS: prepare it
//! early enough for the keys to arrive, and late enough that they have not left again.
//!
//! Without replacement no key occurs twice *in one sample*. The order of a sample is random in all
//! schemes: a prefix of it is distributed like a smaller sample.
//!
//! Every scheme terminates: if the scan finds no local key that the sample may use, `local` pulls
//! the drawn key from its owner and counts it in
//! [`crate::Stats::sample_fallbacks`]. This also happens on a sparse range whose keys have hardly
//! been accessed yet. A sample has at most [`Sample::KEYS_MAX`] keys.
//!
//! # How far `local` is from the drawing function
//! Measured by `cargo run -p adapm-runtime --example sampling`: 4 nodes sample 512,000 of 10,000
//! keys, uniformly, while they access the same keys for other purposes, some far more often than
//! others. *Distance* is half the sum, over all keys, of the difference between the key's share of
//! the samples and an equal share; *of a node* is its mean over the samples of each node alone.
//!
//! | system, scheme | sampled keys local | MB sent | distance | of a node | frequency of the 100 keys most in use, relative to others |
//! | --- | ---: | ---: | ---: | ---: | ---: |
//! | `adapm`, `naive` | 25.4 % | 77 | 0.056 | 0.111 | 1.00 |
//! | `adapm`, `preloc` | 99.8 % | 55 | 0.056 | 0.111 | 1.00 |
//! | `adapm`, `pool`, 250 draws used 16 times | 100.0 % | 19 | 0.223 | 0.450 | 0.91 |
//! | `adapm`, `local` | 100.0 % | 18 | 0.120 | 0.272 | 2.81 |
//! | `classic`, `naive` | 25.0 % | 81 | 0.056 | 0.111 | 1.00 |
//! | `classic`, `local` | 100.0 % | 27 | 0.070 | 0.750 | 1.01 |
//!
//! Distances of 0.056 and 0.111 are due to chance: exact draws have them. Those of `pool` are, too:
//! a sixteenth of the draws has four times the distance. Those of `local` are not. It favours keys
//! in use, as several nodes hold copies of these: a task that needs equal shares corrects for the
//! frequency of each key, as knowledge graph training does. Under `classic` each node samples only
//! from its own quarter of the keys.
//!
//! # Determinism
//! A worker has one random stream, and one more for each intent handle. The draws of a stream
//! depend on the seed, the ids of node and worker, the number of the stream, and the sizes of the
//! samples prepared before: never on other threads, time, or the set of local keys. So `naive`,
//! `preloc` and `pool` give a worker the same keys in every run. The keys of pools depend on seed
//! and node alone; all streams of a node go through the same pools, each in its own order. Under
//! `local` the draws are the same in every run, but the key that replaces a drawn one depends on
//! the set of local keys at that moment.
//!
//! # The window
//! A sample's window is a promise about the worker's clock, like that of an intent. Pulls outside
//! of it are correct, but more often remote: nothing is signalled for the past, and earlier signals
//! have expired. [`Sample::finish`], or dropping the sample, takes back the intent for keys that
//! were not pulled. Pulled keys stay for their updates: under `local` until the clock is raised,
//! else until the window ends.
//!
//! # Departure
//! In NuPS and AdaPM a key that `local` chose may leave again before its update is pushed, which is
//! then a remote access. Here the worker signals intent, so that the key stays or is back for the
//! push: for keys chosen a step ahead until the sample's window ends, for other pulled keys until
//! the clock is raised.
//!
//! Where steps are shorter than the engines' rounds nothing is signalled, as it would come too
//! late. In knowledge graph training with a fact per step and 12 negatives (FB15k-237, 2 processes)
//! this exception lowers the signalled keys from 27 to 3 a step and the replicas by 45 %, while
//! 0.007 % instead of 0.005 % of the accesses wait or are remote.
//!
//! NuPS and AdaPM scan from the first draw, which favours local keys after a gap of others: on 4
//! nodes, knowledge graph training on FB15k-237 lost 0.014 of its filtered MRR by that, and 0.009
//! with more draws before the scan.
//!
//! | file | subject |
//! | --- | --- |
//! | `scheme` | names of schemes; invalid settings |
//! | `alias` | random numbers; weighted draws |
//! | `sampler` | the preparation of samples; pools |
//! | `sample` | a prepared sample: its choice of keys, the keys left to pull |
//!
//! Not here: the pull itself, which is `worker/sample.rs`.

mod alias;
mod sample;
mod sampler;
mod scheme;

pub use alias::{AliasTable, Random, Weight, WeightError};
pub use sample::Sample;
pub use scheme::{SamplingError, Scheme, UnknownScheme};

pub(crate) use sample::{SampleNode, SamplePreparer};
pub(crate) use sampler::Sampler;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use adapm_core::{Key, Layout};

/// The keys to sample from, and the scheme. All keys of the range have one value length.
#[derive(Clone)]
pub struct Sampling {
    scheme: Scheme,
    keys: Range<Key>,
    seed: u64,
    with_replacement: bool,
    draws: Draws,
}

/// The distribution of drawn keys.
#[derive(Clone)]
enum Draws {
    Uniform,
    Weighted(Arc<AliasTable>),
    /// Keys outside the range are wrapped into it.
    By(Arc<dyn Fn(&mut Random) -> Key + Send + Sync>),
}

impl Sampling {
    /// Creates a uniform distribution over `keys`, with replacement.
    #[must_use]
    pub fn uniform(scheme: Scheme, keys: Range<Key>, seed: u64) -> Self {
        Self { scheme, keys, seed, with_replacement: true, draws: Draws::Uniform }
    }

    /// Creates a distribution over `keys` in proportion to `weights` `[keys]`, with replacement. No
    /// scheme ever samples keys of weight 0.
    ///
    /// Takes 8 bytes per key, once per process, and constant time per draw ([`AliasTable`]).
    ///
    /// # Errors
    /// If the numbers of weights and keys differ, or for weights that [`AliasTable::new`] refuses.
    ///
    /// ```
    /// use adapm_core::{Key, Layout};
    /// use adapm_runtime::{Sampling, Scheme, WeightError};
    ///
    /// let counts: [u64; 3] = [70, 0, 7];
    /// let weights = counts.map(|count| (count as f64).powf(0.75));
    /// let sampling = Sampling::weighted(Scheme::Local, Key(10)..Key(13), &weights, 1)?;
    /// let refused = Sampling::weighted(Scheme::Local, Key(10)..Key(14), &weights, 1);
    /// assert_eq!(refused.map(drop), Err(WeightError::Count { weights: 3, keys: 4 }));
    /// # Ok::<(), WeightError>(())
    /// ```
    pub fn weighted<W: Weight>(
        scheme: Scheme,
        keys: Range<Key>,
        weights: &[W],
        seed: u64,
    ) -> Result<Self, WeightError> {
        let count = keys.end.0.saturating_sub(keys.start.0);
        if count != weights.len() as u64 {
            return Err(WeightError::Count { weights: weights.len(), keys: count });
        }
        let table = Arc::new(AliasTable::new(weights)?);
        Ok(Self { scheme, keys, seed, with_replacement: true, draws: Draws::Weighted(table) })
    }

    /// Creates the distribution of the function `draw`, with replacement. A key outside of `keys`
    /// is wrapped into the range. Under scheme `Local`, and without replacement, keys that `draw`
    /// never returns may replace drawn ones.
    #[must_use]
    pub fn drawn(
        scheme: Scheme,
        keys: Range<Key>,
        seed: u64,
        draw: impl Fn(&mut Random) -> Key + Send + Sync + 'static,
    ) -> Self {
        Self { scheme, keys, seed, with_replacement: true, draws: Draws::By(Arc::new(draw)) }
    }

    /// Forbids duplicate keys within one sample; samples of more keys than the range has, or than
    /// have a weight above 0, are refused.
    ///
    /// A drawn key that the sample has already used is drawn again; after 64 draws in vain it is
    /// replaced by the next unused key, upward with wrap, so that a drawing function with few
    /// possible keys terminates, too.
    #[must_use]
    pub fn without_replacement(mut self) -> Self {
        self.with_replacement = false;
        self
    }

    /// Checks that a cluster with that layout can sample this way.
    pub(crate) fn check(&self, layout: &Layout) -> Result<(), SamplingError> {
        let (start, end) = (self.keys.start, self.keys.end);
        let keys_end = layout.keys().end;
        if start >= end || end > keys_end {
            return Err(SamplingError::Keys { start, end, keys_end });
        }
        if let Scheme::Pool { size, reuse } = self.scheme
            && (size == 0 || size > Scheme::POOL_SIZE_MAX || reuse == 0)
        {
            return Err(SamplingError::Pool { size, reuse });
        }
        let len = layout.value_len(start);
        let differs = layout.extents().iter().find(|extent| {
            extent.keys.start < end && start < extent.keys.end && Some(extent.value_len) != len
        });
        differs.map_or(Ok(()), |extent| Err(SamplingError::Lens { key: extent.keys.start }))
    }

    fn len(&self) -> u64 {
        self.keys.end.0.saturating_sub(self.keys.start.0)
    }

    /// Returns the number of keys that may be sampled.
    fn drawable(&self) -> u64 {
        match &self.draws {
            Draws::Weighted(table) => table.drawable() as u64,
            Draws::Uniform | Draws::By(_) => self.len(),
        }
    }

    /// Returns true if `key` of the range may be sampled.
    fn can_draw(&self, key: Key) -> bool {
        match &self.draws {
            Draws::Weighted(table) => table.can_draw((key.0 - self.keys.start.0) as usize),
            Draws::Uniform | Draws::By(_) => true,
        }
    }

    // Inlined, so that the random state stays in registers from draw to draw.
    #[inline(always)]
    fn draw(&self, random: &mut Random) -> Key {
        let offset = match &self.draws {
            Draws::Uniform => random.below(self.len()),
            Draws::Weighted(table) => table.draw(random) as u64,
            Draws::By(draw) => draw(random).0.wrapping_sub(self.keys.start.0) % self.len(),
        };
        Key(self.keys.start.0 + offset)
    }

    /// Returns the key after `key`, with wrap.
    fn after(&self, key: Key) -> Key {
        if key.0 + 1 < self.keys.end.0 { Key(key.0 + 1) } else { self.keys.start }
    }

    /// Returns `key`, or the next key upward with wrap that may be sampled and is unused; there
    /// must be one.
    fn next_unused(&self, mut key: Key, is_used: impl Fn(Key) -> bool) -> Key {
        while is_used(key) || !self.can_draw(key) {
            key = self.after(key);
        }
        key
    }
}

impl fmt::Debug for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampling")
            .field("scheme", &self.scheme)
            .field("keys", &self.keys)
            .field("seed", &self.seed)
            .field("with_replacement", &self.with_replacement)
            .field("draws", &self.draws)
            .finish()
    }
}

impl fmt::Debug for Draws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Weighted(table) => table.fmt(f),
            Self::By(_) => f.write_str("by a function"),
        }
    }
}

/// Draws after which, without replacement, an unused key is searched in order: with half of the
/// keys used, that many fail once in 2^64 times.
const DRAWS_IN_VAIN: u32 = 64;
