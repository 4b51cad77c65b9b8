//! The time that bytes take from node to node: latency, jitter, and the bandwidth that a node's
//! links share.

use std::collections::BTreeMap;

use adapm_core::{Instant, NodeId};

use crate::rng::Rng;

/// Properties of every link between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireConfig {
    /// Time of the shortest message, in nanoseconds.
    pub latency_nanos: u64,
    /// Largest random delay added to it, in nanoseconds.
    pub jitter_nanos: u64,
    /// Bytes that a node can send per second, to all others together; and receive. 0: no limit.
    pub bytes_per_second: u64,
}

impl WireConfig {
    /// A wire that takes no time.
    pub const INSTANT: Self = Self { latency_nanos: 0, jitter_nanos: 0, bytes_per_second: 0 };
}

/// The links between all nodes. Messages between two nodes arrive in order.
#[derive(Debug)]
pub struct Wire {
    config: WireConfig,
    /// Times when each node has sent everything, and received everything.
    egress: Vec<Instant>,
    ingress: Vec<Instant>,
    /// The last arrival on each used link.
    last: BTreeMap<(NodeId, NodeId), Instant>,
}

impl Wire {
    /// Creates links among `nodes` nodes.
    #[must_use]
    pub fn new(config: WireConfig, nodes: usize) -> Self {
        let free = vec![Instant::ZERO; nodes];
        Self { config, egress: free.clone(), ingress: free, last: BTreeMap::new() }
    }

    /// Sends `bytes` bytes at `now`. Returns the time of their arrival.
    pub fn depart(
        &mut self,
        now: Instant,
        from: NodeId,
        to: NodeId,
        bytes: usize,
        rng: &mut Rng,
    ) -> Instant {
        let transfer = self.transfer_nanos(bytes);
        let egress = &mut self.egress[from.index()];
        *egress = now.max(*egress).plus_nanos(transfer);
        let jitter =
            if self.config.jitter_nanos == 0 { 0 } else { rng.number(0..self.config.jitter_nanos) };
        let arrival = egress.plus_nanos(self.config.latency_nanos).plus_nanos(jitter);
        let ingress = &mut self.ingress[to.index()];
        // An idle receiver takes bytes as they come; a busy one takes them after the others.
        let arrival = arrival.max(ingress.plus_nanos(transfer));
        let last = self.last.entry((from, to)).or_default();
        *last = arrival.max(*last);
        *ingress = *last;
        *last
    }

    /// Returns the properties of the links.
    #[must_use]
    pub fn config(&self) -> WireConfig {
        self.config
    }

    fn transfer_nanos(&self, bytes: usize) -> u64 {
        match self.config.bytes_per_second {
            0 => 0,
            rate => (bytes as u128 * 1_000_000_000 / u128::from(rate)) as u64,
        }
    }
}
