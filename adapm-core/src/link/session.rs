//! The session of one link: numbers, parts, acknowledgements, the failure detector, and goodbyes.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::link::config::LinkConfig;
use crate::link::datagram::Selective;
use crate::link::failure_detector::{FailureDetector, Verdict};
use crate::link::pace::Pace;
use crate::link::packet::{
    Assembly, Content, Header, Kind, LinkError, SendRefusal, Seq, goodbye_bytes, read_goodbye,
};
use crate::link::recovery::Recovery;
use crate::link::retransmit::{RetransmitBuffer, packets_of};
use crate::time::Instant;
use crate::transport::{CloseReason, Frame, Loss, Stall, Way};

/// A packet to write to the pipe: its header and, if it is numbered, its content, which the session
/// keeps until it is acknowledged.
pub type Packet = (Header, Option<Content>);

/// The outcome of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Arrival {
    /// A frame is whole: deliver it.
    Deliver,
    /// It was a part of a frame, kept by the session.
    Part,
    /// It had come before: drop it.
    Duplicate,
    /// No frame: the packet was the session's own.
    Control,
}

/// An event for the session's endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// No byte of the peer has come for [`LinkConfig::suspect_after`] on the pipe in use: a new one
    /// may help.
    Suspect,
    /// Bytes of the peer come, but for [`LinkConfig::stalled_after`] no acknowledgement has made
    /// progress on the pipe in use, which may swallow what is written: a new one may help.
    Stalled,
    /// A suspected peer has sent again.
    Recovered,
    /// Pipes come up one after the other, and data does not get through: reported once, before the
    /// peer is given up for it.
    Stuck(Stall),
    /// For [`LinkConfig::dead_after`] no byte of the peer has come, or a pending acknowledgement
    /// has made no progress: it counts as lost, for good.
    Dead(Loss),
    /// The peer has said goodbye; everything sent before was delivered.
    Left(CloseReason),
    /// There is room again after a [`SendRefusal::Full`].
    Room,
    /// This side's goodbye, and everything before it, has reached the peer, or no peer is left to
    /// receive it.
    Drained,
}

/// One link's state: outlives its pipes, ends with the peer.
///
/// Memory: at most [`LinkConfig::window_packets`] packets and [`LinkConfig::window_bytes`] bytes
/// that are unacknowledged (or one larger frame), the rest of a partly acknowledged frame, and a
/// few acknowledged ones for reuse. Received data needs one number, and the parts of one frame.
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
/// let (header, content) = here.poll_packet(now).expect("it was not acknowledged");
/// let (mut packet, mut frame) = (content.expect("data carries a frame").to_frame(), Frame::default());
/// assert_eq!(there.handle_packet(now, header, &mut packet, &mut frame)?, Arrival::Deliver);
/// assert_eq!(frame.head, [7]);
/// assert_eq!(there.handle_packet(now, header, &mut packet, &mut frame)?, Arrival::Duplicate);
/// # Ok::<(), adapm_core::link::LinkError>(())
/// ```
#[derive(Debug)]
pub struct Session {
    config: LinkConfig,
    is_up: bool,
    buffer: RetransmitBuffer,
    pace: Pace,
    /// Repeats what a pipe of datagrams has lost; `None`: pipes break instead.
    recovery: Option<Recovery>,
    /// The number of the next packet of the peer.
    expects: Seq,
    assembly: Assembly,
    /// Deadline of the next acknowledgement, or of the first packet on a new pipe.
    owes: Option<Instant>,
    detector: FailureDetector,
    /// Pipes in a row that have come up without a new acknowledgement.
    stalls: u32,
    /// Size of the largest packet that has arrived at the peer, in bytes.
    passed: usize,
    /// Time when the last packet was written to the pipe in use.
    wrote: Instant,
    is_refusing: bool,
    has_closed: bool,
    is_drained: bool,
    has_left: bool,
    events: VecDeque<Event>,
}

impl Session {
    /// Creates a session with a peer that was not met yet.
    #[must_use]
    pub fn new(config: LinkConfig) -> Self {
        Self {
            config,
            is_up: false,
            buffer: RetransmitBuffer::default(),
            pace: Pace::default(),
            recovery: None,
            expects: Seq::default(),
            assembly: Assembly::default(),
            owes: None,
            detector: FailureDetector::default(),
            stalls: 0,
            passed: 0,
            wrote: Instant::ZERO,
            is_refusing: false,
            has_closed: false,
            is_drained: false,
            has_left: false,
            events: VecDeque::new(),
        }
    }

    /// Creates a session whose pipe loses, repeats and reorders packets without breaking: it writes
    /// them again by itself, and never more bytes in one than [`LinkConfig::packet_bytes`].
    pub(crate) fn over_datagrams(config: LinkConfig) -> Self {
        let recovery = Recovery::new(&config);
        let mut pace = Pace::default();
        pace.limit_to(recovery.window());
        Self { recovery: Some(recovery), pace, ..Self::new(config) }
    }

    /// Takes the content of `frame` for the peer and may leave recycled memory in it.
    ///
    /// # Errors
    /// If there is no room, or the session has ended on either side; the frame is then unchanged.
    pub fn send(&mut self, frame: &mut Frame) -> Result<(), SendRefusal> {
        if self.has_ended() || self.has_closed {
            return Err(SendRefusal::Ended);
        }
        let cut_bytes = self.pace.cut_bytes(&self.config);
        let packets = self.buffer.packets() + packets_of(frame.len(), cut_bytes);
        let bytes = self.buffer.bytes() + frame.len();
        let is_full = self.buffer.packets() > 0
            && (packets > self.config.window_packets || bytes > self.config.window_bytes);
        if is_full {
            self.is_refusing = true;
            return Err(SendRefusal::Full);
        }
        self.buffer.push(Kind::Data, frame, cut_bytes);
        Ok(())
    }

    /// Says goodbye after everything sent before; once. [`Event::Drained`] reports its arrival.
    pub fn close(&mut self, reason: CloseReason) {
        if core::mem::replace(&mut self.has_closed, true) {
            return;
        }
        if self.has_ended() {
            self.end();
        } else {
            let mut frame = Frame { head: goodbye_bytes(reason), ..Frame::default() };
            self.buffer.push(Kind::Bye, &mut frame, self.config.cut_bytes());
        }
    }

    /// Resumes on a new pipe, at the peer's position ([`Session::expects`] of its session). May be
    /// called while a pipe is up, which it replaces.
    ///
    /// # Errors
    /// If the peer cannot be at that position, or is dead. The session is unchanged; drop the pipe.
    pub fn handle_up(&mut self, now: Instant, peer_expects: Seq) -> Result<(), LinkError> {
        if self.detector.is_dead() {
            return Err(LinkError::GivenUp);
        }
        let (from, to) = (self.buffer.base(), self.buffer.next());
        if peer_expects < from || to < peer_expects {
            return Err(LinkError::Resume { from, to, given: peer_expects });
        }
        (self.is_up, self.wrote) = (true, now);
        // A packet is sent at once, so that neither a pause before nor a pipe that carries nothing
        // counts for long.
        self.owes = Some(now);
        self.buffer.rewind();
        self.acknowledge(now, peer_expects);
        self.detector.renew(now);
        self.note_resume(now);
        self.pace.restart(self.stalls >= STALLS_CAREFUL, &self.config);
        Ok(())
    }

    /// Notes the end of the pipe; data in flight may or may not have arrived.
    pub fn handle_down(&mut self) {
        self.is_up = false;
    }

    /// Handles a packet of the pipe, with content `packet` (empty if it is unnumbered). After
    /// [`Arrival::Deliver`], `frame` is the frame to deliver, and its memory was reused for the
    /// next one, or is in `packet`.
    ///
    /// # Errors
    /// If a sound pipe and a sound peer cannot have brought it. The session, `packet` and `frame`
    /// are unchanged.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        header: Header,
        packet: &mut Frame,
        frame: &mut Frame,
    ) -> Result<Arrival, LinkError> {
        if !self.is_up {
            return Err(LinkError::Down);
        }
        if header.ack > self.buffer.next() {
            return Err(LinkError::Unsent { next: self.buffer.next(), given: header.ack });
        }
        if header.seq > self.expects {
            return Err(LinkError::Gap { expected: self.expects, given: header.seq });
        }
        let is_next = header.seq == self.expects;
        let arrival = match header.kind {
            Kind::Ack | Kind::Heartbeat => Arrival::Control,
            _ if !is_next => Arrival::Duplicate,
            _ if self.has_left => return Err(LinkError::BehindBye),
            Kind::Part => {
                self.assembly.check(packet)?;
                self.assembly.append(packet);
                Arrival::Part
            }
            Kind::Data if self.assembly.is_empty() => {
                core::mem::swap(packet, frame);
                Arrival::Deliver
            }
            Kind::Data => {
                self.assembly.check(packet)?;
                self.assembly.finish(packet, frame);
                Arrival::Deliver
            }
            Kind::Bye if !self.assembly.is_empty() => return Err(LinkError::Part { bytes: 0 }),
            Kind::Bye => {
                let reason = read_goodbye(&packet.head).ok_or(LinkError::CloseReason)?;
                self.has_left = true;
                self.events.push_back(Event::Left(reason));
                Arrival::Control
            }
        };
        if is_next && matches!(header.kind, Kind::Data | Kind::Part | Kind::Bye) {
            self.expects = self.expects.next();
            self.owe(now, header.wants_ack || header.kind == Kind::Bye);
        }
        self.acknowledge(now, header.ack.max(self.buffer.base()));
        self.hear(now);
        if self.has_left {
            // Waiting packets stay: a peer whose goodbye was not acknowledged reads on until it is.
            self.end();
        }
        Ok(arrival)
    }

    /// Notes that bytes came on the pipe, even fewer than a packet: a large packet on a slow pipe
    /// shows that the peer is alive long before it is complete.
    pub fn handle_bytes(&mut self, now: Instant) {
        if self.is_up {
            self.hear(now);
        }
    }

    /// Handles the passing of time; harmless at any time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.has_ended() {
            return;
        }
        match self.detector.judge(now, &self.config) {
            Verdict::Patience => {}
            Verdict::Suspect => self.events.push_back(Event::Suspect),
            Verdict::Stalled => self.events.push_back(Event::Stalled),
            Verdict::Dead { silence, stall } => {
                self.is_up = false;
                // A peer that is silent as well may not have been reached at all.
                let is_stuck = self.stalls >= STALLS_TOLD || silence < self.config.suspect_after;
                let loss =
                    if is_stuck { Loss::Stuck(self.stall(stall)) } else { Loss::Silent(silence) };
                self.events.push_back(Event::Dead(loss));
                self.buffer.discard();
                self.assembly.clear();
                self.end();
            }
        }
        self.repeat_lost(now);
    }

    /// A packet has come that is not the next one, or not for the first time: the peer is told at
    /// once how far everything has come.
    pub(crate) fn owe_now(&mut self, now: Instant) {
        self.owe(now, true);
    }

    /// Handles the acknowledgement of any packet over datagrams; its kind and content are left for
    /// later. `received` has come beyond it: of what is missing before some of that, a part is
    /// lost.
    ///
    /// # Errors
    /// If it acknowledges what was never sent. The session is unchanged.
    pub(crate) fn handle_acknowledgement(
        &mut self,
        now: Instant,
        Header { ack, .. }: Header,
        received: Selective,
    ) -> Result<(), LinkError> {
        let next = self.buffer.next();
        if let Some(last) = received.numbers(ack).next_back().filter(|last| *last >= next) {
            return Err(LinkError::Unsent { next, given: last.next() });
        }
        let header = Header { kind: Kind::Ack, seq: self.expects, ack, wants_ack: false };
        let mut none = (Frame::default(), Frame::default());
        let _ = self.handle_packet(now, header, &mut none.0, &mut none.1)?;
        let Some(recovery) = &mut self.recovery else { return Ok(()) };
        let before = recovery.acknowledged_before(now);
        for number in received.numbers(ack) {
            if let Some(acknowledged) = self.buffer.note_received(number, before) {
                recovery.acknowledged(now, acknowledged, true);
            }
        }
        let last = Seq(ack.0.saturating_add(Selective::PACKETS - 1));
        if let Some(write) = self.buffer.find_lost(last) {
            recovery.handle_lost(write);
        }
        self.pace.limit_to(recovery.window());
        Ok(())
    }

    /// Returns the next packet to write to the pipe in use, and counts it as written; `None` if
    /// nothing is due.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Packet> {
        if !self.is_up {
            return None;
        }
        let (is_again, mut wants_ack) = (self.buffer.has_lost(), false);
        let (kind, seq, content) = if let Some((kind, seq, content)) = self.write_numbered(now) {
            wants_ack =
                self.pace.wrote(content.len(), self.buffer.under_way(), &self.config) || is_again;
            (kind, seq, Some(content))
        } else if self.owes.is_some_and(|due| due <= now) {
            (Kind::Ack, self.buffer.next_written(), None)
        } else if !self.has_left && self.heartbeat_at() <= now {
            (Kind::Heartbeat, self.buffer.next_written(), None)
        } else {
            return None;
        };
        self.owes = None;
        self.wrote = now;
        Some((Header { kind, seq, ack: self.expects, wants_ack }, content))
    }

    /// Returns the next event, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time to call [`Session::handle_timeout`] and [`Session::poll_packet`] at the
    /// latest; `None` if nothing is due before another call. It may lie in the past while the pipe
    /// accepts nothing: wait for the pipe then.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let detector = if self.has_ended() { None } else { self.detector.deadline(&self.config) };
        [detector, self.write_deadline()].into_iter().flatten().min()
    }

    /// Returns the part of [`Session::deadline`] that concerns what is to be written.
    pub(crate) fn write_deadline(&self) -> Option<Instant> {
        let heartbeat = (self.is_up && !self.has_left).then(|| self.heartbeat_at());
        let debt = if self.is_up { self.owes } else { None };
        let repeats = self.recovery.as_ref().filter(|_| self.is_up && !self.has_ended());
        let repeat = repeats.and_then(Recovery::deadline);
        [heartbeat, debt, repeat].into_iter().flatten().min()
    }

    /// Returns true if packets wait to be written to the pipe in use, and may be written now.
    #[must_use]
    pub fn wants_to_write(&self) -> bool {
        self.is_up && !self.buffer.is_written() && self.pace.admits(self.buffer.under_way())
    }

    /// Returns the number of the next packet of the peer: a handshake carries it for the peer's
    /// [`Session::handle_up`].
    #[must_use]
    pub fn expects(&self) -> Seq {
        self.expects
    }

    /// Returns true if the peer has been silent for longer than usual.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.detector.is_suspect()
    }

    /// Returns true if the peer has said goodbye.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Returns true if the peer is dead or has left: pipes to it only serve to acknowledge its
    /// goodbye.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_left || self.detector.is_dead()
    }

    /// Returns the load of the link.
    #[must_use]
    pub fn way(&self) -> Way {
        Way { unacknowledged: self.buffer.packets(), received: self.expects.0 }
    }

    /// Returns the numbers of unacknowledged packets and bytes.
    #[must_use]
    pub fn unacknowledged(&self) -> (usize, usize) {
        (self.buffer.packets(), self.buffer.bytes())
    }

    fn hear(&mut self, now: Instant) {
        if self.detector.hear(now) {
            self.events.push_back(Event::Recovered);
        }
    }

    /// Returns the next numbered packet, if the pace admits one.
    fn write_numbered(&mut self, now: Instant) -> Option<(Kind, Seq, Content)> {
        if !self.pace.admits(self.buffer.under_way()) {
            self.pace.note_limiting();
            return None;
        }
        let numbered = self.buffer.write_next(now)?;
        self.detector.wait(now);
        if let Some(recovery) = &mut self.recovery {
            recovery.note_written(now);
        }
        Some(numbered)
    }

    /// Takes all packets that have not come as lost if none has for so long that they must be: the
    /// part of [`Session::handle_timeout`] that does not depend on how long the peer was silent.
    pub(crate) fn repeat_lost(&mut self, now: Instant) {
        let may_repeat = self.is_up && !self.has_ended();
        if let Some(recovery) = self.recovery.as_mut().filter(|_| may_repeat)
            && recovery.handle_timeout(now)
        {
            self.buffer.lose_all();
            self.pace.limit_to(recovery.window());
        }
    }

    fn owe(&mut self, now: Instant, is_asked: bool) {
        let due = if is_asked { now } else { now + self.config.ack_delay };
        self.owes = Some(self.owes.map_or(due, |earlier| earlier.min(due)));
    }

    fn acknowledge(&mut self, now: Instant, ack: Seq) {
        let before =
            self.recovery.as_ref().map_or(now, |recovery| recovery.acknowledged_before(now));
        if let Some(acknowledged) = self.buffer.acknowledge(ack, before) {
            self.detector.progress(now, self.buffer.packets() > 0);
            self.pace.acknowledged(now, acknowledged, !self.buffer.is_written(), &self.config);
            if let Some(recovery) = &mut self.recovery {
                recovery.acknowledged(now, acknowledged, self.buffer.awaits_ack());
                self.pace.limit_to(recovery.window());
            }
            self.passed = self.passed.max(acknowledged.largest);
            self.stalls = 0;
        }
        let has_room = 2 * self.buffer.packets() <= self.config.window_packets
            && 2 * self.buffer.bytes() <= self.config.window_bytes;
        if self.is_refusing && (has_room || self.buffer.packets() == 0) {
            self.is_refusing = false;
            self.events.push_back(Event::Room);
        }
        if self.has_closed && self.buffer.packets() == 0 {
            self.end();
        }
    }

    /// Counts a resume: progress of the acknowledgement shows if earlier pipes have carried
    /// anything.
    fn note_resume(&mut self, now: Instant) {
        let stall = self.detector.stall(now);
        if stall >= self.config.suspect_after {
            self.stalls += 1;
            if self.stalls == STALLS_TOLD {
                self.events.push_back(Event::Stuck(self.stall(stall)));
            }
        }
    }

    fn stall(&self, time: Duration) -> Stall {
        Stall { time, pipes: self.stalls, passed: self.passed, stuck: self.buffer.first_bytes() }
    }

    /// Ends sending: nothing more has to reach the peer.
    fn end(&mut self) {
        // A sender that waits for room learns that there is no peer left.
        if core::mem::take(&mut self.is_refusing) {
            self.events.push_back(Event::Room);
        }
        if self.has_closed && !core::mem::replace(&mut self.is_drained, true) {
            self.events.push_back(Event::Drained);
        }
    }

    fn heartbeat_at(&self) -> Instant {
        // A period of zero would never let a driver finish writing.
        self.wrote + self.config.heartbeat.max(Duration::from_nanos(1))
    }
}

/// Numbers of pipes in a row that have carried nothing, after which packets are written one at a
/// time, and after which it is reported.
const STALLS_CAREFUL: u32 = 2;
const STALLS_TOLD: u32 = 3;
