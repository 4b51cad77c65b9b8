//! Parts that are grown breadth first from random starts, then improved by label propagation
//! (Raghavan et al., Physical Review E 2007) that keeps to a capacity.
//!
//! Growth goes round: the part with the fewest chosen nodes takes the next node of its frontier; a
//! part without a frontier begins again at a node that no part has. Then, five times, each node
//! moves to the part that most of its neighbours are in, if that has room.

use std::collections::VecDeque;

use rand::seq::SliceRandom as _;

use crate::partition::{Adjacency, GROWN, share_max};
use crate::run::generator;

/// Returns the part of each node. A part has as large a share of the `chosen` nodes, and of all, as
/// of the `workers`: at most a twentieth more, or one.
pub(crate) fn grown(
    graph: Adjacency<'_>,
    chosen: &[bool],
    workers: &[usize],
    seed: u64,
) -> Vec<u32> {
    assert_eq!(graph.nodes(), chosen.len(), "a choice for each node");
    let mut order: Vec<u32> = (0..graph.nodes() as u32).collect();
    order.shuffle(&mut generator(seed, [GROWN, workers.len() as u64]));
    let mut sizes = Sizes::new(chosen, workers);
    let mut part_of = grow(graph, &order, &mut sizes);
    for _ in 0..ROUNDS {
        if !propagate(graph, &order, &mut part_of, &mut sizes) {
            break;
        }
    }
    part_of.into_iter().map(|part| part.unwrap_or(0)).collect()
}

/// Nodes of each part, and how many it may have.
struct Sizes<'a> {
    chosen: &'a [bool],
    workers: &'a [usize],
    of_chosen: Vec<usize>,
    of_all: Vec<usize>,
    chosen_max: Vec<usize>,
    all_max: Vec<usize>,
}

impl<'a> Sizes<'a> {
    fn new(chosen: &'a [bool], workers: &'a [usize]) -> Self {
        let all: usize = workers.iter().sum();
        let max = |count: usize| workers.iter().map(|of| share_max(count, *of, all)).collect();
        let (of_chosen, of_all) = (vec![0; workers.len()], vec![0; workers.len()]);
        let count = chosen.iter().filter(|is_chosen| **is_chosen).count();
        let (chosen_max, all_max) = (max(count), max(chosen.len()));
        Self { chosen, workers, of_chosen, of_all, chosen_max, all_max }
    }

    fn has_room(&self, part: usize, node: u32) -> bool {
        let fits = !self.chosen[node as usize] || self.of_chosen[part] < self.chosen_max[part];
        fits && self.of_all[part] < self.all_max[part]
    }

    fn add(&mut self, part: usize, node: u32) {
        self.of_all[part] += 1;
        self.of_chosen[part] += usize::from(self.chosen[node as usize]);
    }

    fn remove(&mut self, part: usize, node: u32) {
        self.of_all[part] -= 1;
        self.of_chosen[part] -= usize::from(self.chosen[node as usize]);
    }

    /// Returns the part with the fewest chosen nodes a worker, of those the one with the fewest
    /// nodes.
    fn least(&self) -> usize {
        let of_worker = |part: usize| {
            let sizes = [self.of_chosen[part], self.of_all[part]];
            sizes.map(|size| size as f64 / self.workers[part] as f64)
        };
        let fewer =
            |least: usize, part| if of_worker(part) < of_worker(least) { part } else { least };
        (0..self.workers.len()).fold(0, fewer)
    }
}

fn grow(graph: Adjacency<'_>, order: &[u32], sizes: &mut Sizes<'_>) -> Vec<Option<u32>> {
    let mut part_of = vec![None; graph.nodes()];
    let mut frontiers = vec![VecDeque::new(); sizes.of_all.len()];
    let mut rest = order.iter().copied();
    for _ in 0..graph.nodes() {
        let part = sizes.least();
        let is_free = |node: &u32| part_of[*node as usize].is_none();
        let next = std::iter::from_fn(|| frontiers[part].pop_front()).find(is_free);
        // Nodes in the order are passed once: those that no part has are never before it.
        let Some(node) = next.or_else(|| rest.find(is_free)) else { break };
        part_of[node as usize] = Some(part as u32);
        sizes.add(part, node);
        frontiers[part].extend(graph.of(node).iter().filter(|near| is_none(&part_of, **near)));
    }
    part_of
}

fn is_none(part_of: &[Option<u32>], node: u32) -> bool {
    part_of[node as usize].is_none()
}

/// Moves each node to the part of most of its neighbours. Returns true if one has moved.
fn propagate(
    graph: Adjacency<'_>,
    order: &[u32],
    part_of: &mut [Option<u32>],
    sizes: &mut Sizes<'_>,
) -> bool {
    let (mut near, mut has_moved) = (vec![0_u32; sizes.of_all.len()], false);
    for node in order {
        let Some(own) = part_of[*node as usize] else { continue };
        near.fill(0);
        for part in graph.of(*node).iter().filter_map(|other| part_of[*other as usize]) {
            near[part as usize] += 1;
        }
        let parts = (0..near.len()).filter(|part| sizes.has_room(*part, *node));
        let Some(best) = parts.max_by_key(|part| near[*part]) else { continue };
        if near[best] > near[own as usize] {
            sizes.remove(own as usize, *node);
            sizes.add(best, *node);
            part_of[*node as usize] = Some(best as u32);
            has_moved = true;
        }
    }
    has_moved
}

/// Rounds of label propagation.
const ROUNDS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::random;

    /// Groups of 10 nodes, each a ring with chords, joined by single edges; one node alone.
    fn groups(count: u32) -> (Vec<usize>, Vec<u32>) {
        let nodes = 10 * count;
        let (mut starts, mut neighbours) = (vec![0], Vec::new());
        for node in 0..nodes {
            let (group, at) = (node / 10 * 10, node % 10);
            neighbours.extend([1, 2, 8, 9].map(|step| group + (at + step) % 10));
            if at == 0 {
                neighbours.extend([(node + 10) % nodes, (node + nodes - 10) % nodes]);
            }
            starts.push(neighbours.len());
        }
        starts.push(neighbours.len());
        (starts, neighbours)
    }

    fn cut(graph: Adjacency<'_>, parts: &[u32]) -> usize {
        let between = |node: u32| {
            let is_other = |near: &&u32| parts[**near as usize] != parts[node as usize];
            graph.of(node).iter().filter(is_other).count()
        };
        (0..graph.nodes() as u32).map(between).sum()
    }

    #[test]
    fn parts_are_balanced_and_cut_few_edges() {
        let (starts, neighbours) = groups(40);
        let graph = Adjacency { starts: &starts, neighbours: &neighbours };
        let chosen: Vec<bool> = (0..graph.nodes()).map(|node| node % 3 == 0).collect();
        for parts in [1, 2, 3, 4] {
            for seed in 0..5 {
                let of = grown(graph, &chosen, &vec![2; parts], seed);
                assert_eq!(of, grown(graph, &chosen, &vec![2; parts], seed));
                let mut sizes = vec![0; parts];
                let chosen = of.iter().zip(&chosen).filter(|(_, is_chosen)| **is_chosen);
                chosen.for_each(|(part, _)| sizes[*part as usize] += 1);
                let share = 134_usize.div_ceil(parts);
                assert!(sizes.iter().all(|size| *size <= share + share / 20 + 1), "{sizes:?}");
                assert!(sizes.iter().all(|size| *size * 10 >= share * 8), "{sizes:?}");
                let by_chance = cut(graph, &random(graph.nodes(), &vec![1; parts], seed));
                assert!(3 * cut(graph, &of) <= by_chance, "{parts} {seed}: {by_chance}");
            }
        }
    }

    #[test]
    fn a_part_for_more_workers_is_larger() {
        let (starts, neighbours) = groups(40);
        let graph = Adjacency { starts: &starts, neighbours: &neighbours };
        let chosen = vec![true; graph.nodes()];
        for seed in 0..5 {
            let of = grown(graph, &chosen, &[3, 1], seed);
            let first = of.iter().filter(|part| **part == 0).count();
            assert!(first.abs_diff(graph.nodes() * 3 / 4) <= graph.nodes() / 20, "{first}");
        }
    }

    #[test]
    fn a_graph_without_edges_is_dealt_evenly() {
        let graph = Adjacency { starts: &[0; 8], neighbours: &[] };
        let of = grown(graph, &[true; 7], &[1; 3], 1);
        let size = |part| of.iter().filter(|of| **of == part).count();
        assert_eq!(
            {
                let mut sizes = [size(0), size(1), size(2)];
                sizes.sort_unstable();
                sizes
            },
            [2, 2, 3]
        );
    }
}
