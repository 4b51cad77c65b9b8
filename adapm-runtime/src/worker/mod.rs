//! The handle of one worker: pull, push and set, intent, localize, waiting (protocol,
//! "Operations"); and the one for its loader thread, which signals and localizes ahead of the
//! worker (AdaPM §3, Lapse §3.2).
//!
//! Local keys are served by the worker's own thread under their latches, in one pass, without
//! allocation and without a shared counter. Keys that are not local, or closed by the order rule
//! ([`crate::order`]), go to the engines, one operation per channel, and their values are put into
//! place by position (`access.rs`).
//!
//! Duplicate keys in one call are legal: each place of a pull gets the key's value, each update of
//! a push is added.
//!
//! Not here: samples (`sample.rs`), steps of update rules (`update.rs`), the protocol, which is
//! `adapm-core`'s, and the channel threads (`channel.rs`).

mod access;
mod gate;
mod sample;
#[cfg(feature = "checkpoint")]
mod snapshot;
mod update;

use std::ops::Range;
use std::sync::Arc;
use std::{fmt, thread};

use adapm_core::engine::{OpBody, SignalId};
use adapm_core::error::OpError;
use adapm_core::id::Version;
#[cfg(feature = "checkpoint")]
use adapm_core::layout::Kind;
use adapm_core::store::Store;
use adapm_core::update::UpdateRule;
use adapm_core::{Clock, Key, NodeId, Value, WorkerId};

#[cfg(feature = "checkpoint")]
use crate::checkpoint::{Checkpoints, Part};
use crate::error::RunError;
use crate::failure::Failure;
use crate::node::NodeShared;
use crate::pace::Pace;
use crate::promise::Promise;
use crate::sampling::{Sample, Sampler};
use crate::store::LayoutStore;
use crate::sync::Ordering;
use crate::ticket::{Done, Pull};
use access::Access;
use gate::Gate;
use update::Updates;

/// A worker, which makes the accesses of a training thread. Handed out by [`crate::Cluster`], moves
/// to any thread, ends when it is dropped. Values are of type `V`, kept in stores of type `S`.
///
/// Errors are synchronous and leave everything as it was: an unknown key, a wrong value length, an
/// empty window. A worker whose cluster has shut down, or whose [`crate::Cluster::run`] has
/// returned, has ended: it reads and writes nothing, and answers [`OpError::Ended`]. After the
/// cluster has failed, every call that needs an engine answers the same, or, if a node was lost,
/// [`OpError::PeerLost`] with that node's id and address.
pub struct Worker<V: Value, S: Store<Value = V> = LayoutStore<V>> {
    access: Access<S>,
    updates: Updates<V>,
    clock: Clock,
    /// Under a bound on how far workers are apart.
    gate: Option<Gate>,
    sampler: Sampler,
    pace: Pace,
    /// Receives the failure if the worker's thread panics, unless it is reported elsewhere.
    failure: Option<Arc<Failure>>,
}

#[cfg(feature = "checkpoint")]
impl<S: Store<Value = f32>> Worker<f32, S> {
    /// Takes part in a checkpoint: blocks until all workers of all nodes have called this and have
    /// copied their part ([`Worker::snapshot`]). Then all go on, while the checkpoint `step` is
    /// written, and becomes the latest once it is complete
    /// ([`Checkpoints::wait`](crate::checkpoint::Checkpoints::wait)). `program` is kept with it;
    /// that of node 0 counts.
    ///
    /// # Errors
    /// As [`Worker::snapshot`], and [`OpError::Layout`] if the cluster's is not that of the tables.
    /// That a checkpoint cannot be written fails no worker. Where a worker
    /// has ended, nothing is written.
    ///
    /// # Panics
    /// If `program` is no JSON.
    pub fn checkpoint(
        &mut self,
        checkpoints: &Checkpoints,
        step: u64,
        program: &str,
    ) -> Result<(), OpError> {
        checkpoints.check(program);
        if checkpoints.layout().as_ref() != Some(&self.shared().layout) {
            return Err(OpError::Layout);
        }
        let (node, id) = (self.node(), self.id().index());
        let writer = checkpoints.writer(node, self.nodes(), self.workers());
        if node == NodeId(0) && id == 0 {
            checkpoints.begin();
        }
        let part = self.snapshot(writer.room(id))?;
        if !checkpoints.is_refused() {
            writer.submit(id, &checkpoints.save(step, program), part);
        }
        Ok(())
    }

    /// Copies this worker's part of all parameters, at one moment: blocks until all workers of all
    /// nodes have called this and have copied. If no worker has ended, their parts have each key
    /// once. `room`: the memory of an earlier part's values, or none.
    ///
    /// Costs a quiesce, two barriers, and a copy of the main copies on this node, whose keys its
    /// workers share.
    ///
    /// # Errors
    /// The cluster has failed, or the layout is sparse ([`OpError::Layout`]).
    pub fn snapshot(&mut self, room: Vec<f32>) -> Result<Part, OpError> {
        if self.shared().layout.kind() == Kind::Sparse {
            return Err(OpError::Layout);
        }
        self.quiesce()?;
        let workers = self.workers();
        snapshot::take(&mut self.access, workers, room)
    }
}

impl<V: Value, S: Store<Value = V>> Worker<V, S> {
    pub(crate) fn new(
        shared: Arc<NodeShared<S>>,
        id: WorkerId,
        failure: Option<Arc<Failure>>,
    ) -> Self {
        Self {
            clock: Clock(0),
            gate: shared.clocks_per_tick.map(Gate::new),
            sampler: Sampler::new(shared.sampling.clone(), shared.node, id, 0),
            pace: Pace::default(),
            access: Access::new(shared, id),
            updates: Updates::default(),
            failure,
        }
    }

    /// Raises the clock by one and returns it. Intents whose window ends here expire.
    ///
    /// Under a system that bounds how far workers are apart ([`crate::Builder::bound`]), blocks
    /// until no other worker is too far behind, and costs a message to node 0 and back, and a round
    /// to each node that copies or updates come from or go to. A failure of that is reported by the
    /// next [`Worker::wait_all`], [`Worker::wait_sync`], [`Worker::barrier`] or
    /// [`Worker::quiesce`].
    pub fn advance_clock(&mut self) -> Clock {
        self.advance_clock_by(1)
    }

    /// Raises the clock by `clocks` at once and returns it: for steps of several batches, or
    /// skipped steps.
    pub fn advance_clock_by(&mut self, clocks: u64) -> Clock {
        self.clock = self.clock + clocks;
        self.shared().clocks.set(self.id(), self.clock);
        if let Some(gate) = &mut self.gate {
            gate.advance(&mut self.access, clocks);
        }
        self.clock
    }

    /// Reads the values of `keys` into `values` `[sum of value_len]`, in the order of the keys.
    ///
    /// Sees every earlier push and set of this worker. Blocks while a key is neither here nor
    /// answered by its owner.
    ///
    /// # Errors
    /// An unknown key, a wrong length, or a failed cluster.
    #[inline]
    pub fn pull(&mut self, keys: &[Key], values: &mut [V]) -> Result<(), OpError> {
        self.access.pull(keys, values)
    }

    /// Adds `updates` `[sum of value_len]` to the values of `keys`. Returns when they are applied
    /// to the local copy or by the owner.
    ///
    /// # Errors
    /// As [`Worker::pull`].
    #[inline]
    pub fn push(&mut self, keys: &[Key], updates: &[V]) -> Result<(), OpError> {
        self.access.push(keys, updates)
    }

    /// Overwrites the values of `keys` with `values` `[sum of value_len]`. Returns when this node
    /// sees them.
    ///
    /// Linearizable without replicas; with them all copies converge to the last set in the owner's
    /// order.
    ///
    /// # Errors
    /// As [`Worker::pull`].
    pub fn set(&mut self, keys: &[Key], values: &[V]) -> Result<(), OpError> {
        self.access.set(keys, values)
    }

    /// Takes a step of `rule` for each of `keys`: pushes the update that the rule computes from the
    /// key's value and its gradient. Returns when all are applied to the local copy or by the
    /// owner.
    ///
    /// A local copy changes under the key's latch: steps of the workers of a node on one key are
    /// taken one after the other, each from the value that the last one left. Of a key that is not
    /// local, the value is pulled and the update pushed: updates of others in between are added to
    /// it, and the step does not see them (AdaPM §3). A key that `keys` has several times takes
    /// its steps one after the other, wherever it is.
    ///
    /// Costs one access per local key and allocates nothing; otherwise as much as a pull and a
    /// push. Counts as both ([`crate::Stats`]).
    ///
    /// # Shapes
    /// `gradients` `[sum of dim]`, in the order of the keys, where a key's value is
    /// `[dim + state_len(dim)]`.
    ///
    /// # Errors
    /// An unknown key, a wrong length, or [`OpError::RuleLen`] if the rule has no such values:
    /// nothing has changed. [`OpError::NotFinite`] names one of the keys whose step is not finite;
    /// no such step was pushed, and all others were. If the cluster fails, some steps may have been
    /// taken, each at most once.
    ///
    /// # Example
    /// ```
    /// use adapm_runtime::prelude::*;
    ///
    /// // 100 rows of 2 parameters and their 2 accumulators.
    /// let builder = Builder::<f32>::new(Layout::dense(&[(100, 2 + 2)])?).nodes(2);
    /// let cluster = builder.initial(|_, row| row[2..].fill(1.0)).build()?;
    /// let rule = AdaGrad { learning_rate: 0.1 };
    /// cluster.try_run(|mut worker| worker.update(&[Key(7)], &[3.0, 4.0], &rule))?;
    /// let mut row = [0.0; 4];
    /// cluster.read(&[Key(7)], &mut row)?;
    /// assert_eq!(row[2..], [1.0 + 2.0 * 9.0, 1.0 + 2.0 * 16.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update(
        &mut self,
        keys: &[Key],
        gradients: &[V],
        rule: &dyn UpdateRule<V>,
    ) -> Result<(), OpError> {
        self.updates.take_steps(&mut self.access, keys, gradients, rule)
    }

    /// Like [`Worker::pull`], without blocking: the ticket yields the values.
    ///
    /// # Errors
    /// An unknown key. Later errors are reported by the ticket.
    pub fn pull_async(&mut self, keys: &[Key]) -> Result<Pull<V>, OpError> {
        self.access.pull_async(keys)
    }

    /// Like [`Worker::push`], without blocking. Later operations of this worker on the keys take
    /// effect after it.
    ///
    /// # Errors
    /// An unknown key or a wrong length.
    pub fn push_async(&mut self, keys: &[Key], updates: &[V]) -> Result<Done, OpError> {
        self.access.push_async(keys, updates)
    }

    /// Like [`Worker::set`], without blocking. Later operations of this worker on the keys take
    /// effect after it.
    ///
    /// # Errors
    /// An unknown key or a wrong length.
    pub fn set_async(&mut self, keys: &[Key], values: &[V]) -> Result<Done, OpError> {
        self.access.set_async(keys, values)
    }

    /// Reads the value of `key` into `value` `[value_len]` if it is local; otherwise returns false
    /// and leaves `value` unchanged. Never blocks, never sends.
    ///
    /// # Errors
    /// An unknown key or a wrong length.
    pub fn pull_if_local(&mut self, key: Key, value: &mut [V]) -> Result<bool, OpError> {
        self.access.pull_if_local(key, value)
    }

    /// Brings the main copies of `keys` to this node, or replicas where others hold replicas (Lapse
    /// §3.2), and blocks until they are here. Costs 3 messages per key, and nothing for a key that
    /// is owned here.
    ///
    /// # Errors
    /// An unknown key, a system whose copies come by access, or a failed cluster.
    pub fn localize(&mut self, keys: &[Key]) -> Result<(), OpError> {
        self.localize_async(keys)?.wait()
    }

    /// Like [`Worker::localize`], without blocking.
    ///
    /// # Errors
    /// As [`Worker::localize`].
    pub fn localize_async(&mut self, keys: &[Key]) -> Result<Done, OpError> {
        self.access.localize_async(keys)
    }

    /// Signals that this worker will pull and push `keys` while its clock is in `clocks`. Returns
    /// at once.
    ///
    /// Late (the window has begun): acted on in the next round. After the window: ignored. Twice:
    /// windows of one worker on one key merge by the later end. Never: accesses are correct, and
    /// remote where the key is not here.
    ///
    /// # Errors
    /// An unknown key, or an empty or reversed window; nothing has been signalled then.
    pub fn intent(&mut self, keys: &[Key], clocks: Range<Clock>) -> Result<(), OpError> {
        self.intent_for(IntentKind::ReadWrite, keys, clocks)
    }

    /// Like [`Worker::intent`], for a kind of access. The kind has no effect: no policy receives it
    /// (AdaPM §4.1 ignores it, too).
    ///
    /// # Errors
    /// As [`Worker::intent`].
    pub fn intent_for(
        &mut self,
        kind: IntentKind,
        keys: &[Key],
        clocks: Range<Clock>,
    ) -> Result<(), OpError> {
        let _ = kind;
        self.shared().intend(self.id(), SignalId::default(), keys, clocks)
    }

    /// Refreshes the replicas of `keys` that are here, whatever the system refreshes, and blocks
    /// until each contains every change that was in its main copy at the call (HET-GMP §5.3). Keys
    /// without a replica here are nothing to do; without any, nothing is sent. Costs a request and
    /// a response for each owner.
    ///
    /// # Errors
    /// As [`Worker::pull`].
    pub fn renew(&mut self, keys: &[Key]) -> Result<(), OpError> {
        self.access.renew(keys)
    }

    /// Writes how many changes each key's copy here is made of into `versions` `[keys.len()]`,
    /// `None` where there is none: of a main copy all so far, of a replica those of the main copy
    /// that it was last refreshed with. What several pushes of one node bring at once is one
    /// change (HET-GMP §5.3 compares such clocks). Never sends; costs a latch a key.
    ///
    /// # Errors
    /// An unknown key or a wrong length; nothing is written then.
    pub fn versions(&self, keys: &[Key], versions: &mut [Option<Version>]) -> Result<(), OpError> {
        self.access.versions(keys, versions)
    }

    /// Blocks until all asynchronous calls of this worker are done, including those whose tickets
    /// were dropped.
    ///
    /// # Errors
    /// The first error of an asynchronous call since the last `wait_all`, even if its ticket has
    /// reported it.
    pub fn wait_all(&mut self) -> Result<(), OpError> {
        self.gate.as_mut().map_or(Ok(()), Gate::take_error)?;
        self.access.wait_all()
    }

    /// Blocks until every earlier push of this node is in the main copies, and every replica here
    /// has been refreshed since the call. First waits for this worker's asynchronous calls.
    ///
    /// # Errors
    /// The cluster has failed.
    pub fn wait_sync(&mut self) -> Result<(), OpError> {
        self.wait_all()?;
        self.access.on_channels(self.shared().ports.len(), &OpBody::WaitSync)
    }

    /// Blocks until all workers of all nodes that have not ended have called this, and every
    /// earlier push and set is applied everywhere: all copies of a key are then equal, except for
    /// later operations, which are not waited for. First waits for this worker's asynchronous
    /// calls. Does not wait until intents are acted on, which the action timer decides.
    ///
    /// # Errors
    /// The cluster has failed.
    pub fn quiesce(&mut self) -> Result<(), OpError> {
        self.wait_all()?;
        self.meet(|access| access.on_channels(access.shared().ports.len(), &OpBody::Quiesce))
    }

    /// Blocks until all workers of all nodes that have not ended have called this. Makes nothing
    /// visible by itself, except under a bound ([`crate::Builder::bound`]): all updates made before
    /// are then seen behind it.
    ///
    /// # Errors
    /// The cluster has failed.
    pub fn barrier(&mut self) -> Result<(), OpError> {
        self.meet(|access| access.on_channels(1, &OpBody::Barrier))
    }

    fn meet(
        &mut self,
        meet: impl FnOnce(&mut Access<S>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        match &mut self.gate {
            Some(gate) => gate.meet(&mut self.access, meet),
            None => meet(&mut self.access),
        }
    }

    /// Returns the node that this worker belongs to.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.shared().node
    }

    /// Returns this worker's id within its node.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.access.id()
    }

    /// Returns the number of nodes of the cluster.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.shared().nodes
    }

    /// Returns this worker's number among those of all nodes, from 0: node by node, each in the
    /// order of ids.
    ///
    /// ```
    /// # use adapm_runtime::prelude::*;
    /// # use adapm_runtime::adapm_core::Layout;
    /// let cluster = Builder::<f32>::new(Layout::dense(&[(10, 1)])?).nodes(2).workers([2, 1]).build()?;
    /// let data: Vec<u32> = (0..7).collect();
    /// let shares = cluster.try_run(|worker| {
    ///     let own = data.iter().skip(worker.number()).step_by(worker.all_workers());
    ///     Ok::<u32, OpError>(own.sum())
    /// })?;
    /// assert_eq!(shares, [0 + 3 + 6, 1 + 4, 2 + 5]);
    /// cluster.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn number(&self) -> usize {
        self.shared().first_worker + self.id().index()
    }

    /// Returns the number of workers of all nodes.
    #[must_use]
    pub fn all_workers(&self) -> usize {
        self.shared().all_workers
    }

    /// Returns the node where a key has its home.
    #[must_use]
    pub fn home(&self, key: Key) -> NodeId {
        self.shared().homes.home(key)
    }

    /// Returns the number of workers of its node.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared().workers.len()
    }

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns a handle for the loader thread of this worker. Each has random numbers of its own,
    /// in the order of these calls.
    #[must_use]
    pub fn intent_handle(&self) -> IntentHandle<V, S> {
        let (shared, id) = (self.shared(), self.id());
        let stream = 1 + shared.workers[id.index()].streams.fetch_add(1, Ordering::Relaxed);
        let sampler = Sampler::new(shared.sampling.clone(), shared.node, id, stream);
        IntentHandle::new(Arc::clone(shared), id, sampler)
    }

    fn shared(&self) -> &Arc<NodeShared<S>> {
        self.access.shared()
    }
}

impl<V: Value, S: Store<Value = V>> Drop for Worker<V, S> {
    fn drop(&mut self) {
        let (node, worker) = (self.node(), self.id());
        if let Some(failure) = self.failure.take().filter(|_| thread::panicking()) {
            let message = "see its message above".to_owned();
            failure.raise(RunError::WorkerPanicked { node, worker, message });
        }
        self.shared().end(worker);
    }
}

impl<V: Value, S: Store<Value = V>> fmt::Debug for Worker<V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, {:?}", self.id(), self.node(), self.clock)
    }
}

/// Kinds of access that a worker can announce (AdaPM §3). The shipped policies ignore them, as the
/// paper does (AdaPM §4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IntentKind {
    /// Pulls only.
    Read,
    /// Pushes only.
    Write,
    /// Pulls and pushes.
    #[default]
    ReadWrite,
}

/// A handle that signals intent on behalf of one worker, from another thread.
///
/// May outlive its worker: every call then answers [`OpError::Ended`].
pub struct IntentHandle<V: Value, S: Store<Value = V> = LayoutStore<V>> {
    shared: Arc<NodeShared<S>>,
    worker: WorkerId,
    sampler: Sampler,
}

impl<V: Value, S: Store<Value = V>> IntentHandle<V, S> {
    pub(crate) fn new(shared: Arc<NodeShared<S>>, worker: WorkerId, sampler: Sampler) -> Self {
        Self { shared, worker, sampler }
    }

    /// Signals that the worker will pull and push `keys` while its clock is in `clocks`. Returns at
    /// once.
    ///
    /// Late (the window has begun): acted on in the next round. After the window: ignored. Twice:
    /// windows of one worker on one key merge by the later end.
    ///
    /// # Errors
    /// An unknown key, or an empty or reversed window; nothing has been signalled then.
    pub fn intent(&mut self, keys: &[Key], clocks: Range<Clock>) -> Result<(), OpError> {
        self.intent_for(IntentKind::ReadWrite, keys, clocks)
    }

    /// Like [`IntentHandle::intent`], for a kind of access, which has no effect.
    ///
    /// # Errors
    /// As [`IntentHandle::intent`].
    pub fn intent_for(
        &mut self,
        kind: IntentKind,
        keys: &[Key],
        clocks: Range<Clock>,
    ) -> Result<(), OpError> {
        let _ = kind;
        self.shared.intend(self.worker, SignalId::default(), keys, clocks)
    }

    /// Brings the main copies of `keys` to this node, or replicas where others hold replicas (Lapse
    /// §3.2), and blocks until they are here.
    ///
    /// # Errors
    /// An unknown key, a system whose copies come by access, or the worker has ended.
    pub fn localize(&mut self, keys: &[Key]) -> Result<(), OpError> {
        self.localize_async(keys)?.wait()
    }

    /// Like [`IntentHandle::localize`], without blocking. The ticket may be dropped.
    ///
    /// # Errors
    /// As [`IntentHandle::localize`].
    pub fn localize_async(&mut self, keys: &[Key]) -> Result<Done, OpError> {
        self.shared.check_movable(keys)?;
        let _alive = self.shared.alive(self.worker)?;
        let promise =
            self.shared.localize(self.worker, keys, |parts| Arc::new(Promise::new(parts, None)));
        Ok(Done::new(promise))
    }

    /// Returns the worker's clock; [`Clock::INFINITY`] once it has ended.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.shared.clocks.clock(self.worker)
    }
}

impl<V, S> IntentHandle<V, S>
where
    V: Value,
    S: Store<Value = V> + Send + Sync + 'static,
{
    /// Leaves out so many samples, as if they had been prepared: where a program goes on that has
    /// used them. Costs a nanosecond each. Under scheme `pool` the keys that follow are others, as
    /// its pools begin anew.
    pub fn skip_samples(&mut self, samples: u64) {
        self.sampler.skip(samples);
    }

    /// Prepares a sample of `n` keys that the worker will pull in `clocks`; see
    /// [`crate::Worker::prepare_sample`].
    ///
    /// # Errors
    /// As [`crate::Worker::prepare_sample`], or the worker has ended.
    pub fn prepare_sample(&mut self, n: usize, clocks: Range<Clock>) -> Result<Sample, OpError> {
        drop(self.shared.alive(self.worker)?);
        self.shared.prepare_sample(&mut self.sampler, self.worker, n, clocks)
    }
}
