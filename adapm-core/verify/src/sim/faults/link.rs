//! One link: two ends, and a pipe at a time between them. Reads and writes are in `carry`.

use core::time::Duration;

use adapm_core::link::LinkConfig;
use adapm_core::{Instant, NodeId};

use super::end::End;
use super::event::{EventKind, LinkEvent, Pair, Shared, Side};
use super::way::{HEADER_BYTES, Item, Way};
use crate::sim::links::{Broken, Effects};
use crate::sim::under_test::Sent;

/// One link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) pair: Pair,
    pub(super) ends: [End; 2],
    /// Items in flight, by reader.
    pub(super) ways: [Way; 2],
    pub(super) config: LinkConfig,
}

impl Link {
    pub(super) fn new(pair: Pair, config: LinkConfig) -> Self {
        let ends = [End::new(config), End::new(config)];
        Self { pair, ends, ways: [Way::default(), Way::default()], config }
    }

    #[cfg(feature = "checked")]
    pub(super) fn plant(&mut self, bug: crate::LinkBug) {
        for end in &mut self.ends {
            end.session = crate::planted::PlantedSession::with_bug(self.config, Some(bug));
        }
    }

    /// Returns the side of `node`, if it is part of the link of `pair`.
    pub(super) fn side_of(pair: Pair, node: NodeId) -> Option<Side> {
        match node {
            node if node == pair.0 => Some(Side::Dialer),
            node if node == pair.1 => Some(Side::Listener),
            _ => None,
        }
    }

    pub(super) fn send(
        &mut self,
        now: Instant,
        when: Instant,
        sent: Sent,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let side = self.sided(sent.from);
        self.ends[side as usize].announce(sent.frame, sent.asks);
        if when > now {
            effects.later.push((when, self.event(EventKind::Depart(side))));
            return Ok(());
        }
        self.depart(now, side, shared, effects)
    }

    /// Sends the next frame that the node of `side` has finished, unless it is paused.
    pub(super) fn depart(
        &mut self,
        now: Instant,
        side: Side,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let paused = shared.paused_until[self.node(side).index()];
        if paused > now {
            effects.later.push((paused, self.event(EventKind::Depart(side))));
            return Ok(());
        }
        let end = &mut self.ends[side as usize];
        let Some(frame) = end.buffer.pop_front() else { return Ok(()) };
        end.send(frame);
        self.write(now, side, shared, effects);
        self.check_window(side)
    }

    /// Dials a new pipe.
    pub(super) fn dial(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) {
        let end = &mut self.ends[Side::Dialer as usize];
        end.session.handle_down();
        end.is_up = false;
        end.pipe += 1;
        let (pipe, stands) = (end.pipe, end.session.expects());
        effects.tell(|| format!("{} dials {}: pipe {pipe}", self.pair.0, self.pair.1));
        // It has closed the earlier ones.
        self.ways[Side::Listener as usize].discard(pipe);
        self.post(now, Side::Listener, pipe, Item::Hello(stands), shared, effects);
        // Dials again if no answer comes.
        let patience = self.config.suspect_after.as_nanos() as u64;
        effects.later.push((now.plus_nanos(patience), self.event(EventKind::Dial(pipe))));
        self.arm(now, Side::Dialer, effects);
    }

    /// Replaces pipe `pipe`, which was found broken, or had no answer for long.
    pub(super) fn redial(
        &mut self,
        now: Instant,
        pipe: u32,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) {
        let end = &self.ends[Side::Dialer as usize];
        let is_needed = end.pipe == pipe && !end.is_up && !end.is_dead && !end.is_gone;
        let paused = shared.paused_until[self.pair.0.index()];
        if is_needed && paused > now {
            effects.later.push((paused, self.event(EventKind::Dial(pipe))));
        } else if is_needed {
            self.dial(now, shared, effects);
        }
    }

    /// Reads arrived items at `side`, unless it is blocked or its node is paused.
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        side: Side,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let reader = self.node(side);
        let later = self.ways[side as usize].blocked_until.max(shared.paused_until[reader.index()]);
        if later > now {
            effects.later.push((later, self.event(EventKind::Arrive(side))));
            return Ok(());
        }
        let Some(parcel) = self.ways[side as usize].take(now) else { return Ok(()) };
        if self.ends[side as usize].is_gone {
            return Ok(());
        }
        self.read(now, side, parcel, shared, effects)?;
        self.check_events(now, side, shared, effects)?;
        self.write(now, side, shared, effects);
        self.check_window(side)
    }

    /// Handles an alarm of the session of `side`, which may be outdated.
    pub(super) fn handle_alarm(
        &mut self,
        now: Instant,
        side: Side,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let paused = shared.paused_until[self.node(side).index()];
        let end = &mut self.ends[side as usize];
        if end.alarm != Some(now) || end.is_gone {
            return Ok(());
        }
        if paused > now {
            // Items that have arrived meanwhile are read first.
            let later = paused.plus_nanos(1);
            end.alarm = Some(later);
            effects.later.push((later, self.event(EventKind::Alarm(side))));
            return Ok(());
        }
        end.alarm = None;
        end.session.handle_timeout(now);
        self.check_events(now, side, shared, effects)?;
        self.write(now, side, shared, effects);
        self.check_window(side)
    }

    /// Breaks the pipe; of the parcels in flight, the first few still arrive.
    pub(super) fn reset(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) {
        for side in Side::BOTH {
            let parcels = &mut self.ways[side as usize].parcels;
            let all = parcels.len() as u64;
            let keep = if shared.rng.chance(50) { 0 } else { shared.rng.number(0..all + 1) };
            parcels.truncate(keep as usize);
            effects.tell(|| {
                format!("the pipe {:?} loses {} parcels for {side:?}", self.pair, all - keep)
            });
            let pipe = self.ends[side as usize].pipe;
            self.post(now, side, pipe, Item::Break, shared, effects);
        }
    }

    /// Blocks everything from `from` until then.
    pub(super) fn block(&mut self, from: NodeId, until: Instant) {
        let way = &mut self.ways[self.sided(from).other() as usize];
        way.blocked_until = until.max(way.blocked_until);
    }

    /// Slows both directions until then: a packet of the largest size takes `packet_time`.
    pub(super) fn slow_down(&mut self, packet_time: Duration, until: Instant) {
        let bytes = self.config.packet_bytes as u64 + HEADER_BYTES as u64;
        for way in &mut self.ways {
            way.slow_down((packet_time.as_nanos() as u64 / bytes).max(1), until);
        }
    }

    /// Drops packets of `from` above `bytes_max` until then, and everything after them on the same
    /// pipe.
    pub(super) fn drop_large(&mut self, from: NodeId, bytes_max: usize, until: Instant) {
        self.ways[self.sided(from).other() as usize].drop_large(bytes_max, until);
    }

    /// Doubles the next packet of `from`.
    pub(super) fn repeat(&mut self, from: NodeId) {
        self.ways[self.sided(from).other() as usize].repeats = true;
    }

    /// Makes the node of `side` vanish. A part of its written data arrives at once, the rest never.
    pub(super) fn vanish(
        &mut self,
        now: Instant,
        side: Side,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        self.ends[side as usize].is_gone = true;
        self.ends[side as usize].buffer.clear();
        let survivor = side.other();
        if self.ends[survivor as usize].is_gone {
            return Ok(());
        }
        if self.ends[survivor as usize].heard.is_none() {
            // It was never met: peers that join with it are notified at once.
            self.ends[survivor as usize].is_dead = true;
            effects.lost.push((self.node(survivor), self.node(side)));
            return Ok(());
        }
        let parcels = core::mem::take(&mut self.ways[survivor as usize].parcels);
        let keep = shared.rng.number(0..parcels.len() as u64 + 1);
        for parcel in parcels.into_iter().take(keep as usize) {
            self.read(now, survivor, parcel, shared, effects)?;
            self.check_events(now, survivor, shared, effects)?;
        }
        self.write(now, survivor, shared, effects);
        self.check_window(survivor)
    }

    pub(super) fn heal(&mut self, now: Instant, effects: &mut Effects<LinkEvent>) {
        for side in Side::BOTH {
            let way = &mut self.ways[side as usize];
            way.blocked_until = now.min(way.blocked_until);
            way.mend();
            for _ in 0..way.parcels.len() {
                effects
                    .later
                    .push((now, LinkEvent { pair: self.pair, kind: EventKind::Arrive(side) }));
            }
        }
    }

    pub(super) fn close(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        if self.ends.iter().any(|end| end.is_gone) {
            return Ok(());
        }
        for side in Side::BOTH {
            self.ends[side as usize].close();
            self.check_events(now, side, shared, effects)?;
            self.write(now, side, shared, effects);
        }
        Ok(())
    }

    pub(super) fn end(&self, side: Side) -> &End {
        &self.ends[side as usize]
    }

    pub(super) fn holds_up(&mut self, node: NodeId) -> bool {
        let side = self.sided(node);
        self.ends[side as usize].holds_up()
    }

    pub(super) fn is_at_rest(&self) -> bool {
        let [dialer, listener] = &self.ends;
        let rests = |end: &End, peer: &End| {
            if peer.is_gone { end.is_gone || end.is_dead } else { end.is_at_rest() }
        };
        rests(dialer, listener) && rests(listener, dialer)
    }

    /// Describes unfinished work.
    pub(super) fn waiting(&self) -> Option<String> {
        let busy = Side::BOTH.into_iter().filter(|side| !self.end(*side).is_at_rest());
        let busy: Vec<String> = busy
            .map(|side| {
                let end = self.end(side);
                let (frames, backlog) =
                    (end.session.unacknowledged().0, end.buffer.len() + end.backlog.len());
                let (from, to) = (self.node(side), self.node(side.other()));
                let up = if end.is_up { "up" } else { "down" };
                format!(
                    "{from} -> {to} ({up}): {frames} packets not acknowledged, {backlog} frames not written"
                )
            })
            .collect();
        (!busy.is_empty()).then(|| busy.join(", "))
    }

    pub(super) fn node(&self, side: Side) -> NodeId {
        match side {
            Side::Dialer => self.pair.0,
            Side::Listener => self.pair.1,
        }
    }

    fn sided(&self, node: NodeId) -> Side {
        if node == self.pair.0 { Side::Dialer } else { Side::Listener }
    }

    pub(super) fn event(&self, kind: EventKind) -> LinkEvent {
        LinkEvent { pair: self.pair, kind }
    }
}
