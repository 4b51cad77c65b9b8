//! The bounds and times of a link session.

use core::time::Duration;

use crate::wire::FRAME_BYTES_MAX;

/// Most bytes of a frame in one packet on a network that was found to be fast; see
/// [`LinkConfig::packet_bytes`].
pub const PACKET_BYTES_MAX: usize = 64 << 10;

/// Bounds and times of one link; both ends may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkConfig {
    /// Longest silence towards the peer while the pipe is up. Defaults to 0.5 s.
    pub heartbeat: Duration,
    /// Time without a byte on a pipe after which it should be replaced. Defaults to 2 s.
    pub suspect_after: Duration,
    /// Time without a byte of the peer, or without progress of a pending acknowledgement, after
    /// which it is dead, for good, however many pipes came up meanwhile. Defaults to 10 s.
    pub dead_after: Duration,
    /// Longest time that a received packet waits for its acknowledgement. Defaults to 20 ms.
    pub ack_delay: Duration,
    /// Most bytes of a frame in one packet: larger frames are cut, so that acknowledgements and
    /// heartbeats pass between their parts. While four times as much may be in flight, packets
    /// carry [`PACKET_BYTES_MAX`] bytes instead. At least 1 and at most that. Defaults to 16 KiB,
    /// 0.65 s at 200 kbit/s.
    pub packet_bytes: usize,
    /// Most unacknowledged packets; at the bound the link is full. Defaults to 4,096.
    pub window_packets: usize,
    /// Most unacknowledged bytes; a single larger frame goes alone. Defaults to 32 MiB.
    pub window_bytes: usize,
}

impl LinkConfig {
    /// Creates the configuration in which a peer is dead after `dead_after`: a pipe is replaced
    /// after a fifth of it, a heartbeat is sent every twentieth. Times of zero become a nanosecond.
    ///
    /// ```
    /// use core::time::Duration;
    /// use adapm_core::link::LinkConfig;
    /// assert_eq!(LinkConfig::with_dead_after(Duration::from_secs(10)), LinkConfig::default());
    /// let quick = LinkConfig::with_dead_after(Duration::from_secs(1));
    /// assert_eq!(quick.heartbeat, Duration::from_millis(50));
    /// ```
    #[must_use]
    pub fn with_dead_after(dead_after: Duration) -> Self {
        let least = Duration::from_nanos(1);
        Self {
            heartbeat: (dead_after / 20).max(least),
            suspect_after: (dead_after / 5).max(least),
            dead_after: dead_after.max(least),
            ack_delay: Duration::from_millis(20).min(dead_after / 20).max(least),
            packet_bytes: PACKET_BYTES_MAX / 4,
            window_packets: 4_096,
            window_bytes: 2 * FRAME_BYTES_MAX,
        }
    }

    /// Returns the bounds that fit datagrams ([`crate::link::Links`]) to peers which are dead after
    /// `dead_after`: 1,200 bytes of a frame in each, which pass everywhere; 18 MiB and 16,384
    /// packets that wait, so that a frame of any size is taken while the last acknowledgement is
    /// under way; acknowledgements within 5 ms, as what is lost is found by them.
    #[must_use]
    pub fn datagrams(dead_after: Duration) -> Self {
        let base = Self::with_dead_after(dead_after);
        Self {
            ack_delay: base.ack_delay.min(Duration::from_millis(5)),
            packet_bytes: 1_200,
            window_packets: 16_384,
            window_bytes: FRAME_BYTES_MAX + (1 << 20),
            ..base
        }
    }

    /// Returns the time without progress of a pending acknowledgement after which a pipe should be
    /// replaced although bytes come: half of [`Self::dead_after`], so that a new one has as long.
    #[must_use]
    pub fn stalled_after(&self) -> Duration {
        self.dead_after / 2
    }

    /// Returns the size at which frames are cut, within its bounds.
    pub(crate) fn cut_bytes(&self) -> usize {
        self.packet_bytes.clamp(1, PACKET_BYTES_MAX)
    }
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self::with_dead_after(Duration::from_secs(10))
    }
}
