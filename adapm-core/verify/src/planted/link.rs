//! Mistakes of a link session: with incoming packets, bytes and time, and with its outputs.

use core::fmt;
use core::ops::Deref;
use core::time::Duration;
use std::collections::VecDeque;
use std::env;

use adapm_core::link::{
    Arrival, Event, Header, Kind, LinkConfig, LinkError, Packet, SendRefusal, Seq, Session,
};
use adapm_core::time::Instant;
use adapm_core::transport::{CloseReason, Frame};

/// Declares the bugs of a link session: each with a description of the mistake.
macro_rules! link_bugs {
    ($($bug:ident: $mistake:literal;)+) => {
        /// A mistake planted in a link session.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum LinkBug {
            $(#[doc = $mistake] $bug,)+
        }

        impl LinkBug {
            /// All bugs.
            pub const ALL: [Self; [$(Self::$bug),+].len()] = [$(Self::$bug),+];

            /// Returns a description of the mistake, in one sentence.
            #[must_use]
            pub fn mistake(self) -> &'static str {
                match self {
                    $(Self::$bug => $mistake,)+
                }
            }
        }
    };
}

link_bugs! {
    RepeatDelivery: "A repeated packet is delivered again.";
    ForgetUnacknowledged: "On a new pipe all data written to the old one counts as arrived.";
    AcknowledgeAhead: "Packets acknowledge one packet more than have arrived.";
    IgnoreWindow: "The window is ignored.";
    ForgetRoom: "New room is not reported.";
    DrainEarly: "A goodbye counts as received when it is sent.";
    ResumeCountsAsLife: "A new pipe counts as a sign of life.";
    DeafToBytes: "Bytes do not count as life, only whole packets.";
    IgnoreStall: "A peer is alive as long as it sends, even without acknowledgements.";
    KeepStalledPipe: "A pipe on which nothing is acknowledged stays in use.";
    ForgetParts: "On a new pipe the received parts of a frame are forgotten.";
    WriteAgain: "Unacknowledged data is written again on the same pipe after a while.";
}

impl fmt::Display for LinkBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Returns the bug of a link session named by `ADAPM_BUG`: the default of a [`crate::link::Pair`].
#[must_use]
pub fn link_bug_from_environment() -> Option<LinkBug> {
    let name = env::var("ADAPM_BUG").ok()?;
    LinkBug::ALL.into_iter().find(|bug| bug.to_string() == name)
}

/// A [`Session`], with a mistake or without.
#[derive(Debug)]
pub struct PlantedSession {
    session: Session,
    bug: Option<LinkBug>,
    config: LinkConfig,
    /// Events of the mistake's own.
    events: VecDeque<Event>,
    has_closed: bool,
    /// The peer's position when the pipe in use came up; `None` without a pipe.
    stands: Option<Seq>,
    /// The number after that of the last numbered packet that was written.
    written: Seq,
    /// Bytes of the frame that is coming in parts; then, how many of them are forgotten.
    parts: usize,
    forgotten: usize,
    /// Time of the last bytes of the peer.
    heard: Option<Instant>,
    /// Time since which written data waits without a new acknowledgement.
    waits: Option<Instant>,
    /// Time of the last skipped time-out, and how many due ones were skipped in a row.
    passed_over: (Instant, u32),
    /// True if time has passed since packets were written again.
    may_repeat: bool,
}

impl Deref for PlantedSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl PlantedSession {
    /// Creates a session without a mistake, like [`Session::new`].
    #[must_use]
    pub fn new(config: LinkConfig) -> Self {
        Self::with_bug(config, None)
    }

    /// Creates a session with the mistake `bug`, before it meets its peer.
    #[must_use]
    pub fn with_bug(config: LinkConfig, bug: Option<LinkBug>) -> Self {
        let mut given = config;
        if bug == Some(LinkBug::IgnoreWindow) {
            (given.window_packets, given.window_bytes) = (usize::MAX / 4, usize::MAX / 4);
        }
        Self {
            session: Session::new(given),
            bug,
            config,
            events: VecDeque::new(),
            has_closed: false,
            stands: None,
            written: Seq::default(),
            parts: 0,
            forgotten: 0,
            heard: None,
            waits: None,
            passed_over: (Instant::ZERO, 0),
            may_repeat: false,
        }
    }

    fn has(&self, bug: LinkBug) -> bool {
        self.bug == Some(bug)
    }

    /// See [`Session::send`].
    ///
    /// # Errors
    /// As there.
    pub fn send(&mut self, frame: &mut Frame) -> Result<(), SendRefusal> {
        self.session.send(frame)
    }

    /// See [`Session::close`].
    pub fn close(&mut self, reason: CloseReason) {
        self.session.close(reason);
        if !core::mem::replace(&mut self.has_closed, true) && self.has(LinkBug::DrainEarly) {
            self.events.push_back(Event::Drained);
        }
    }

    /// See [`Session::handle_up`].
    ///
    /// # Errors
    /// As there.
    pub fn handle_up(&mut self, now: Instant, peer_expects: Seq) -> Result<(), LinkError> {
        let forgets = self.has(LinkBug::ForgetUnacknowledged) && peer_expects < self.written;
        let stands = if forgets { self.written } else { peer_expects };
        self.session.handle_up(now, stands)?;
        self.stands = Some(stands);
        if self.has(LinkBug::ResumeCountsAsLife) {
            self.session.handle_bytes(now);
        }
        if self.has(LinkBug::ForgetParts) {
            self.forgotten = self.parts;
        }
        Ok(())
    }

    /// See [`Session::handle_down`].
    pub fn handle_down(&mut self) {
        self.stands = None;
        self.session.handle_down();
    }

    /// See [`Session::handle_packet`].
    ///
    /// # Errors
    /// As there.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        header: Header,
        packet: &mut Frame,
        frame: &mut Frame,
    ) -> Result<Arrival, LinkError> {
        let bytes = packet.len();
        let arrival = self.session.handle_packet(now, header, packet, frame)?;
        self.heard = Some(now);
        if self.stands.is_some_and(|stands| stands < header.ack) {
            self.stands = Some(header.ack);
            self.waits = (self.session.unacknowledged().0 > 0).then_some(now);
        }
        match arrival {
            Arrival::Part => self.parts += bytes,
            Arrival::Deliver => {
                let forgotten = core::mem::take(&mut self.forgotten);
                self.parts = 0;
                if forgotten > 0 {
                    cut_front(frame, forgotten);
                }
            }
            Arrival::Duplicate
                if header.kind == Kind::Data && self.has(LinkBug::RepeatDelivery) =>
            {
                core::mem::swap(packet, frame);
                return Ok(Arrival::Deliver);
            }
            Arrival::Duplicate | Arrival::Control => {}
        }
        Ok(arrival)
    }

    /// See [`Session::handle_bytes`].
    pub fn handle_bytes(&mut self, now: Instant) {
        if !self.has(LinkBug::DeafToBytes) {
            self.heard = Some(now);
            self.session.handle_bytes(now);
        }
    }

    /// See [`Session::handle_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        self.may_repeat = true;
        let for_at_least = |time: Duration, since: Option<Instant>| {
            since.is_some_and(|since| Duration::from_nanos(now.nanos_since(since)) >= time)
        };
        let LinkConfig { suspect_after, dead_after, .. } = self.config;
        let is_heard = self.heard.is_some() && !for_at_least(suspect_after, self.heard);
        if self.has(LinkBug::IgnoreStall) && is_heard && for_at_least(dead_after, self.waits) {
            let is_due = self.session.deadline().is_some_and(|deadline| deadline <= now);
            self.passed_over = (now, if is_due { self.passed_over.1 + 1 } else { 0 });
            return;
        }
        self.session.handle_timeout(now);
    }

    /// See [`Session::poll_packet`].
    pub fn poll_packet(&mut self, now: Instant) -> Option<Packet> {
        if self.repeats()
            && let Some(stands) = self.stands
        {
            self.may_repeat = false;
            // It may be refused once the peer is dead.
            let _ = self.session.handle_up(now, stands);
        }
        let (mut header, content) = self.session.poll_packet(now)?;
        if content.is_some() {
            self.written = self.written.max(header.seq.next());
            self.waits.get_or_insert(now);
        }
        if self.has(LinkBug::AcknowledgeAhead) {
            header.ack = header.ack.next();
        }
        Some((header, content))
    }

    /// See [`Session::poll_event`].
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        loop {
            let event = self.session.poll_event()?;
            let is_untold = match event {
                Event::Room => self.has(LinkBug::ForgetRoom),
                Event::Drained => self.has(LinkBug::DrainEarly),
                Event::Stalled => self.has(LinkBug::KeepStalledPipe),
                _ => false,
            };
            if !is_untold {
                return Some(event);
            }
        }
    }

    /// See [`Session::deadline`].
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let deadline = self.session.deadline()?;
        let (now, times) = self.passed_over;
        // Otherwise a caller that calls when something is due would call forever.
        Some(if times > 1 && deadline <= now { now.plus_nanos(1_000_000) } else { deadline })
    }

    /// See [`Session::wants_to_write`].
    #[must_use]
    pub fn wants_to_write(&self) -> bool {
        self.session.wants_to_write() || self.repeats()
    }

    /// Returns true if all unacknowledged packets are to be written again.
    fn repeats(&self) -> bool {
        self.has(LinkBug::WriteAgain)
            && self.may_repeat
            && self.stands.is_some()
            && !self.session.has_ended()
            && !self.session.wants_to_write()
            && self.session.unacknowledged().0 > 0
    }
}

/// Takes the first `bytes` bytes of a frame away.
fn cut_front(frame: &mut Frame, bytes: usize) {
    let of_head = bytes.min(frame.head.len());
    frame.head.drain(..of_head);
    let values = frame.values.bytes()[(bytes - of_head).min(frame.values.len())..].to_vec();
    frame.values.clear();
    frame.values.push_bytes(&values);
}
