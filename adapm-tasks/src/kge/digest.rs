//! A number that differs between graphs, or parameters, that differ: what processes compare before they train together.

use crate::kge::checkpoint::Checkpoint;
use crate::kge::graph::{Graph, Names, Triple};
use crate::run::digest::Digest;

/// The digest of all facts and names of a graph, in order.
pub(crate) fn of_graph(graph: &Graph) -> u64 {
    let mut digest = Digest::new();
    for triples in [&graph.train, &graph.valid, &graph.test] {
        add_triples(&mut digest, triples);
    }
    add_names(&mut digest, &graph.entities);
    add_names(&mut digest, &graph.relations);
    digest.sum()
}

/// The digest of the facts of train, in order.
pub(crate) fn of_train(graph: &Graph) -> u64 {
    let mut digest = Digest::new();
    add_triples(&mut digest, &graph.train);
    digest.sum()
}

/// The digest of all values of a checkpoint.
pub(crate) fn of_values(checkpoint: &Checkpoint) -> u64 {
    let mut digest = Digest::new();
    digest.values(&checkpoint.values);
    digest.sum()
}

fn add_names(digest: &mut Digest, names: &Names) {
    digest.word(names.len() as u64);
    for index in 0..names.len() {
        digest.bytes(names.bytes(index).unwrap_or_default());
    }
}

fn add_triples(digest: &mut Digest, triples: &[Triple]) {
    digest.word(triples.len() as u64);
    for triple in triples {
        digest.word(u64::from(triple.subject) << 32 | u64::from(triple.object));
        digest.word(u64::from(triple.relation));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_that_differ_anywhere_have_other_digests() {
        let graph = Graph::families(1, 2);
        let same = of_graph(&graph);
        assert_eq!(same, of_graph(&Graph::families(1, 2)));
        assert_ne!(same, of_graph(&Graph::families(2, 2)));

        let mut changed = graph.clone();
        changed.test.last_mut().expect("has facts").object ^= 1;
        assert_ne!(same, of_graph(&changed));
        let mut swapped = graph.clone();
        swapped.train.swap(0, 1);
        assert_ne!(same, of_graph(&swapped));
        let mut moved = graph.clone();
        moved.test.extend(moved.valid.pop());
        assert_ne!(same, of_graph(&moved));
        let mut renamed = graph.clone();
        renamed.entities.push(b"one more");
        assert_ne!(same, of_graph(&renamed));
    }
}
