//! Checks of a link: each end's reports must be true, its state must be consistent after every
//! step, and lies must be refused without effect.

use core::time::Duration;

use adapm_core::link::{Event, Header, Kind, LinkConfig, LinkError, Packet, Seq};
use adapm_core::time::Instant;
use adapm_core::transport::{Frame, Loss};

use crate::link::{Broken, End, Lie, Pair, Side, claim};

impl Side {
    /// Records that bytes of the other end arrived.
    pub(super) fn hear(&mut self, now: Instant) {
        (self.heard, self.found_silent) = (Some(now), false);
    }

    /// Returns the time without bytes of the other end, and the time without a new acknowledgement.
    fn silence_and_stall(&self, now: Instant) -> (Duration, Duration) {
        let since = |start: Option<Instant>| {
            Duration::from_nanos(start.map_or(0, |start| now.nanos_since(start)))
        };
        (since(self.heard), since(self.waits))
    }

    /// Returns true if the other end must be given up.
    fn must_be_dead(&self, now: Instant, config: &LinkConfig) -> bool {
        let (silence, stall) = self.silence_and_stall(now);
        silence.max(stall) >= config.dead_after
    }

    /// Returns true if the pipe must be found silent.
    fn must_suspect(&self, now: Instant, config: &LinkConfig) -> bool {
        let quiet = self.heard.map_or(0, |heard| now.nanos_since(heard.max(self.renewed)));
        !self.found_silent && Duration::from_nanos(quiet) >= config.suspect_after
    }

    /// Returns true if the pipe must be found stalled.
    fn must_find_stalled(&self, now: Instant, config: &LinkConfig) -> bool {
        let stalled = self.waits.map_or(0, |waits| now.nanos_since(waits.max(self.renewed)));
        !self.found_stalled && Duration::from_nanos(stalled) >= config.stalled_after()
    }
}

impl Pair {
    /// Feeds `end` the time: its judgement of the other end must match the silence.
    ///
    /// # Errors
    /// If a claim breaks.
    pub fn tick(&mut self, end: End) -> Result<(), Broken> {
        let (now, config) = (self.now, self.config);
        let side = self.side_mut(end);
        let watches = side.heard.is_some() && !side.dead && side.left.is_none();
        let dead = side.dead || (watches && side.must_be_dead(now, &config));
        let suspects = side.suspects || (watches && !dead && side.must_suspect(now, &config));
        side.session.handle_timeout(now);
        let (silence, stall) = side.silence_and_stall(now);
        // One judgement at a time.
        let stalled = watches
            && !dead
            && !side.must_suspect(now, &config)
            && side.must_find_stalled(now, &config);
        self.hear_events(end)?;
        let side = self.side(end);
        let what = (side.session.is_suspect(), side.dead);
        let found = side.found_stalled || !stalled;
        let right = !watches || (what == (suspects && !dead, dead) && found);
        claim!(
            FailureDetector,
            right,
            "after {silence:?} of silence, {stall:?} without progress {end:?} is at {what:?}"
        );
        Ok(())
    }

    /// Takes the events of `end`: each must be true.
    pub(super) fn hear_events(&mut self, end: End) -> Result<(), Broken> {
        let (now, config) = (self.now, self.config);
        while let Some(event) = self.side_mut(end).session.poll_event() {
            let other = self.side(end.other());
            let (said, sent, other_left) = (other.closed, other.sent, other.left.is_some());
            let side = self.side_mut(end);
            let (silence, stall) = side.silence_and_stall(now);
            match event {
                Event::Suspect => {
                    let right = side.must_suspect(now, &config);
                    claim!(FailureDetector, right, "{end:?} suspects after {silence:?}");
                    (side.suspects, side.found_silent) = (true, true);
                }
                Event::Stalled => {
                    let right = side.must_find_stalled(now, &config);
                    claim!(FailureDetector, right, "{end:?} finds a stall after {stall:?}");
                    side.found_stalled = true;
                }
                Event::Recovered => {
                    let right = side.suspects && silence.is_zero();
                    claim!(FailureDetector, right, "{end:?} says recovered after {silence:?}");
                    side.suspects = false;
                }
                Event::Stuck(what) => {
                    let right =
                        what.time == stall && stall >= config.suspect_after && what.pipes > 0;
                    claim!(FailureDetector, right, "{end:?} says {what:?} after {stall:?}");
                }
                Event::Dead(loss) => {
                    let told = match loss {
                        Loss::Silent(time) => time == silence,
                        Loss::Stuck(what) => what.time == stall,
                        _ => false,
                    };
                    let right = !side.dead && told && side.must_be_dead(now, &config);
                    claim!(
                        FailureDetector,
                        right,
                        "{end:?} says {loss:?} after {silence:?} and {stall:?}"
                    );
                    (side.dead, side.is_up, side.suspects, side.waits) = (true, false, false, None);
                }
                Event::Left(reason) => {
                    let right =
                        side.left.is_none() && said == Some(reason) && side.delivered == sent;
                    claim!(
                        CloseReason,
                        right,
                        "{end:?} hears {reason:?} at {} of {sent}",
                        side.delivered
                    );
                    side.left = Some(reason);
                }
                Event::Room => {
                    claim!(Room, side.refused, "{end:?} tells of room that nobody asked for");
                    (side.refused, side.rooms) = (false, side.rooms + 1);
                }
                Event::Drained => {
                    let there = other_left || side.left.is_some() || side.dead;
                    let right = side.closed.is_some() && !side.drained && there;
                    claim!(CloseReason, right, "{end:?} says that its goodbye has arrived");
                    side.drained = true;
                }
            }
        }
        self.check(end)
    }

    /// Checks that `packet` was due, and counts it as written.
    pub(super) fn judge_write(&mut self, end: End, packet: &Packet) -> Result<(), Broken> {
        let (now, config, kind) = (self.now, self.config, packet.0.kind);
        let side = self.side_mut(end);
        let pause = Duration::from_nanos(now.nanos_since(side.wrote));
        let early = kind == Kind::Heartbeat && pause < config.heartbeat;
        claim!(Quiet, !early, "{end:?} writes a heartbeat {pause:?} after its last packet");
        let idle = kind == Kind::Ack && side.owes.is_none();
        claim!(Quiet, !idle, "{end:?} acknowledges, and nothing has come");
        if let Some(content) = &packet.1 {
            let (written, acknowledged) = side.paced;
            let within = written <= 4 * acknowledged + config.packet_bytes + SHARE_BYTES;
            claim!(
                Pace,
                within,
                "{end:?} has written {written} bytes with {acknowledged} acknowledged"
            );
            side.paced.0 += content.len() + SHARE_BYTES;
            side.waits.get_or_insert(now);
        }
        (side.wrote, side.owes) = (now, None);
        Ok(())
    }

    /// Records the progress of acknowledgements of `end`'s packets.
    pub(super) fn note_acknowledged(&mut self, end: End) {
        let now = self.now;
        let side = self.side_mut(end);
        let packets = side.session.unacknowledged().0;
        let acknowledged = side.numbered.saturating_sub(packets as u64);
        let gone = side.waiting.len().saturating_sub(packets);
        let bytes: usize = side.waiting.drain(..gone).map(|(_, bytes)| bytes + SHARE_BYTES).sum();
        side.paced.1 += bytes;
        if !side.dead && core::mem::replace(&mut side.acknowledged, acknowledged) < acknowledged {
            side.waits = (packets > 0).then_some(now);
        }
    }

    /// Returns the latest time at which `end` must ask to be called.
    fn due(&self, end: End) -> Option<Instant> {
        let (side, config) = (self.side(end), &self.config);
        let after = |start: Instant, time: Duration| start.plus_nanos(time.as_nanos() as u64);
        let watches = !side.dead && side.left.is_none();
        let heard = side.heard.filter(|_| watches);
        let dead = heard.map(|heard| side.waits.map_or(heard, |waits| waits.min(heard)));
        let suspect = heard.map(|heard| heard.max(side.renewed)).filter(|_| !side.found_silent);
        let stalled = heard.and(side.waits).map(|waits| waits.max(side.renewed));
        let stalled = stalled.filter(|_| !side.found_stalled);
        let judgements = [
            (dead, config.dead_after),
            (suspect, config.suspect_after),
            (stalled, config.stalled_after()),
        ];
        let judgements = judgements.map(|(start, time)| start.map(|start| after(start, time)));
        let heartbeat = (side.is_up && watches).then(|| after(side.wrote, config.heartbeat));
        let debt = side.owes.filter(|_| side.is_up);
        judgements.into_iter().chain([heartbeat, debt]).flatten().min()
    }

    /// Checks everything that must hold at `end` after every step.
    pub(super) fn check(&mut self, end: End) -> Result<(), Broken> {
        self.note_acknowledged(end);
        let (side, other) = (self.side(end), self.side(end.other()));
        let (packets, bytes) = side.session.unacknowledged();
        let byes = side.byes as usize;
        let frame = |at: Option<&(u64, usize)>| at.map_or(0, |(frame, _)| *frame as usize);
        let frames = frame(side.waiting.back()) + 1 - frame(side.waiting.front());
        let within = (packets <= self.config.window_packets + BYE_BYTES * byes
            && bytes <= self.config.window_bytes + BYE_BYTES * byes)
            || frames <= 1 + byes;
        let counted = side.waiting.iter().map(|(_, bytes)| bytes).sum::<usize>();
        claim!(Memory, bytes == counted, "{end:?} counts {bytes} bytes where {counted} wait");
        claim!(Memory, within, "{end:?} keeps {packets} packets of {bytes} bytes");
        if !side.dead {
            let acknowledged = side.numbered.saturating_sub(packets as u64);
            let arrived = other.came;
            claim!(
                Acknowledged,
                acknowledged <= arrived,
                "{acknowledged} packets of {end:?} are acknowledged, {arrived} have arrived"
            );
        }
        let ended = side.left.is_some() || side.dead;
        let stuck = side.refused && (packets == 0 || ended);
        claim!(Room, !stuck, "{end:?} was refused, nothing is in the way, and nobody tells it");
        let said = side.drained || side.closed.is_none() || !ended;
        claim!(
            CloseReason,
            said,
            "{end:?} is not told that nobody is there to receive its goodbye"
        );
        let (due, deadline) = (self.due(end), side.session.deadline());
        let late =
            due.is_some_and(|due| deadline.is_none_or(|deadline| deadline > due.max(self.now)));
        claim!(Quiet, !late, "{end:?} is due at {due:?}, and wants to be called at {deadline:?}");
        Ok(())
    }

    /// Sends a lie to `end`, if possible at the moment. Returns true if it was.
    ///
    /// # Errors
    /// If the session accepts it, blames the wrong end, or is changed by it.
    pub fn lie(&mut self, end: End, kind: Kind, lie: Lie) -> Result<bool, Broken> {
        let side = self.side(end);
        let next = side.numbered;
        let base = next - side.session.unacknowledged().0 as u64;
        let is_up = side.is_up;
        let came = Seq(side.came);
        let told = |told: bool, header: Header| told.then_some(header);
        let at = |seq: Seq, kind: Kind, ack: Seq| Header { kind, seq, ack, wants_ack: false };
        let known = Seq(base);
        let (header, stands) = match lie {
            Lie::Unsent(by) => (told(is_up, at(came, kind, Seq(next + 1 + by))), None),
            Lie::Gap(by) => (told(is_up, at(Seq(came.0 + 1 + by), kind, known)), None),
            Lie::BehindBye => {
                (told(is_up && side.left.is_some(), at(came, Kind::Data, known)), None)
            }
            Lie::CloseReason => {
                (told(is_up && side.left.is_none(), at(came, Kind::Bye, known)), None)
            }
            Lie::EmptyPart => {
                (told(is_up && side.left.is_none(), at(came, Kind::Part, known)), None)
            }
            Lie::ResumeBeyond(by) => (None, (!side.dead).then_some(Seq(next + 1 + by))),
            Lie::ResumeBefore(by) => {
                (None, (!side.dead && base > 0).then(|| Seq((base - 1).saturating_sub(by))))
            }
        };
        let now = self.now;
        let session = &mut self.side_mut(end).session;
        let before = format!("{session:?}");
        let (error, expected) = match (header, stands) {
            (Some(header), _) => {
                let head = if lie == Lie::EmptyPart { vec![] } else { vec![9, 9] };
                let (mut bad, mut frame) = (Frame { head, ..Frame::default() }, Frame::default());
                let expected: fn(&LinkError) -> bool = match lie {
                    Lie::Unsent(_) => |error| matches!(error, LinkError::Unsent { .. }),
                    Lie::Gap(_) => |error| matches!(error, LinkError::Gap { .. }),
                    Lie::BehindBye => |error| *error == LinkError::BehindBye,
                    Lie::EmptyPart => |error| matches!(error, LinkError::Part { .. }),
                    _ => |error| matches!(error, LinkError::CloseReason | LinkError::Part { .. }),
                };
                (session.handle_packet(now, header, &mut bad, &mut frame).err(), expected)
            }
            (None, Some(stands)) => {
                let expected: fn(&LinkError) -> bool =
                    |error| matches!(error, LinkError::Resume { .. });
                (session.handle_up(now, stands).err(), expected)
            }
            (None, None) => return Ok(false),
        };
        let right = error.as_ref().is_some_and(expected);
        claim!(Refusal, right, "{end:?} answers {lie:?} with {error:?}");
        let blames = error.is_some_and(|error| error.blames_peer());
        claim!(
            Refusal,
            blames != matches!(lie, Lie::Gap(_)),
            "{end:?} blames the wrong one for {lie:?}"
        );
        let after = format!("{:?}", self.side(end).session);
        claim!(
            Refusal,
            before == after,
            "{end:?} refuses {lie:?} and yet is changed by it: {before} {after}"
        );
        Ok(true)
    }
}

/// Size of the longest goodbye in bytes.
const BYE_BYTES: usize = 3;
/// Size of a header for the pace, besides the payload.
const SHARE_BYTES: usize = 64;
