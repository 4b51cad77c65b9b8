//! The first thing that went wrong in a cluster; it ends all channel threads.

use std::sync::OnceLock;

use crate::RunError;
use crate::link::WakeFn;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// Set once, seen by every channel thread of the process.
#[derive(Default)]
pub(crate) struct Failure {
    raised: AtomicBool,
    first: Mutex<Option<RunError>>,
    wakes: OnceLock<Vec<WakeFn>>,
}

impl Failure {
    /// Names the threads to be woken.
    pub(crate) fn wakes(&self, wakes: Vec<WakeFn>) {
        assert!(self.wakes.set(wakes).is_ok(), "the threads of a cluster are named once");
    }

    /// Notes `error` if it is the first, and wakes all channel threads.
    pub(crate) fn raise(&self, error: RunError) {
        lock(&self.first).get_or_insert(error);
        self.raised.store(true, Ordering::Release);
        for wake in self.wakes.get().into_iter().flatten() {
            wake();
        }
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// What went wrong first.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        lock(&self.first).clone().map_or(Ok(()), Err)
    }
}
