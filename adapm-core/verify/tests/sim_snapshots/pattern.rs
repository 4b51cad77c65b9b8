//! The keys that each worker accesses at each of its clocks.

use core::time::Duration;

use adapm_core::{Key, Layout, NodeId, WorkerId};
use adapm_verify::rng::Rng;
use adapm_verify::sim::NodeWorker;

pub(crate) const NODES: usize = 4;
pub(crate) const KEYS: u64 = 1_024;

/// A pattern of access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pattern {
    HotSpot,
    Locality,
    Uniform,
    Shifting,
    Regular,
    Turns,
}

impl Pattern {
    pub(crate) const ALL: [Self; 6] =
        [Self::HotSpot, Self::Locality, Self::Uniform, Self::Shifting, Self::Regular, Self::Turns];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::HotSpot => "hot_spot",
            Self::Locality => "locality",
            Self::Uniform => "uniform",
            Self::Shifting => "shifting",
            Self::Regular => "regular",
            Self::Turns => "turns",
        }
    }

    pub(crate) fn description(self) -> String {
        let text = match self {
            Self::HotSpot => {
                "Hot spot: everybody reads and writes 4 of the same 8 keys at each clock."
            }
            Self::Locality => {
                "Locality: each node works on 4 keys of its own quarter of 1,024, which lie anywhere at first."
            }
            Self::Uniform => {
                "Uniform: everybody reads and writes any 4 of 1,024 keys at each clock."
            }
            Self::Shifting => {
                "Shifting: as locality, but every 100 clocks the nodes swap quarters."
            }
            Self::Regular => {
                "Regular: everybody reads and writes the same 8 keys at each clock, 2 of each home, each node at a time of its own."
            }
            Self::Turns => {
                "Turns: nodes take turns with the same 8 keys, 2 of each home: each localizes, reads and writes them at a time of its own."
            }
        };
        let (workers, ticks) = if self.has_times_of_their_own() {
            ("1 worker", "a tick at each clock")
        } else {
            ("2 workers", "a tick every 20 clocks")
        };
        let micros = self.period().as_micros();
        format!(
            "{text}\n4 nodes x {workers}, 400 clocks of {micros} us, values of 400 bytes, intent 20 clocks ahead, {ticks}."
        )
    }

    /// Returns true if each node reads and writes at a time of its own.
    fn has_times_of_their_own(self) -> bool {
        matches!(self, Self::Regular | Self::Turns)
    }

    fn workers_of_a_node(self) -> usize {
        if self.has_times_of_their_own() { 1 } else { 2 }
    }

    /// Returns all workers.
    pub(crate) fn workers(self) -> impl Iterator<Item = NodeWorker> {
        let nodes = (0..NODES as u16).map(NodeId);
        let ids = (0..self.workers_of_a_node() as u16).map(WorkerId);
        nodes.flat_map(move |node| ids.clone().map(move |id| (node, id)))
    }

    /// Returns the length of a clock.
    fn period(self) -> Duration {
        // The nodes of a regular clock write at times so far apart that no change waits until
        // another one comes (`Patience`).
        Duration::from_micros(if self.has_times_of_their_own() { 240_000 } else { 200 })
    }

    /// Returns the clocks from `localize` to the access, long enough for a round trip; 0: a worker
    /// computes before it localizes, not after it has read.
    pub(crate) fn localized_ahead(self) -> u64 {
        if self == Self::Turns { 0 } else { 4 }
    }

    /// Returns the computation of a worker at a clock which it begins after `nanos`. Where workers
    /// have times of their own it ends at the worker's, however long it has waited at earlier
    /// clocks.
    pub(crate) fn computing(self, (node, _): NodeWorker, clock: u64, nanos: u64) -> Duration {
        let period = self.period();
        if !self.has_times_of_their_own() {
            return period;
        }
        let due =
            period.as_nanos() as u64 * (clock * NODES as u64 + u64::from(node.0)) / NODES as u64;
        Duration::from_nanos(due.saturating_sub(nanos))
    }

    /// Returns how often a worker reaches a tick, under a system with a bound.
    pub(crate) fn clocks_per_tick(self) -> u64 {
        if self.has_times_of_their_own() { 1 } else { 20 }
    }

    /// Returns the keys of a worker at a clock, ascending, each once.
    pub(crate) fn keys(self, (node, worker): NodeWorker, clock: u64) -> Vec<Key> {
        let index = (node.index() * self.workers_of_a_node() + worker.index()) as u64;
        let mut rng = Rng::new(index << 32 | clock);
        let quarter = |NodeId(node): NodeId, turns: u64| {
            let first = (u64::from(node) + turns) % NODES as u64 * (KEYS / NODES as u64);
            first..first + KEYS / NODES as u64
        };
        let from = match self {
            Self::Regular | Self::Turns => return regular(),
            Self::HotSpot => 0..8,
            Self::Uniform => 0..KEYS,
            Self::Locality => quarter(node, 0),
            Self::Shifting => quarter(node, clock / 100),
        };
        let mut keys: Vec<Key> = (0..4).map(|_| Key(rng.number(from.clone()))).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// Returns the keys that everybody accesses at each clock, where nodes have times of their own: of
/// each node as many.
fn regular() -> Vec<Key> {
    let of = |node: NodeId| (0..KEYS).map(Key).filter(move |key| Layout::home(*key, NODES) == node);
    let nodes = (0..NODES as u16).map(NodeId);
    let mut keys: Vec<Key> = nodes.flat_map(|node| of(node).take(KEYS_OF_A_NODE)).collect();
    keys.sort_unstable();
    keys
}

/// Keys of a node that everybody accesses, where nodes have times of their own.
pub(crate) const KEYS_OF_A_NODE: usize = 2;
