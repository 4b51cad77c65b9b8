//! A number that differs between data that differ: what processes compare before they train together.
//!
//! FNV-1a over words of 64 bits: finds differences, not malice. Not here: the checksum of a file, which is over bytes.

use crate::kge::checkpoint::Checkpoint;
use crate::kge::graph::{Graph, Names, Triple};

/// A sum over what was added, in order.
struct Digest(u64);

impl Digest {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.word(u64::from(*byte));
        }
    }

    fn names(&mut self, names: &Names) {
        self.word(names.len() as u64);
        for index in 0..names.len() {
            self.bytes(names.bytes(index).unwrap_or_default());
        }
    }

    fn triples(&mut self, triples: &[Triple]) {
        self.word(triples.len() as u64);
        for triple in triples {
            self.word(u64::from(triple.subject) << 32 | u64::from(triple.object));
            self.word(u64::from(triple.relation));
        }
    }
}

/// The digest of all facts and names of a graph, in order.
pub(crate) fn of_graph(graph: &Graph) -> u64 {
    let mut digest = Digest::new();
    for triples in [&graph.train, &graph.valid, &graph.test] {
        digest.triples(triples);
    }
    digest.names(&graph.entities);
    digest.names(&graph.relations);
    digest.0
}

/// The digest of all values of a checkpoint.
pub(crate) fn of_values(checkpoint: &Checkpoint) -> u64 {
    let mut digest = Digest::new();
    digest.word(checkpoint.values.len() as u64);
    for value in checkpoint.values.iter() {
        digest.word(u64::from(value.to_bits()));
    }
    digest.0
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
