//! The data of the task: a graph, features and classes of its nodes, and their parts.

use crate::partition::Adjacency;
use crate::run::config::named;
use crate::run::{Digest, Split};

/// A graph whose nodes are to be classified. It is undirected: an edge of a file joins its nodes
/// both ways. Every node counts among its own neighbours once, whether a file says so or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The start of each node's list in `around`, and its end.
    starts: Vec<usize>,
    /// The neighbours of each node and itself, ascending.
    around: Vec<u32>,
    pub(crate) features: Features,
    labels: Vec<Option<u32>>,
    parts: Vec<Option<Part>>,
    train: Vec<u32>,
    valid: Vec<u32>,
    test: Vec<u32>,
    classes: usize,
    counts: GraphCounts,
    /// The part of each node, from a file: the node of a run that trains on it.
    pub(crate) dealt: Option<Vec<u32>>,
    /// What is known of generated data.
    pub(crate) known: Option<Known>,
}

/// Features of nodes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Features {
    /// None: they can be learned.
    Missing,
    /// The index and value of each that is not 0.
    Sparse(SparseRows),
    /// So many of each node, one after the other.
    Dense { width: usize, values: Vec<f32> },
}

/// Rows of a sparse matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SparseRows {
    pub(crate) width: usize,
    pub(crate) ends: Vec<usize>,
    pub(crate) indices: Vec<u32>,
    pub(crate) values: Vec<f32>,
}

/// A part of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// To train on.
    Train,
    /// To select on.
    Valid,
    /// To report on.
    Test,
}

/// Findings of reading a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphCounts {
    /// Edges between different nodes, each counted once.
    pub edges: u64,
    /// Edges that are there several times, or both ways: the others.
    pub repeated: u64,
    /// Edges of a node to itself.
    pub loops: u64,
    /// Nodes without neighbours, which are judged by their own features alone.
    pub alone: u64,
    /// Nodes without features.
    pub bare: u64,
}

/// Accuracies on test that are known of generated data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Known {
    /// Of the exact posterior of a node's class by its features and the true classes of all other
    /// nodes: no method can be expected to do better.
    pub(crate) bound: f64,
    /// Of the exact posterior by a node's features alone.
    pub(crate) features_alone: f64,
}

named!(Part, Part::Train => "train", Part::Valid => "valid", Part::Test => "test");

impl Graph {
    /// Returns the graph of these edges, whose ends are less than the number of nodes.
    pub(crate) fn new(
        edges: &[(u32, u32)],
        features: Features,
        labels: Vec<Option<u32>>,
        parts: Vec<Option<Part>>,
    ) -> Self {
        let (starts, around, mut counts) = adjacency(edges, labels.len());
        counts.bare = match &features {
            Features::Sparse(rows) => {
                (0..labels.len()).filter(|node| rows.row(*node).0.is_empty()).count() as u64
            }
            Features::Missing | Features::Dense { .. } => 0,
        };
        let of = |part| {
            let nodes = (0..labels.len() as u32).filter(|node| parts[*node as usize] == Some(part));
            nodes.collect::<Vec<_>>()
        };
        let (train, valid, test) = (of(Part::Train), of(Part::Valid), of(Part::Test));
        let classes = labels.iter().flatten().max().map_or(0, |class| *class as usize + 1);
        let (dealt, known) = (None, None);
        Self {
            starts,
            around,
            features,
            labels,
            parts,
            train,
            valid,
            test,
            classes,
            counts,
            dealt,
            known,
        }
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.labels.len()
    }

    /// Returns the number of classes: one more than the largest.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Returns the findings of reading it.
    #[must_use]
    pub fn counts(&self) -> GraphCounts {
        self.counts
    }

    /// Returns the nodes to train on, ascending.
    #[must_use]
    pub fn train(&self) -> &[u32] {
        &self.train
    }

    /// Returns the nodes of a part that is evaluated, ascending.
    #[must_use]
    pub fn held_out(&self, split: Split) -> &[u32] {
        match split {
            Split::Valid => self.part(Part::Valid),
            Split::Test => self.part(Part::Test),
        }
    }

    /// Returns the nodes of a part, ascending.
    #[must_use]
    pub fn part(&self, part: Part) -> &[u32] {
        match part {
            Part::Train => &self.train,
            Part::Valid => &self.valid,
            Part::Test => &self.test,
        }
    }

    /// Returns the class of a node, if it is known.
    #[must_use]
    pub fn label(&self, node: u32) -> Option<u32> {
        self.labels[node as usize]
    }

    /// Returns a number that differs between graphs that differ. Goes over all of them.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        let words = self.starts.iter().map(|start| *start as u64);
        words
            .chain(self.around.iter().map(|node| u64::from(*node)))
            .for_each(|word| digest.word(word));
        for (label, part) in self.labels.iter().zip(&self.parts) {
            digest.word(label.map_or(0, |label| u64::from(label) + 1));
            digest.word(part.map_or(0, |part| part as u64 + 1));
        }
        match &self.features {
            Features::Missing => {}
            Features::Sparse(SparseRows { width, ends, indices, values }) => {
                digest.word(*width as u64);
                ends.iter().for_each(|end| digest.word(*end as u64));
                indices.iter().for_each(|index| digest.word(u64::from(*index)));
                digest.values(values);
            }
            Features::Dense { width, values } => {
                digest.word(*width as u64);
                digest.values(values);
            }
        }
        self.dealt.iter().flatten().for_each(|part| digest.word(u64::from(*part)));
        digest.sum()
    }

    /// Returns the neighbours of a node and itself, ascending.
    pub(crate) fn around(&self, node: u32) -> &[u32] {
        self.adjacency().of(node)
    }

    /// Returns the lists of neighbours, in which each node has itself.
    pub(crate) fn adjacency(&self) -> Adjacency<'_> {
        Adjacency { starts: &self.starts, neighbours: &self.around }
    }
}

impl Features {
    /// Returns the number of features of a node.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Missing => 0,
            Self::Sparse(rows) => rows.width,
            Self::Dense { width, .. } => *width,
        }
    }

    /// Returns the same with the absolute values of each row adding up to 1; rows of zeros stay.
    pub(crate) fn scaled(&self) -> Self {
        let mut scaled = self.clone();
        match &mut scaled {
            Self::Missing => {}
            Self::Sparse(rows) => {
                let mut start = 0;
                for end in &rows.ends {
                    scale(&mut rows.values[start..*end]);
                    start = *end;
                }
            }
            Self::Dense { width, values } => values.chunks_mut((*width).max(1)).for_each(scale),
        }
        scaled
    }
}

impl SparseRows {
    /// Returns the indices and values of a row.
    pub(crate) fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        let range = start..self.ends[row];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// Ends a row, whose entries were appended.
    pub(crate) fn end_row(&mut self) {
        self.ends.push(self.indices.len());
    }
}

fn scale(row: &mut [f32]) {
    let sum: f32 = row.iter().map(|value| value.abs()).sum();
    if sum > 0.0 && sum.is_finite() {
        row.iter_mut().for_each(|value| *value /= sum);
    }
}

/// Returns where the lists of nodes start, the lists, and counts of edges.
fn adjacency(edges: &[(u32, u32)], nodes: usize) -> (Vec<usize>, Vec<u32>, GraphCounts) {
    let mut starts = vec![0; nodes + 1];
    let ends = || edges.iter().filter(|(from, to)| from != to);
    (0..nodes).for_each(|node| starts[node + 1] += 1);
    for (from, to) in ends() {
        starts[*from as usize + 1] += 1;
        starts[*to as usize + 1] += 1;
    }
    (0..nodes).for_each(|node| starts[node + 1] += starts[node]);
    let (mut free, mut all) = (starts.clone(), vec![0; starts[nodes]]);
    let mut put = |of: u32, near: u32| {
        all[free[of as usize]] = near;
        free[of as usize] += 1;
    };
    (0..nodes as u32).for_each(|node| put(node, node));
    for (from, to) in ends() {
        put(*from, *to);
        put(*to, *from);
    }
    let (mut around, mut kept, mut alone) = (Vec::with_capacity(all.len()), vec![0], 0);
    for node in 0..nodes {
        let list = &mut all[starts[node]..starts[node + 1]];
        list.sort_unstable();
        let from = around.len();
        for near in list {
            if around.len() == from || around.last() != Some(near) {
                around.push(*near);
            }
        }
        alone += u64::from(around.len() == from + 1);
        kept.push(around.len());
    }
    let loops = (edges.len() - ends().count()) as u64;
    let distinct = ((around.len() - nodes) / 2) as u64;
    let repeated = edges.len() as u64 - loops - distinct;
    (kept, around, GraphCounts { edges: distinct, repeated, loops, alone, bare: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(u32, u32)]) -> Graph {
        Graph::new(edges, Features::Missing, vec![Some(0); 5], vec![Some(Part::Train); 5])
    }

    #[test]
    fn edges_join_both_ways_once_and_each_node_is_its_own_neighbour() {
        let graph = graph(&[(0, 1), (1, 0), (2, 2), (3, 1), (0, 1)]);
        let around: Vec<&[u32]> = (0..5).map(|node| graph.around(node)).collect();
        assert_eq!(around, [&[0, 1][..], &[0, 1, 3], &[2], &[1, 3], &[4]]);
        let counts = GraphCounts { edges: 2, repeated: 2, loops: 1, alone: 2, bare: 0 };
        assert_eq!(graph.counts(), counts);
    }

    #[test]
    fn graphs_that_differ_have_other_digests() {
        let one = graph(&[(0, 1), (2, 3)]);
        assert_eq!(one.digest(), graph(&[(2, 3), (1, 0)]).digest());
        assert_ne!(one.digest(), graph(&[(0, 1)]).digest());
        let mut labels = vec![Some(0); 5];
        labels[3] = None;
        let parts = vec![Some(Part::Train); 5];
        let other = Graph::new(&[(0, 1), (2, 3)], Features::Missing, labels, parts);
        assert_ne!(one.digest(), other.digest());
    }

    #[test]
    fn scaled_rows_add_up_to_1_and_empty_ones_stay() {
        let rows = SparseRows {
            width: 3,
            ends: vec![2, 2, 3],
            indices: vec![0, 2, 1],
            values: vec![1.0, -3.0, 0.5],
        };
        let Features::Sparse(scaled) = Features::Sparse(rows).scaled() else { panic!("sparse") };
        assert_eq!(scaled.values, [0.25, -0.75, 1.0]);
        assert_eq!(scaled.row(1), (&[][..], &[][..]));
    }
}
