//! Samples of neighbours, and the nodes that a batch needs.
//!
//! A node's sample for a layer follows from seed, epoch, node and layer: batches that have the same
//! node share its sample, and no batch depends on the number of nodes of the run.

use rand::RngExt as _;

use crate::dense::Lists;
use crate::gnn::graph::Graph;
use crate::run::generator;

/// The nodes of a batch and what their classes are computed from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) targets: Vec<u32>,
    /// For each target the places in `middle` that its second layer takes the mean of.
    pub(crate) inner: Lists,
    /// The nodes of which the first layer is needed, ascending.
    pub(crate) middle: Vec<u32>,
    /// For each node of `middle` the places in `outer` that its first layer takes the mean of.
    pub(crate) lists: Lists,
    /// The nodes whose features are needed, ascending.
    pub(crate) outer: Vec<u32>,
}

/// Neighbours that are drawn: of a target, and of each of these.
pub(crate) type Counts = [usize; 2];

impl Block {
    /// Draws the neighbours that a batch of an epoch needs.
    pub(crate) fn sample(
        graph: &Graph,
        (seed, epoch): (u64, u32),
        targets: Vec<u32>,
        [direct, further]: Counts,
    ) -> Self {
        let draw = |layer: u64, node: u32, count: usize| {
            let mut drawn = Vec::new();
            let parts = [SAMPLE, epoch.into(), node.into(), layer];
            sample(graph, node, count, seed, parts, &mut drawn);
            drawn
        };
        let of_targets: Vec<_> = targets.iter().map(|node| draw(2, *node, direct)).collect();
        let middle = united(&of_targets);
        let of_middle: Vec<_> = middle.iter().map(|node| draw(1, *node, further)).collect();
        let outer = united(&of_middle);
        let inner = placed(&of_targets, &middle);
        let lists = placed(&of_middle, &outer);
        Self { targets, inner, middle, lists, outer }
    }
}

/// Returns how often each node is expected to be in the draws of an epoch: as a node to train on,
/// and as a neighbour that is drawn, directly and further out.
pub(crate) fn expected(graph: &Graph, counts: Counts) -> Vec<f64> {
    let mut times = vec![0.0; graph.nodes()];
    graph.train().iter().for_each(|node| times[*node as usize] += 1.0);
    for count in counts {
        let before = times.clone();
        for (node, drawn) in (0..).zip(before).filter(|(_, drawn)| *drawn > 0.0) {
            let around = graph.around(node);
            let share = (count as f64 / (around.len() as f64 - 1.0)).min(1.0);
            for near in around.iter().filter(|near| **near != node) {
                times[*near as usize] += share * drawn;
            }
        }
    }
    times
}

/// Appends the node and `count` of its neighbours, ascending: all of them if there are no more.
fn sample(
    graph: &Graph,
    node: u32,
    count: usize,
    seed: u64,
    parts: [u64; 4],
    drawn: &mut Vec<u32>,
) {
    let around = graph.around(node);
    let neighbours = around.len() - 1;
    if neighbours <= count {
        drawn.extend_from_slice(around);
        return;
    }
    // Floyd's: each set of places is as likely as any other.
    let (mut random, mut places) = (generator(seed, parts), Vec::with_capacity(count));
    for last in neighbours - count..neighbours {
        let place = random.random_range(0..=last);
        places.push(if places.contains(&place) { last } else { place });
    }
    let own = around.partition_point(|near| *near < node);
    let at = |place: usize| around[place + usize::from(place >= own)];
    drawn.extend(places.into_iter().map(at));
    drawn.push(node);
    drawn.sort_unstable();
}

/// Returns the nodes of all lists, ascending, each once.
fn united(lists: &[Vec<u32>]) -> Vec<u32> {
    let mut nodes = lists.concat();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Returns the lists with the places of nodes for the nodes.
fn placed(lists: &[Vec<u32>], nodes: &[u32]) -> Lists {
    let mut placed = Lists::default();
    for list in lists {
        let place = |node: &u32| nodes.partition_point(|other| other < node) as u32;
        placed.push(list.iter().map(place));
    }
    placed
}

/// The purpose of the generator.
const SAMPLE: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gnn::graph::{Features, Part};

    fn star() -> Graph {
        let edges: Vec<(u32, u32)> = (0..30).filter(|to| *to != 7).map(|to| (7, to)).collect();
        Graph::new(&edges, Features::Missing, vec![Some(0); 32], vec![Some(Part::Train); 32])
    }

    fn drawn(graph: &Graph, node: u32, count: usize, epoch: u64) -> Vec<u32> {
        let mut drawn = Vec::new();
        sample(graph, node, count, 3, [SAMPLE, epoch, node.into(), 1], &mut drawn);
        drawn
    }

    #[test]
    fn a_sample_has_the_node_and_different_neighbours_each_as_likely_as_any_other() {
        let (graph, mut times) = (star(), [0; 30]);
        for epoch in 0..3000 {
            let drawn = drawn(&graph, 7, 10, epoch);
            assert!(drawn.len() == 11 && drawn.contains(&7));
            assert!(drawn.windows(2).all(|two| two[0] < two[1]));
            drawn.iter().for_each(|node| times[*node as usize] += 1);
        }
        assert_eq!(times[7], 3000);
        // 3000 * 10 / 29 is 1034, with deviation 26.
        let others = times.iter().enumerate().filter(|(node, _)| *node != 7);
        assert!(others.clone().all(|(_, times)| (900..1170).contains(times)), "{times:?}");
    }

    #[test]
    fn few_neighbours_are_all_taken_and_a_node_without_any_is_alone() {
        let graph = star();
        assert_eq!(drawn(&graph, 3, 10, 1), [3, 7]);
        assert_eq!(drawn(&graph, 31, 10, 1), [31]);
        assert_eq!(drawn(&graph, 7, 29, 1).len(), 30);
    }

    #[test]
    fn a_node_has_the_same_sample_in_any_batch() {
        let graph = star();
        let of = |targets: &[u32]| {
            let block = Block::sample(&graph, (5, 2), targets.to_vec(), [4, 3]);
            let lists = block.inner.iter().zip(targets).find(|(_, target)| **target == 7);
            let (list, _) = lists.expect("it is a target");
            list.iter().map(|place| block.middle[*place as usize]).collect::<Vec<_>>()
        };
        assert_eq!(of(&[7]), of(&[1, 30, 7]));
        assert_eq!(of(&[7]).len(), 5);
    }
}
