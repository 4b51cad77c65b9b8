//! The nodes of a cluster that live in this process, from the first worker to the last message.

use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;

use adapm_core::layout::{Kind, Layout};
use adapm_core::slot::State;
use adapm_core::store::Store;
use adapm_core::{Key, NodeId, WorkerId};
use adapm_transport::net::NetStats;
use adapm_transport::threads::{self, Refusal};

use crate::error::{BuildError, RunError, message_of};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::node::NodeShared;
use crate::processes::Bond;
use crate::stats::Stats;
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, lock, wait};
use crate::worker::Worker;

/// A cluster, or this process's node of it ([`crate::Builder::group`]); made by [`crate::Builder`].
///
/// Dropping it shuts it down.
pub struct Cluster<S: Store + Send + Sync + 'static> {
    /// Those of this process.
    nodes: Vec<Manager<S>>,
    /// Of all processes.
    node_count: usize,
    layout: Layout,
    failure: Arc<Failure>,
    bond: Option<Bond>,
    has_run: AtomicBool,
    is_at_rest: AtomicBool,
}

impl<S: Store + Send + Sync + 'static> Cluster<S> {
    pub(crate) fn new(
        nodes: Vec<Manager<S>>,
        layout: Layout,
        failure: Arc<Failure>,
        bond: Option<Bond>,
    ) -> Self {
        let node_count = nodes.first().map_or(0, |node| node.shared.nodes);
        let (has_run, is_at_rest) = (AtomicBool::new(false), AtomicBool::new(true));
        Self { nodes, node_count, layout, failure, bond, has_run, is_at_rest }
    }

    /// Runs `work` on one thread for each worker of each node of this process, and returns the results by (node, worker) once
    /// the workers of all nodes have ended and everything they sent is applied everywhere. From then on the work is complete:
    /// a node that is lost later is an error of neither [`Cluster::visit_main`] nor [`Cluster::shutdown`].
    ///
    /// Under [`crate::System::Full`] the workers start when every node has its replicas. No worker works before all of all
    /// processes have a thread. Workers exist once: do everything in one run.
    ///
    /// # Errors
    /// [`RunError::AlreadyRun`], or what made the cluster fail; the operations of workers then answer
    /// [`OpError::Ended`](adapm_core::error::OpError::Ended), or name the node if one was lost. A worker that panics makes the
    /// cluster fail at once, with [`RunError::WorkerPanicked`]; one that cannot start does, with [`RunError::Thread`].
    pub fn run<R, F>(&self, work: F) -> Result<Vec<R>, RunError>
    where
        R: Send,
        F: Fn(Worker<S>) -> R + Sync,
    {
        if self.has_run.swap(true, Ordering::AcqRel) {
            return Err(RunError::AlreadyRun);
        }
        self.is_at_rest.store(false, Ordering::Release);
        if self.nodes[0].shared.replicates_fully {
            self.nodes.iter().for_each(Manager::replicate_everything);
            self.nodes.iter().for_each(Manager::wait_for_replicas);
            if let Some(bond) = &self.bond {
                // Whoever is lost is the failure that `leave` tells.
                let _ = bond.meet("replicas of a cluster", Ok(()));
            }
        }
        let results = self.run_workers(&work);
        self.leave()?;
        Ok(results
            .into_iter()
            .map(|result| result.expect("a worker without a result is a failure"))
            .collect())
    }

    /// Totals over the nodes of this process since the cluster was built; also while it runs.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.nodes.iter().for_each(|node| stats.merge(&node.shared.stats()));
        stats
    }

    /// Totals of one node; also while the cluster runs. `None` if there is no such node in this process.
    #[must_use]
    pub fn node_stats(&self, node: NodeId) -> Option<Stats> {
        self.nodes.iter().find(|manager| manager.shared.node == node).map(|node| node.shared.stats())
    }

    /// What the links of each channel to other processes have carried, at most about a second ago; empty if all nodes live
    /// in this process.
    #[must_use]
    pub fn link_stats(&self) -> Vec<NetStats> {
        let ports = self.nodes.iter().flat_map(|node| &node.shared.ports);
        ports.filter_map(|port| port.published.net()).collect()
    }

    /// Number of nodes, of all processes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.node_count
    }

    /// Number of workers of each node.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.nodes[0].shared.workers.len()
    }

    /// The layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Calls `visit` with every main copy of this process, in key order: for checkpoints and evaluation. In a sparse layout
    /// these are the keys that were ever accessed. The main copies of all processes are all keys, each once.
    ///
    /// # Errors
    /// [`RunError::Running`] between start and end of [`Cluster::run`], or what made the cluster fail: some main copy may be
    /// on its way then.
    pub fn visit_main(&self, mut visit: impl FnMut(Key, &[S::Value])) -> Result<(), RunError> {
        self.check_rest()?;
        let keys = self.layout.keys();
        let step = if self.layout.kind() == Kind::Dense { KEYS_AT_ONCE } else { u64::MAX };
        let mut owned: Vec<(Key, usize)> = Vec::new();
        let mut value = Vec::new();
        let mut start = keys.start;
        while start < keys.end {
            let end = Key(start.0.saturating_add(step)).min(keys.end);
            for (index, node) in self.nodes.iter().enumerate() {
                node.shared.store.visit(start..end, |key, slot| {
                    if slot.word.state() == State::Main {
                        owned.push((key, index));
                    }
                });
            }
            owned.sort_unstable();
            for (key, index) in owned.drain(..) {
                value.clear();
                self.nodes[index].shared.store.with_slot(key, |slot| value.extend_from_slice(slot.value));
                visit(key, &value);
            }
            start = end;
        }
        Ok(())
    }

    /// Reads the main copies of `keys` into `values` `[sum of value_len]`. A key of a sparse layout that was never accessed, and
    /// one whose main copy is in another process, leaves its place as it is.
    ///
    /// # Errors
    /// As [`Cluster::visit_main`], and [`RunError::Caller`] if a key or the length is wrong.
    pub fn read(&self, keys: &[Key], values: &mut [S::Value]) -> Result<(), RunError> {
        self.check_rest()?;
        self.nodes[0].shared.check(keys, values.len())?;
        let mut rest = values;
        for key in keys {
            let len = self.layout.value_len(*key).expect("the keys were checked");
            let (value, behind) = std::mem::take(&mut rest).split_at_mut(len);
            self.nodes.iter().any(|node| {
                node.shared.store.with_slot(*key, |slot| slot.word.state() == State::Main && slot.pull(value))
            });
            rest = behind;
        }
        Ok(())
    }

    /// Ends the cluster in order: everything sent is applied, all threads have ended. Dropping does the same, silently.
    ///
    /// A group whose last cluster has ended so needs no goodbye: dropping it says that this node has finished.
    ///
    /// # Errors
    /// What made the cluster fail, if it did.
    pub fn shutdown(mut self) -> Result<(), RunError> {
        self.end()
    }

    /// What each worker returned; `None` only if the cluster has failed.
    fn run_workers<R, F>(&self, work: &F) -> Vec<Option<R>>
    where
        R: Send,
        F: Fn(Worker<S>) -> R + Sync,
    {
        let gate = Gate::default();
        thread::scope(|scope| {
            let workers = self.nodes.iter().flat_map(|node| {
                let ids = (0..node.shared.workers.len()).map(|index| u16::try_from(index).map(WorkerId));
                ids.map(|id| (&node.shared, id.expect("worker ids are 16 bits wide")))
            });
            let threads: Result<Vec<_>, Refusal> = workers
                .map(|(shared, id)| {
                    let gate = &gate;
                    let name = format!("adapm {} {id}", shared.node);
                    threads::spawn_scoped(scope, name, move || self.run_worker(shared, id, gate, work))
                })
                .collect();
            let failed = threads.as_ref().err().map(|refusal| RunError::Thread(refusal.clone()));
            let met = self.bond.as_ref().map_or(Ok(()), |bond| {
                let own = threads.as_ref().map(|_| ()).map_err(|refusal| BuildError::Thread(refusal.clone()));
                bond.meet("workers of a cluster", own)
            });
            if let Some(error) = failed.or(met.err().map(RunError::of_meeting)) {
                self.failure.explain(error);
            }
            gate.open();
            let Ok(threads) = threads else { return Vec::new() };
            // What a worker panics with is caught in its thread.
            threads.into_iter().map(|thread| thread.join().ok().flatten()).collect()
        })
    }

    /// Lives through a run as one worker, which begins when the gate opens, unless the cluster has failed by then.
    fn run_worker<R>(
        &self,
        shared: &Arc<NodeShared<S>>,
        id: WorkerId,
        gate: &Gate,
        work: &impl Fn(Worker<S>) -> R,
    ) -> Option<R> {
        let worker = Worker::new(Arc::clone(shared), id);
        gate.pass();
        if self.failure.is_raised() {
            return None;
        }
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| work(worker)));
        if let Err(payload) = &outcome {
            let message = message_of(payload.as_ref());
            self.failure.raise(RunError::WorkerPanicked { node: shared.node, worker: id, message });
        }
        // Also if `work` has kept its worker: nobody waits for one whose work is done.
        shared.end(id);
        outcome.ok()
    }

    /// Waits until everything is applied everywhere and the channel threads end.
    fn leave(&self) -> Result<(), RunError> {
        let promises: Vec<_> = self.nodes.iter().map(Manager::leave).collect();
        let left: Vec<_> = promises.into_iter().map(|promise| promise.wait()).collect();
        // `Ended` says that the cluster has failed, or has left before.
        if left.iter().all(Result::is_ok) {
            self.failure.complete();
        }
        self.failure.check()?;
        self.is_at_rest.store(true, Ordering::Release);
        Ok(())
    }

    fn check_rest(&self) -> Result<(), RunError> {
        self.failure.check()?;
        if self.is_at_rest.load(Ordering::Acquire) { Ok(()) } else { Err(RunError::Running) }
    }

    fn end(&mut self) -> Result<(), RunError> {
        let left = self.leave();
        self.nodes.clear();
        if let Some(bond) = self.bond.take().filter(|_| self.failure.is_complete()) {
            bond.finish();
        }
        left
    }
}

impl<S: Store + Send + Sync + 'static> Drop for Cluster<S> {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl<S: Store + Send + Sync + 'static> fmt::Debug for Cluster<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster of {} nodes x {} workers", self.nodes(), self.workers())
    }
}

/// Where workers wait until all have a thread.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *lock(&self.is_open) = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut is_open = lock(&self.is_open);
        while !*is_open {
            is_open = wait(&self.opened, is_open);
        }
    }
}

/// Keys of a dense layout that are listed before they are visited.
const KEYS_AT_ONCE: u64 = 1 << 16;
