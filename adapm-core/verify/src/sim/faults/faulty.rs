//! Links for the simulator that break and resume: a real link session at each end of each link,
//! over simulated pipes that are lost with the data in flight.
//!
//! The claims of a session are checked here (its events, its window). That each frame arrives once
//! and in order is checked by the system under test, which knows the sent messages.

use std::collections::BTreeMap;

use adapm_core::link::LinkConfig;
use adapm_core::{Instant, NodeId};

use super::Fault;
use super::event::{EventKind, LinkEvent, Pair, Shared, Side};
use super::link::Link;
use crate::rng::Rng;
use crate::sim::links::{Broken, Effects, Links};
use crate::sim::under_test::Sent;
use crate::sim::wire::{Wire, WireConfig};

/// Links between any two nodes of a small cluster, with faults.
#[derive(Debug)]
pub struct FaultyLinks {
    links: BTreeMap<Pair, Link>,
    shared: Shared,
    is_connected: bool,
}

impl FaultyLinks {
    /// Creates links among `nodes` nodes; all random choices follow from the seed.
    #[must_use]
    pub fn new(config: LinkConfig, wire: WireConfig, nodes: usize, seed: u64) -> Self {
        let ids = || (0..nodes as u16).map(NodeId);
        let pairs = ids().flat_map(|a| ids().filter(move |b| a < *b).map(move |b| (a, b)));
        let shared = Shared {
            wire: Wire::new(wire, nodes),
            rng: Rng::new(seed),
            paused_until: vec![Instant::ZERO; nodes],
        };
        Self {
            links: pairs.map(|pair| (pair, Link::new(pair, config))).collect(),
            shared,
            is_connected: false,
        }
    }

    /// Plants a bug in every session; must be called before the first event.
    #[cfg(feature = "checked")]
    pub fn plant(&mut self, bug: crate::LinkBug) {
        for link in self.links.values_mut() {
            link.plant(bug);
        }
    }

    /// Returns the links of `node`, each with the side of `node`.
    fn of_node(&self, node: NodeId) -> impl Iterator<Item = (&Link, Side)> {
        self.links.iter().filter_map(move |(pair, link)| Some((link, Link::side_of(*pair, node)?)))
    }

    /// Returns the link between two nodes, and the shared state.
    fn link(&mut self, a: NodeId, b: NodeId) -> (&mut Link, &mut Shared) {
        let pair = (a.min(b), a.max(b));
        (self.links.get_mut(&pair).expect("every two nodes have a link"), &mut self.shared)
    }
}

impl Links for FaultyLinks {
    type Event = LinkEvent;

    fn open(&mut self, now: Instant, effects: &mut Effects<LinkEvent>) {
        if !core::mem::replace(&mut self.is_connected, true) {
            for link in self.links.values_mut() {
                link.dial(now, &mut self.shared, effects);
            }
        }
    }

    fn send(
        &mut self,
        now: Instant,
        when: Instant,
        sent: Sent,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let (link, shared) = self.link(sent.from, sent.to);
        link.send(now, when, sent, shared, effects)
    }

    fn handle(
        &mut self,
        now: Instant,
        event: LinkEvent,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let (link, shared) = self.link(event.pair.0, event.pair.1);
        match event.kind {
            EventKind::Arrive(side) => link.arrive(now, side, shared, effects),
            EventKind::Depart(side) => link.depart(now, side, shared, effects),
            EventKind::Alarm(side) => link.handle_alarm(now, side, shared, effects),
            EventKind::Dial(pipe) => {
                link.redial(now, pipe, shared, effects);
                Ok(())
            }
        }
    }

    fn trace(&self, event: &LinkEvent) -> [u64; 3] {
        let what = match event.kind {
            EventKind::Arrive(side) => side as u64,
            EventKind::Alarm(side) => 2 + side as u64,
            EventKind::Depart(side) => 4 + side as u64,
            EventKind::Dial(pipe) => 6 + u64::from(pipe),
        };
        [u64::from(event.pair.0.0), u64::from(event.pair.1.0), what]
    }

    fn strike(
        &mut self,
        now: Instant,
        fault: &Fault,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        match fault {
            Fault::Reset(a, b) => {
                let (link, shared) = self.link(*a, *b);
                link.reset(now, shared, effects);
            }
            Fault::OneWay(from, to, lasts) => {
                let until = now.plus_nanos(lasts.as_nanos() as u64);
                self.link(*from, *to).0.block(*from, until);
            }
            Fault::Partition(side, lasts) => {
                let until = now.plus_nanos(lasts.as_nanos() as u64);
                for (pair, link) in &mut self.links {
                    if side.contains(&pair.0) != side.contains(&pair.1) {
                        link.block(pair.0, until);
                        link.block(pair.1, until);
                    }
                }
            }
            Fault::Pause(node, lasts) => {
                let until = now.plus_nanos(lasts.as_nanos() as u64);
                let paused = &mut self.shared.paused_until[node.index()];
                *paused = until.max(*paused);
            }
            Fault::SlowLink(a, b, packet_time, lasts) => {
                let until = now.plus_nanos(lasts.as_nanos() as u64);
                self.link(*a, *b).0.slow_down(*packet_time, until);
            }
            Fault::Hole(from, to, bytes_max, lasts) => {
                let until = now.plus_nanos(lasts.as_nanos() as u64);
                self.link(*from, *to).0.drop_large(*from, *bytes_max, until);
            }
            Fault::Repeat(from, to) => self.link(*from, *to).0.repeat(*from),
            Fault::Vanish(node) => {
                for (pair, link) in &mut self.links {
                    if let Some(side) = Link::side_of(*pair, *node) {
                        link.vanish(now, side, &mut self.shared, effects)?;
                    }
                }
            }
            // Faults of nodes, not of links.
            Fault::Slow(..) | Fault::Lie(..) | Fault::Mute(_) => {}
        }
        Ok(())
    }

    fn heal(&mut self, now: Instant, effects: &mut Effects<LinkEvent>) {
        for paused in &mut self.shared.paused_until {
            *paused = now.min(*paused);
        }
        for link in self.links.values_mut() {
            link.heal(now, effects);
        }
    }

    fn close(&mut self, now: Instant, effects: &mut Effects<LinkEvent>) -> Result<(), Broken> {
        for link in self.links.values_mut() {
            link.close(now, &mut self.shared, effects)?;
        }
        Ok(())
    }

    fn is_at_rest(&self) -> bool {
        self.links.values().all(Link::is_at_rest)
    }

    fn holds_up(&mut self, node: NodeId, peer: NodeId) -> bool {
        self.link(node, peer).0.holds_up(node)
    }

    fn backlog(&self, node: NodeId) -> (bool, bool) {
        let ends = || self.of_node(node).map(|(link, side)| link.end(side));
        (
            ends().any(|end| end.session.unacknowledged().0 > 0),
            ends().any(|end| !end.backlog.is_empty()),
        )
    }

    fn waiting(&self) -> String {
        let waiting: Vec<String> = self.links.values().filter_map(Link::waiting).collect();
        waiting.join("; ")
    }
}
