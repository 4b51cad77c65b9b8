//! Partitions of the nodes of a graph into parts of equal size, with few edges between them.
//!
//! | partition | parts |
//! | --- | --- |
//! | [`grown`] | grown in the graph from random starts, then moved towards their neighbours |
//! | [`random`] | dealt at random |
//!
//! Parts follow from the graph, the seed and their number, so that all processes have the same.

mod grown;

use rand::seq::SliceRandom as _;

pub(crate) use grown::grown;

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

/// Returns the part of each of `nodes` nodes, dealt at random: sizes differ by one at most.
pub(crate) fn random(nodes: usize, parts: usize, seed: u64) -> Vec<u32> {
    let mut of: Vec<u32> = (0..nodes).map(|node| (node % parts) as u32).collect();
    of.shuffle(&mut generator(seed, [DEALT, parts as u64]));
    of
}

/// Purposes of generators; far from those of tasks.
const DEALT: u64 = 1 << 32;
const GROWN: u64 = DEALT + 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_parts_are_of_equal_size_and_follow_from_the_seed() {
        let parts = random(103, 4, 7);
        let mut sizes = [0; 4];
        parts.iter().for_each(|part| sizes[*part as usize] += 1);
        assert!(sizes.iter().all(|size| (25..=26).contains(size)), "{sizes:?}");
        assert!(parts == random(103, 4, 7) && parts != random(103, 4, 8));
    }
}
