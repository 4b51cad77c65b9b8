//! One direction of the pipes of a link: items in flight, in order.

use core::time::Duration;
use std::collections::VecDeque;

use adapm_core::Instant;
use adapm_core::link::{Content, Header, Seq};

/// The next item that an end reads.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// The dialer's first item on a new pipe: its position.
    Hello(Seq),
    /// The listener's answer: its position.
    Answer(Seq),
    /// A part of the next packet, but not all of it.
    Bytes,
    /// A packet.
    Packet(Header, Option<Content>),
    /// The pipe has broken.
    Break,
}

/// An item in flight.
#[derive(Clone, Debug)]
pub(super) struct Parcel {
    pub(super) arrival: Instant,
    /// The pipe that it was written to.
    pub(super) pipe: u32,
    pub(super) item: Item,
}

/// One direction.
#[derive(Debug, Default)]
pub(super) struct Way {
    pub(super) parcels: VecDeque<Parcel>,
    /// Nothing arrives before this time.
    pub(super) blocked_until: Instant,
    /// True if the next packet is written twice.
    pub(super) repeats: bool,
    /// Extra delay of bytes, for a while.
    slow: Option<Slow>,
    /// Packets that do not get through, for a while.
    hole: Option<Hole>,
    /// The pipe on which a packet was swallowed: nothing after it gets through.
    swallowed: Option<u32>,
    /// Arrival of the last parcel.
    last: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Slow {
    nanos_per_byte: u64,
    until: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    bytes_max: usize,
    until: Instant,
}

impl Way {
    /// Slows bytes down until then.
    pub(super) fn slow_down(&mut self, nanos_per_byte: u64, until: Instant) {
        self.slow = Some(Slow { nanos_per_byte, until });
    }

    /// Drops packets above `bytes_max` until then, and everything after them on the same pipe,
    /// forever.
    pub(super) fn drop_large(&mut self, bytes_max: usize, until: Instant) {
        self.hole = Some(Hole { bytes_max, until });
    }

    /// Ends slowness and drops.
    pub(super) fn mend(&mut self) {
        (self.slow, self.hole) = (None, None);
    }

    /// Sends `item` of `bytes` bytes at `now`, to arrive at `arrival` without faults. Bytes of a
    /// slow packet come every `step`. Calls `later` with the time of each arrival.
    pub(super) fn put(
        &mut self,
        now: Instant,
        (pipe, item): (u32, Item),
        bytes: usize,
        arrival: Instant,
        step: Duration,
        mut later: impl FnMut(Instant),
    ) {
        if self.swallowed == Some(pipe)
            || self.hole.is_some_and(|hole| now < hole.until && bytes > hole.bytes_max)
        {
            self.swallowed = Some(pipe);
            return;
        }
        let slow = self.slow.filter(|slow| now < slow.until);
        let transfer = slow.map_or(0, |slow| slow.nanos_per_byte * bytes as u64);
        let mut begin = arrival.max(self.last);
        self.last = begin.plus_nanos(transfer);
        let step = (step.as_nanos() as u64).max(1);
        if matches!(item, Item::Packet(..)) {
            while self.last.nanos_since(begin) > step {
                begin = begin.plus_nanos(step);
                self.parcels.push_back(Parcel { arrival: begin, pipe, item: Item::Bytes });
                later(begin);
            }
        }
        self.parcels.push_back(Parcel { arrival: self.last, pipe, item });
        later(self.last);
    }

    /// Drops the parcels of pipes before `pipe` but the one that is on its way, as the system does
    /// with what it has yet to send on a pipe that is closed.
    pub(super) fn discard(&mut self, pipe: u32) {
        let is_whole = |parcel: &Parcel| !matches!(parcel.item, Item::Bytes);
        let mut under_way = self.parcels.iter().position(is_whole).map_or(0, |first| first + 1);
        self.parcels.retain(|parcel| {
            let stays = under_way > 0 || parcel.pipe >= pipe;
            under_way = under_way.saturating_sub(1);
            stays
        });
        self.last = self.parcels.back().map_or(Instant::ZERO, |parcel| parcel.arrival);
    }

    /// Takes the next parcel, if it has arrived.
    pub(super) fn take(&mut self, now: Instant) -> Option<Parcel> {
        let has_arrived = self.parcels.front().is_some_and(|parcel| parcel.arrival <= now);
        if has_arrived { self.parcels.pop_front() } else { None }
    }
}

/// Bytes of a packet without its frame.
pub(super) const HEADER_BYTES: usize = 24;

#[cfg(test)]
mod tests {
    use adapm_core::link::Kind;

    use super::*;

    fn packet() -> Item {
        let (kind, seq, ack) = (Kind::Heartbeat, Seq::default(), Seq::default());
        Item::Packet(Header { kind, seq, ack, wants_ack: false }, None)
    }

    #[test]
    fn a_closed_pipe_sends_no_more_than_what_is_under_way() {
        let mut way = Way::default();
        way.slow_down(1_000, Instant::from_nanos(1_000_000_000));
        let (mut times, step) = (Vec::new(), Duration::from_nanos(40_000));
        let mut put = |way: &mut Way, pipe, item| {
            way.put(Instant::ZERO, (pipe, item), 100, Instant::ZERO, step, |time| times.push(time));
        };
        for _ in 0..3 {
            put(&mut way, 1, packet());
        }
        put(&mut way, 2, Item::Break);
        way.discard(2);
        let left = |way: &mut Way| -> Vec<u32> {
            let late = Instant::from_nanos(u64::MAX);
            std::iter::from_fn(|| way.take(late)).map(|parcel| parcel.pipe).collect()
        };
        // The first packet comes in two pieces and its end.
        assert_eq!(left(&mut way), [1, 1, 1, 2]);
        // What follows takes no longer than if nothing had been written before.
        put(&mut way, 1, packet());
        put(&mut way, 1, packet());
        way.discard(2);
        let begin = way.last;
        put(&mut way, 2, Item::Hello(Seq::default()));
        assert_eq!(way.last.nanos_since(begin), 100_000);
    }
}
