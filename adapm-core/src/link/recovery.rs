//! Repeats over a pipe that loses packets without breaking: when a packet counts as lost, and how
//! many bytes may be under way so that few are.
//!
//! A packet is lost if one that was written three packets later has come, or if no packet has come
//! for a few round trips. The first repeats that packet, at once, the second all that have not
//! come. The window doubles with each round trip up to half of what last led to a loss, and grows
//! by one packet from there, as with TCP Reno with selective acknowledgements (RFC 6675). Unlike
//! there, losses alone do not push it below [`WINDOW_LOSSY`] packets: datagrams that get lost at
//! random, not for lack of room, would keep it at five if one in twenty does. A network without
//! room for those loses all of a window sooner or later, and the time-outs that follow double.
//!
//! Not here: which packets there are ([`super::retransmit`]).

use core::time::Duration;

use crate::link::config::LinkConfig;
use crate::link::retransmit::{Acknowledged, weight};
use crate::time::Instant;

/// The loss recovery of one direction of a link over datagrams.
#[derive(Debug)]
pub(crate) struct Recovery {
    /// Bytes of a full packet, those of the largest window, and the time of a late acknowledgement.
    packet: usize,
    window_max: usize,
    ack_delay: Duration,
    /// Longest time until everything is repeated.
    patience: Duration,
    /// Bytes that may be under way.
    window: usize,
    /// Window from which on it grows slowly.
    threshold: usize,
    /// Mean and mean deviation of the round trip; `None` before the first.
    round_trip: Option<(Duration, Duration)>,
    /// The shortest round trip.
    shortest: Duration,
    /// Times in a row that everything was repeated.
    timeouts: u32,
    /// Time since which acknowledgements are waited for without one that moves.
    waits: Option<Instant>,
    /// Number of the last write.
    written: u64,
    /// Losses of writes up to this number say nothing new about the network.
    known: u64,
}

impl Recovery {
    pub(crate) fn new(config: &LinkConfig) -> Self {
        let packet = weight(config.cut_bytes());
        let window_max = config.window_bytes.clamp(WINDOW_MIN * packet, WINDOW_MAX * packet);
        Self {
            packet,
            window_max,
            ack_delay: config.ack_delay,
            patience: config.dead_after / 8,
            window: window_max.min(WINDOW_START * packet),
            threshold: window_max,
            round_trip: None,
            shortest: Duration::MAX,
            timeouts: 0,
            waits: None,
            written: 0,
            known: 0,
        }
    }

    /// A packet was written that is not acknowledged.
    pub(crate) fn note_written(&mut self, now: Instant) {
        self.waits.get_or_insert(now);
        self.written += 1;
    }

    /// Packets have come, in order or not; `is_waiting`: others were written and are not
    /// acknowledged.
    pub(crate) fn acknowledged(
        &mut self,
        now: Instant,
        acknowledged: Acknowledged,
        is_waiting: bool,
    ) {
        // The time of a packet that was written twice does not tell which of them arrived.
        if let Some(written) = acknowledged.written.filter(|_| acknowledged.is_first) {
            self.measure(Duration::from_nanos(now.nanos_since(written)));
        }
        let growth = if self.window < self.threshold {
            acknowledged.fresh
        } else {
            self.packet * acknowledged.fresh.min(self.window) / self.window
        };
        self.window = (self.window + growth).min(self.window_max);
        self.timeouts = 0;
        self.waits = is_waiting.then_some(now);
    }

    /// Writes were lost, the last of which is `write`.
    pub(crate) fn handle_lost(&mut self, write: u64) {
        if write > self.known {
            self.shrink();
            self.window = self.threshold;
        }
    }

    /// Returns true if all that has not come is to be repeated: it was waited for long enough.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return false;
        }
        self.shrink();
        self.window = WINDOW_MIN * self.packet;
        self.timeouts += 1;
        self.waits = None;
        true
    }

    /// Returns the time up to which a packet must have been written to be acknowledged `now`.
    pub(crate) fn acknowledged_before(&self, now: Instant) -> Instant {
        Instant::from_nanos(now.nanos_since(Instant::ZERO + self.shortest))
    }

    /// Returns the bytes that may be under way.
    pub(crate) fn window(&self) -> usize {
        self.window
    }

    /// Returns the time at which all that has not come is to be repeated.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let (mean, deviation) = self.round_trip.unwrap_or((ROUND_TRIP_START, Duration::ZERO));
        let time = mean + (4 * deviation).max(TIMER_MIN) + self.ack_delay;
        let time = time.saturating_mul(1 << self.timeouts.min(DOUBLINGS_MAX));
        self.waits.map(|waits| waits + time.min(self.patience).max(Duration::from_nanos(1)))
    }

    fn measure(&mut self, time: Duration) {
        self.shortest = self.shortest.min(time);
        self.round_trip = Some(match self.round_trip {
            None => (time, time / 2),
            Some((mean, deviation)) => {
                ((7 * mean + time) / 8, (3 * deviation + mean.abs_diff(time)) / 4)
            }
        });
    }

    /// Something was lost: half as much may be under way from here on.
    fn shrink(&mut self) {
        let least = self.window_max.min(WINDOW_LOSSY * self.packet);
        self.threshold = (self.window / 2).max(least);
        self.known = self.written;
    }
}

/// Packets of the first window, of the smallest one behind a time-out (with fewer, a loss would be
/// found by its time alone), and of the smallest one behind a loss of some.
const WINDOW_START: usize = 10;
const WINDOW_MIN: usize = 4;
const WINDOW_LOSSY: usize = 16;
/// Packets of the largest window: the buffers of a socket take them, which would otherwise drop
/// hundreds at once; and a selective acknowledgement tells of twice as many.
const WINDOW_MAX: usize = 64;
/// Round trip that is assumed before one was measured.
const ROUND_TRIP_START: Duration = Duration::from_millis(100);
/// Least time beyond the mean round trip: schedulers are late at times.
const TIMER_MIN: Duration = Duration::from_millis(5);
const DOUBLINGS_MAX: u32 = 10;
