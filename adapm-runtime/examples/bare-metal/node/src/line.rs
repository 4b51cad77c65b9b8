//! One end of a serial line: frames once and in order, although bytes are lost, changed and
//! invented on the way.
//!
//! A line is always there, but nothing shows if a node listens and which bytes were damaged. So a
//! *pipe* in the sense of [`adapm_core::link`] is an agreement of both ends: the dialing end sends
//! `Hello` with a new number, the answering end sends `Welcome`, each with the number of the packet
//! it expects. Any damage ends the pipe; the next one goes on at the other end's position:
//!
//! ```text
//!   dialing end                                   answering end
//!      Hello(7, expects 3)  ──────────────────>   pipe 7, goes on at 3
//!      pipe 7, goes on at 5  <──────────────────  Welcome(7, expects 5)
//!      Session(7, ...)  <──────────────────────>  Session(7, ...)
//!                                  ?!#  ─────>    Call            the answering end has read garbage
//!      Hello(8, expects 4)  ──────────────────>
//! ```
//!
//! Packets of other pipes than the present one are leftovers, and are dropped. Not here: ports and
//! threads.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use adapm_core::Instant;
use adapm_core::link::{Arrival, Event, LinkConfig, LinkError, SendRefusal, Seq, Session};
use adapm_core::transport::{CloseReason, Frame, Loss};

use crate::packet::{Packet, Reader, header};

/// The role of an end of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Begins pipes.
    Dialing,
    /// Answers, and asks to be dialed.
    Answering,
}

/// Reasons why an end of a line has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineError {
    /// The other end has other settings: another layout, number of nodes or version.
    Terms {
        /// The digest of this end.
        ours: u64,
        /// The digest of the other end.
        theirs: u64,
    },
    /// One of the ends was started anew, and has lost its state.
    Restarted,
    /// The other end broke the rules of the session.
    Misbehaved(LinkError),
    /// Nothing was received from the other end, or nothing arrives there.
    Lost(Loss),
    /// A frame above [`FRAME_BYTES_MAX`].
    FrameLen {
        /// Its bytes.
        bytes: usize,
    },
}

/// The traffic of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineStats {
    /// Pipes that came up: one, and one more for each disturbance.
    pub pipes: u64,
    /// Packets that arrived damaged at this end.
    pub damaged: u64,
    /// Bytes received, garbage included.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Frames sent.
    pub frames_out: u64,
    /// Frames received.
    pub frames_in: u64,
}

/// One end of a line. Feed it the received bytes, write the bytes that it returns, and call it
/// again at [`Line::deadline`].
#[derive(Debug)]
pub struct Line {
    end: End,
    terms: u64,
    session: Session,
    reader: Reader,
    pipe: u32,
    is_up: bool,
    /// The time to send `Hello` or `Call` again, as long as there is no pipe.
    nag_at: Instant,
    nag_pause: Duration,
    welcome: bool,
    inbox: VecDeque<Frame>,
    error: Option<LineError>,
    stats: LineStats,
}

/// Largest frame, small enough for a microcontroller.
pub const FRAME_BYTES_MAX: usize = 8 << 10;
/// Bytes of a frame in one packet: 90 ms at 115,200 baud.
pub const PACKET_BYTES: usize = 1 << 10;

impl Line {
    /// Creates an unused end of a line. `terms` must be the same number on both ends.
    #[must_use]
    pub fn new(end: End, terms: u64, dead_after: Duration) -> Self {
        let mut config = LinkConfig::with_dead_after(dead_after);
        config.packet_bytes = PACKET_BYTES;
        config.window_packets = 32;
        config.window_bytes = 2 * FRAME_BYTES_MAX;
        Self {
            end,
            terms,
            session: Session::new(config),
            reader: Reader::new(2 * PACKET_BYTES),
            pipe: 0,
            is_up: false,
            nag_at: Instant::ZERO,
            nag_pause: NAG_PAUSE_MIN,
            welcome: false,
            inbox: VecDeque::new(),
            error: None,
            stats: LineStats::default(),
        }
    }

    /// Takes a frame for the other end. Returns false if there is no room at the moment. Nothing is
    /// taken after a goodbye.
    ///
    /// # Errors
    /// If the frame is too long, or the line has failed.
    pub fn send(&mut self, frame: &mut Frame) -> Result<bool, LineError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if frame.len() > FRAME_BYTES_MAX {
            return Err(LineError::FrameLen { bytes: frame.len() });
        }
        match self.session.send(frame) {
            Ok(()) => {
                self.stats.frames_out += 1;
                Ok(true)
            }
            Err(SendRefusal::Full) => Ok(false),
            // It will not be read; the event that reports the end is on its way.
            Err(_) => Ok(true),
        }
    }

    /// Sends a goodbye after everything sent before.
    pub fn close(&mut self, close_reason: CloseReason) {
        self.session.close(close_reason);
    }

    /// Handles received bytes.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        self.stats.bytes_in += bytes.len() as u64;
        let mut reader = core::mem::replace(&mut self.reader, Reader::new(0));
        for byte in bytes {
            reader.feed(*byte, |packet| match packet {
                Some(packet) => self.handle_packet(now, packet),
                None => {
                    self.stats.damaged += 1;
                    self.break_off(now);
                }
            });
        }
        self.reader = reader;
    }

    /// Appends the bytes due to be written to the line.
    pub fn poll_bytes(&mut self, now: Instant, line: &mut Vec<u8>) {
        let before = line.len();
        self.session.handle_timeout(now);
        if core::mem::take(&mut self.welcome) {
            let expects = self.session.expects().0;
            Packet::Welcome { pipe: self.pipe, expects, terms: self.terms }.write(line);
        }
        if !self.is_up && self.nag_at <= now && !self.is_over() {
            self.nag(now, line);
        }
        if self.is_up {
            while let Some((header, content)) = self.session.poll_packet(now) {
                let parts = content.as_ref().map(|content| (content.head(), content.values()));
                let (head, values) = parts.unwrap_or_default();
                Packet::session(self.pipe, header, head, values).write(line);
            }
        }
        self.stats.bytes_out += (line.len() - before) as u64;
    }

    /// Returns the next frame of the other end.
    pub fn poll_frame(&mut self) -> Option<Frame> {
        self.inbox.pop_front()
    }

    /// Returns true if there is a frame of the other end.
    #[must_use]
    pub fn has_frame(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Returns the next event of the session.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.session.poll_event();
        if let Some(Event::Dead(loss)) = event {
            self.fail(LineError::Lost(loss));
        }
        event
    }

    /// Returns why the line has failed, if it has.
    #[must_use]
    pub fn error(&self) -> Option<LineError> {
        self.error
    }

    /// Returns the latest time to call [`Line::poll_bytes`].
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let nag = (!self.is_up && !self.is_over()).then_some(self.nag_at);
        [self.session.deadline(), nag].into_iter().flatten().min()
    }

    /// Returns the traffic so far.
    #[must_use]
    pub fn stats(&self) -> LineStats {
        self.stats
    }

    fn is_over(&self) -> bool {
        // After a goodbye of the other end a pipe is still needed to acknowledge it.
        self.error.is_some() || (self.session.has_ended() && !self.session.has_left())
    }

    fn nag(&mut self, now: Instant, line: &mut Vec<u8>) {
        self.nag_at = now.plus_nanos(self.nag_pause.as_nanos() as u64);
        self.nag_pause = (self.nag_pause * 2).min(NAG_PAUSE_MAX);
        match self.end {
            End::Dialing => {
                self.pipe = self.pipe.wrapping_add(1);
                let expects = self.session.expects().0;
                Packet::Hello { pipe: self.pipe, expects, terms: self.terms }.write(line);
            }
            End::Answering => Packet::Call.write(line),
        }
    }

    fn handle_packet(&mut self, now: Instant, packet: Packet<'_>) {
        match packet {
            Packet::Hello { pipe, expects, terms } if self.end == End::Answering => {
                self.pipe = pipe;
                self.welcome = self.begin(now, expects, terms);
            }
            Packet::Welcome { pipe, expects, terms }
                if self.end == End::Dialing
                    && (terms != self.terms || (pipe == self.pipe && !self.is_up)) =>
            {
                self.begin(now, expects, terms);
            }
            Packet::Call if self.end == End::Dialing => {
                self.break_off(now);
                self.nag_at = now;
            }
            Packet::Session { pipe, kind, seq, ack, wants_ack, head, values }
                if self.is_up && pipe == self.pipe =>
            {
                let Some(header) = header(kind, seq, ack, wants_ack) else {
                    return self.break_off(now);
                };
                let mut packet = Frame { head: head.to_vec(), ..Frame::default() };
                packet.values.push_bytes(values);
                let mut frame = Frame::default();
                match self.session.handle_packet(now, header, &mut packet, &mut frame) {
                    Ok(Arrival::Deliver) => {
                        self.stats.frames_in += 1;
                        self.inbox.push_back(frame);
                    }
                    Ok(Arrival::Part | Arrival::Duplicate | Arrival::Control) => {}
                    Err(error) if error.blames_peer() => self.fail(LineError::Misbehaved(error)),
                    Err(_) => self.break_off(now),
                }
            }
            // Left over from an earlier pipe, or an echo of this end's own packets.
            _ => {}
        }
    }

    /// Begins a pipe. Returns true if the other end must be notified.
    fn begin(&mut self, now: Instant, expects: u64, terms: u64) -> bool {
        self.session.handle_down();
        if terms != self.terms {
            self.fail(LineError::Terms { ours: self.terms, theirs: terms });
            // The other end fails for the same reason when it learns this end's terms.
            return true;
        }
        if let Some(error) = self.error {
            // The line has failed. Once it receives this end's position, the other end finds out by
            // itself that one was restarted.
            return error == LineError::Restarted;
        }
        match self.session.handle_up(now, Seq(expects)) {
            Ok(()) => {
                self.is_up = true;
                self.nag_pause = NAG_PAUSE_MIN;
                self.stats.pipes += 1;
            }
            Err(LinkError::Resume { .. }) => {
                self.fail(LineError::Restarted);
                return true;
            }
            Err(error) => self.fail(LineError::Misbehaved(error)),
        }
        self.is_up
    }

    fn break_off(&mut self, now: Instant) {
        if core::mem::take(&mut self.is_up) {
            self.session.handle_down();
            self.nag_at = now;
        }
    }

    fn fail(&mut self, error: LineError) {
        self.is_up = false;
        self.session.handle_down();
        self.error.get_or_insert(error);
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terms { ours, theirs } => write!(
                f,
                "the other end has terms {theirs:016x}, this one {ours:016x}: build both from the same sources"
            ),
            Self::Restarted => {
                f.write_str("one end was restarted and has lost its state: restart both")
            }
            Self::Misbehaved(error) => {
                write!(f, "the other end breaks the rules of a link: {error}")
            }
            Self::Lost(loss) => write!(f, "the other end is lost: {loss}; see whether it runs"),
            Self::FrameLen { bytes } => {
                write!(
                    f,
                    "a frame of {bytes} bytes, the line takes {FRAME_BYTES_MAX}: use shorter values"
                )
            }
        }
    }
}

impl core::error::Error for LineError {}

const NAG_PAUSE_MIN: Duration = Duration::from_millis(100);
const NAG_PAUSE_MAX: Duration = Duration::from_secs(2);
