//! The topology of a run: nodes, workers, processes, and which numbers of them make sense; and the
//! place of each worker among them.

use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{System, Worker};
use rand::seq::SliceRandom as _;

use crate::run::config::ConfigError;
use crate::run::consistency;
use crate::run::error::TaskError;
use crate::run::parameters::Shape;
use crate::run::peers::Peers;
use crate::run::random::generator;

/// The nodes, workers and processes of a run.
#[derive(Clone, Copy)]
pub(crate) struct Topology<'a> {
    pub(crate) system: Option<System>,
    pub(crate) nodes: usize,
    /// Workers of each node.
    pub(crate) workers: usize,
    pub(crate) peers: &'a Peers<'a>,
}

impl<'a> Topology<'a> {
    /// As many nodes as asked for; collective if they are processes.
    pub(crate) fn new(
        system: Option<System>,
        nodes: usize,
        workers: Option<usize>,
        peers: &'a Peers<'a>,
    ) -> Result<Self, TaskError> {
        if system.is_none() {
            return Ok(Self { system, nodes: 1, workers: 1, peers });
        }
        let workers = consistency::workers(peers, workers, nodes)?;
        Ok(Self { system, nodes, workers, peers })
    }

    /// Workers of this process.
    pub(crate) fn here(self) -> usize {
        self.nodes * self.workers / self.peers.processes()
    }

    /// Returns the place of a worker.
    pub(crate) fn slot(self, worker: &Worker<f32>) -> WorkerSlot {
        let (node, id) = (worker.node().index(), worker.id().index());
        let number = node * self.workers + id;
        let index = if self.peers.processes() > 1 { id } else { number };
        WorkerSlot {
            number,
            all: self.nodes * self.workers,
            index,
            here: self.here(),
            of_node: self.workers,
        }
    }

    /// Checks that parameters of this shape can be laid out over the nodes, also if no manager does
    /// it.
    pub(crate) fn check(self, shape: &Shape) -> Result<(), TaskError> {
        let (nodes, keys) = (self.nodes, shape.keys());
        if nodes as u64 > keys {
            return Err(ConfigError::MoreNodesThanKeys { nodes, keys }.into());
        }
        shape.layout().map(drop)
    }
}

/// Checks numbers that are none of the data's business.
pub(crate) fn check(
    system: Option<System>,
    nodes: usize,
    workers: Option<usize>,
    peers: &Peers<'_>,
) -> Result<(), ConfigError> {
    match (nodes, workers) {
        (0, _) => Err(ConfigError::NoNodes),
        (_, Some(0)) => Err(ConfigError::NoWorkers),
        _ if system.is_none() && peers.processes() > 1 => Err(ConfigError::NoSystem),
        _ => Ok(()),
    }
}

/// Returns all results, or the first error; an operation that failed because the run was ending
/// only if there is no other.
pub(crate) fn first_error<R>(results: Vec<Result<R, TaskError>>) -> Result<Vec<R>, TaskError> {
    let is_consequence = |error: &TaskError| matches!(error, TaskError::Access(_));
    let (done, mut failed): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    failed.sort_by_key(|result| result.as_ref().err().is_some_and(is_consequence));
    match failed.into_iter().next() {
        Some(Err(error)) => Err(error),
        _ => done.into_iter().collect(),
    }
}

/// One worker's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerSlot {
    /// Its number among all workers of all nodes.
    pub number: usize,
    /// Workers of all nodes.
    pub all: usize,
    /// Its index among the workers of this process.
    pub index: usize,
    /// Workers of this process.
    pub here: usize,
    /// Workers of each node; a process has one node, or all.
    pub of_node: usize,
}

impl WorkerSlot {
    /// The only worker.
    pub(crate) const ONLY: Self = Self { number: 0, all: 1, index: 0, here: 1, of_node: 1 };

    /// Returns true if this worker decides for those of its process.
    pub(crate) fn is_first(self) -> bool {
        self.index == 0
    }

    /// Nodes of the run.
    #[must_use]
    pub fn nodes(self) -> usize {
        self.all / self.of_node
    }

    /// Returns the node this worker is of.
    #[must_use]
    pub fn node(self) -> usize {
        self.number / self.of_node
    }

    /// Returns the examples, of so many, that this worker trains on in an epoch, in the order in
    /// which it does: dealt to all workers anew, and in another order, every epoch; numbers of
    /// workers' examples differ by one at most. A pure function of the slot, `seed` and `epoch`.
    /// Shuffles the numbers of all examples, 8 bytes each, in every worker.
    #[must_use]
    pub fn deal(self, examples: usize, seed: u64, epoch: u32) -> Vec<usize> {
        let mut all: Vec<usize> = (0..examples).collect();
        all.shuffle(&mut generator(seed, [DEAL, u64::from(epoch)]));
        all.into_iter().skip(self.number).step_by(self.all).collect()
    }

    /// Returns the keys, of `keys` many, that this worker copies, ascending: those of all workers
    /// of a process, one after the other, are all keys that have their home in it, ascending.
    pub(crate) fn copied(self, keys: u64) -> impl Iterator<Item = Key> {
        let bound = |index: usize| keys * index as u64 / self.here as u64;
        let (process, processes) = (self.number / self.here, self.all / self.here);
        let range = (bound(self.index)..bound(self.index + 1)).map(Key);
        range.filter(move |key| is_here(*key, process, processes))
    }
}

/// Returns true if process `node` of `processes` is the home of a key.
pub(crate) fn is_here(key: Key, node: usize, processes: usize) -> bool {
    processes == 1 || home(key, processes) == node
}

/// Returns the process of `processes` that is the home of a key.
pub(crate) fn home(key: Key, processes: usize) -> usize {
    let NodeId(node) = Layout::home(key, processes);
    usize::from(node)
}

/// The purpose of the generator that deals examples.
const DEAL: u64 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_deals_all_examples_once_and_differently() {
        let slot = |number| WorkerSlot { number, all: 3, index: 0, here: 1, of_node: 1 };
        let dealt = |seed, epoch| [0, 1, 2].map(|number| slot(number).deal(100, seed, epoch));
        for epoch in 1..4 {
            let mut all = dealt(7, epoch).concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..100));
            assert!(dealt(7, epoch).iter().all(|part| [33, 34].contains(&part.len())));
            assert_eq!(dealt(7, epoch), dealt(7, epoch));
        }
        assert_ne!(dealt(7, 1), dealt(7, 2));
        assert_ne!(dealt(7, 1), dealt(8, 1));
    }

    #[test]
    fn the_workers_of_a_process_copy_what_is_at_home_there() {
        for (nodes, workers) in [(1, 1), (1, 3), (2, 2), (3, 4)] {
            let mut seen = Vec::new();
            for node in 0..nodes {
                let slot = |index| WorkerSlot {
                    number: node * workers + index,
                    all: nodes * workers,
                    index,
                    here: workers,
                    of_node: workers,
                };
                let keys: Vec<Key> =
                    (0..workers).flat_map(|index| slot(index).copied(100)).collect();
                assert!(keys.is_sorted() && keys.iter().all(|key| is_here(*key, node, nodes)));
                seen.extend(keys);
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq((0..100).map(Key)));
        }
    }
}
