//! Packets and resumptions that no sound peer says: refused, blamed on the right one, and without effect.

use crate::link::{Broken, End, Pair, claim};
use adapm_core::link::{Header, Kind, LinkError, Seq};
use adapm_core::transport::Frame;

/// What a lying peer, or a pipe that loses packets, may say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// Acknowledges packets that were never sent, so many of them.
    Unsent(u64),
    /// Leaves so many packets out.
    Gap(u64),
    /// Wants to go on so far behind the last packet.
    ResumeBeyond(u64),
    /// Wants to go on so far before what is still kept.
    ResumeBefore(u64),
    /// Goes on behind its bye.
    BehindBye,
    /// Ends without a reason that can be understood, or within a frame.
    Farewell,
    /// Goes on with a part of a frame in which there is nothing.
    EmptyPart,
}

impl Pair {
    /// Tells `end` a lie, if it can be told at the moment; whether it could.
    ///
    /// # Errors
    /// If the session takes it, blames the wrong one, or is changed by it.
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
            Lie::BehindBye => (told(is_up && side.left.is_some(), at(came, Kind::Data, known)), None),
            Lie::Farewell => (told(is_up && side.left.is_none(), at(came, Kind::Bye, known)), None),
            Lie::EmptyPart => (told(is_up && side.left.is_none(), at(came, Kind::Part, known)), None),
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
                    _ => |error| matches!(error, LinkError::Farewell | LinkError::Part { .. }),
                };
                (session.handle_packet(now, header, &mut bad, &mut frame).err(), expected)
            }
            (None, Some(stands)) => {
                let expected: fn(&LinkError) -> bool = |error| matches!(error, LinkError::Resume { .. });
                (session.handle_up(now, stands).err(), expected)
            }
            (None, None) => return Ok(false),
        };
        let right = error.as_ref().is_some_and(expected);
        claim!(Refusal, right, "{end:?} answers {lie:?} with {error:?}");
        let blames = error.is_some_and(|error| error.blames_peer());
        claim!(Refusal, blames != matches!(lie, Lie::Gap(_)), "{end:?} blames the wrong one for {lie:?}");
        let after = format!("{:?}", self.side(end).session);
        claim!(
            Refusal,
            before == after,
            "{end:?} refuses {lie:?} and yet is changed by it: {before} {after}"
        );
        Ok(true)
    }
}
