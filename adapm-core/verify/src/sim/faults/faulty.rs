//! Links that break and resume: two link sessions between any two nodes, over pipes that are lost
//! with the data in flight.
//!
//! The promises of a session are checked here; that each frame arrives once and in order is checked
//! by the system under test, which knows the messages sent.

use std::collections::BTreeMap;

use adapm_core::link::LinkConfig;
use adapm_core::{Instant, NodeId};

use super::Fault;
use super::event::{Around, LinkEvent, Pair, Side, What};
use super::link::Link;
use crate::rng::Rng;
use crate::sim::links::{Broken, Effects, Links};
use crate::sim::under_test::Sent;
use crate::sim::wire::{Wire, WireConfig};

/// Links with sessions and pipes, for few nodes: each is connected to each.
#[derive(Debug)]
pub struct Faulty {
    links: BTreeMap<Pair, Link>,
    around: Around,
    is_connected: bool,
}

impl Faulty {
    /// Creates links among `nodes` nodes; all random choices follow from the seed.
    #[must_use]
    pub fn new(config: LinkConfig, wire: WireConfig, nodes: usize, seed: u64) -> Self {
        let ids = || (0..nodes as u16).map(NodeId);
        let pairs = ids().flat_map(|a| ids().filter(move |b| a < *b).map(move |b| (a, b)));
        let around = Around {
            wire: Wire::new(wire, nodes),
            rng: Rng::new(seed),
            paused_until: vec![Instant::ZERO; nodes],
        };
        Self {
            links: pairs.map(|pair| (pair, Link::new(pair, config))).collect(),
            around,
            is_connected: false,
        }
    }

    /// Plants a mistake in every session; must be called before the first event.
    #[cfg(feature = "checked")]
    pub fn plant(&mut self, bug: crate::LinkBug) {
        for link in self.links.values_mut() {
            link.plant(bug);
        }
    }

    /// Returns the links of `node`, each with its own side.
    fn of_node(&self, node: NodeId) -> impl Iterator<Item = (&Link, Side)> {
        self.links.iter().filter_map(move |(pair, link)| Some((link, Link::side_of(*pair, node)?)))
    }

    fn link(&mut self, a: NodeId, b: NodeId) -> (&mut Link, &mut Around) {
        let pair = (a.min(b), a.max(b));
        (self.links.get_mut(&pair).expect("every two nodes have a link"), &mut self.around)
    }
}

impl Links for Faulty {
    type Event = LinkEvent;

    fn open(&mut self, now: Instant, effects: &mut Effects<LinkEvent>) {
        if !core::mem::replace(&mut self.is_connected, true) {
            for link in self.links.values_mut() {
                link.dial(now, &mut self.around, effects);
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
        let (link, around) = self.link(sent.from, sent.to);
        link.send(now, when, sent, around, effects)
    }

    fn handle(
        &mut self,
        now: Instant,
        event: LinkEvent,
        effects: &mut Effects<LinkEvent>,
    ) -> Result<(), Broken> {
        let (link, around) = self.link(event.pair.0, event.pair.1);
        match event.what {
            What::Arrive(side) => link.arrive(now, side, around, effects),
            What::Depart(side) => link.depart(now, side, around, effects),
            What::Alarm(side) => link.sound(now, side, around, effects),
            What::Dial(pipe) => {
                link.redial(now, pipe, around, effects);
                Ok(())
            }
        }
    }

    fn trace(&self, event: &LinkEvent) -> [u64; 3] {
        let what = match event.what {
            What::Arrive(side) => side as u64,
            What::Alarm(side) => 2 + side as u64,
            What::Depart(side) => 4 + side as u64,
            What::Dial(pipe) => 6 + u64::from(pipe),
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
                let (link, around) = self.link(*a, *b);
                link.reset(now, around, effects);
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
                let paused = &mut self.around.paused_until[node.index()];
                *paused = until.max(*paused);
            }
            Fault::SlowLink(a, b, packet_time, lasts) => {
                let until = now.plus_nanos(lasts.as_nanos() as u64);
                self.link(*a, *b).0.slow_down(*packet_time, until);
            }
            Fault::Hole(from, to, bytes_max, lasts) => {
                let until = now.plus_nanos(lasts.as_nanos() as u64);
                self.link(*from, *to).0.tear(*from, *bytes_max, until);
            }
            Fault::Repeat(from, to) => self.link(*from, *to).0.repeat(*from),
            Fault::Vanish(node) => {
                for (pair, link) in &mut self.links {
                    if let Some(side) = Link::side_of(*pair, *node) {
                        link.vanish(now, side, &mut self.around, effects)?;
                    }
                }
            }
            Fault::Slow(..) | Fault::Lie(..) | Fault::Mute(_) => {}
        }
        Ok(())
    }

    fn heal(&mut self, now: Instant, effects: &mut Effects<LinkEvent>) {
        for paused in &mut self.around.paused_until {
            *paused = now.min(*paused);
        }
        for link in self.links.values_mut() {
            link.heal(now, effects);
        }
    }

    fn close(&mut self, now: Instant, effects: &mut Effects<LinkEvent>) -> Result<(), Broken> {
        for link in self.links.values_mut() {
            link.close(now, &mut self.around, effects)?;
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
