//! The topology of a run: nodes, workers, processes, and which numbers of them make sense; and the
//! place of each worker among them.

use std::num::NonZeroU32;

use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{System, Worker, Workers};
use rand::seq::SliceRandom as _;

use crate::partition::LISTED;
use crate::run::config::{ConfigError, Pacing};
use crate::run::error::TaskError;
use crate::run::parameters::Shape;
use crate::run::peers::Peers;
use crate::run::random::generator;

/// The nodes, workers and processes of a run.
#[derive(Clone, Copy)]
pub(crate) struct Topology<'a> {
    pub(crate) system: Option<System>,
    pub(crate) nodes: usize,
    /// Of each node.
    pub(crate) workers: &'a [usize],
    pub(crate) pacing: Pacing,
    pub(crate) peers: &'a Peers<'a>,
}

impl Topology<'_> {
    /// Returns the same with as many batches a clock, unless a number is given.
    pub(crate) fn paced(mut self, usual: NonZeroU32) -> Self {
        self.pacing.clock_every.get_or_insert(usual);
        self
    }

    /// Workers of each process.
    pub(crate) fn by_process(self) -> Vec<usize> {
        if self.peers.processes() > 1 { self.workers.to_vec() } else { vec![self.all()] }
    }

    /// Workers of all nodes.
    pub(crate) fn all(self) -> usize {
        self.workers.iter().sum()
    }

    /// Returns the place of a worker.
    pub(crate) fn slot(self, worker: &Worker<f32>) -> WorkerSlot {
        let (node, id) = (worker.node().index(), worker.id().index());
        WorkerSlot::of(self.workers, (node, id), self.peers.processes() > 1)
    }

    /// Returns the numbers of workers as they are printed.
    pub(crate) fn printed(self) -> Workers {
        match self.workers {
            [first, others @ ..] if others.iter().all(|other| other == first) => (*first).into(),
            list => list.to_vec().into(),
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
    workers: Option<&Workers>,
    peers: &Peers<'_>,
) -> Result<(), ConfigError> {
    let listed = workers.and_then(|workers| Some((workers, workers.listed()?)));
    match (nodes, workers, listed) {
        (0, ..) => Err(ConfigError::NoNodes),
        (_, _, Some((given, length))) if length != nodes => {
            Err(ConfigError::WorkerList { given: given.clone(), nodes })
        }
        (_, Some(workers), _) if workers.of_each(nodes).contains(&0) => Err(ConfigError::NoWorkers),
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
    /// The node it is of.
    pub node: usize,
    /// Nodes of the run; a process has one node, or all.
    pub nodes: usize,
    /// Its number among the workers of its node.
    pub id: usize,
    /// Workers of its node.
    pub of_node: usize,
}

impl WorkerSlot {
    /// The only worker.
    pub(crate) const ONLY: Self =
        Self { number: 0, all: 1, index: 0, here: 1, node: 0, nodes: 1, id: 0, of_node: 1 };

    /// Returns the place of worker `id` of `node`, among nodes with so many `workers` each, which
    /// are processes if `apart`.
    pub(crate) fn of(workers: &[usize], (node, id): (usize, usize), apart: bool) -> Self {
        let (of_node, all) = (workers[node], workers.iter().sum());
        let number = workers[..node].iter().sum::<usize>() + id;
        let (index, here) = if apart { (id, of_node) } else { (number, all) };
        Self { number, all, index, here, node, nodes: workers.len(), id, of_node }
    }

    /// Returns the places of all workers.
    #[cfg(test)]
    pub(crate) fn all_of(workers: &[usize], apart: bool) -> impl Iterator<Item = Self> {
        let ids = workers.iter().enumerate();
        let places = ids.flat_map(|(node, workers)| (0..*workers).map(move |id| (node, id)));
        places.map(move |place| Self::of(workers, place, apart))
    }

    /// Returns true if this worker decides for those of its process.
    pub(crate) fn is_first(self) -> bool {
        self.index == 0
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

    /// Returns the samples of this worker in an epoch, in order, where samples have these `nodes`:
    /// those of its node, shuffled anew and dealt to its workers.
    pub(crate) fn listed(self, nodes: &[u16], seed: u64, epoch: u32) -> Vec<u32> {
        let of = nodes.iter().enumerate().filter(|(_, node)| usize::from(**node) == self.node);
        let mut samples: Vec<u32> = of.map(|(sample, _)| sample as u32).collect();
        samples.shuffle(&mut generator(seed, [LISTED, epoch.into(), self.node as u64]));
        samples.into_iter().skip(self.id).step_by(self.of_node).collect()
    }

    /// Returns the keys, of `keys` many, that this worker copies, ascending: those of all workers
    /// of a process, one after the other, are all keys that have their home in it, ascending.
    pub(crate) fn copied(self, keys: u64) -> impl Iterator<Item = Key> {
        let is_alone = self.here == self.all;
        let (process, processes) = if is_alone { (0, 1) } else { (self.node, self.nodes) };
        self.range(keys).filter(move |key| is_here(*key, process, processes))
    }

    /// Returns this worker's range of keys, of `keys` many: workers of a process have one each.
    pub(crate) fn range(self, keys: u64) -> impl Iterator<Item = Key> {
        let bound = |index: usize| keys * index as u64 / self.here as u64;
        (bound(self.index)..bound(self.index + 1)).map(Key)
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
        let dealt = |seed, epoch| {
            let slots = WorkerSlot::all_of(&[2, 1], true);
            slots.map(|slot| slot.deal(100, seed, epoch)).collect::<Vec<_>>()
        };
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
        for workers in [&[1][..], &[3], &[2, 2], &[4, 4, 4], &[1, 3]] {
            let (nodes, mut seen) = (workers.len(), Vec::new());
            for (node, of_node) in workers.iter().enumerate() {
                let copied = |id| WorkerSlot::of(workers, (node, id), true).copied(100);
                let keys: Vec<Key> = (0..*of_node).flat_map(copied).collect();
                assert!(keys.is_sorted() && keys.iter().all(|key| is_here(*key, node, nodes)));
                seen.extend(keys);
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq((0..100).map(Key)));
        }
    }

    #[test]
    fn each_listed_sample_is_dealt_once_an_epoch_to_a_worker_of_its_node() {
        let nodes = [2, 2, 0, 1, 1, 1, 1];
        let dealt = |epoch| {
            let slots = WorkerSlot::all_of(&[2, 2, 2], false);
            slots.map(|slot| (slot.node, slot.listed(&nodes, 3, epoch))).collect::<Vec<_>>()
        };
        for epoch in 1..4 {
            let of_nodes = dealt(epoch);
            for (node, samples) in &of_nodes {
                assert!(samples.iter().all(|of| usize::from(nodes[*of as usize]) == *node));
            }
            let mut all: Vec<u32> = of_nodes.into_iter().flat_map(|(_, of)| of).collect();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
        }
    }

    #[test]
    fn places_follow_from_the_numbers_of_workers() {
        let of = |apart| WorkerSlot::all_of(&[2, 1], apart).collect::<Vec<_>>();
        let numbers = |slots: &[WorkerSlot], of: fn(&WorkerSlot) -> [usize; 4]| {
            slots.iter().map(of).collect::<Vec<_>>()
        };
        let place = |slot: &WorkerSlot| [slot.number, slot.node, slot.id, slot.of_node];
        assert_eq!(numbers(&of(true), place), [[0, 0, 0, 2], [1, 0, 1, 2], [2, 1, 0, 1]]);
        let process = |slot: &WorkerSlot| [slot.index, slot.here, slot.all, slot.nodes];
        assert_eq!(numbers(&of(true), process), [[0, 2, 3, 2], [1, 2, 3, 2], [0, 1, 3, 2]]);
        assert_eq!(numbers(&of(false), process), [[0, 3, 3, 2], [1, 3, 3, 2], [2, 3, 3, 2]]);
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        let peers = Peers::alone();
        let checked = |nodes, workers: &Workers| {
            let system = Some(System::Adapm);
            check(system, nodes, Some(workers), &peers).map_err(|error| error.to_string())
        };
        assert_eq!(checked(3, &Workers::from([2, 1, 1])), Ok(()));
        for list in [vec![2, 1], vec![1; 4]] {
            let text = Workers::from(list).to_string();
            let error = format!(
                "--workers {text}: 3 numbers are needed, one for each node of the run, or one for all"
            );
            assert_eq!(checked(3, &text.parse().expect("numbers")), Err(error));
        }
        let none = ConfigError::NoWorkers.to_string();
        assert_eq!(checked(2, &Workers::from([1, 0])), Err(none.clone()));
        assert_eq!(checked(2, &Workers::from(0)), Err(none));
    }
}
