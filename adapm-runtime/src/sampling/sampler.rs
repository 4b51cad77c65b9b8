//! Prepares samples, one random stream for each worker and for each of its intent handles.

use std::ops::Range;
use std::sync::Arc;

use adapm_core::error::OpError;
use adapm_core::{Clock, NodeId, WorkerId};

use super::pool::Pool;
use super::{Owner, Random, Sample, Sampling, Scheme};

/// Prepares the samples of one worker, or of one of its intent handles.
#[derive(Debug)]
pub(crate) struct Sampler {
    sampling: Option<Arc<Sampling>>,
    seeds: Random,
    pool: Option<Pool>,
}

impl Sampler {
    /// The sampler of stream `stream` (0 is the worker's own) of a worker.
    pub(crate) fn new(sampling: Option<Arc<Sampling>>, node: NodeId, worker: WorkerId, stream: u64) -> Self {
        let seed = sampling.as_ref().map_or(0, |sampling| sampling.seed);
        // Two steps, so that seed 1 of worker 0 is not seed 0 of worker 1.
        let of =
            |place: u64| Random::new(Random::new(seed).bits() ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let node = u64::from(node.0) << 48;
        let pool = sampling.as_ref().and_then(|sampling| match sampling.scheme {
            // A place that no stream has.
            Scheme::Pool { size, reuse } => Some(Pool::new(of(node | u64::from(u32::MAX)), size, reuse)),
            _ => None,
        });
        Self { sampling, seeds: of(node | u64::from(worker.0) << 32 | stream), pool }
    }

    /// A sample of `n` keys for its owner.
    pub(crate) fn prepare(
        &mut self,
        n: usize,
        clocks: Range<Clock>,
        owner: Owner,
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
            None => Ok(Sample::new(sampling, random, clocks, n, owner)),
            Some(pool) => {
                let keys = pool.take(&sampling, &mut random, n);
                Ok(Sample::of_keys(sampling, random, clocks, keys, owner))
            }
        }
    }
}
