//! The bounds and times of a link session.

use core::time::Duration;

use crate::wire::FRAME_BYTES_MAX;

/// Bounds and times of one link; both ends may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkConfig {
    /// Longest silence towards the peer while the pipe is up. Defaults to 0.5 s.
    pub heartbeat: Duration,
    /// Silence of the peer after which it is suspected. Defaults to 2 s.
    pub suspect_after: Duration,
    /// Silence of the peer after which it is dead, for good. Defaults to 10 s.
    pub dead_after: Duration,
    /// Longest time that a received frame waits for its acknowledgement. Defaults to 20 ms.
    pub ack_delay: Duration,
    /// Most frames that wait for an acknowledgement; at the bound the way is full. Defaults to 4,096.
    pub window_frames: usize,
    /// Most bytes that wait for an acknowledgement; a single larger frame goes alone. Defaults to 32 MiB.
    pub window_bytes: usize,
}

impl LinkConfig {
    /// The times that fit a peer which is dead after `dead_after` of silence: suspected after a fifth of it, heard of in
    /// every twentieth. Times of zero become a nanosecond.
    ///
    /// ```
    /// use core::time::Duration;
    /// use adapm_core::link::LinkConfig;
    /// assert_eq!(LinkConfig::dead_after(Duration::from_secs(10)), LinkConfig::default());
    /// assert_eq!(LinkConfig::dead_after(Duration::from_secs(1)).heartbeat, Duration::from_millis(50));
    /// ```
    #[must_use]
    pub fn dead_after(dead_after: Duration) -> Self {
        let least = Duration::from_nanos(1);
        Self {
            heartbeat: (dead_after / 20).max(least),
            suspect_after: (dead_after / 5).max(least),
            dead_after: dead_after.max(least),
            ack_delay: Duration::from_millis(20).min(dead_after / 20).max(least),
            window_frames: 4_096,
            window_bytes: 2 * FRAME_BYTES_MAX,
        }
    }
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self::dead_after(Duration::from_secs(10))
    }
}
