//! The workers of a cluster: handed out, run on threads of their own, ended.
//!
//! ```text
//!   take ──> meet the other processes ──> work ──> end ──> leave: everything is applied everywhere
//! ```

use std::convert::Infallible;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::{fmt, thread};

use adapm_core::store::Store;
use adapm_core::{NodeId, Value, WorkerId};
use adapm_transport::threads::{self, SpawnError};

use super::Cluster;
use crate::error::{BuildError, RunError, TryRunError, message_of};
use crate::node::NodeShared;
use crate::node_handle::NodeHandle;
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::worker::Worker;

/// A node of this process with one of its workers.
type Place<'a, S> = (&'a Arc<NodeShared<S>>, WorkerId);

impl<V, S> Cluster<V, S>
where
    V: Value,
    S: Store<Value = V> + Send + Sync + 'static,
{
    /// Hands out one worker of a node of this process. It may live on any thread, across phases of
    /// a program, beside its share of the data. It ends when it is dropped.
    ///
    /// Each worker exists once. Barriers and quiesces wait for all workers that have not ended,
    /// including those never handed out. The first call in a process waits until every other
    /// process has called this, [`Cluster::run`] or [`Cluster::finish`]; under
    /// [`crate::System::Full`] also until every node has its replicas. A worker dropped by a panic
    /// makes the cluster fail.
    ///
    /// ```
    /// use std::thread;
    ///
    /// use adapm_runtime::prelude::*;
    ///
    /// let cluster = Builder::<i64>::new(Layout::dense(&[(10, 1)])?).workers(2).build()?;
    /// let mut threads = Vec::new();
    /// for (shard, id) in [vec![1, 2, 3], vec![4, 5]].into_iter().zip(0..) {
    ///     let mut worker = cluster.worker(NodeId(0), WorkerId(id))?;
    ///     // The thread owns worker and shard, and gives the worker back.
    ///     threads.push(thread::spawn(move || {
    ///         shard.iter().try_for_each(|update| worker.push(&[Key(7)], &[*update]))?;
    ///         Ok::<_, OpError>(worker)
    ///     }));
    /// }
    /// // The second phase, here on this thread.
    /// for thread in threads {
    ///     let mut worker = thread.join().expect("no panic")?;
    ///     worker.push(&[Key(8)], &[1])?;
    /// }
    /// cluster.finish()?;
    /// let mut values = [0; 2];
    /// cluster.read(&[Key(7), Key(8)], &mut values)?;
    /// assert_eq!(values, [15, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`RunError::UnknownWorker`], [`RunError::Taken`], [`RunError::Finished`], or the error that
    /// made the cluster fail.
    pub fn worker(&self, node: NodeId, worker: WorkerId) -> Result<Worker<V, S>, RunError> {
        let place = self.places().position(|(shared, id)| (shared.node, id) == (node, worker));
        let place = place.ok_or(RunError::UnknownWorker { node, worker })?;
        self.take(place..place + 1)?;
        self.meet(|| self.replicate());
        self.failure.check()?;
        let (shared, id) = self.places().nth(place).expect("it was found there");
        Ok(Worker::new(Arc::clone(shared), id, Some(Arc::clone(&self.failure))))
    }

    /// Runs `work` on one thread for each worker of each node of this process, and returns the
    /// results by (node, worker) once the workers of all nodes have ended and everything they sent
    /// is applied everywhere. The work is then complete: losing a node afterwards fails neither
    /// [`Cluster::visit_main`] nor [`Cluster::shutdown`].
    ///
    /// Under [`crate::System::Full`] the workers start when every node has its replicas. No worker
    /// starts before every worker of every process has a thread. Workers exist once: for several
    /// runs use [`Cluster::worker`].
    ///
    /// # Errors
    /// [`RunError::Finished`], [`RunError::Taken`], or the error that made the cluster fail; the
    /// operations of workers then answer [`OpError::Ended`](adapm_core::error::OpError::Ended), or
    /// name the node if one was lost. A worker that panics makes the cluster fail at once with
    /// [`RunError::WorkerPanicked`]; one that cannot start, with [`RunError::Thread`].
    pub fn run<R, F>(&self, work: F) -> Result<Vec<R>, RunError>
    where
        R: Send,
        F: Fn(Worker<V, S>) -> R + Sync,
    {
        match self.try_run(|worker| Ok::<R, Infallible>(work(worker))) {
            Ok(results) => Ok(results),
            Err(TryRunError::Cluster(error)) => Err(error),
            Err(TryRunError::Worker { error, .. }) => match error {},
        }
    }

    /// Like [`Cluster::run`], for work that can fail: an error makes the cluster fail at once, so
    /// that no worker goes on with part of the work missing, and the first error is returned with
    /// node and worker.
    ///
    /// ```
    /// use adapm_runtime::prelude::*;
    ///
    /// let cluster = Builder::<i64>::new(Layout::dense(&[(10, 1)])?).nodes(2).build()?;
    /// let refused = cluster.try_run(|mut worker| -> Result<(), OpError> {
    ///     let key = Key(9) + u64::from(worker.node().0);
    ///     worker.push(&[key], &[1])
    /// });
    /// let text = "worker w0 of node n1: key 10 is out of range: the layout has keys 0 to 9";
    /// assert_eq!(refused.expect_err("there is no key 10").to_string(), text);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TryRunError::Worker`], or as [`Cluster::run`]. Errors that workers return because the
    /// cluster has failed are replaced by its cause.
    pub fn try_run<R, E, F>(&self, work: F) -> Result<Vec<R>, TryRunError<E>>
    where
        R: Send,
        E: fmt::Display + Send,
        F: Fn(Worker<V, S>) -> Result<R, E> + Sync,
    {
        self.take(0..self.places().count())?;
        let results = self.run_workers(&work);
        let left = self.leave();
        let of_all = self.places().map(|(shared, worker)| (shared.node, worker)).zip(results);
        if let Err(RunError::WorkerFailed { node, worker, .. }) = left {
            let mut failed = of_all.filter(|(place, _)| *place == (node, worker));
            let error = failed.find_map(|(_, result)| result?.err()).expect("its error was noted");
            return Err(TryRunError::Worker { node, worker, error });
        }
        left?;
        let results = of_all.map(|((node, worker), result)| {
            let result = result.expect("a worker without a result is a failure");
            result.map_err(|error| TryRunError::Worker { node, worker, error })
        });
        results.collect()
    }

    /// Ends the workers that were never handed out, and waits until the workers of all nodes have
    /// ended and everything they sent is applied everywhere. The work is then complete as after
    /// [`Cluster::run`], and main copies can be read. A second call does nothing.
    ///
    /// # Errors
    /// [`RunError::InUse`] while a worker of this process has not been dropped; nothing has changed
    /// then. Otherwise the error that made the cluster fail.
    pub fn finish(&self) -> Result<(), RunError> {
        self.failure.check()?;
        {
            let mut taken = lock(&self.taken);
            let in_use = |((shared, id), taken): &(Place<'_, S>, &bool)| {
                **taken && shared.alive(*id).is_ok()
            };
            if let Some(((shared, worker), _)) = self.places().zip(&*taken).find(in_use) {
                return Err(RunError::InUse { node: shared.node, worker });
            }
            taken.fill(true);
        }
        self.meet(|| Ok(()));
        self.leave()
    }

    /// Waits until everything is applied everywhere and the channel threads end.
    pub(super) fn leave(&self) -> Result<(), RunError> {
        let promises: Vec<_> = self.nodes.iter().map(NodeHandle::leave).collect();
        let left: Vec<_> = promises.into_iter().map(|promise| promise.wait()).collect();
        // `Ended` means that the cluster has failed or has left before.
        if left.iter().all(Result::is_ok) {
            self.failure.complete();
        }
        self.failure.check()
    }

    /// Waits, once per cluster, until all processes are about to work or to end; runs `prepare`
    /// before.
    pub(super) fn meet(&self, prepare: impl FnOnce() -> Result<(), BuildError>) {
        self.met.get_or_init(|| {
            if self.failure.is_raised() {
                return;
            }
            let own = prepare();
            let met = self
                .group
                .as_ref()
                .map_or(own.clone(), |group| group.meet("workers of a cluster", own));
            if let Err(error) = met {
                self.failure.explain(RunError::of_meeting(error));
            }
        });
    }

    /// Replicates all keys, or the hot ones, to all nodes where the system wants it.
    fn replicate(&self) -> Result<(), BuildError> {
        let all = || self.nodes.iter().filter(|node| node.shared.supply.lasts_the_run());
        all().for_each(NodeHandle::replicate);
        // Losses in the meantime surface as a failure.
        all().for_each(NodeHandle::wait_for_replicas);
        Ok(())
    }

    /// Returns the workers of this process, by (node, worker).
    fn places(&self) -> impl Iterator<Item = Place<'_, S>> {
        self.nodes.iter().flat_map(|node| {
            let ids =
                (0..node.shared.workers.len()).map(|index| u16::try_from(index).map(WorkerId));
            ids.map(|id| (&node.shared, id.expect("worker ids are 16 bits wide")))
        })
    }

    /// Marks the workers at these places as handed out.
    fn take(&self, places: Range<usize>) -> Result<(), RunError> {
        self.failure.check()?;
        let mut taken = lock(&self.taken);
        if self.failure.is_complete() {
            return Err(RunError::Finished);
        }
        let wanted = &mut taken[places.clone()];
        if let Some(at) = wanted.iter().position(|taken| *taken) {
            let (shared, worker) = self.places().nth(places.start + at).expect("it is one of them");
            return Err(RunError::Taken { node: shared.node, worker });
        }
        wanted.fill(true);
        Ok(())
    }

    /// Runs `work` on all workers and returns their results; a result is `None` only if the cluster
    /// has failed.
    fn run_workers<R, E, F>(&self, work: &F) -> Vec<Option<Result<R, E>>>
    where
        R: Send,
        E: fmt::Display + Send,
        F: Fn(Worker<V, S>) -> Result<R, E> + Sync,
    {
        let gate = Gate::default();
        thread::scope(|scope| {
            let threads: Result<Vec<_>, SpawnError> = self
                .places()
                .map(|(shared, id)| {
                    let gate = &gate;
                    let name = format!("adapm {} {id}", shared.node);
                    threads::spawn_scoped(scope, name, move || {
                        self.run_worker(shared, id, gate, work)
                    })
                })
                .collect();
            self.meet(|| match &threads {
                Ok(_) => self.replicate(),
                Err(refusal) => Err(BuildError::Thread(refusal.clone())),
            });
            gate.open();
            let Ok(threads) = threads else { return Vec::new() };
            // Panics of workers are caught in their threads.
            threads.into_iter().map(|thread| thread.join().ok().flatten()).collect()
        })
    }

    /// Runs one worker, which begins when the gate opens, unless the cluster has failed by then.
    fn run_worker<R, E: fmt::Display>(
        &self,
        shared: &Arc<NodeShared<S>>,
        id: WorkerId,
        gate: &Gate,
        work: &impl Fn(Worker<V, S>) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        let worker = Worker::new(Arc::clone(shared), id, None);
        gate.pass();
        if self.failure.is_raised() {
            return None;
        }
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| work(worker)));
        let (node, worker) = (shared.node, id);
        match &outcome {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                self.failure.blame(RunError::WorkerFailed {
                    node,
                    worker,
                    message: error.to_string(),
                });
            }
            Err(payload) => {
                let message = message_of(payload.as_ref());
                self.failure.blame(RunError::WorkerPanicked { node, worker, message });
            }
        }
        // Even if `work` has kept its worker: no call waits for a worker whose work is done.
        shared.end(id);
        outcome.ok()
    }
}

/// A gate at which workers wait until all have a thread.
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
