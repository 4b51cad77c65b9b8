//! The order rule ([`adapm_core::driver::order`]) between threads: a worker with an operation in
//! flight on a key does not use the fast path for that key.
//!
//! [`InFlight`] is the worker's side and belongs to its thread; [`Completions`] receives the
//! reports of channel threads.
//!
//! ```text
//!   worker                                    channel thread
//!     mark(key); track(seq, keys); post  --->   carries out, then finish(seq)
//!     blocks(key)? yes: slow path     <-------   Release: everything the operation did
//!     blocks(key)? no:  fast path                is visible to a worker that is let through
//! ```
//!
//! An ended worker is blocked for all keys, so that none of its later calls touches a copy.
//!
//! Not here: the rule that a *node* has one unanswered operation a key, which the engine keeps.

use std::sync::Arc;

use adapm_core::Key;
use adapm_core::driver::order;
use adapm_core::error::OpError;

use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, Ordering, lock, wait};

/// The name of a call of a worker that has operations in flight; counts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(pub u64);

/// Finished calls of one worker that it has not processed yet. Written by channel threads, read by
/// the worker.
///
/// # Ordering
/// [`Completions::finish`] publishes under the mutex and raises `any` with `Release` before it lets
/// go of it. The worker looks at `any` with `Acquire` and takes the list under the mutex, so the
/// operation's effects happen before the worker's next access.
#[derive(Debug, Default)]
pub struct Completions {
    /// 0: the fast path is open for all keys. Otherwise [`MARKED`], which the worker sets and
    /// clears, and [`ENDED`], which stays. Needs no ordering: a worker sees its own writes, and may
    /// see its end late.
    gate: AtomicU64,
    any: AtomicBool,
    finished: Mutex<Vec<(CallId, Option<OpError>)>>,
    more: Condvar,
}

impl Completions {
    /// Closes the fast path for all keys, for good: the worker has ended.
    pub fn end(&self) {
        self.gate.fetch_or(ENDED, Ordering::Relaxed);
    }

    /// Records that all operations of `call` are done, and its error if the caller will not see it
    /// otherwise.
    pub fn finish(&self, call: CallId, error: Option<OpError>) {
        let mut finished = lock(&self.finished);
        finished.push((call, error));
        self.any.store(true, Ordering::Release);
        drop(finished);
        self.more.notify_one();
    }
}

/// The operations a worker has in flight, by key and by call.
///
/// Costs next to nothing while there are none: [`InFlight::blocks`] is then one comparison.
#[derive(Debug)]
pub struct InFlight {
    order: order::InFlight<CallId>,
    next: u64,
    completions: Arc<Completions>,
    taken: Vec<(CallId, Option<OpError>)>,
    error: Option<OpError>,
}

impl InFlight {
    /// Creates an empty record; channel threads report to `completions`.
    #[must_use]
    pub fn new(completions: Arc<Completions>) -> Self {
        Self {
            order: order::InFlight::default(),
            next: 0,
            completions,
            taken: Vec::new(),
            error: None,
        }
    }

    /// Returns true if the fast path is closed for `key`. Processes finished calls only where that
    /// could open it.
    #[inline]
    pub fn blocks(&mut self, key: Key) -> bool {
        self.completions.gate.load(Ordering::Relaxed) != 0 && self.blocks_now(key)
    }

    /// Returns true if the worker has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.completions.gate.load(Ordering::Relaxed) & ENDED != 0
    }

    /// Closes the fast path for `key` on behalf of the call that [`InFlight::track`] names next:
    /// from the first refusal on, so that a duplicate of the key in the same call cannot overtake
    /// it either.
    pub fn mark(&mut self, key: Key) {
        if self.order.is_open() {
            self.completions.gate.fetch_or(MARKED, Ordering::Relaxed);
        }
        self.order.mark(key);
    }

    /// Returns the name of the next call.
    pub fn next_call(&mut self) -> CallId {
        self.next += 1;
        CallId(self.next)
    }

    /// Records that `call` is in flight with `keys`, each marked once per occurrence.
    pub fn track(&mut self, call: CallId, keys: Vec<Key>) {
        self.order.track(call, keys);
    }

    /// Processes finished calls.
    pub fn reap(&mut self) {
        if !self.completions.any.load(Ordering::Acquire) {
            return;
        }
        let mut finished = lock(&self.completions.finished);
        std::mem::swap(&mut *finished, &mut self.taken);
        self.completions.any.store(false, Ordering::Relaxed);
        drop(finished);
        self.note_taken();
    }

    /// Blocks until at most `calls` calls are in flight.
    pub fn wait_until_at_most(&mut self, calls: usize) {
        while self.order.calls() > calls {
            let mut finished = lock(&self.completions.finished);
            while finished.is_empty() {
                finished = wait(&self.completions.more, finished);
            }
            self.completions.any.store(false, Ordering::Relaxed);
            std::mem::swap(&mut *finished, &mut self.taken);
            drop(finished);
            self.note_taken();
        }
    }

    /// Returns the first error of an asynchronous call since the last call of this function.
    pub fn take_error(&mut self) -> Option<OpError> {
        self.error.take()
    }

    /// Returns the list to which channel threads report.
    #[must_use]
    pub fn completions(&self) -> &Arc<Completions> {
        &self.completions
    }

    #[cold]
    fn blocks_now(&mut self, key: Key) -> bool {
        if self.has_ended() {
            return true;
        }
        if !self.order.blocks(key) {
            return false;
        }
        self.reap();
        self.order.blocks(key)
    }

    fn note_taken(&mut self) {
        for (call, error) in self.taken.drain(..) {
            assert!(self.order.finish(&call), "a call finishes once, after it was tracked");
            if self.error.is_none() {
                self.error = error;
            }
        }
        if self.order.is_open() {
            self.completions.gate.fetch_and(!MARKED, Ordering::Relaxed);
        }
    }
}

/// Some key is marked.
const MARKED: u64 = 1;
/// The worker has ended.
const ENDED: u64 = 2;

#[cfg(all(test, not(adapm_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_fast_path_opens_when_the_last_operation_on_the_key_is_done() {
        let mut order = InFlight::new(Arc::default());
        let (a, b) = (order.next_call(), order.next_call());
        for (call, keys) in [(a, vec![Key(1), Key(2), Key(1)]), (b, vec![Key(1)])] {
            keys.iter().for_each(|key| order.mark(*key));
            order.track(call, keys);
        }
        order.completions().finish(a, None);
        assert!(order.blocks(Key(1)) && !order.blocks(Key(2)) && !order.blocks(Key(3)));
        order.completions().finish(b, None);
        assert!(!order.blocks(Key(1)));
    }

    #[test]
    fn a_worker_that_has_ended_stays_blocked_whatever_is_done() {
        let mut order = InFlight::new(Arc::default());
        order.completions().end();
        assert!(order.blocks(Key(1)));
        let call = order.next_call();
        order.mark(Key(1));
        order.track(call, vec![Key(1)]);
        order.completions().finish(call, Some(OpError::Ended));
        order.wait_until_at_most(0);
        assert!(order.blocks(Key(1)) && order.blocks(Key(2)));
    }

    #[test]
    fn waiting_takes_note_of_every_call_and_keeps_the_first_error() {
        let mut order = InFlight::new(Arc::default());
        for error in [None, Some(OpError::Ended), Some(OpError::NoSampling)] {
            let call = order.next_call();
            order.mark(Key(9));
            order.track(call, vec![Key(9)]);
            order.completions().finish(call, error);
        }
        order.wait_until_at_most(0);
        assert!(!order.blocks(Key(9)));
        assert_eq!(order.take_error(), Some(OpError::Ended));
        assert_eq!(order.take_error(), None);
    }
}
