//! Graph neural networks: a 2-layer GCN of dimension 500 on ogbn-papers100M, batches of 32, 16 neighbours (AdaPM App. C).

use adapm_core::{Key, NodeId};
use adapm_verify::sim::Who;
use rand::RngExt as _;

use super::{Facts, Pattern, Work, settled_key, settled_layout};
use crate::measure::simulate::Chance;
use crate::measure::simulate::zipf::Ranks;

/// Vertices (stated: 111 M keys).
const VERTICES: u64 = 111_059_956;
/// Labelled vertices of the training split (the benchmark's; the paper does not state it).
const EXAMPLES: u64 = 1_207_179;
/// Examples of a batch (stated).
const BATCH: u64 = 32;
/// Vertices of a batch: 16 neighbours in each of two layers (stated).
const SAMPLED: u64 = BATCH * (1 + 16 + 16 * 16);
/// Modelled keys stand for so many.
const KEYS_PER_KEY: u64 = 32;
/// Bytes of a value with its AdaGrad part: the stated 413.7 GB over the stated 111 M keys.
const VALUE_BYTES: u64 = 4_000;
/// Time for a batch: 5.3 minutes (stated) for an epoch on 256 workers, taken for computation.
const BATCH_NANOS: u64 = 2_160_000_000;
/// Share of a vertex's neighbours in its own part of the graph, which METIS maximises (assumed).
const INSIDE: f64 = 0.85;

/// Each node has a part of the graph; most neighbours are in it.
pub(super) struct Gnn {
    facts: Facts,
    nodes: usize,
    settled: bool,
    part: u64,
    ranks: Ranks,
}

impl Gnn {
    pub(super) fn new(nodes: usize, settled: bool) -> Self {
        let facts = Facts::of_batches(settled_layout(), VALUE_BYTES, KEYS_PER_KEY, EXAMPLES, BATCH);
        let part = VERTICES / KEYS_PER_KEY / nodes as u64;
        // Citations are unequal, sampled neighbours a little less so (assumed).
        Self { facts, nodes, settled, part, ranks: Ranks::new(part, 0.8, 10) }
    }

    fn vertex(&self, part: u64, chance: &mut Chance) -> Key {
        let vertex = part * self.part + self.ranks.draw(chance);
        let owner = NodeId(u16::try_from(part).expect("a part a node"));
        if self.settled { settled_key(vertex, owner, self.nodes) } else { Key(vertex) }
    }
}

impl Pattern for Gnn {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn draw(&mut self, (node, _): Who, chance: &mut Chance) -> Work {
        let own = u64::from(node.0);
        let mut keys = Vec::new();
        for _ in 0..SAMPLED / KEYS_PER_KEY {
            let inside = self.nodes == 1 || chance.random_bool(INSIDE);
            let part = if inside {
                own
            } else {
                (own + chance.random_range(1..self.nodes as u64)) % self.nodes as u64
            };
            keys.push(self.vertex(part, chance));
        }
        Work::of(keys, BATCH_NANOS, chance)
    }
}
