//! What each end says must be true, and what must hold after every step.

use core::time::Duration;

use crate::link::{Event, Kind};
use crate::testing::link::{Broken, End, Pair, claim};
use crate::time::Instant;

impl Pair {
    /// Tells `end` the time: its judgement of the other end must be what the silence says.
    ///
    /// # Errors
    /// If a claim breaks.
    pub fn tick(&mut self, end: End) -> Result<(), Broken> {
        let (now, config) = (self.now, self.config);
        let side = self.side_mut(end);
        let had_ended = side.dead || side.left.is_some();
        side.session.handle_timeout(now);
        let silence = side.heard.map(|heard| Duration::from_nanos(now.nanos_since(heard)));
        self.hear_events(end)?;
        let side = self.side(end);
        let Some(silence) = silence.filter(|_| !had_ended) else { return Ok(()) };
        let dead = silence >= config.dead_after;
        let suspect = silence >= config.suspect_after && !dead;
        let what = (side.session.is_suspect(), side.dead);
        claim!(Vigil, what == (suspect, dead), "after {silence:?} of silence {end:?} is at {what:?}");
        Ok(())
    }

    /// Takes the events of `end`: each must be true.
    pub(super) fn hear_events(&mut self, end: End) -> Result<(), Broken> {
        let (now, config) = (self.now, self.config);
        while let Some(event) = self.side_mut(end).session.poll_event() {
            let said = self.side(end.other()).closed;
            let sent = self.side(end.other()).sent;
            let other_left = self.side(end.other()).left.is_some();
            let side = self.side_mut(end);
            let silence =
                side.heard.map_or(Duration::ZERO, |heard| Duration::from_nanos(now.nanos_since(heard)));
            match event {
                Event::Suspect => {
                    let right = !side.suspects && silence >= config.suspect_after;
                    claim!(Vigil, right, "{end:?} suspects after {silence:?}");
                    side.suspects = true;
                }
                Event::Recovered => {
                    let right = side.suspects && silence.is_zero();
                    claim!(Vigil, right, "{end:?} says recovered after {silence:?}");
                    side.suspects = false;
                }
                Event::Dead(time) => {
                    let right = !side.dead && time == silence && silence >= config.dead_after;
                    claim!(Vigil, right, "{end:?} says dead for {time:?} after {silence:?}");
                    (side.dead, side.is_up) = (true, false);
                }
                Event::Left(farewell) => {
                    let right = side.left.is_none() && said == Some(farewell) && side.delivered == sent;
                    claim!(Farewell, right, "{end:?} hears {farewell:?} at {} of {sent}", side.delivered);
                    side.left = Some(farewell);
                }
                Event::Room => {
                    claim!(Room, side.refused, "{end:?} tells of room that nobody asked for");
                    side.refused = false;
                    side.rooms += 1;
                }
                Event::Drained => {
                    let there = other_left || side.left.is_some() || side.dead;
                    let right = side.closed.is_some() && !side.drained && there;
                    claim!(Farewell, right, "{end:?} says that its goodbye has arrived");
                    side.drained = true;
                }
            }
        }
        self.check(end)
    }

    /// Whether a packet of `kind` was to be written: it counts as written from here on.
    pub(super) fn judge_write(&mut self, end: End, kind: Kind) -> Result<(), Broken> {
        let (now, config) = (self.now, self.config);
        let side = self.side_mut(end);
        let pause = Duration::from_nanos(now.nanos_since(side.wrote));
        let early = kind == Kind::Heartbeat && pause < config.heartbeat;
        claim!(Quiet, !early, "{end:?} writes a heartbeat {pause:?} after its last packet");
        let idle = kind == Kind::Ack && side.owes.is_none();
        claim!(Quiet, !idle, "{end:?} acknowledges, and nothing has come");
        (side.wrote, side.owes) = (now, None);
        Ok(())
    }

    /// The latest moment at which `end` must want to be called.
    fn due(&self, end: End) -> Option<Instant> {
        let (side, config) = (self.side(end), &self.config);
        let after = |start: Instant, time: Duration| start.plus_nanos(time.as_nanos() as u64);
        let patience = if side.suspects { config.dead_after } else { config.suspect_after };
        let watches = !side.dead && side.left.is_none();
        let judgement = side.heard.filter(|_| watches).map(|heard| after(heard, patience));
        let heartbeat = (side.is_up && watches).then(|| after(side.wrote, config.heartbeat));
        let debt = side.owes.filter(|_| side.is_up).map(|since| after(since, config.ack_delay));
        [judgement, heartbeat, debt].into_iter().flatten().min()
    }

    /// What must hold at `end` after every step.
    pub(super) fn check(&mut self, end: End) -> Result<(), Broken> {
        let frames = self.side(end).session.unacknowledged().0;
        let sizes = &mut self.side_mut(end).sizes;
        sizes.drain(..sizes.len().saturating_sub(frames));
        let (side, other) = (self.side(end), self.side(end.other()));
        let (frames, bytes) = side.session.unacknowledged();
        let byes = side.byes as usize;
        let within = frames <= self.config.window_frames + byes
            && (bytes <= self.config.window_bytes + BYE_BYTES * byes || frames <= 1 + byes);
        let counted = side.sizes.iter().sum::<usize>();
        claim!(Memory, bytes == counted, "{end:?} counts {bytes} bytes where {counted} wait");
        claim!(Memory, within, "{end:?} keeps {frames} frames of {bytes} bytes");
        if !side.dead {
            let acknowledged = side.numbered().saturating_sub(frames as u64);
            let arrived = other.arrived();
            claim!(
                Acknowledged,
                acknowledged <= arrived,
                "{acknowledged} packets of {end:?} are acknowledged, {arrived} have arrived"
            );
        }
        let ended = side.left.is_some() || side.dead;
        let stuck = side.refused && (frames == 0 || ended);
        claim!(Room, !stuck, "{end:?} was refused, nothing is in the way, and nobody tells it");
        let said = side.drained || side.closed.is_none() || !ended;
        claim!(Farewell, said, "{end:?} is not told that nobody is there to receive its goodbye");
        let (due, deadline) = (self.due(end), side.session.deadline());
        let late = due.is_some_and(|due| deadline.is_none_or(|deadline| deadline > due.max(self.now)));
        claim!(Quiet, !late, "{end:?} is due at {due:?}, and wants to be called at {deadline:?}");
        Ok(())
    }
}

/// Bytes of the longest goodbye.
const BYE_BYTES: usize = 3;
