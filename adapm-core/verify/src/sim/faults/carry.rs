//! Reads and writes of the ends of a link, and the reports of their sessions, checked against the
//! events.

use core::time::Duration;

use adapm_core::Instant;
use adapm_core::link::{Arrival, Content, Event, Header, LinkError, Seq};
use adapm_core::transport::Frame;

use super::event::{EventKind, LinkEvent, Shared, Side};
use super::link::Link;
use super::way::{HEADER_BYTES, Item, Parcel};
use crate::sim::links::{Broken, Effects};

impl Link {
    pub(super) fn read(
        &mut self,
        now: Instant,
        side: Side,
        parcel: Parcel,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let Parcel { pipe, item, .. } = parcel;
        let end = &mut self.ends[side as usize];
        match item {
            Item::Hello(stands) if pipe > end.pipe && !end.is_dead => {
                end.pipe = pipe;
                end.session.handle_down();
                self.ways[side.other() as usize].discard(pipe);
                self.come_up(now, side, stands)?;
                let stands = self.ends[side as usize].session.expects();
                self.post(now, side.other(), pipe, Item::Answer(stands), shared, effects);
                Ok(())
            }
            Item::Answer(stands) if pipe == end.pipe && !end.is_up && !end.is_dead => {
                self.come_up(now, side, stands)
            }
            Item::Packet(header, content) if pipe == end.pipe && end.is_up => {
                self.packet(now, side, header, content, effects)
            }
            Item::Bytes if pipe == end.pipe && end.is_up => {
                end.session.handle_bytes(now);
                end.heard = Some(now);
                Ok(())
            }
            Item::Break if pipe == end.pipe => {
                self.lower(now, side, shared, effects);
                Ok(())
            }
            // Belongs to an old pipe.
            Item::Hello(_) | Item::Answer(_) | Item::Packet(..) | Item::Bytes | Item::Break => {
                Ok(())
            }
        }
    }

    fn come_up(&mut self, now: Instant, side: Side, stands: Seq) -> Result<(), Broken> {
        let (node, peer) = (self.node(side), self.node(side.other()));
        let end = &mut self.ends[side as usize];
        let up = end.session.handle_up(now, stands);
        up.map_err(|error| Broken(format!("{node} does not go on with {peer}: {error}")))?;
        (end.is_up, end.renewed) = (true, now);
        end.heard.get_or_insert(now);
        end.note_acknowledged(now, stands);
        Ok(())
    }

    fn packet(
        &mut self,
        now: Instant,
        side: Side,
        header: Header,
        content: Option<Content>,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let (node, peer) = (self.node(side), self.node(side.other()));
        let end = &mut self.ends[side as usize];
        let mut packet = content.map_or_else(Frame::default, |content| content.to_frame());
        let mut frame = Frame::default();
        let refused =
            |error: LinkError| Broken(format!("{node} refuses a sound packet of {peer}: {error}"));
        let arrival =
            end.session.handle_packet(now, header, &mut packet, &mut frame).map_err(refused)?;
        end.heard = Some(now);
        end.note_acknowledged(now, header.ack);
        if arrival == Arrival::Deliver {
            end.handed_on += 1;
            effects.arrived.push((peer, node, frame));
        }
        Ok(())
    }

    /// Handles the end of the pipe of `side`.
    fn lower(
        &mut self,
        now: Instant,
        side: Side,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) {
        let end = &mut self.ends[side as usize];
        end.session.handle_down();
        end.is_up = false;
        let pipe = end.pipe;
        match side {
            Side::Dialer => {
                let pause = shared.rng.number(REDIAL_NANOS);
                effects.later.push((now.plus_nanos(pause), self.event(EventKind::Dial(pipe))));
            }
            Side::Listener => self.post(now, Side::Dialer, pipe, Item::Break, shared, effects),
        }
    }

    /// Carries out the events of the session of `side`, and checks that each is true.
    pub(super) fn check_events(
        &mut self,
        now: Instant,
        side: Side,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let (node, peer) = (self.node(side), self.node(side.other()));
        while let Some(event) = self.ends[side as usize].session.poll_event() {
            effects.tell(|| format!("the link of {node} to {peer}: {event:?}"));
            let other = self.end(side.other());
            let (peer_left, peer_sent, peer_closed) =
                (other.has_left, other.sent, other.has_closed);
            let end = &mut self.ends[side as usize];
            let (silence, quiet, stall) = (end.silence(now), end.quiet(now), end.stall(now));
            let is_long = |nanos: u64, least: Duration| u128::from(nanos) >= least.as_nanos();
            let is_true = match event {
                Event::Suspect | Event::Stalled => {
                    let is_true = match event {
                        Event::Stalled => is_long(stall, self.config.stalled_after()),
                        _ => is_long(quiet, self.config.suspect_after),
                    };
                    if end.is_up {
                        self.lower(now, side, shared, effects);
                    }
                    is_true
                }
                Event::Recovered => silence == 0,
                Event::Stuck(told) => told.time.as_nanos() == u128::from(stall),
                Event::Dead(_) => {
                    (end.is_dead, end.is_up) = (true, false);
                    end.backlog.clear();
                    effects.lost.push((node, peer));
                    is_long(silence.max(stall), self.config.dead_after)
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
                return Err(Broken(format!(
                    "{node} says {event:?} of {peer} after {silence} ns of silence and {stall} ns without progress"
                )));
            }
        }
        Ok(())
    }

    /// Writes the due packets of the session of `side`.
    pub(super) fn write(
        &mut self,
        now: Instant,
        side: Side,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) {
        let reader = side.other();
        while let Some((header, content)) = self.ends[side as usize].session.poll_packet(now) {
            let end = &mut self.ends[side as usize];
            if content.is_some() {
                end.waits.get_or_insert(now);
            }
            let pipe = end.pipe;
            let repeats = core::mem::take(&mut self.ways[reader as usize].repeats);
            for _ in 0..=usize::from(repeats) {
                self.post(
                    now,
                    reader,
                    pipe,
                    Item::Packet(header, content.clone()),
                    shared,
                    effects,
                );
            }
        }
        self.arm(now, side, effects);
    }

    /// Puts an item on the way to `reader`.
    pub(super) fn post(
        &mut self,
        now: Instant,
        reader: Side,
        pipe: u32,
        item: Item,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) {
        let (from, to) = (self.node(reader.other()), self.node(reader));
        let frame_bytes = match &item {
            Item::Packet(_, Some(content)) => content.len(),
            _ => 0,
        };
        let bytes = HEADER_BYTES + frame_bytes;
        let arrival = shared.wire.depart(now, from, to, bytes, &mut shared.rng);
        let (event, step) = (self.event(EventKind::Arrive(reader)), self.config.suspect_after / 4);
        let later = |moment| effects.later.push((moment, event));
        self.ways[reader as usize].put(now, (pipe, item), bytes, arrival, step, later);
    }

    /// Sets the alarm of the session of `side`, unless an earlier one is set.
    pub(super) fn arm(&mut self, now: Instant, side: Side, effects: &mut Effects<LinkEvent>) {
        let what = self.event(EventKind::Alarm(side));
        let end = &mut self.ends[side as usize];
        let Some(deadline) = end.session.deadline() else { return };
        let deadline = deadline.max(now.plus_nanos(1));
        if end.alarm.is_none_or(|alarm| alarm > deadline) {
            end.alarm = Some(deadline);
            effects.later.push((deadline, what));
        }
    }

    /// Checks that the session of `side` keeps no more packets than its window allows.
    pub(super) fn check_window(&self, side: Side) -> Result<(), Broken> {
        let (packets, bytes) = self.end(side).session.unacknowledged();
        let byes = usize::from(self.end(side).has_closed);
        // A frame alone may be larger than the window.
        let largest = self.end(side).largest.div_ceil(self.config.packet_bytes);
        let within = packets <= self.config.window_packets.max(largest) + byes;
        if within {
            return Ok(());
        }
        let (node, peer) = (self.node(side), self.node(side.other()));
        Err(Broken(format!(
            "{node} keeps {packets} packets of {bytes} bytes for {peer}, more than its window"
        )))
    }
}

/// Delay before a dialer makes a new pipe, in nanoseconds.
const REDIAL_NANOS: core::ops::Range<u64> = 10_000..2_000_000;
