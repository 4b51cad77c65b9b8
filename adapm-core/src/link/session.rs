//! The session of one link: numbers, acknowledgements, the vigil over the peer, and goodbyes.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::time::Duration;

use crate::link::config::LinkConfig;
use crate::link::error::{LinkError, SendRefusal};
use crate::link::goodbye;
use crate::link::header::{Header, Kind, Seq};
use crate::link::outbox::Outbox;
use crate::link::vigil::{Standing, Vigil, later};
use crate::time::Instant;
use crate::transport::{Farewell, Frame};

/// A packet to write to the pipe: its header and, if it is numbered, its frame, which the session keeps until it is acknowledged.
pub type Packet = (Header, Option<Arc<Frame>>);

/// What to do with the frame of a packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Arrival {
    /// It is the next one: hand it on.
    Deliver,
    /// It was handed on before: drop it.
    Duplicate,
    /// There is none: the packet was the session's own.
    Control,
}

/// What a session tells its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing was heard of the peer for [`LinkConfig::suspect_after`]: a new pipe may help.
    Suspect,
    /// A suspected peer was heard of.
    Recovered,
    /// Nothing was heard of the peer for this long, at least [`LinkConfig::dead_after`]: it counts as lost, for good.
    Dead(Duration),
    /// The peer has said goodbye; what it sent before was delivered.
    Left(Farewell),
    /// There is room again after a [`SendRefusal::Full`].
    Room,
    /// This side's goodbye, and everything before it, has reached the peer, or nobody is there to receive it.
    Drained,
}

/// One link's memory: outlives its pipes, ends with the peer.
///
/// Memory: at most [`LinkConfig::window_frames`] frames and [`LinkConfig::window_bytes`] bytes that are not acknowledged (or one
/// larger frame), and a few acknowledged ones whose memory is used again. What was received needs one number.
///
/// ```
/// use adapm_core::Instant;
/// use adapm_core::link::{Arrival, LinkConfig, Session};
/// use adapm_core::transport::Frame;
///
/// let (mut here, mut there) = (Session::new(LinkConfig::default()), Session::new(LinkConfig::default()));
/// let now = Instant::ZERO;
/// here.send(&mut Frame { head: vec![7], ..Frame::default() }).expect("there is room");
///
/// // A first pipe swallows the packet and breaks; on a second one it comes again.
/// here.handle_up(now, there.expects())?;
/// assert!(here.poll_packet(now).is_some());
/// here.handle_down();
/// here.handle_up(now, there.expects())?;
/// there.handle_up(now, here.expects())?;
/// let (header, frame) = here.poll_packet(now).expect("it was not acknowledged");
/// let frame = frame.expect("data has a frame");
/// assert_eq!(there.handle_packet(now, header, &frame)?, Arrival::Deliver);
/// assert_eq!(there.handle_packet(now, header, &frame)?, Arrival::Duplicate);
/// # Ok::<(), adapm_core::link::LinkError>(())
/// ```
#[derive(Debug)]
pub struct Session {
    config: LinkConfig,
    is_up: bool,
    outbox: Outbox,
    /// The number that is to come next from the peer.
    expects: Seq,
    debt: Debt,
    vigil: Vigil,
    /// When the last packet was written to the pipe in use.
    wrote: Instant,
    is_refusing: bool,
    has_closed: bool,
    is_drained: bool,
    has_left: bool,
    events: VecDeque<Event>,
    #[cfg(feature = "testing")]
    bug: Option<crate::testing::link::LinkBug>,
}

/// Received and not acknowledged.
#[derive(Debug, Default)]
struct Debt {
    frames: usize,
    bytes: usize,
    /// When to acknowledge at the latest.
    due: Option<Instant>,
}

impl Session {
    /// A session with a peer that was not met yet.
    #[must_use]
    pub fn new(config: LinkConfig) -> Self {
        Self {
            config,
            is_up: false,
            outbox: Outbox::default(),
            expects: Seq::default(),
            debt: Debt::default(),
            vigil: Vigil::default(),
            wrote: Instant::ZERO,
            is_refusing: false,
            has_closed: false,
            is_drained: false,
            has_left: false,
            events: VecDeque::new(),
            #[cfg(feature = "testing")]
            bug: None,
        }
    }

    /// Takes the content of `frame` for the peer and may leave recycled memory in it.
    ///
    /// # Errors
    /// If there is no room, or the session has ended on either side; the frame is then unchanged.
    pub fn send(&mut self, frame: &mut Frame) -> Result<(), SendRefusal> {
        if self.has_ended() || self.has_closed {
            return Err(SendRefusal::Ended);
        }
        let is_full = self.outbox.frames() >= self.config.window_frames.max(1)
            || (self.outbox.frames() > 0 && self.outbox.bytes() + frame.len() > self.config.window_bytes);
        if is_full && !planted!(self, IgnoreWindow) {
            self.is_refusing = true;
            return Err(SendRefusal::Full);
        }
        self.outbox.push(Kind::Data, frame);
        Ok(())
    }

    /// Says goodbye behind everything sent before; once. [`Event::Drained`] tells when the peer has it.
    pub fn close(&mut self, farewell: Farewell) {
        if core::mem::replace(&mut self.has_closed, true) {
            return;
        }
        if self.has_ended() {
            self.end();
        } else {
            let mut frame = Frame { head: goodbye::bytes_of(farewell), ..Frame::default() };
            self.outbox.push(Kind::Bye, &mut frame);
            if planted!(self, DrainEarly) {
                self.end();
            }
        }
    }

    /// A pipe to the peer is up and says where the peer stands ([`Session::expects`] of its session).
    ///
    /// # Errors
    /// If the peer cannot stand there, or is dead. The session is unchanged, and the pipe is to be dropped.
    pub fn handle_up(&mut self, now: Instant, peer_expects: Seq) -> Result<(), LinkError> {
        if self.vigil.is_dead() {
            return Err(LinkError::GivenUp);
        }
        let (from, to) = (self.outbox.base(), self.outbox.next());
        if peer_expects < from || to < peer_expects {
            return Err(LinkError::Resume { from, to, given: peer_expects });
        }
        self.is_up = true;
        self.wrote = now;
        self.debt = Debt::default();
        if !planted!(self, ForgetUnacknowledged) {
            self.outbox.rewind();
        }
        self.acknowledge(peer_expects);
        if !planted!(self, DeafToResume) {
            self.hear(now);
        }
        Ok(())
    }

    /// The pipe is gone; what it carried may or may not have arrived.
    pub fn handle_down(&mut self) {
        self.is_up = false;
    }

    /// A packet came on the pipe, with `frame` (empty if it is not numbered).
    ///
    /// # Errors
    /// If a sound pipe and a sound peer cannot bring it here. The session is unchanged.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        header: Header,
        frame: &Frame,
    ) -> Result<Arrival, LinkError> {
        if !self.is_up {
            return Err(LinkError::Down);
        }
        if header.ack > self.outbox.next() {
            return Err(LinkError::Unsent { next: self.outbox.next(), given: header.ack });
        }
        if header.seq > self.expects {
            return Err(LinkError::Gap { expected: self.expects, given: header.seq });
        }
        let is_next = header.seq == self.expects;
        let arrival = match header.kind {
            Kind::Ack | Kind::Heartbeat => Arrival::Control,
            Kind::Data | Kind::Bye if !is_next => {
                self.debt.due = Some(now);
                let again = header.kind == Kind::Data && planted!(self, RepeatDelivery);
                if again { Arrival::Deliver } else { Arrival::Duplicate }
            }
            Kind::Data | Kind::Bye if self.has_left => return Err(LinkError::BehindBye),
            Kind::Data => {
                self.owe(now, frame.len());
                Arrival::Deliver
            }
            Kind::Bye => {
                let farewell = goodbye::read(&frame.head).ok_or(LinkError::Farewell)?;
                self.owe(now, frame.len());
                self.debt.due = Some(now);
                self.has_left = true;
                self.events.push_back(Event::Left(farewell));
                Arrival::Control
            }
        };
        self.acknowledge(header.ack.max(self.outbox.base()));
        self.hear(now);
        if self.has_left {
            // What waits stays: a peer whose goodbye was not acknowledged goes on reading until it is.
            self.end();
        }
        Ok(arrival)
    }

    /// A part of a packet has come: a large one on a slow pipe shows that the peer lives long before it is whole.
    ///
    /// The endpoint judges how much of it is a sign of life.
    pub fn handle_progress(&mut self, now: Instant) {
        if self.is_up {
            self.hear(now);
        }
    }

    /// Time has passed; harmless at any time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.has_ended() {
            return;
        }
        match self.vigil.judge(now, &self.config) {
            Some(Standing::Suspect) => self.events.push_back(Event::Suspect),
            Some(Standing::Dead) => {
                self.is_up = false;
                self.events.push_back(Event::Dead(self.vigil.silence(now)));
                self.outbox.discard();
                self.end();
            }
            Some(Standing::Alive) | None => {}
        }
    }

    /// The next packet to write to the pipe in use; it counts as written from here on. `None`: nothing is due.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Packet> {
        if !self.is_up {
            return None;
        }
        let (kind, seq, frame) = if let Some((kind, seq, frame)) = self.outbox.write_next() {
            (kind, seq, Some(frame))
        } else if self.debt.due.is_some_and(|due| due <= now) {
            (Kind::Ack, self.outbox.next(), None)
        } else if !self.has_left && self.heartbeat_at() <= now {
            (Kind::Heartbeat, self.outbox.next(), None)
        } else {
            return None;
        };
        self.debt = Debt::default();
        self.wrote = now;
        let ack = if planted!(self, AcknowledgeAhead) { self.expects.next() } else { self.expects };
        Some((Header { kind, seq, ack }, frame))
    }

    /// What happened since the last call, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`Session::handle_timeout`] and [`Session::poll_packet`] at the latest; `None`: not before something else
    /// happens. A pipe that takes nothing at the moment makes it lie in the past: wait for the pipe then.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let vigil = if self.has_ended() { None } else { self.vigil.deadline(&self.config) };
        let heartbeat = (self.is_up && !self.has_left).then(|| self.heartbeat_at());
        let debt = if self.is_up { self.debt.due } else { None };
        [vigil, heartbeat, debt].into_iter().flatten().min()
    }

    /// Whether packets wait to be written to the pipe in use.
    #[must_use]
    pub fn wants_to_write(&self) -> bool {
        self.is_up && !self.outbox.is_written()
    }

    /// The number that is to come next from the peer: what a handshake carries, for the peer's [`Session::handle_up`].
    #[must_use]
    pub fn expects(&self) -> Seq {
        self.expects
    }

    /// Whether nothing was heard of the peer for longer than is usual.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.vigil.is_suspect()
    }

    /// Whether the peer has said goodbye.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Whether the peer is dead or has left: no pipe to it is of use but to acknowledge its goodbye.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_left || self.vigil.is_dead()
    }

    /// Frames and bytes that wait for an acknowledgement.
    #[must_use]
    pub fn unacknowledged(&self) -> (usize, usize) {
        (self.outbox.frames(), self.outbox.bytes())
    }

    /// Plants a mistake, to prove that the suites find it.
    #[cfg(feature = "testing")]
    pub fn plant(&mut self, bug: crate::testing::link::LinkBug) {
        self.bug = Some(bug);
    }

    fn hear(&mut self, now: Instant) {
        if self.vigil.hear(now) {
            self.events.push_back(Event::Recovered);
        }
    }

    fn owe(&mut self, now: Instant, bytes: usize) {
        self.expects = self.expects.next();
        self.debt.frames += 1;
        self.debt.bytes += bytes;
        let is_much = 4 * self.debt.frames >= self.config.window_frames
            || 4 * self.debt.bytes >= self.config.window_bytes;
        let due = if is_much { now } else { later(now, self.config.ack_delay) };
        self.debt.due = Some(self.debt.due.map_or(due, |earlier| earlier.min(due)));
    }

    fn acknowledge(&mut self, ack: Seq) {
        self.outbox.acknowledge(ack);
        let has_room = 2 * self.outbox.frames() <= self.config.window_frames
            && 2 * self.outbox.bytes() <= self.config.window_bytes;
        if self.is_refusing && (has_room || self.outbox.frames() == 0) {
            self.is_refusing = false;
            if !planted!(self, ForgetRoom) {
                self.events.push_back(Event::Room);
            }
        }
        if self.has_closed && self.outbox.frames() == 0 {
            self.end();
        }
    }

    /// Nothing more has to reach the peer.
    fn end(&mut self) {
        // Whoever waits for room learns that there is nobody to send to.
        if core::mem::take(&mut self.is_refusing) && !planted!(self, ForgetRoom) {
            self.events.push_back(Event::Room);
        }
        if self.has_closed && !core::mem::replace(&mut self.is_drained, true) {
            self.events.push_back(Event::Drained);
        }
    }

    fn heartbeat_at(&self) -> Instant {
        // A period of zero would never let a driver finish writing.
        later(self.wrote, self.config.heartbeat.max(Duration::from_nanos(1)))
    }
}
