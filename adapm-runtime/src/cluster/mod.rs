//! The type [`Cluster`]: the nodes of a cluster that are in this process, their statistics and main
//! copies, and their shutdown.
//!
//! Not here: handing out and running workers (`run.rs`), construction ([`crate::builder`]).

mod run;

use std::fmt;
use std::sync::{Arc, OnceLock};

use adapm_core::layout::{Kind, Layout};
use adapm_core::slot::State;
use adapm_core::store::Store;
use adapm_core::{Key, NodeId, Value};
#[cfg(feature = "tcp")]
use adapm_transport::net::NetStats;

use crate::builder::Workers;
use crate::error::RunError;
use crate::failure::Failure;
use crate::node_handle::{NodeHandle, Plan};
use crate::processes::ProcessGroup;
use crate::stats::Stats;
use crate::status::NodeStatus;
use crate::store::LayoutStore;
use crate::sync::{Mutex, lock};

/// A cluster, or the part of it in this process ([`crate::Nodes`]); built by [`crate::Builder`].
///
/// Workers run on threads that [`Cluster::run`] or [`Cluster::try_run`] starts, or on the caller's
/// own ([`Cluster::worker`]). Main copies can be read before the first worker is handed out, and
/// again once all workers have ended and the cluster has finished. Dropping the cluster shuts it
/// down.
pub struct Cluster<V: Value, S: Store<Value = V> + Send + Sync + 'static = LayoutStore<V>> {
    /// The nodes of this process.
    nodes: Vec<NodeHandle<S>>,
    /// Number of nodes in all processes.
    node_count: usize,
    workers: Workers,
    layout: Layout,
    failure: Arc<Failure>,
    /// The group of processes, if there are several.
    group: Option<Box<dyn ProcessGroup>>,
    /// One flag per worker of this process, by (node, worker): true if it cannot be handed out any
    /// more, as it was handed out or the cluster has finished.
    taken: Mutex<Vec<bool>>,
    /// Set once all processes have met, after which workers may start.
    met: OnceLock<()>,
}

impl<V, S> Cluster<V, S>
where
    V: Value,
    S: Store<Value = V> + Send + Sync + 'static,
{
    pub(crate) fn new(
        nodes: Vec<NodeHandle<S>>,
        plan: Plan<V>,
        group: Option<Box<dyn ProcessGroup>>,
    ) -> Self {
        let Plan { nodes: node_count, workers, layout, failure, .. } = plan;
        let here = nodes.iter().map(|node| node.shared.workers.len()).sum();
        let (taken, met) = (Mutex::new(vec![false; here]), OnceLock::new());
        Self { nodes, node_count, workers, layout, failure, group, taken, met }
    }

    /// Returns totals over the nodes of this process since the cluster was built, even while it
    /// runs.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.nodes.iter().for_each(|node| stats.merge(&node.shared.stats()));
        stats
    }

    /// Returns the totals of one node, even while the cluster runs, or `None` if the node is not in
    /// this process.
    #[must_use]
    pub fn node_stats(&self, node: NodeId) -> Option<Stats> {
        self.nodes.iter().find(|handle| handle.shared.node == node).map(|node| node.shared.stats())
    }

    /// Returns what a node has at this moment, even while the cluster runs; `None` if the node is
    /// not in this process. Keys that move meanwhile may be missing, or be told of two nodes.
    ///
    /// Costs a look at each copy of the node, under its latch.
    ///
    /// ```
    /// # use adapm_runtime::prelude::*;
    /// let cluster = Builder::<f32>::new(Layout::dense(&[(1_000, 4)])?).nodes(2).build()?;
    /// let [first, second] = [0, 1].map(|node| cluster.status(NodeId(node)).expect("is here"));
    /// assert_eq!(first.main_copies + second.main_copies, 1_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn status(&self, node: NodeId) -> Option<NodeStatus> {
        let handle = self.nodes.iter().find(|handle| handle.shared.node == node)?;
        Some(NodeStatus::of(&handle.shared))
    }

    /// Returns the traffic of each channel's links to other processes, at most about a second old;
    /// empty if all nodes live in this process.
    #[must_use]
    #[cfg(feature = "tcp")]
    pub fn link_stats(&self) -> Vec<NetStats> {
        self.group.as_ref().map_or(Vec::new(), |group| group.link_stats())
    }

    /// Returns the number of nodes in all processes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.node_count
    }

    /// Returns the numbers of workers of the nodes.
    #[must_use]
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Returns the layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Calls `visit` with every main copy of this process, in key order, for checkpoints and
    /// evaluation. In a sparse layout these are the keys that were ever accessed. Over all
    /// processes, each key has one main copy.
    ///
    /// # Errors
    /// [`RunError::Running`] while workers are handed out and the cluster has not finished, as main
    /// copies may be in flight; or the error that made the cluster fail.
    pub fn visit_main(&self, mut visit: impl FnMut(Key, &[V])) -> Result<(), RunError> {
        self.try_visit_main(|key, value| {
            visit(key, value);
            Ok(())
        })
    }

    /// Like [`Cluster::visit_main`], but stops at the first error of `visit`, such as a full disk.
    ///
    /// ```
    /// # use std::io::Write;
    /// # use adapm_runtime::prelude::*;
    /// # let cluster = Builder::<i64>::new(Layout::dense(&[(3, 1)])?).build()?;
    /// # let mut file = Vec::new();
    /// cluster.try_visit_main(|key, value| -> Result<(), Box<dyn std::error::Error>> {
    ///     writeln!(file, "{key} {value:?}")?;
    ///     Ok(())
    /// })?;
    /// # assert_eq!(file, b"k0 [0]\nk1 [0]\nk2 [0]\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The first error of `visit`, or one of [`Cluster::visit_main`].
    pub fn try_visit_main<E>(
        &self,
        mut visit: impl FnMut(Key, &[V]) -> Result<(), E>,
    ) -> Result<(), E>
    where
        E: From<RunError>,
    {
        self.check_rest()?;
        let keys = self.layout.keys();
        let step = if self.layout.kind() == Kind::Dense { KEYS_AT_ONCE } else { u64::MAX };
        // Main copies of some keys, each with the index of its node in `nodes`.
        let mut owned: Vec<(Key, usize)> = Vec::new();
        let mut value = Vec::new();
        let mut start = keys.start;
        while start < keys.end {
            let end = Key(start.0.saturating_add(step)).min(keys.end);
            for (index, node) in self.nodes.iter().enumerate() {
                node.shared.store.visit(start..end, |key, slot| {
                    if slot.packed.state() == State::Main {
                        owned.push((key, index));
                    }
                });
            }
            owned.sort_unstable();
            for (key, index) in owned.drain(..) {
                value.clear();
                self.nodes[index]
                    .shared
                    .store
                    .with_slot(key, |slot| value.extend_from_slice(slot.value));
                visit(key, &value)?;
            }
            start = end;
        }
        Ok(())
    }

    /// Reads the main copies of `keys` into `values` `[sum of value_len]`.
    ///
    /// Returns, in order, the keys whose main copy is not in this process: it is in another process
    /// or, in a sparse layout, the key was never accessed. Their places in `values` are unchanged.
    ///
    /// # Errors
    /// As [`Cluster::visit_main`], and [`RunError::Op`] if a key or the length is wrong.
    pub fn read(&self, keys: &[Key], values: &mut [V]) -> Result<Vec<Key>, RunError> {
        self.check_rest()?;
        self.nodes[0].shared.check(keys, values.len())?;
        let mut elsewhere = Vec::new();
        let mut rest = values;
        for key in keys {
            let len = self.layout.value_len(*key).expect("the keys were checked");
            let (value, after) = std::mem::take(&mut rest).split_at_mut(len);
            let is_here = self.nodes.iter().any(|node| {
                node.shared
                    .store
                    .with_slot(*key, |slot| slot.packed.state() == State::Main && slot.pull(value))
            });
            if !is_here {
                elsewhere.push(*key);
            }
            rest = after;
        }
        Ok(elsewhere)
    }

    /// Ends the cluster in order: everything sent is applied, and all threads end. Workers still in
    /// use end, too. Dropping the cluster does the same, but ignores errors.
    ///
    /// After this, dropping the process group reports to its other processes that this node has
    /// finished and is not lost.
    ///
    /// # Errors
    /// The error that made the cluster fail, if any.
    pub fn shutdown(mut self) -> Result<(), RunError> {
        self.end()
    }

    /// Checks that no worker can change main copies.
    fn check_rest(&self) -> Result<(), RunError> {
        self.failure.check()?;
        let is_idle = || lock(&self.taken).iter().all(|taken| !taken);
        if self.failure.is_complete() || is_idle() { Ok(()) } else { Err(RunError::Running) }
    }

    fn end(&mut self) -> Result<(), RunError> {
        self.meet(|| Ok(()));
        let left = self.leave();
        self.nodes.clear();
        if let Some(group) = self.group.take().filter(|_| self.failure.is_complete()) {
            group.finish();
        }
        left
    }
}

impl<V, S> Drop for Cluster<V, S>
where
    V: Value,
    S: Store<Value = V> + Send + Sync + 'static,
{
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl<V, S> fmt::Debug for Cluster<V, S>
where
    V: Value,
    S: Store<Value = V> + Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster of {} nodes x {} workers", self.nodes(), self.workers())
    }
}

/// Keys of a dense layout that are listed at a time before they are visited: bounds the memory of
/// the list, which is sorted so that keys of all nodes come in order.
const KEYS_AT_ONCE: u64 = 1 << 16;
