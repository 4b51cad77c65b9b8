//! Promises of operations: a channel thread fulfils them, a worker or a future waits for them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use adapm_core::error::OpError;

use crate::order::{CallId, Completions};
use crate::sync::{Condvar, Mutex, lock, wait};

/// What one call waits for: one part per operation that it was split into.
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

/// Whom to tell when all parts are done: the worker's record of what it has in flight.
#[derive(Clone, Debug)]
pub struct Report {
    /// The record.
    pub completions: Arc<Completions>,
    /// The call.
    pub call: CallId,
    /// Whether errors go there too, because nobody needs to look at the ticket.
    pub with_error: bool,
}

impl<V> Promise<V> {
    /// A promise of `parts` parts, at least 1.
    #[must_use]
    pub fn new(parts: usize, report: Option<Report>) -> Self {
        debug_assert!(parts > 0, "a promise of nothing is never kept");
        let state =
            State { parts: (0..parts).map(|_| Vec::new()).collect(), left: parts, error: None, waker: None };
        Self { state: Mutex::new(state), kept: Condvar::new(), report }
    }

    /// Ends part `part`, exactly once. The last part wakes who waits, after the worker's record has been told.
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
        // Before `left` says so: whoever comes back from `wait` finds the call in its record.
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

    /// Whether all parts are done.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        lock(&self.state).left == 0
    }

    /// The outcome if all parts are done; else `waker` is called when they are.
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

/// The duty to end one part of a promise: told once, or dropped, which says that the cluster has ended.
#[derive(Debug)]
pub struct Waiter<V> {
    promise: Option<Arc<Promise<V>>>,
    part: usize,
}

impl<V> Waiter<V> {
    /// The duty to end part `part` of `promise`.
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

/// Where the value of one key of a part belongs in the call's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

/// Copies the values of each part of a pull to their places in `values`.
pub(crate) fn scatter<V: Copy>(parts: &[Vec<V>], places: &[Vec<Place>], values: &mut [V]) {
    for (part, places) in parts.iter().zip(places) {
        let mut start = 0;
        for place in places {
            let end = start + place.len;
            values[place.offset..place.offset + place.len].copy_from_slice(&part[start..end]);
            start = end;
        }
    }
}

/// An asynchronous call: owns its buffers, may be waited for with [`Ticket::wait`], awaited, or dropped.
///
/// Dropping it does not cancel the operation. A pull yields `[sum of value_len]` in the order of its keys, everything else an
/// empty vector. Yields the outcome once.
///
/// # Panics
/// When it is polled after it was ready.
#[derive(Debug)]
#[must_use = "an operation that nobody waits for may be unfinished: keep the ticket or call Worker::wait_all"]
pub struct Ticket<V>(Outcome<V>);

/// How far a ticket is.
#[derive(Debug)]
enum Outcome<V> {
    Served(Vec<V>),
    /// Without values, unless it is a pull.
    Promised(Arc<Promise<V>>, Option<Fill<V>>),
    Taken,
}

/// The values of a pull, those that were local in place, and the places of the others.
#[derive(Debug)]
struct Fill<V> {
    places: Vec<Vec<Place>>,
    values: Vec<V>,
}

impl<V: Copy> Ticket<V> {
    /// A ticket for a call that was served at once.
    pub(crate) fn served(values: Vec<V>) -> Self {
        Self(Outcome::Served(values))
    }

    /// A ticket for a pull: puts what is promised into its `places` in `values`.
    pub(crate) fn of_pull(promise: Arc<Promise<V>>, places: Vec<Vec<Place>>, values: Vec<V>) -> Self {
        Self(Outcome::Promised(promise, Some(Fill { places, values })))
    }

    /// A ticket for a call without values; `None`: there was nothing to do.
    pub(crate) fn without_values(promise: Option<Arc<Promise<V>>>) -> Self {
        Self(promise.map_or(Outcome::Served(Vec::new()), |promise| Outcome::Promised(promise, None)))
    }

    /// Returns true if [`Ticket::wait`] returns without blocking.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.0 {
            Outcome::Promised(promise, _) => promise.is_kept(),
            Outcome::Served(_) | Outcome::Taken => true,
        }
    }

    /// Blocks until the call is done.
    ///
    /// # Errors
    /// Why it could not be done.
    ///
    /// # Panics
    /// When it was polled until it was ready before.
    pub fn wait(self) -> Result<Vec<V>, OpError> {
        match self.0 {
            Outcome::Served(values) => Ok(values),
            Outcome::Promised(promise, fill) => promise.wait().map(|parts| assemble(parts, fill)),
            Outcome::Taken => panic!("{POLLED_AGAIN}"),
        }
    }
}

/// The values of a call whose parts are done.
fn assemble<V: Copy>(mut parts: Vec<Vec<V>>, fill: Option<Fill<V>>) -> Vec<V> {
    let Some(Fill { places, mut values }) = fill else { return Vec::new() };
    // One part that covers everything stands in the order of the keys already.
    if let [only] = parts.as_mut_slice()
        && only.len() == values.len()
    {
        return std::mem::take(only);
    }
    scatter(&parts, &places, &mut values);
    values
}

impl<V: Copy + Unpin> Future for Ticket<V> {
    type Output = Result<Vec<V>, OpError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match std::mem::replace(&mut self.0, Outcome::Taken) {
            Outcome::Served(values) => Poll::Ready(Ok(values)),
            Outcome::Promised(promise, fill) => match promise.poll(context.waker()) {
                Poll::Ready(outcome) => Poll::Ready(outcome.map(|parts| assemble(parts, fill))),
                Poll::Pending => {
                    self.0 = Outcome::Promised(promise, fill);
                    Poll::Pending
                }
            },
            Outcome::Taken => panic!("{POLLED_AGAIN}"),
        }
    }
}

const POLLED_AGAIN: &str = "a ticket was polled after it was ready: it yields its outcome once";
