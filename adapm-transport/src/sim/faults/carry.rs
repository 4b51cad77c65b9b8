//! What the ends of a link read and write, and what their sessions say: judged by what happened.

use std::sync::Arc;

use adapm_core::Instant;
use adapm_core::link::{Arrival, Event, Header, LinkError, Seq};
use adapm_core::transport::Frame;

use super::faulty::{Around, LinkEvent, What};
use super::link::{Link, Side};
use super::way::{Item, Parcel};
use crate::sim::links::{Broken, Effects};

impl Link {
    pub(super) fn read(
        &mut self,
        now: Instant,
        side: Side,
        parcel: Parcel,
        around: &mut Around,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let Parcel { pipe, item, .. } = parcel;
        let end = &mut self.ends[side as usize];
        match item {
            Item::Hello(stands) if pipe > end.pipe && !end.is_dead => {
                end.pipe = pipe;
                end.session.handle_down();
                self.come_up(now, side, stands)?;
                let stands = self.ends[side as usize].session.expects();
                self.post(now, side.other(), pipe, Item::Answer(stands), around, effects);
                Ok(())
            }
            Item::Answer(stands) if pipe == end.pipe && !end.is_up && !end.is_dead => {
                self.come_up(now, side, stands)
            }
            Item::Packet(header, frame) if pipe == end.pipe && end.is_up => {
                self.packet(now, side, header, frame, effects)
            }
            Item::Break if pipe == end.pipe => {
                self.lower(now, side, around, effects);
                Ok(())
            }
            // Of an old pipe.
            Item::Hello(_) | Item::Answer(_) | Item::Packet(..) | Item::Break => Ok(()),
        }
    }

    fn come_up(&mut self, now: Instant, side: Side, stands: Seq) -> Result<(), Broken> {
        let (node, peer) = (self.node(side), self.node(side.other()));
        let end = &mut self.ends[side as usize];
        let up = end.session.handle_up(now, stands);
        up.map_err(|error| Broken(format!("{node} does not go on with {peer}: {error}")))?;
        (end.is_up, end.heard) = (true, Some(now));
        Ok(())
    }

    fn packet(
        &mut self,
        now: Instant,
        side: Side,
        header: Header,
        frame: Option<Arc<Frame>>,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let (node, peer) = (self.node(side), self.node(side.other()));
        let end = &mut self.ends[side as usize];
        let frame = frame.map_or_else(Frame::default, |frame| (*frame).clone());
        let refused = |error: LinkError| Broken(format!("{node} refuses a sound packet of {peer}: {error}"));
        let arrival = end.session.handle_packet(now, header, &frame).map_err(refused)?;
        end.heard = Some(now);
        if arrival == Arrival::Deliver {
            end.handed_on += 1;
            effects.arrived.push((peer, node, frame));
        }
        Ok(())
    }

    /// The pipe of `side` is gone.
    fn lower(&mut self, now: Instant, side: Side, around: &mut Around, effects: &mut Effects<LinkEvent>) {
        let end = &mut self.ends[side as usize];
        end.session.handle_down();
        end.is_up = false;
        let pipe = end.pipe;
        match side {
            Side::Dialer => {
                let pause = around.dice.within(REDIAL_NANOS);
                effects.later.push((now.plus_nanos(pause), self.event(What::Dial(pipe))));
            }
            Side::Listener => self.post(now, Side::Dialer, pipe, Item::Break, around, effects),
        }
    }

    /// Takes what the session of `side` tells: each of it must be true.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        side: Side,
        around: &mut Around,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let (node, peer) = (self.node(side), self.node(side.other()));
        while let Some(event) = self.ends[side as usize].session.poll_event() {
            effects.tell(|| format!("the link of {node} to {peer}: {event:?}"));
            let other = self.end(side.other());
            let (peer_left, peer_sent, peer_closed) = (other.has_left, other.sent, other.has_closed);
            let end = &mut self.ends[side as usize];
            let silence = end.silence(now);
            let is_true = match event {
                Event::Suspect => {
                    let is_true = u128::from(silence) >= self.config.suspect_after.as_nanos();
                    if end.is_up {
                        self.lower(now, side, around, effects);
                    }
                    is_true
                }
                Event::Recovered => silence == 0,
                Event::Dead(_) => {
                    (end.is_dead, end.is_up) = (true, false);
                    end.backlog.clear();
                    effects.lost.push((node, peer));
                    u128::from(silence) >= self.config.dead_after.as_nanos()
                }
                Event::Left(_) => {
                    end.has_left = true;
                    peer_closed && end.handed_on == peer_sent
                }
                Event::Room => {
                    end.fill();
                    true
                }
                Event::Drained => {
                    end.is_drained = true;
                    end.has_closed && (peer_left || end.has_left || end.is_dead)
                }
            };
            if !is_true {
                return Err(Broken(format!("{node} says {event:?} of {peer} after {silence} ns of silence")));
            }
        }
        Ok(())
    }

    /// Writes what the session of `side` wants to be written.
    pub(super) fn write(
        &mut self,
        now: Instant,
        side: Side,
        around: &mut Around,
        effects: &mut Effects<LinkEvent>,
    ) {
        let reader = side.other();
        while let Some((header, frame)) = self.ends[side as usize].session.poll_packet(now) {
            let pipe = self.ends[side as usize].pipe;
            let repeats = core::mem::take(&mut self.ways[reader as usize].repeats);
            for _ in 0..=usize::from(repeats) {
                self.post(now, reader, pipe, Item::Packet(header, frame.clone()), around, effects);
            }
        }
        self.arm(now, side, effects);
    }

    /// Puts something on its way to `reader`.
    pub(super) fn post(
        &mut self,
        now: Instant,
        reader: Side,
        pipe: u32,
        item: Item,
        around: &mut Around,
        effects: &mut Effects<LinkEvent>,
    ) {
        let (from, to) = (self.node(reader.other()), self.node(reader));
        let frame_bytes = match &item {
            Item::Packet(_, Some(frame)) => frame.len(),
            _ => 0,
        };
        let arrival = around.wire.depart(now, from, to, HEADER_BYTES + frame_bytes, &mut around.dice);
        self.ways[reader as usize].parcels.push_back(Parcel { arrival, pipe, item });
        effects.later.push((arrival, self.event(What::Arrive(reader))));
    }

    /// Sets the alarm of the session of `side`, unless an earlier one is set.
    pub(super) fn arm(&mut self, now: Instant, side: Side, effects: &mut Effects<LinkEvent>) {
        let what = self.event(What::Alarm(side));
        let end = &mut self.ends[side as usize];
        let Some(deadline) = end.session.deadline() else { return };
        let deadline = deadline.max(now.plus_nanos(1));
        if end.alarm.is_none_or(|alarm| alarm > deadline) {
            end.alarm = Some(deadline);
            effects.later.push((deadline, what));
        }
    }

    pub(super) fn judge(&self, side: Side) -> Result<(), Broken> {
        let (frames, bytes) = self.end(side).session.unacknowledged();
        let byes = usize::from(self.end(side).has_closed);
        let within = frames <= self.config.window_frames + byes;
        if within {
            return Ok(());
        }
        let (node, peer) = (self.node(side), self.node(side.other()));
        Err(Broken(format!(
            "{node} keeps {frames} packets of {bytes} bytes for {peer}, more than its window"
        )))
    }
}

/// Bytes of a packet without its frame.
const HEADER_BYTES: usize = 24;
/// How long a dialer waits before it makes a new pipe, in nanoseconds.
const REDIAL_NANOS: core::ops::Range<u64> = 10_000..2_000_000;
