//! Tickets of asynchronous calls, which a worker holds while a call is under way.
//!
//! | ticket | of | yields |
//! | --- | --- | --- |
//! | [`Pull`] | a pull | the values `[sum of value_len]`, in the order of the keys |
//! | [`Done`] | a push, set or localize | nothing but its outcome |
//!
//! A ticket can be waited for, with or without a time limit, awaited on any executor, or dropped.
//! Dropping it cancels nothing.
//!
//! Not here: the promise behind a ticket, and the thread that keeps it (`promise.rs`).

use std::fmt;
use std::future::Future;
use std::mem;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adapm_core::Value;
use adapm_core::error::OpError;

use crate::promise::Promise;

/// The ticket of an asynchronous pull; yields the values `[sum of value_len]` in the order of the
/// keys, once.
///
/// ```
/// use std::time::Duration;
///
/// use adapm_runtime::prelude::*;
///
/// let cluster = Builder::<f32>::new(Layout::dense(&[(100, 2)])?).nodes(2).build()?;
/// let sums = cluster.try_run(|mut worker| {
///     let mut pull = worker.pull_async(&[Key(1), Key(2)])?;
///     let values = loop {
///         // Other work can be done between two looks.
///         if let Some(outcome) = pull.wait_timeout(Duration::from_millis(1)) {
///             break outcome?;
///         }
///     };
///     Ok::<f32, OpError>(values.iter().sum())
/// })?;
/// assert_eq!(sums, [0.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If it is waited for or polled after it has yielded its outcome.
#[must_use = "values that nobody waits for are pulled in vain"]
pub struct Pull<V>(State<V>);

/// The progress of a pull.
enum State<V> {
    /// All its keys were local.
    Served(Vec<V>),
    Promised(Arc<Promise<V>>, Fill<V>),
    Taken,
}

/// The values of a pull: the local ones in place, and the places of the others.
struct Fill<V> {
    places: Vec<Vec<Place>>,
    values: Vec<V>,
}

impl<V: Value> Pull<V> {
    /// Creates a ticket for a pull that was served at once.
    pub(crate) fn served(values: Vec<V>) -> Self {
        Self(State::Served(values))
    }

    /// Creates a ticket that puts promised values into their `places` in `values`.
    pub(crate) fn new(promise: Arc<Promise<V>>, places: Vec<Vec<Place>>, values: Vec<V>) -> Self {
        Self(State::Promised(promise, Fill { places, values }))
    }

    /// Blocks until the values are there.
    ///
    /// # Errors
    /// The error of the pull.
    pub fn wait(mut self) -> Result<Vec<V>, OpError> {
        self.take(|promise| Some(promise.wait())).expect("the promise is kept")
    }

    /// Blocks until the values are there, for `limit` at most. Returns `None` if they are not; the
    /// ticket can then be asked again.
    ///
    /// # Errors
    /// The error of the pull.
    pub fn wait_timeout(&mut self, limit: Duration) -> Option<Result<Vec<V>, OpError>> {
        self.take(|promise| promise.wait_timeout(limit))
    }

    /// Returns true if [`Pull::wait`] returns without blocking.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.0 {
            State::Promised(promise, _) => promise.is_kept(),
            State::Served(_) | State::Taken => true,
        }
    }

    /// Returns the outcome if there is no promise, or if `ask` yields one.
    fn take(
        &mut self,
        ask: impl FnOnce(&Promise<V>) -> Option<Result<Vec<Vec<V>>, OpError>>,
    ) -> Option<Result<Vec<V>, OpError>> {
        match mem::replace(&mut self.0, State::Taken) {
            State::Served(values) => Some(Ok(values)),
            State::Promised(promise, fill) => {
                let outcome = ask(&promise);
                if outcome.is_none() {
                    self.0 = State::Promised(promise, fill);
                    return None;
                }
                outcome.map(|parts| parts.map(|parts| fill.with(parts)))
            }
            State::Taken => {
                panic!("a pull was asked after it was ready: it yields its values once")
            }
        }
    }
}

impl<V: Copy> Fill<V> {
    /// Returns the values, with those of all parts in their places.
    fn with(self, mut parts: Vec<Vec<V>>) -> Vec<V> {
        let Self { places, mut values } = self;
        // A single part that covers everything is in the order of the keys already.
        if let [only] = parts.as_mut_slice()
            && only.len() == values.len()
        {
            return mem::take(only);
        }
        scatter(&parts, &places, &mut values);
        values
    }
}

impl<V: Value> Future for Pull<V> {
    type Output = Result<Vec<V>, OpError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ready = |poll| if let Poll::Ready(outcome) = poll { Some(outcome) } else { None };
        self.take(|promise| ready(promise.poll(context.waker()))).map_or(Poll::Pending, Poll::Ready)
    }
}

impl<V> Unpin for Pull<V> {}

impl<V> fmt::Debug for Pull<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            State::Served(_) => "Pull, served",
            State::Promised(..) => "Pull, promised",
            State::Taken => "Pull, taken",
        })
    }
}

/// The ticket of an asynchronous push, set or localize; reports its outcome as often as it is
/// asked.
///
/// May be dropped: [`crate::Worker::wait_all`] waits for the call all the same, and returns its
/// error.
#[must_use = "an operation that nobody waits for may be unfinished: keep the ticket or call Worker::wait_all"]
pub struct Done(Option<Arc<dyn Ending>>);

/// A promise whose values do not matter.
trait Ending: Send + Sync {
    fn is_kept(&self) -> bool;
    fn wait(&self) -> Result<(), OpError>;
    fn wait_timeout(&self, limit: Duration) -> Option<Result<(), OpError>>;
    fn poll(&self, waker: &Waker) -> Poll<Result<(), OpError>>;
}

impl<V: Value> Ending for Promise<V> {
    fn is_kept(&self) -> bool {
        Promise::is_kept(self)
    }

    fn wait(&self) -> Result<(), OpError> {
        Promise::wait(self).map(drop)
    }

    fn wait_timeout(&self, limit: Duration) -> Option<Result<(), OpError>> {
        Promise::wait_timeout(self, limit).map(|outcome| outcome.map(drop))
    }

    fn poll(&self, waker: &Waker) -> Poll<Result<(), OpError>> {
        Promise::poll(self, waker).map_ok(drop)
    }
}

impl Done {
    /// Creates a ticket for a call without values; `None` if there was nothing to do.
    pub(crate) fn new<V: Value>(promise: Option<Arc<Promise<V>>>) -> Self {
        Self(promise.map(|promise| promise as Arc<dyn Ending>))
    }

    /// Blocks until the call is done.
    ///
    /// # Errors
    /// The error of the call.
    pub fn wait(&self) -> Result<(), OpError> {
        self.0.as_ref().map_or(Ok(()), |promise| promise.wait())
    }

    /// Blocks until the call is done, for `limit` at most. Returns `None` if it is not.
    ///
    /// # Errors
    /// The error of the call.
    pub fn wait_timeout(&self, limit: Duration) -> Option<Result<(), OpError>> {
        self.0.as_ref().map_or(Some(Ok(())), |promise| promise.wait_timeout(limit))
    }

    /// Returns true if [`Done::wait`] returns without blocking.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.as_ref().is_none_or(|promise| promise.is_kept())
    }
}

impl Future for Done {
    type Output = Result<(), OpError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_ref().map_or(Poll::Ready(Ok(())), |promise| promise.poll(context.waker()))
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_done() { "Done" } else { "Done, promised" })
    }
}

/// The place of one key's value of a part among the call's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl Place {
    pub(crate) fn range(self) -> Range<usize> {
        self.offset..self.offset + self.len
    }
}

/// Copies the values of each part of a pull to their places in `values`.
pub(crate) fn scatter<V: Copy>(parts: &[Vec<V>], places: &[Vec<Place>], values: &mut [V]) {
    for (part, places) in parts.iter().zip(places) {
        let mut start = 0;
        for place in places {
            let end = start + place.len;
            values[place.range()].copy_from_slice(&part[start..end]);
            start = end;
        }
    }
}
