//! Keys, the lengths of their values, and their placement: homes and channels.
//!
//! Lengths are fixed per key for a run. A *dense* layout names contiguous ranges of keys from 0; a
//! *sparse* layout has the same shape but may cover all of `u64`, and its main copies are created
//! on first access.

use alloc::vec::Vec;
use core::ops::Range;

use crate::error::ConfigError;
use crate::id::{ChannelId, Key, NodeId};
use crate::value;
use crate::value::Value;

/// The keys of a run with their value lengths in elements.
///
/// ```
/// use adapm_core::{Key, Layout};
/// let layout = Layout::dense(&[(1_000, 64), (10, 4_096)])?;
/// assert_eq!(layout.value_len(Key(999)), Some(64));
/// assert_eq!(layout.value_len(Key(1_000)), Some(4_096));
/// assert_eq!(layout.value_len(Key(1_010)), None);
/// # Ok::<(), adapm_core::error::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    ranges: Vec<Extent>,
    kind: Kind,
}

/// The time at which main copies are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every key has a main copy, filled before the first round.
    Dense,
    /// A main copy is created with its initial value on first access or grant.
    Sparse,
}

/// Contiguous keys whose values have one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The keys.
    pub keys: Range<Key>,
    /// Number of elements of each value.
    pub value_len: usize,
}

impl Layout {
    /// The longest value in elements.
    pub const VALUE_LEN_MAX: usize = value::LEN_MAX;

    /// Creates a dense layout: consecutive extents of (number of keys, value length) from key 0.
    ///
    /// # Errors
    /// If there is no key, or a length is 0 or above [`Layout::VALUE_LEN_MAX`].
    pub fn dense(extents: &[(u64, usize)]) -> Result<Self, ConfigError> {
        Self::new(extents, Kind::Dense)
    }

    /// Creates a sparse layout: like [`Layout::dense`], but main copies are created on first
    /// access, so a range may be huge.
    ///
    /// # Errors
    /// As for [`Layout::dense`].
    pub fn sparse(extents: &[(u64, usize)]) -> Result<Self, ConfigError> {
        Self::new(extents, Kind::Sparse)
    }

    fn new(extents: &[(u64, usize)], kind: Kind) -> Result<Self, ConfigError> {
        let mut ranges = Vec::new();
        let mut start = 0_u64;
        for &(keys, value_len) in extents.iter().filter(|(keys, _)| *keys > 0) {
            if value_len == 0 || value_len > Self::VALUE_LEN_MAX {
                return Err(ConfigError::ValueLen { key: Key(start), value_len });
            }
            let end = start.checked_add(keys).ok_or(ConfigError::KeysOverflow)?;
            ranges.push(Extent { keys: Key(start)..Key(end), value_len });
            start = end;
        }
        if ranges.is_empty() { Err(ConfigError::NoKeys) } else { Ok(Self { ranges, kind }) }
    }

    /// Returns the kind, dense or sparse.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the extents in key order.
    #[must_use]
    pub fn extents(&self) -> &[Extent] {
        &self.ranges
    }

    /// Returns the range of all keys, `0..end`.
    #[must_use]
    pub fn keys(&self) -> Range<Key> {
        Key(0)..self.ranges.last().map_or(Key(0), |extent| extent.keys.end)
    }

    /// Returns the number of elements of the value of `key`, `None` for unknown keys.
    #[must_use]
    pub fn value_len(&self, key: Key) -> Option<usize> {
        // Nearly all layouts have one to three extents: a scan beats a search.
        let scanned = self.ranges.iter().take(SCANNED_EXTENTS).find(|extent| key < extent.keys.end);
        match scanned {
            Some(extent) => Some(extent.value_len),
            None => self.search(key),
        }
    }

    #[cold]
    fn search(&self, key: Key) -> Option<usize> {
        let at = self.ranges.partition_point(|extent| extent.keys.end <= key);
        self.ranges.get(at).map(|extent| extent.value_len)
    }

    /// Returns the node that owns `key` at first and always knows its owner.
    ///
    /// Hash partitioning; its bits are independent of [`Layout::channel`]'s.
    #[must_use]
    pub fn home(key: Key, nodes: usize) -> NodeId {
        NodeId(scale(Self::home_hash(key), nodes))
    }

    /// Returns the hash of a key by which it has its [`home`](Self::home).
    ///
    /// For any number of nodes homes ascend with hashes: of keys sorted by their hash, those at
    /// home on one node are one after the other. Different keys have different hashes.
    #[must_use]
    pub fn home_hash(key: Key) -> u64 {
        mix(key.0 ^ 0x5851_f42d_4c95_7f2d)
    }

    /// Returns the channel that manages `key` on every node (multiplicative hash).
    #[must_use]
    pub fn channel(key: Key, channels: usize) -> ChannelId {
        ChannelId(scale(key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15), channels))
    }

    /// Returns a hash of the layout (extents, kind, element type `V`) for comparison in handshakes
    /// and checkpoints.
    #[must_use]
    pub fn digest<V: Value>(&self) -> u64 {
        let mut digest =
            mix(V::NAME.bytes().fold(self.kind as u64 + 1, |d, byte| mix(d ^ u64::from(byte))));
        for extent in &self.ranges {
            for part in [extent.keys.start.0, extent.keys.end.0, extent.value_len as u64] {
                digest = mix(digest ^ part);
            }
        }
        digest
    }
}

/// Number of extents that are scanned; more are searched.
const SCANNED_EXTENTS: usize = 8;

/// Maps the upper 32 bits of `hash` onto `0..parts`.
fn scale(hash: u64, parts: usize) -> u16 {
    (((hash >> 32) * parts as u64) >> 32) as u16
}

/// Returns a bijective mix of 64 bits in which every input bit reaches every output bit (the
/// finisher of SplitMix64).
pub(crate) fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_extent_of_a_key_among_few_and_many() {
        for extents in [1, 3, SCANNED_EXTENTS, SCANNED_EXTENTS + 1, 100_000] {
            let lens = |at: usize| 1 + (at * 7_919) % 1_000;
            let extents: Vec<(u64, usize)> =
                (0..extents).map(|at| (1 + at as u64 % 3, lens(at))).collect();
            let layout = Layout::dense(&extents).expect("valid");
            let mut key = 0;
            for &(keys, value_len) in &extents {
                for _ in 0..keys {
                    assert_eq!(
                        layout.value_len(Key(key)),
                        Some(value_len),
                        "k{key} of {}",
                        extents.len()
                    );
                    key += 1;
                }
            }
            assert_eq!(layout.value_len(Key(key)), None);
        }
    }

    #[test]
    fn homes_and_channels_are_even_and_independent() {
        let mut counts = [[0_u32; 4]; 4];
        for key in 0..16_000 {
            counts[Layout::home(Key(key), 4).index()][Layout::channel(Key(key), 4).index()] += 1;
        }
        for cell in counts.iter().flatten() {
            assert!((850..1_150).contains(cell), "{counts:?}");
        }
    }

    #[test]
    fn sorted_by_their_hash_keys_of_one_home_are_neighbours() {
        let mut keys: Vec<Key> = (0..5_000).map(Key).collect();
        keys.sort_unstable_by_key(|key| Layout::home_hash(*key));
        assert!(keys.windows(2).all(|two| Layout::home_hash(two[0]) < Layout::home_hash(two[1])));
        for nodes in [1, 2, 3, 7, 64, 1_000] {
            assert!(keys.iter().map(|key| Layout::home(*key, nodes)).is_sorted(), "{nodes} nodes");
        }
    }

    #[test]
    fn refuses_what_cannot_be_laid_out() {
        assert_eq!(Layout::dense(&[]), Err(ConfigError::NoKeys));
        assert_eq!(Layout::dense(&[(0, 4)]), Err(ConfigError::NoKeys));
        assert_eq!(
            Layout::dense(&[(3, 2), (1, 0)]),
            Err(ConfigError::ValueLen { key: Key(3), value_len: 0 })
        );
        assert_eq!(Layout::sparse(&[(u64::MAX, 1), (1, 1)]), Err(ConfigError::KeysOverflow));
    }

    #[test]
    fn digest_tells_layouts_apart() {
        let base = Layout::dense(&[(10, 4)]).expect("valid");
        let digests = [
            base.digest::<f32>(),
            base.digest::<f64>(),
            Layout::sparse(&[(10, 4)]).expect("valid").digest::<f32>(),
            Layout::dense(&[(11, 4)]).expect("valid").digest::<f32>(),
            Layout::dense(&[(10, 5)]).expect("valid").digest::<f32>(),
        ];
        for (i, a) in digests.iter().enumerate() {
            assert!(digests[i + 1..].iter().all(|b| a != b));
        }
    }
}
