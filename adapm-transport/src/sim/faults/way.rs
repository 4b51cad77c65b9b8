//! One direction of the pipes of a link: what is on its way, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use adapm_core::Instant;
use adapm_core::link::{Header, Seq};
use adapm_core::transport::Frame;

/// What an end reads next.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// The first word of the dialer on a new pipe: where it stands.
    Hello(Seq),
    /// The listener's answer: where it stands.
    Answer(Seq),
    /// A packet.
    Packet(Header, Option<Arc<Frame>>),
    /// The pipe has broken.
    Break,
}

/// Something on its way.
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
    /// Nothing arrives before.
    pub(super) blocked_until: Instant,
    /// The next packet is written twice.
    pub(super) repeats: bool,
}

impl Way {
    /// The next parcel, if it has arrived.
    pub(super) fn take(&mut self, now: Instant) -> Option<Parcel> {
        let has_arrived = self.parcels.front().is_some_and(|parcel| parcel.arrival <= now);
        if has_arrived { self.parcels.pop_front() } else { None }
    }
}
