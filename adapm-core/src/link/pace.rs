//! The limit on data in flight to the peer, so that an acknowledgement never waits behind more than
//! a fraction of the dead time of data.
//!
//! A pipe buffers megabytes that a slow network carries for minutes; later packets,
//! acknowledgements of the other direction included, wait behind them. So unacknowledged data is
//! limited: to one packet at first, four times as much with each round trip as long as
//! acknowledgements come soon and packets wait for them, half as much when one takes long. On a
//! fast network the limit reaches the window of the link within a few round trips, as with TCP.

use core::time::Duration;

use crate::link::config::{LinkConfig, PACKET_BYTES_MAX};
use crate::link::retransmit::{Acknowledged, weight};
use crate::time::Instant;

/// The limit of one direction of the pipe in use.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// In bytes; 0 for one packet at a time.
    limit: usize,
    /// True if packets wait because of it.
    is_limiting: bool,
    /// Time when it was last halved: packets written before carry no news.
    halved: Instant,
    /// Bytes that a lossy network carries: another limit, over datagrams.
    ceiling: Option<usize>,
    /// Packets and bytes written since the last request for an acknowledgement.
    unasked: (usize, usize),
}

impl Pace {
    /// Resets for a new pipe; `is_careful`: earlier ones have carried nothing, so this one gets one
    /// packet at a time.
    pub(crate) fn restart(&mut self, is_careful: bool, config: &LinkConfig) {
        let limit = if is_careful { 0 } else { weight(config.cut_bytes()) };
        *self = Self { limit, ceiling: self.ceiling, ..Self::default() };
    }

    /// Returns the size at which frames are cut, in bytes: larger on a fast network.
    pub(crate) fn cut_bytes(&self, config: &LinkConfig) -> usize {
        let is_fast = self.limit >= FAST_BYTES && self.ceiling.is_none();
        if is_fast { PACKET_BYTES_MAX } else { config.cut_bytes() }
    }

    /// Limits the bytes under way for a reason of the caller's, and keeps the size of packets.
    pub(crate) fn limit_to(&mut self, ceiling: usize) {
        self.ceiling = Some(ceiling);
    }

    /// Returns true if another packet may be written with `under_way` bytes in flight; the last one
    /// may exceed the limit.
    pub(crate) fn admits(&self, under_way: usize) -> bool {
        under_way == 0 || under_way < self.limit()
    }

    /// Records that packets have to wait.
    pub(crate) fn note_limiting(&mut self) {
        self.is_limiting = true;
    }

    /// Records a written packet of `bytes` bytes, with which `under_way` bytes are in flight.
    /// Returns true if it must ask for its acknowledgement: a quarter of the limit was written
    /// without asking.
    pub(crate) fn wrote(&mut self, bytes: usize, under_way: usize, config: &LinkConfig) -> bool {
        let (packets, unasked) = (self.unasked.0 + 1, self.unasked.1 + weight(bytes));
        let is_much = 4 * packets >= config.window_packets || 4 * unasked >= config.window_bytes;
        let limit = self.limit();
        let asks = is_much || (2 * under_way >= limit && 4 * unasked >= limit);
        self.unasked = if asks { (0, 0) } else { (packets, unasked) };
        asks
    }

    /// Adapts the limit to an acknowledgement; `are_waiting`: packets still wait to be written.
    pub(crate) fn acknowledged(
        &mut self,
        now: Instant,
        acknowledged: Acknowledged,
        are_waiting: bool,
        config: &LinkConfig,
    ) {
        let Some(written) = acknowledged.written else { return };
        let took = Duration::from_nanos(now.nanos_since(written));
        let least = weight(config.cut_bytes());
        if took > config.dead_after / 8 {
            if written >= self.halved {
                (self.limit, self.halved) = (self.limit / 2, now);
            }
        } else if self.is_limiting && took <= config.dead_after / 16 {
            self.limit += GROWTH * acknowledged.bytes;
        }
        self.limit = self.limit.max(least);
        self.is_limiting &= are_waiting;
    }

    fn limit(&self) -> usize {
        self.ceiling.map_or(self.limit, |ceiling| self.limit.min(ceiling))
    }
}

/// Limit from which on the network counts as fast: so much arrives in a sixteenth of the dead time
/// that a packet of the largest size takes a small share of it, even if the network becomes far
/// slower.
const FAST_BYTES: usize = 4 * PACKET_BYTES_MAX;
/// Bytes added to the limit for each byte acknowledged soon: a limit far above the need asks for
/// few acknowledgements.
const GROWTH: usize = 3;
