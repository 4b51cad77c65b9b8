//! The graph of samples and keys: an edge for each access of a sample to a key (HET-GMP §5.1).

use std::ops::Range;

use adapm_core::Key;

/// Samples, with the keys that each of them accesses: 4 bytes an access, 8 a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bigraph {
    keys: usize,
    /// One more than samples.
    starts: Vec<usize>,
    accesses: Vec<u32>,
}

/// A graph, or a partition of one, that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub(crate) enum BigraphError {
    /// Keys are numbers of 32 bits here.
    #[error("{keys} keys are too many to partition: there may be {KEYS_MAX}")]
    Keys { keys: u64 },
    #[error("sample {sample} accesses key {key}, of {keys} keys")]
    UnknownKey { sample: usize, key: u64, keys: usize },
    #[error("there are no samples to partition")]
    NoSamples,
    #[error("{parts} parts: there may be 1 to {PARTS_MAX}, and no more than the {keys} keys")]
    Parts { parts: usize, keys: usize },
    #[error("a store rate of {rate} is no share: use 0 to 1")]
    StoreRate { rate: f64 },
    #[error("the bandwidths are of {given} nodes, not of {parts}")]
    Bandwidths { given: usize, parts: usize },
}

impl Bigraph {
    /// Returns a graph of `keys` keys without samples.
    ///
    /// # Errors
    /// More keys than 32 bits tell apart.
    pub(crate) fn new(keys: u64) -> Result<Self, BigraphError> {
        if keys > KEYS_MAX {
            return Err(BigraphError::Keys { keys });
        }
        Ok(Self { keys: keys as usize, starts: vec![0], accesses: Vec::new() })
    }

    /// Adds a sample, which may access a key several times, or none.
    ///
    /// # Errors
    /// A key that there is not; the graph stays as it is.
    pub(crate) fn add(&mut self, sample: &[Key]) -> Result<(), BigraphError> {
        if let Some(key) = sample.iter().find(|key| key.0 >= self.keys as u64) {
            let (sample, keys) = (self.samples(), self.keys);
            return Err(BigraphError::UnknownKey { sample, key: key.0, keys });
        }
        self.accesses.extend(sample.iter().map(|key| key.0 as u32));
        self.starts.push(self.accesses.len());
        Ok(())
    }

    /// Returns the number of keys.
    pub(crate) fn keys(&self) -> usize {
        self.keys
    }

    /// Returns the number of samples.
    pub(crate) fn samples(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of accesses of all samples.
    pub(crate) fn accesses(&self) -> usize {
        self.accesses.len()
    }

    /// Returns the keys of a sample.
    pub(crate) fn of(&self, sample: usize) -> &[u32] {
        &self.accesses[self.range(sample)]
    }

    /// Returns the number of accesses for which `is_remote` holds of (sample, key).
    #[cfg(test)]
    pub(crate) fn count(&self, is_remote: impl Fn(usize, u32) -> bool) -> u64 {
        let of = |sample| self.of(sample).iter().filter(|key| is_remote(sample, **key)).count();
        (0..self.samples()).map(|sample| of(sample) as u64).sum()
    }

    fn range(&self, sample: usize) -> Range<usize> {
        self.starts[sample]..self.starts[sample + 1]
    }
}

/// Most parts of a partition.
pub(crate) const PARTS_MAX: usize = 256;
const KEYS_MAX: u64 = u32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_there_is_not_is_named_and_adds_nothing() {
        let mut graph = Bigraph::new(3).expect("few keys");
        graph.add(&[Key(2), Key(0)]).expect("known keys");
        graph.add(&[]).expect("a sample may access nothing");
        let error = BigraphError::UnknownKey { sample: 2, key: 3, keys: 3 };
        assert_eq!(graph.add(&[Key(1), Key(3)]), Err(error));
        assert_eq!((graph.samples(), graph.accesses()), (2, 2));
        assert_eq!((graph.of(0), graph.of(1)), (&[2, 0][..], &[][..]));
        assert_eq!(graph.count(|sample, key| sample == 0 && key == 0), 1);
        assert_eq!(Bigraph::new(1 << 32), Err(BigraphError::Keys { keys: 1 << 32 }));
    }
}
