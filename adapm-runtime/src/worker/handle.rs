//! A worker's handle for its loader thread: signals and localizes ahead of the worker (AdaPM §3,
//! Lapse §3.2).

use std::ops::Range;
use std::sync::Arc;

use adapm_core::engine::SignalId;
use adapm_core::error::OpError;
use adapm_core::store::Store;
use adapm_core::{Clock, Key, Value, WorkerId};

use crate::node::NodeShared;
use crate::promise::Promise;
use crate::sampling::{Sample, Sampler};
use crate::store::LayoutStore;
use crate::ticket::Done;

/// Kinds of access a worker can announce (AdaPM §3). The shipped policies ignore them, as the paper
/// does (AdaPM §4.1).
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

/// Signals intent on behalf of one worker, from another thread.
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

    /// As [`IntentHandle::intent`], for a kind of access.
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
    /// §3.2); blocks until they are here.
    ///
    /// # Errors
    /// An unknown key, or the worker has ended.
    pub fn localize(&mut self, keys: &[Key]) -> Result<(), OpError> {
        self.localize_async(keys)?.wait()
    }

    /// As [`IntentHandle::localize`], without blocking. The ticket may be dropped.
    ///
    /// # Errors
    /// As [`IntentHandle::localize`].
    pub fn localize_async(&mut self, keys: &[Key]) -> Result<Done, OpError> {
        self.shared.elements(keys)?;
        let _alive = self.shared.alive(self.worker)?;
        let promise = self.shared.localize(self.worker, keys, |parts| Arc::new(Promise::new(parts, None)));
        Ok(Done::new(promise))
    }

    /// The worker's clock; [`Clock::INFINITY`] once it has ended.
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
