//! Both ends of a link, step by step: each session's reports are compared with the frames and bytes
//! that were really sent, delivered and received.

use core::time::Duration;
use std::collections::VecDeque;

use adapm_core::link::{Arrival, Content, Kind, LinkConfig, Packet, SendRefusal, Seq};
use adapm_core::time::Instant;
use adapm_core::transport::{CloseReason, Frame};

use crate::link::pipe::{Item, Pipe};
use crate::link::{Broken, End, claim};
use crate::planted::{LinkBug, PlantedSession, link_bug_from_environment};

/// An end, and the facts about it.
#[derive(Debug)]
pub struct Side {
    /// The session.
    pub session: PlantedSession,
    /// Frames accepted for sending.
    pub sent: u64,
    /// Frames of the other end that were delivered.
    pub delivered: u64,
    /// True if a pipe is up.
    pub is_up: bool,
    /// Its goodbye.
    pub closed: Option<CloseReason>,
    /// The goodbye of the other end that it reported.
    pub left: Option<CloseReason>,
    /// True if it reported that the other end has its goodbye.
    pub drained: bool,
    /// True if it reported that the other end is dead.
    pub dead: bool,
    /// True if it refused a frame for lack of room and has not reported room since.
    pub refused: bool,
    /// Number of reports of room.
    pub rooms: u64,
    /// True if it suspects the other end.
    pub(super) suspects: bool,
    /// Time when the other end was met, or its last bytes came.
    pub(super) heard: Option<Instant>,
    /// Time when its pipe came up; then a flag, true if that was found silent.
    pub(super) renewed: Instant,
    pub(super) found_silent: bool,
    /// True if that pipe was found stalled.
    pub(super) found_stalled: bool,
    /// Time since which written data waits without a new acknowledgement.
    pub(super) waits: Option<Instant>,
    /// Number of goodbyes that became packets.
    pub(super) byes: u64,
    /// Number of numbered packets so far.
    pub(super) numbered: u64,
    /// Number of numbered packets received; then a flag, true if the last was a part.
    pub(super) came: u64,
    within: bool,
    /// Numbered packets that may be unacknowledged: frame number and bytes of each.
    pub(super) waiting: VecDeque<(u64, usize)>,
    /// Number of acknowledged packets at the last check.
    pub(super) acknowledged: u64,
    /// Bytes written to its pipe, and bytes acknowledged since it came up, with a share for
    /// headers.
    pub(super) paced: (usize, usize),
    /// Time of its last write, or when its pipe came up.
    pub(super) wrote: Instant,
    /// Deadline of the next packet: an acknowledgement, or the first one on a pipe.
    pub(super) owes: Option<Instant>,
    /// The last packets read on the present pipe, newest first.
    last: VecDeque<Packet>,
}

impl Side {
    fn new(config: LinkConfig, bug: Option<LinkBug>) -> Self {
        Self {
            session: PlantedSession::with_bug(config, bug),
            sent: 0,
            delivered: 0,
            is_up: false,
            closed: None,
            left: None,
            drained: false,
            dead: false,
            refused: false,
            rooms: 0,
            suspects: false,
            heard: None,
            renewed: Instant::ZERO,
            found_silent: false,
            found_stalled: false,
            waits: None,
            byes: 0,
            numbered: 0,
            came: 0,
            within: false,
            waiting: VecDeque::new(),
            acknowledged: 0,
            paced: (0, 0),
            wrote: Instant::ZERO,
            owes: None,
            last: VecDeque::new(),
        }
    }

    /// Records a frame of `bytes` bytes, to be sent in packets of at most `cut`.
    fn note_sent(&mut self, bytes: usize, cut: usize) {
        let frame = self.sent + self.byes;
        let mut left = bytes;
        loop {
            self.waiting.push_back((frame, left.min(cut)));
            self.numbered += 1;
            left -= left.min(cut);
            if left == 0 {
                return;
            }
        }
    }
}

/// Two sessions and the pipe between them.
#[derive(Debug)]
pub struct Pair {
    /// Virtual time.
    pub now: Instant,
    /// Both ends, indexed by [`End`].
    pub sides: [Side; 2],
    pub(super) pipe: Pipe,
    pub(super) config: LinkConfig,
}

impl Pair {
    /// Creates two ends that have not met, with the mistake `bug`, otherwise that of
    /// [`link_bug_from_environment`].
    #[must_use]
    pub fn new(config: LinkConfig, bug: Option<LinkBug>) -> Self {
        let bug = bug.or_else(link_bug_from_environment);
        let sides = [Side::new(config, bug), Side::new(config, bug)];
        Self { now: Instant::ZERO, sides, pipe: Pipe::default(), config }
    }

    /// Returns one end.
    #[must_use]
    pub fn side(&self, end: End) -> &Side {
        &self.sides[end as usize]
    }

    pub(super) fn side_mut(&mut self, end: End) -> &mut Side {
        &mut self.sides[end as usize]
    }

    /// Sends the next frame of `end`, of at least 8 and about `bytes` bytes. Returns true if it was
    /// accepted.
    ///
    /// # Errors
    /// If a claim breaks.
    pub fn send(&mut self, end: End, bytes: usize) -> Result<bool, Broken> {
        let config = self.config;
        let side = self.side_mut(end);
        let frame = numbered_frame(side.sent, bytes);
        let mut given = frame.clone();
        let (packets, waiting) = side.session.unacknowledged();
        match side.session.send(&mut given) {
            Ok(()) => {
                side.note_sent(frame.len(), config.packet_bytes);
                side.sent += 1;
            }
            Err(SendRefusal::Full) => {
                let packets = packets + frame.len().div_ceil(config.packet_bytes);
                let full =
                    packets > config.window_packets || waiting + frame.len() > config.window_bytes;
                claim!(
                    Room,
                    full,
                    "{end:?} has room and refuses: {packets} packets, {waiting} bytes wait"
                );
                claim!(Refusal, given == frame, "{end:?} refuses a frame and changes it");
                side.refused = true;
            }
            Err(SendRefusal::Ended) => {
                let ended = side.dead || side.closed.is_some() || side.left.is_some();
                claim!(Refusal, ended, "{end:?} has ended without a reason");
                claim!(Refusal, given == frame, "{end:?} refuses a frame and changes it");
            }
            Err(refusal) => panic!("{end:?} refuses for {refusal:?}, which the pair does not know"),
        }
        let accepted = given != frame;
        self.check(end)?;
        Ok(accepted)
    }

    /// Sends a goodbye from `end`.
    ///
    /// # Errors
    /// If a claim breaks.
    pub fn close(&mut self, end: End, close_reason: CloseReason) -> Result<(), Broken> {
        let cut = self.config.packet_bytes;
        let side = self.side_mut(end);
        if side.closed.is_none() {
            side.closed = Some(close_reason);
            if !side.session.has_ended() {
                side.note_sent(
                    if matches!(close_reason, CloseReason::Lost(_)) { 3 } else { 1 },
                    cut,
                );
                side.byes += 1;
            }
        }
        side.session.close(close_reason);
        self.hear_events(end)
    }

    /// Writes the next packet of `end` to the pipe. Returns false if there was none.
    ///
    /// # Errors
    /// If a claim breaks.
    pub fn write(&mut self, end: End) -> Result<bool, Broken> {
        let now = self.now;
        let session = &mut self.side_mut(end).session;
        let (wants, due) = (session.wants_to_write(), session.deadline());
        let Some(packet) = session.poll_packet(now) else {
            claim!(Quiet, !wants, "{end:?} says that it wants to write, and does not");
            return Ok(false);
        };
        let is_due = wants || due.is_some_and(|due| due <= now);
        claim!(Quiet, is_due, "{end:?} writes {:?} before it is due", packet.0);
        self.judge_write(end, &packet)?;
        self.pipe.write(end.other(), packet);
        self.check(end)?;
        Ok(true)
    }

    /// Reads the first item in flight to `end`. Returns false if there was none.
    ///
    /// # Errors
    /// If a claim breaks.
    pub fn read(&mut self, end: End) -> Result<bool, Broken> {
        let Some(item) = self.pipe.read(end) else { return Ok(false) };
        match item {
            Item::Packet(packet) if self.side(end).is_up => {
                self.take(end, &packet)?;
                let last = &mut self.side_mut(end).last;
                last.push_front(packet);
                last.truncate(REPEATS_MAX);
            }
            // Belongs to a pipe that this end has given up.
            Item::Packet(_) => {}
            Item::Broken => self.drop_pipe(end),
            Item::Hello(stands) => {
                if end == End::Listener {
                    self.drop_pipe(end);
                    let expects = self.side(end).session.expects();
                    self.pipe.answer(end.other(), expects);
                }
                self.up(end, stands)?;
            }
        }
        Ok(true)
    }

    /// Delivers a part of the first packet in flight to `end`. Returns false if there was none.
    ///
    /// # Errors
    /// If a claim breaks.
    pub fn trickle(&mut self, end: End) -> Result<bool, Broken> {
        if !self.side(end).is_up || !self.pipe.has_packet(end) {
            return Ok(false);
        }
        let now = self.now;
        let side = self.side_mut(end);
        side.session.handle_bytes(now);
        side.hear(now);
        self.hear_events(end)?;
        Ok(true)
    }

    /// Repeats a packet that `end` has read, `back` packets before the last. Returns false if there
    /// was none.
    ///
    /// # Errors
    /// If a claim breaks.
    pub fn repeat(&mut self, end: End, back: usize) -> Result<bool, Broken> {
        let side = self.side(end);
        let Some(packet) = side.last.get(back).cloned().filter(|_| side.is_up) else {
            return Ok(false);
        };
        self.take(end, &packet)?;
        Ok(true)
    }

    /// Breaks the pipe; of the items in flight to each end, the first `keep` still arrive.
    pub fn cut(&mut self, keep: [usize; 2]) {
        self.pipe.cut(keep);
    }

    /// Makes a new pipe at the dialer, which gives up its old one.
    pub fn dial(&mut self) {
        self.drop_pipe(End::Dialer);
        let stands = self.side(End::Dialer).session.expects();
        self.pipe.dial(End::Dialer, stands);
    }

    /// Lets time pass for both ends.
    ///
    /// # Errors
    /// If a claim breaks.
    pub fn pass(&mut self, time: Duration) -> Result<(), Broken> {
        self.now = self.now.plus_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        for end in End::BOTH {
            self.tick(end)?;
        }
        Ok(())
    }

    /// Sets up a working pipe; everything arrives and is acknowledged, by deadlines alone.
    ///
    /// # Errors
    /// If a claim breaks.
    pub fn settle(&mut self) -> Result<(), Broken> {
        self.cut([0, 0]);
        self.dial();
        for _ in 0..SETTLE_ROUNDS_MAX {
            self.exchange()?;
            if End::BOTH.iter().any(|end| self.side(*end).dead) || self.is_settled() {
                return Ok(());
            }
            let deadlines = End::BOTH.iter().filter_map(|end| self.side(*end).session.deadline());
            let Some(next) = deadlines.min() else { break };
            claim!(
                Quiet,
                next > self.now,
                "what was due at {next:?} is not done at {:?}",
                self.now
            );
            self.now = next;
            for end in End::BOTH {
                self.tick(end)?;
            }
        }
        let waiting =
            End::BOTH.map(|end| (self.side(end).session.unacknowledged(), self.side(end).sent));
        claim!(Once, false, "the link does not come to rest: {waiting:?}");
        Ok(())
    }

    /// Writes and reads until neither end has anything to do at the moment.
    ///
    /// # Errors
    /// If a claim breaks.
    pub fn exchange(&mut self) -> Result<(), Broken> {
        for _ in 0..EXCHANGES_MAX {
            let mut some = false;
            for end in End::BOTH {
                some |= self.write(end)?;
                some |= self.read(end)?;
            }
            if !some {
                return Ok(());
            }
        }
        claim!(Quiet, false, "packets breed packets forever");
        Ok(())
    }

    /// Returns true if a part of a frame has come to `end`, but not all of it.
    #[must_use]
    pub fn is_within(&self, end: End) -> bool {
        self.side(end).within
    }

    /// Returns the number of items in flight to `end`.
    #[must_use]
    pub fn on_the_way(&self, end: End) -> usize {
        self.pipe.len(end)
    }

    fn is_settled(&self) -> bool {
        End::BOTH.iter().all(|end| {
            let (side, other) = (self.side(*end), self.side(end.other()));
            let said = side.closed.is_none() || side.drained;
            side.session.unacknowledged().0 == 0 && other.delivered == side.sent && said
        })
    }

    fn up(&mut self, end: End, stands: Seq) -> Result<(), Broken> {
        let now = self.now;
        let side = self.side_mut(end);
        let result = side.session.handle_up(now, stands);
        claim!(
            Refusal,
            result.is_ok() != side.dead,
            "{end:?} answers a sound new pipe with {result:?}"
        );
        if result.is_ok() {
            side.is_up = true;
            side.heard.get_or_insert(now);
            (side.renewed, side.found_silent, side.found_stalled) = (now, false, false);
            (side.wrote, side.owes) = (now, Some(now));
            self.note_acknowledged(end);
            self.side_mut(end).paced = (0, 0);
        }
        self.hear_events(end)
    }

    fn drop_pipe(&mut self, end: End) {
        let side = self.side_mut(end);
        side.session.handle_down();
        side.is_up = false;
        side.last.clear();
    }

    fn take(&mut self, end: End, packet: &Packet) -> Result<(), Broken> {
        let now = self.now;
        let (header, content) = packet;
        let mut packet = content.as_ref().map_or_else(Frame::default, Content::to_frame);
        let mut frame = Frame::default();
        let ack_delay = self.config.ack_delay;
        let side = self.side_mut(end);
        let result = side.session.handle_packet(now, *header, &mut packet, &mut frame);
        let arrival = match result {
            Ok(arrival) => arrival,
            Err(error) => {
                claim!(Refusal, false, "{end:?} refuses {header:?}: {error}");
                return Ok(());
            }
        };
        side.hear(now);
        let is_numbered = matches!(header.kind, Kind::Data | Kind::Part | Kind::Bye);
        if is_numbered && header.seq == Seq(side.came) {
            side.came += 1;
            side.within = header.kind == Kind::Part;
            let is_asked = header.wants_ack || header.kind == Kind::Bye;
            let due = if is_asked { now } else { now.plus_nanos(ack_delay.as_nanos() as u64) };
            side.owes = Some(side.owes.map_or(due, |before| before.min(due)));
        }
        let is_data = header.kind == Kind::Data;
        claim!(Once, is_data || arrival != Arrival::Deliver, "{end:?} delivers {header:?}");
        if arrival == Arrival::Deliver {
            let expected = side.delivered;
            let given = number_of(&frame);
            claim!(
                Once,
                given == Some(expected),
                "{end:?} delivers frame {given:?} as number {expected}"
            );
            side.delivered += 1;
        }
        self.note_acknowledged(end);
        self.hear_events(end)
    }
}

/// Returns the frame with that number: at least 8 bytes of head; bytes beyond 24 are values.
fn numbered_frame(number: u64, bytes: usize) -> Frame {
    let byte = |at: usize| (number as u8).wrapping_add(at as u8);
    let mut head = number.to_le_bytes().to_vec();
    head.extend((8..bytes.min(HEAD_BYTES)).map(byte));
    let mut frame = Frame { head, ..Frame::default() };
    frame.values.push_bytes(&(HEAD_BYTES..bytes).map(byte).collect::<Vec<u8>>());
    frame
}

fn number_of(frame: &Frame) -> Option<u64> {
    let number = u64::from_le_bytes(*frame.head.first_chunk()?);
    (*frame == numbered_frame(number, frame.len())).then_some(number)
}

/// Size of the head of a frame with values, in bytes.
const HEAD_BYTES: usize = 24;

/// Number of packets that a pipe may repeat.
const REPEATS_MAX: usize = 4;
/// Number of deadlines after which a link that is not at rest never will be.
const SETTLE_ROUNDS_MAX: usize = 2_000;
/// Number of turns of both ends after which packets are taken to go on forever.
const EXCHANGES_MAX: usize = 100_000;
