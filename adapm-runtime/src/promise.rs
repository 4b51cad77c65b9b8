//! Promises of operations: a channel thread fulfils them, a worker or a ticket waits for them.
//!
//! Not here: the user's handles of an asynchronous call ([`crate::Pull`], [`crate::Done`]).

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use adapm_core::error::OpError;

use crate::order::{CallId, Completions};
use crate::sync::{Condvar, Mutex, lock, wait, wait_timeout};

/// The pending outcome of one call: one part per operation that it was split into.
#[derive(Debug)]
pub struct Promise<V> {
    state: Mutex<State<V>>,
    kept: Condvar,
    report: Option<Report>,
}

#[derive(Debug)]
struct State<V> {
    parts: Vec<Vec<V>>,
    left: usize,
    error: Option<OpError>,
    waker: Option<Waker>,
}

/// The worker's record of calls in flight, to be notified when all parts are done.
#[derive(Clone, Debug)]
pub struct Report {
    /// The record.
    pub completions: Arc<Completions>,
    /// The call.
    pub call: CallId,
    /// True if errors go there too, because the ticket may be ignored.
    pub with_error: bool,
}

impl<V> Promise<V> {
    /// Creates a promise of `parts` parts, at least 1.
    #[must_use]
    pub fn new(parts: usize, report: Option<Report>) -> Self {
        debug_assert!(parts > 0, "a promise of nothing is never kept");
        let state = State {
            parts: (0..parts).map(|_| Vec::new()).collect(),
            left: parts,
            error: None,
            waker: None,
        };
        Self { state: Mutex::new(state), kept: Condvar::new(), report }
    }

    /// Ends part `part`, exactly once. The last part first reports to the worker's record, then
    /// wakes waiters.
    pub fn finish(&self, part: usize, outcome: Result<Vec<V>, OpError>) {
        let mut state = lock(&self.state);
        match outcome {
            Ok(values) => state.parts[part] = values,
            Err(error) => state.error = state.error.take().or(Some(error)),
        }
        if state.left > 1 {
            state.left -= 1;
            return;
        }
        // Before `left` is updated: a caller that returns from `wait` finds the call in its record.
        if let Some(report) = &self.report {
            let error = if report.with_error { state.error.clone() } else { None };
            report.completions.finish(report.call, error);
        }
        state.left = 0;
        let waker = state.waker.take();
        drop(state);
        self.kept.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Blocks until all parts are done, and takes their values.
    ///
    /// # Errors
    /// The first error of a part.
    pub fn wait(&self) -> Result<Vec<Vec<V>>, OpError> {
        let mut state = lock(&self.state);
        while state.left > 0 {
            state = wait(&self.kept, state);
        }
        state.outcome()
    }

    /// Blocks until all parts are done, for `limit` at most. Returns `None` if some are not; the
    /// promise is then unchanged.
    pub fn wait_timeout(&self, limit: Duration) -> Option<Result<Vec<Vec<V>>, OpError>> {
        // A limit beyond the range of `Instant` is no limit.
        let Some(end) = Instant::now().checked_add(limit) else { return Some(self.wait()) };
        let mut state = lock(&self.state);
        while state.left > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = wait_timeout(&self.kept, state, left);
        }
        Some(state.outcome())
    }

    /// Returns true if all parts are done.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        lock(&self.state).left == 0
    }

    /// Returns the outcome if all parts are done; otherwise `waker` is called when they are.
    pub fn poll(&self, waker: &Waker) -> Poll<Result<Vec<Vec<V>>, OpError>> {
        let mut state = lock(&self.state);
        if state.left == 0 {
            return Poll::Ready(state.outcome());
        }
        state.waker = Some(waker.clone());
        Poll::Pending
    }
}

impl<V> State<V> {
    fn outcome(&mut self) -> Result<Vec<Vec<V>>, OpError> {
        match self.error.clone() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut self.parts)),
        }
    }
}

/// The duty to end one part of a promise, once. Dropping it reports that the cluster has ended.
#[derive(Debug)]
pub struct Waiter<V> {
    promise: Option<Arc<Promise<V>>>,
    part: usize,
}

impl<V> Waiter<V> {
    /// Creates the duty to end part `part` of `promise`.
    #[must_use]
    pub fn new(promise: Arc<Promise<V>>, part: usize) -> Self {
        Self { promise: Some(promise), part }
    }

    /// Ends the part.
    pub fn tell(mut self, outcome: Result<Vec<V>, OpError>) {
        if let Some(promise) = self.promise.take() {
            promise.finish(self.part, outcome);
        }
    }
}

impl<V> Drop for Waiter<V> {
    fn drop(&mut self) {
        if let Some(promise) = self.promise.take() {
            promise.finish(self.part, Err(OpError::Ended));
        }
    }
}
