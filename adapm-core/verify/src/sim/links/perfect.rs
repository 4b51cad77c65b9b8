//! Links that never break: a message takes the time of the wire, and nothing else.

use adapm_core::transport::Frame;
use adapm_core::{Instant, NodeId};

use super::{Broken, Effects, Links};
use crate::rng::Rng;
use crate::sim::under_test::Sent;
use crate::sim::wire::{Wire, WireConfig};

/// Links without faults and without sessions.
#[derive(Debug)]
pub struct Perfect {
    wire: Wire,
    rng: Rng,
}

impl Perfect {
    /// Creates links among `nodes` nodes; jitter follows from the seed.
    #[must_use]
    pub fn new(config: WireConfig, nodes: usize, seed: u64) -> Self {
        Self { wire: Wire::new(config, nodes), rng: Rng::new(seed) }
    }
}

impl Links for Perfect {
    type Event = (NodeId, NodeId, Frame);

    fn send(
        &mut self,
        _now: Instant,
        when: Instant,
        sent: Sent,
        effects: &mut Effects<Self::Event>,
    ) -> Result<(), Broken> {
        let arrival = self.wire.depart(when, sent.from, sent.to, sent.bytes, &mut self.rng);
        effects.later.push((arrival, (sent.from, sent.to, sent.frame)));
        Ok(())
    }

    fn handle(
        &mut self,
        _now: Instant,
        event: Self::Event,
        effects: &mut Effects<Self::Event>,
    ) -> Result<(), Broken> {
        effects.arrived.push(event);
        Ok(())
    }

    fn trace(&self, (from, to, frame): &Self::Event) -> [u64; 3] {
        [u64::from(from.0), u64::from(to.0), frame.len() as u64]
    }
}
