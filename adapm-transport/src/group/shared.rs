//! State shared by the calls of any thread and the control thread: requests, results, the
//! membership, and the failure.

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use adapm_core::NodeId;
use adapm_core::transport::CloseReason;

use super::error::GroupError;
use super::membership::Membership;
use crate::error::PeerLoss;

/// A function that ends the wait of the control thread.
pub(super) type WakeFn = Box<dyn Fn() + Send + Sync>;

/// A callback for lost peers, called by the thread that notices.
pub type LossWatch = dyn Fn(PeerLoss) + Send + Sync;

pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    wake: OnceLock<WakeFn>,
}

pub(super) struct State {
    pub(super) membership: Membership,
    pub(super) joined: bool,
    /// The number of the run, once node 0 was met.
    pub(super) run: Option<u64>,
    /// A node that has joined but has no link to this one.
    pub(super) apart: Option<NodeId>,
    /// Request: dial node 0 at these addresses.
    pub(super) meet: Option<Vec<SocketAddr>>,
    /// Request of a collective by a call.
    pub(super) request: Option<Request>,
    /// The outcome of the current collective.
    pub(super) outcome: Option<Vec<Vec<u8>>>,
    /// The error of all further calls.
    pub(super) failure: Option<GroupError>,
    /// Losses that were found by other means than the control endpoint.
    pub(super) reported: Vec<PeerLoss>,
    /// True while the lost node is being determined.
    pub(super) is_deciding: bool,
    /// The code with which the group is to stop.
    pub(super) stop: Option<u8>,
    pub(super) flags: Vec<Arc<AtomicBool>>,
    watches: Vec<Weak<LossWatch>>,
    /// Request: report nodes that did not come to the others.
    pub(super) give_up: Option<(Vec<NodeId>, Duration)>,
    /// Number of uses that have not ended in order; `None`: the group was never used.
    pub(super) in_use: Option<usize>,
    /// Request: end the control thread.
    pub(super) leave: Option<CloseReason>,
    /// The control thread has ended.
    pub(super) ended: bool,
}

pub(super) struct Request {
    pub(super) label: String,
    pub(super) to_all: bool,
    pub(super) bytes: Vec<u8>,
}

impl Shared {
    pub(super) fn new(membership: Membership) -> Self {
        let state = State {
            membership,
            joined: false,
            run: None,
            apart: None,
            meet: None,
            request: None,
            outcome: None,
            failure: None,
            reported: Vec::new(),
            is_deciding: false,
            stop: None,
            flags: Vec::new(),
            watches: Vec::new(),
            give_up: None,
            in_use: None,
            leave: None,
            ended: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), wake: OnceLock::new() }
    }

    /// Sets the function that ends the wait of the control thread; the first call counts.
    pub(super) fn wakes(&self, wake: WakeFn) {
        let _ = self.wake.set(wake);
    }

    /// Locks the state; everything in it is consistent between statements, even after a panic.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts a request to the control thread.
    pub(super) fn ask<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.lock());
        if let Some(wake) = self.wake.get() {
            wake();
        }
        result
    }

    /// Changes the state and wakes waiting calls.
    pub(super) fn tell<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Blocks until `look` returns a result.
    pub(super) fn wait<R>(&self, mut look: impl FnMut(&mut State) -> Option<R>) -> R {
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return found;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks until something may have changed, at most for `wait`. Returns the state.
    pub(super) fn wait_at_most(&self, wait: Duration) -> MutexGuard<'_, State> {
        self.changed.wait_timeout(self.lock(), wait).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Records the failure, unless there is one, and notifies waiters and watchers.
    pub(super) fn fail(&self, error: GroupError) {
        let mut state = self.lock();
        if state.failure.is_some() {
            return;
        }
        let loss = error.peer_loss();
        state.failure = Some(error);
        let watches: Vec<_> = state.watches.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        self.changed.notify_all();
        if let Some(loss) = loss {
            watches.iter().for_each(|watch| watch(loss));
        }
    }

    /// Reports a lost peer to `watch`, even if it was lost before.
    pub(super) fn watch(&self, watch: &Arc<LossWatch>) {
        let mut state = self.lock();
        state.watches.retain(|watch| watch.strong_count() > 0);
        state.watches.push(Arc::downgrade(watch));
        let loss = state.failure.as_ref().and_then(GroupError::peer_loss);
        drop(state);
        if let Some(loss) = loss {
            watch(loss);
        }
    }
}

impl State {
    /// Returns true if a failure is about to be known.
    pub(super) fn is_deciding(&self) -> bool {
        self.failure.is_none() && !self.ended && (self.is_deciding || !self.reported.is_empty())
    }

    /// Returns why a call cannot go on, if it cannot.
    pub(super) fn refusal(&self) -> Option<GroupError> {
        let ended = (self.ended || self.leave.is_some()).then_some(GroupError::Ended);
        self.failure.clone().or(ended)
    }

    /// Asks all nodes to stop, with reason `code`; the first reason counts.
    pub(super) fn stop(&mut self, code: u8) {
        self.stop.get_or_insert(code);
        self.flags.iter().for_each(|flag| flag.store(true, Ordering::Release));
    }
}
