//! One end of a link: its session, its waiting frames, and the facts that its reports are checked
//! against.

use std::collections::VecDeque;

use adapm_core::Instant;
#[cfg(not(feature = "checked"))]
use adapm_core::link::Session;
use adapm_core::link::{LinkConfig, SendRefusal, Seq};
use adapm_core::transport::{CloseReason, Frame, LastRequest};

#[cfg(feature = "checked")]
use crate::planted::PlantedSession as Session;

/// One end of a link.
#[derive(Debug)]
pub(super) struct End {
    pub(super) session: Session,
    /// The pipe that it uses, counted from 1; 0 before the first one.
    pub(super) pipe: u32,
    pub(super) is_up: bool,
    /// Frames that its node has not finished yet: no other write waits for them.
    pub(super) buffer: VecDeque<Frame>,
    /// Frames for which there is no room yet.
    pub(super) backlog: VecDeque<Frame>,
    /// The time of the valid alarm among the events.
    pub(super) alarm: Option<Instant>,
    /// Time when it met its peer, or its last bytes came.
    pub(super) heard: Option<Instant>,
    /// Time when its pipe came up.
    pub(super) renewed: Instant,
    /// Time since which written data waits without a new acknowledgement.
    pub(super) waits: Option<Instant>,
    /// The next packet that its peer is known to expect.
    acknowledged: Seq,
    /// Size of the largest frame given to it, in bytes.
    pub(super) largest: usize,
    requests: LastRequest,
    /// Frames given to it, and frames that it has delivered.
    pub(super) sent: u64,
    pub(super) handed_on: u64,
    /// True if the goodbye was sent, has been received, and is known to have arrived.
    pub(super) has_closed: bool,
    pub(super) has_left: bool,
    pub(super) is_drained: bool,
    /// True if it has given its peer up.
    pub(super) is_dead: bool,
    /// True if its node has vanished.
    pub(super) is_gone: bool,
}

impl End {
    pub(super) fn new(config: LinkConfig) -> Self {
        Self {
            session: Session::new(config),
            pipe: 0,
            is_up: false,
            buffer: VecDeque::new(),
            backlog: VecDeque::new(),
            alarm: None,
            heard: None,
            renewed: Instant::ZERO,
            waits: None,
            acknowledged: Seq::default(),
            largest: 0,
            requests: LastRequest::default(),
            sent: 0,
            handed_on: 0,
            has_closed: false,
            has_left: false,
            is_drained: false,
            is_dead: false,
            is_gone: false,
        }
    }

    /// Adds a frame that its node has yet to finish.
    pub(super) fn announce(&mut self, frame: Frame, asks: bool) {
        self.requests.note_sent(asks);
        self.buffer.push_back(frame);
    }

    /// Returns true if the peer's request or answer is still in flight.
    pub(super) fn holds_up(&mut self) -> bool {
        let waiting = self.buffer.len() + self.backlog.len();
        self.requests.is_held_up(self.session.way(), waiting)
    }

    /// Takes a frame; it waits if there is no room.
    pub(super) fn send(&mut self, frame: Frame) {
        self.sent += 1;
        self.largest = self.largest.max(frame.len());
        self.backlog.push_back(frame);
        self.fill();
    }

    /// Moves waiting frames into the session while there is room.
    pub(super) fn fill(&mut self) {
        while let Some(mut frame) = self.backlog.pop_front() {
            match self.session.send(&mut frame) {
                Ok(()) => {}
                Err(SendRefusal::Full) => {
                    self.backlog.push_front(frame);
                    return;
                }
                // No peer is left to read it.
                Err(_) => {}
            }
        }
        if self.has_closed {
            self.session.close(CloseReason::Finished);
        }
    }

    /// Sends a goodbye after all waiting frames.
    pub(super) fn close(&mut self) {
        self.has_closed = true;
        if self.backlog.is_empty() {
            self.session.close(CloseReason::Finished);
        }
    }

    /// Returns the time since the last bytes, in nanoseconds.
    pub(super) fn silence(&self, now: Instant) -> u64 {
        self.heard.map_or(0, |heard| now.nanos_since(heard))
    }

    /// Returns the time without bytes on the pipe in use, in nanoseconds.
    pub(super) fn quiet(&self, now: Instant) -> u64 {
        self.silence(now).min(now.nanos_since(self.renewed))
    }

    /// Returns the time since which an acknowledgement is overdue, in nanoseconds.
    pub(super) fn stall(&self, now: Instant) -> u64 {
        self.waits.map_or(0, |waits| now.nanos_since(waits))
    }

    /// Records that the peer expects `ack` next.
    pub(super) fn note_acknowledged(&mut self, now: Instant, ack: Seq) {
        if self.acknowledged < ack {
            self.acknowledged = ack;
            self.waits = (self.session.unacknowledged().0 > 0).then_some(now);
        }
    }

    /// Returns true if all its frames have arrived, and its goodbye if it sent one.
    pub(super) fn is_at_rest(&self) -> bool {
        let settled = self.buffer.is_empty()
            && self.backlog.is_empty()
            && self.session.unacknowledged().0 == 0;
        self.is_gone
            || self.is_dead
            || (settled && (!self.has_closed || (self.is_drained && self.has_left)))
    }
}
