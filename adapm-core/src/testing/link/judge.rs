//! What each end says must be true, and what must hold after every step.

use core::time::Duration;

use crate::link::Event;
use crate::testing::link::{Broken, End, Pair, claim};

impl Pair {
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

    /// What must hold at `end` after every step.
    pub(super) fn check(&self, end: End) -> Result<(), Broken> {
        let (side, other) = (self.side(end), self.side(end.other()));
        let (frames, bytes) = side.session.unacknowledged();
        let byes = side.byes as usize;
        let within = frames <= self.config.window_frames + byes
            && (bytes <= self.config.window_bytes + BYE_BYTES * byes || frames <= 1 + byes);
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
        let stuck = side.refused && frames == 0;
        claim!(Room, !stuck, "{end:?} was refused, nothing waits, and nobody tells it");
        Ok(())
    }
}

/// Bytes of the longest goodbye.
const BYE_BYTES: usize = 3;
