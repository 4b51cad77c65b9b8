//! The handle of one worker thread: pull, push and set, intent, localize, waiting (architecture, "Worker API").
//!
//! Local keys are served by the worker's own thread under their latches, in one pass, without allocation and without a
//! shared counter. What is not local, or closed by the order rule ([`crate::order`]), is handed to the engines, one operation per
//! channel, and its values are put into place by position.
//!
//! Duplicate keys in one call are legal: each place of a pull gets the key's value, each update of a push is added.
//!
//! Not here: samples (`sample.rs`), the protocol, which is `adapm-core`'s, and the channel threads (`channel.rs`).

mod access;
mod handle;
mod sample;
mod single;

pub use handle::{IntentHandle, IntentKind};

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use adapm_core::engine::{OpBody, SignalId};
use adapm_core::error::OpError;
use adapm_core::layout::Extent;
use adapm_core::store::Store;
use adapm_core::{Clock, Key, NodeId, WorkerId};

use crate::node::NodeShared;
use crate::order::InFlight;
use crate::pace::Pace;
use crate::sampling::Sampler;
use crate::sync::Ordering;
use crate::ticket::{Place, Promise, Report, Ticket};
use access::Access;

/// A worker: one training thread of a node. Handed out by [`crate::Cluster::run`]; ends when it is dropped.
///
/// Errors are synchronous and leave everything as it was: an unknown key, a wrong value length, an empty window. A worker that is
/// kept beyond [`crate::Cluster::run`] has ended: it reads and writes nothing, and answers [`OpError::Ended`]. After the cluster
/// has failed, whatever needs an engine answers that; if a node was lost, it answers [`OpError::PeerLost`] with that node's id
/// and address.
pub struct Worker<S: Store> {
    shared: Arc<NodeShared<S>>,
    store: Arc<S>,
    /// The only extent of the layout, if it has one only: kept here, as each call looks at it.
    uniform: Option<Extent>,
    id: WorkerId,
    clock: Clock,
    order: InFlight,
    /// Keys of the current call that the fast path refused, with their places.
    slow: Vec<(Key, Place)>,
    /// Keys that the current call made dirty.
    dirtied: Vec<Key>,
    sampler: Sampler,
    pace: Pace,
}

impl<S: Store> Worker<S> {
    pub(crate) fn new(shared: Arc<NodeShared<S>>, id: WorkerId) -> Self {
        Self {
            store: Arc::clone(&shared.store),
            uniform: match shared.layout.extents() {
                [extent] => Some(extent.clone()),
                _ => None,
            },
            id,
            clock: Clock(0),
            order: InFlight::new(Arc::clone(&shared.workers[id.index()].completions)),
            slow: Vec::new(),
            dirtied: Vec::new(),
            sampler: Sampler::new(shared.sampling.clone(), shared.node, id, 0),
            pace: Pace::default(),
            shared,
        }
    }

    /// Raises the clock by one and returns it. Intents whose window ends here expire.
    pub fn advance_clock(&mut self) -> Clock {
        self.clock = self.clock + 1;
        self.shared.clocks.set(self.id, self.clock);
        self.clock
    }

    /// Reads the values of `keys` into `values` `[sum of value_len]`, in the order of the keys.
    ///
    /// Sees every earlier push and set of this worker. Blocks while a key is neither here nor answered by its owner.
    ///
    /// # Errors
    /// An unknown key, a wrong length, or the cluster has failed.
    #[inline]
    pub fn pull(&mut self, keys: &[Key], values: &mut [S::Value]) -> Result<(), OpError> {
        match keys {
            [key] if self.pull_one(*key, values) => Ok(()),
            _ => self.pull_several(keys, values),
        }
    }

    /// Adds `updates` `[sum of value_len]` to the values of `keys`. Returns when they are applied: to the local copy, or by
    /// the owner.
    ///
    /// # Errors
    /// As [`Worker::pull`].
    #[inline]
    pub fn push(&mut self, keys: &[Key], updates: &[S::Value]) -> Result<(), OpError> {
        match keys {
            [key] if self.push_one(*key, updates) => Ok(()),
            _ => self.push_several(keys, updates),
        }
    }

    /// Overwrites the values of `keys` with `values` `[sum of value_len]`. Returns when this node sees them.
    ///
    /// Linearizable without replicas; with them all copies converge to the last set in the owner's order.
    ///
    /// # Errors
    /// As [`Worker::pull`].
    pub fn set(&mut self, keys: &[Key], values: &[S::Value]) -> Result<(), OpError> {
        self.check(keys, values.len())?;
        self.refuse_all(keys);
        if self.slow.is_empty() {
            return Ok(());
        }
        self.finish_write(Access::Set, values)
    }

    /// As [`Worker::pull`], without blocking: the ticket yields the values.
    ///
    /// # Errors
    /// An unknown key. Whatever happens later is the ticket's to tell.
    pub fn pull_async(&mut self, keys: &[Key]) -> Result<Ticket<S::Value>, OpError> {
        let mut values = vec![S::Value::default(); self.shared.elements(keys)?];
        self.pull_local(keys, &mut values);
        Ok(self.ticket(Access::Pull, &[], values))
    }

    /// As [`Worker::push`], without blocking. Later operations of this worker on the keys stay behind it.
    ///
    /// # Errors
    /// An unknown key or a wrong length.
    pub fn push_async(&mut self, keys: &[Key], updates: &[S::Value]) -> Result<Ticket<S::Value>, OpError> {
        self.check(keys, updates.len())?;
        self.push_local(keys, updates);
        Ok(self.ticket(Access::Push, updates, Vec::new()))
    }

    /// As [`Worker::set`], without blocking. Later operations of this worker on the keys stay behind it.
    ///
    /// # Errors
    /// An unknown key or a wrong length.
    pub fn set_async(&mut self, keys: &[Key], values: &[S::Value]) -> Result<Ticket<S::Value>, OpError> {
        self.check(keys, values.len())?;
        self.refuse_all(keys);
        Ok(self.ticket(Access::Set, values, Vec::new()))
    }

    /// Reads the value of `key` into `value` `[value_len]` if it is local; else returns false and leaves `value` alone.
    /// Never blocks, never sends.
    ///
    /// # Errors
    /// An unknown key or a wrong length.
    pub fn pull_if_local(&mut self, key: Key, value: &mut [S::Value]) -> Result<bool, OpError> {
        self.check(&[key], value.len())?;
        let local = self.try_pull(key, value);
        if local {
            self.counters().add_local(1);
        } else if self.order.has_ended() {
            return Err(OpError::Ended);
        }
        Ok(local)
    }

    /// Brings the main copies of `keys` to this node, or replicas where others hold replicas (Lapse §3.2); blocks until they
    /// are here. Costs 3 messages a key and nothing for a key that is owned here.
    ///
    /// # Errors
    /// An unknown key, or the cluster has failed.
    pub fn localize(&mut self, keys: &[Key]) -> Result<(), OpError> {
        let ticket = self.localize_async(keys)?;
        let outcome = ticket.wait().map(drop);
        self.order.reap();
        outcome
    }

    /// As [`Worker::localize`], without blocking.
    ///
    /// # Errors
    /// As [`Worker::localize`].
    pub fn localize_async(&mut self, keys: &[Key]) -> Result<Ticket<S::Value>, OpError> {
        self.shared.elements(keys)?;
        let _alive = self.shared.alive(self.id)?;
        let order = &mut self.order;
        let promise = self.shared.localize(self.id, keys, |parts| {
            let call = order.next_call();
            order.track(call, Vec::new());
            let report = Report { completions: Arc::clone(order.completions()), call, with_error: true };
            Arc::new(Promise::new(parts, Some(report)))
        });
        Ok(Ticket::without_values(promise))
    }

    /// Signals that this worker will pull and push `keys` while its clock is in `clocks`. Returns at once.
    ///
    /// Late (the window has begun): acted on in the next round. After the window: ignored. Twice: windows of one worker on
    /// one key merge by the later end. Never: accesses are right, and remote where the key is not here.
    ///
    /// # Errors
    /// An unknown key, or an empty or reversed window; nothing has been signalled then.
    pub fn intent(&mut self, keys: &[Key], clocks: Range<Clock>) -> Result<(), OpError> {
        self.intent_for(IntentKind::ReadWrite, keys, clocks)
    }

    /// As [`Worker::intent`], for a kind of access, which the shipped policies ignore.
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
        self.shared.intend(self.id, SignalId::default(), keys, clocks)
    }

    /// Blocks until the call is done and yields its values.
    ///
    /// # Errors
    /// Why it could not be done.
    pub fn wait(&mut self, ticket: Ticket<S::Value>) -> Result<Vec<S::Value>, OpError> {
        let outcome = ticket.wait();
        self.order.reap();
        outcome
    }

    /// Blocks until all asynchronous calls of this worker are done, also those whose tickets were dropped.
    ///
    /// # Errors
    /// The first error of an asynchronous call since `wait_all` was last called, also if its ticket has told it.
    pub fn wait_all(&mut self) -> Result<(), OpError> {
        self.order.wait_until_at_most(0);
        self.order.take_error().map_or(Ok(()), Err)
    }

    /// Blocks until every push made before by this node is in the main copies, and every replica here has been refreshed
    /// since the call. First waits for this worker's asynchronous calls.
    ///
    /// # Errors
    /// The cluster has failed.
    pub fn wait_sync(&mut self) -> Result<(), OpError> {
        self.wait_all()?;
        self.on_channels(self.shared.ports.len(), &OpBody::WaitSync)
    }

    /// Blocks until all workers of all nodes that have not ended have called this, and everything pushed and set before is applied
    /// everywhere: all copies of a key are equal then, but for what anybody goes on doing, which is not waited for. First waits for
    /// this worker's asynchronous calls. Does not wait until intents are acted on: that is the action timer's to choose.
    ///
    /// # Errors
    /// The cluster has failed.
    pub fn quiesce(&mut self) -> Result<(), OpError> {
        self.wait_all()?;
        self.on_channels(self.shared.ports.len(), &OpBody::Quiesce)
    }

    /// Blocks until all workers of all nodes that have not ended have called this. Makes nothing visible by itself.
    ///
    /// # Errors
    /// The cluster has failed.
    pub fn barrier(&mut self) -> Result<(), OpError> {
        self.on_channels(1, &OpBody::Barrier)
    }

    /// The node that this worker belongs to.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.shared.node
    }

    /// This worker's id within its node.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// Number of nodes of the cluster.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.shared.nodes
    }

    /// Number of workers of each node.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared.workers.len()
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// A handle for the loader thread of this worker. Each has random numbers of its own, in the order of these calls.
    #[must_use]
    pub fn intent_handle(&self) -> IntentHandle<S> {
        let stream = 1 + self.shared.workers[self.id.index()].streams.fetch_add(1, Ordering::Relaxed);
        let sampler = Sampler::new(self.shared.sampling.clone(), self.shared.node, self.id, stream);
        IntentHandle::new(Arc::clone(&self.shared), self.id, sampler)
    }
}

impl<S: Store> Drop for Worker<S> {
    fn drop(&mut self) {
        self.shared.end(self.id);
    }
}

impl<S: Store> fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, {:?}", self.id, self.shared.node, self.clock)
    }
}
