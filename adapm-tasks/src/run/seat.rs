//! A worker's place: among all workers of the run, among those of its process, and which keys it copies.

use adapm_core::{Key, Layout, NodeId};

/// One worker's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    /// Its number among all workers of all nodes.
    pub(crate) number: usize,
    /// Workers of all nodes.
    pub(crate) all: usize,
    /// Its index among the workers of this process.
    pub(crate) index: usize,
    /// Workers of this process.
    pub(crate) here: usize,
    /// Workers of each node; a process has one node, or all.
    pub(crate) of_node: usize,
}

impl Seat {
    /// The only worker.
    pub(crate) const ONLY: Self = Self { number: 0, all: 1, index: 0, here: 1, of_node: 1 };

    /// Tells whether this worker decides for those of its process.
    pub(crate) fn is_first(self) -> bool {
        self.index == 0
    }

    /// Nodes of the run.
    pub(crate) fn nodes(self) -> usize {
        self.all / self.of_node
    }

    /// The node this worker is of.
    pub(crate) fn node(self) -> usize {
        self.number / self.of_node
    }

    /// The keys, of `keys` many, that this worker copies, ascending: those of all workers of a process one behind the other
    /// are all keys that have their home in it, ascending.
    pub(crate) fn copied(self, keys: u64) -> impl Iterator<Item = Key> {
        let bound = |index: usize| keys * index as u64 / self.here as u64;
        let (process, processes) = (self.number / self.here, self.all / self.here);
        let range = (bound(self.index)..bound(self.index + 1)).map(Key);
        range.filter(move |key| is_here(*key, process, processes))
    }
}

/// Whether process `node` of `processes` is the home of a key.
pub(crate) fn is_here(key: Key, node: usize, processes: usize) -> bool {
    processes == 1 || home(key, processes) == node
}

/// Which process of `processes` is the home of a key.
pub(crate) fn home(key: Key, processes: usize) -> usize {
    let NodeId(node) = Layout::home(key, processes);
    usize::from(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workers_of_a_process_copy_what_is_at_home_there() {
        for (nodes, workers) in [(1, 1), (1, 3), (2, 2), (3, 4)] {
            let mut seen = Vec::new();
            for node in 0..nodes {
                let seat = |index| Seat {
                    number: node * workers + index,
                    all: nodes * workers,
                    index,
                    here: workers,
                    of_node: workers,
                };
                let keys: Vec<Key> = (0..workers).flat_map(|index| seat(index).copied(100)).collect();
                assert!(keys.is_sorted() && keys.iter().all(|key| is_here(*key, node, nodes)));
                seen.extend(keys);
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq((0..100).map(Key)));
        }
    }
}
