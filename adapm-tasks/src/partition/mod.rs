//! Partitions of a graph into parts with few edges between them.
//!
//! | partition | parts |
//! | --- | --- |
//! | [`grown`] | of nodes: grown in the graph from random starts, then moved towards their neighbours |
//! | [`random`] | of nodes: dealt at random |
//! | [`hybrid`] | of training samples and the keys that they access ([`Bigraph`]): balanced, with replicas |
//!
//! Parts of nodes are proportional to the workers that each part is for. All parts follow from the
//! graph, the seed and numbers, so that all processes have the same.

mod bigraph;
mod file;
mod grown;
mod hybrid;

use rand::seq::SliceRandom as _;

pub use file::{PartitionError, PartitionFile};

pub(crate) use bigraph::{Bigraph, BigraphError, PARTS_MAX};
pub(crate) use grown::grown;
pub(crate) use hybrid::{BYTES, Costs, Options, Partition, Priority, ROUNDS, STORE_RATE, hybrid};

use crate::run::generator;

/// A graph as lists of neighbours: those of a node are from its start to that of the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adjacency<'a> {
    /// One more than nodes.
    pub(crate) starts: &'a [usize],
    pub(crate) neighbours: &'a [u32],
}

impl<'a> Adjacency<'a> {
    /// Returns the number of nodes.
    pub(crate) fn nodes(self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Returns the neighbours of a node.
    pub(crate) fn of(self, node: u32) -> &'a [u32] {
        let node = node as usize;
        &self.neighbours[self.starts[node]..self.starts[node + 1]]
    }
}

/// Returns the part of each of `nodes` nodes, dealt at random to the `workers` of parts: no worker
/// has more than one node more than another.
pub(crate) fn random(nodes: usize, workers: &[usize], seed: u64) -> Vec<u32> {
    let most = workers.iter().max().copied().unwrap_or(0);
    let of_turn = |turn| workers.iter().enumerate().filter(move |(_, workers)| **workers > turn);
    let turns = (0..most).flat_map(|turn| of_turn(turn).map(|(part, _)| part as u32)).cycle();
    let mut of: Vec<u32> = turns.take(nodes).collect();
    of.shuffle(&mut generator(seed, [DEALT, workers.len() as u64]));
    of
}

/// Returns the most of `count` that a part for `workers` of `all` workers may have: a twentieth
/// above its share.
fn share_max(count: usize, workers: usize, all: usize) -> usize {
    ((count + count / 20) * workers).div_ceil(all)
}

/// Purposes of generators; far from those of tasks.
const DEALT: u64 = 1 << 32;
const GROWN: u64 = DEALT + 1;
const HYBRID: u64 = DEALT + 2;
pub(crate) const LISTED: u64 = DEALT + 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_parts_are_of_equal_size_and_follow_from_the_seed() {
        let parts = random(103, &[1; 4], 7);
        let mut sizes = [0; 4];
        parts.iter().for_each(|part| sizes[*part as usize] += 1);
        assert!(sizes.iter().all(|size| (25..=26).contains(size)), "{sizes:?}");
        assert!(parts == random(103, &[2; 4], 7) && parts != random(103, &[1; 4], 8));
        let mut sizes = [0; 2];
        random(8, &[3, 1], 7).iter().for_each(|part| sizes[*part as usize] += 1);
        assert_eq!(sizes, [6, 2]);
    }
}
