//! The keys that each worker accesses at each of its clocks.

use adapm_core::{Key, NodeId};
use adapm_verify::rng::Rng;
use adapm_verify::sim::NodeWorker;

pub(crate) const NODES: usize = 4;
pub(crate) const WORKERS: usize = 2;
pub(crate) const KEYS: u64 = 1_024;

/// A pattern of access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pattern {
    HotSpot,
    Locality,
    Uniform,
    Shifting,
}

impl Pattern {
    pub(crate) const ALL: [Self; 4] =
        [Self::HotSpot, Self::Locality, Self::Uniform, Self::Shifting];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::HotSpot => "hot_spot",
            Self::Locality => "locality",
            Self::Uniform => "uniform",
            Self::Shifting => "shifting",
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
        };
        format!(
            "{text}\n4 nodes x 2 workers, 400 clocks of 200 us, values of 400 bytes, intent 20 clocks ahead."
        )
    }

    /// Returns the keys of a worker at a clock, ascending, each once.
    pub(crate) fn keys(self, (node, worker): NodeWorker, clock: u64) -> Vec<Key> {
        let index = node.index() as u64 * WORKERS as u64 + worker.index() as u64;
        let mut rng = Rng::new(index << 32 | clock);
        let quarter = |NodeId(node): NodeId, turns: u64| {
            let first = (u64::from(node) + turns) % NODES as u64 * (KEYS / NODES as u64);
            first..first + KEYS / NODES as u64
        };
        let from = match self {
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
