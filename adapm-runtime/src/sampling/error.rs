//! What cannot be sampled from.

use adapm_core::Key;

use super::Scheme;

/// Keys that cannot be sampled so: the caller is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingError {
    /// The keys to sample from are no keys of the layout, or none.
    #[error(
        "cannot sample from keys {}..{}: use a range that is not empty within 0..{}", start.0, end.0, keys_end.0
    )]
    Keys {
        /// First key of the range.
        start: Key,
        /// Key behind the range.
        end: Key,
        /// The layout's keys are `0..keys_end`.
        keys_end: Key,
    },
    /// The keys to sample from differ in value length.
    #[error("cannot sample from keys of several value lengths: key {} differs", key.0)]
    Lens {
        /// The first key with another length than the range's first.
        key: Key,
    },
    /// A pool that cannot be drawn.
    #[error(
        "cannot sample from pools of {size} keys used {reuse} times: use 1 to {} keys, once or more",
        Scheme::POOL_SIZE_MAX
    )]
    Pool {
        /// Draws of a pool.
        size: u32,
        /// Uses of each.
        reuse: u32,
    },
}
