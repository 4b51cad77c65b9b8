//! Costs of a run so far.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use adapm_core::stats::Stats;
use adapm_core::{Instant, NodeId};

use super::LightStore;

/// Totals over all nodes at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// The time.
    pub now: Instant,
    /// Keys read that were local: served at once.
    pub local: u64,
    /// Keys read for which a worker waited for a copy in flight.
    pub waited: u64,
    /// Keys read by asking another node.
    pub remote: u64,
    /// Keys pushed.
    pub pushed: u64,
    /// Messages sent.
    pub messages: u64,
    /// Bytes sent, heads of frames and scaled values.
    pub bytes: u64,
    /// Time that the channels of all nodes were busy, in nanoseconds.
    pub busy_nanos: u64,
    /// Sum of the engines' counts.
    pub engines: Stats,
}

/// State that the system under test shares with the program that drives it, all in one thread: the
/// stores, and totals on demand.
///
/// A program needs the stores for local look-ups of workers, as local sampling makes them.
#[derive(Debug, Default)]
pub struct SharedState {
    stores: RefCell<Vec<Rc<LightStore>>>,
    wanted: Cell<usize>,
    taken: RefCell<Vec<Totals>>,
}

impl SharedState {
    /// Returns the store of `node`.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn store(&self, node: NodeId) -> Rc<LightStore> {
        Rc::clone(&self.stores.borrow()[node.index()])
    }

    /// Requests totals: they are taken before the next event.
    pub fn want_totals(&self) {
        self.wanted.set(self.wanted.get() + 1);
    }

    /// Returns the totals taken so far, in the order of their requests.
    #[must_use]
    pub fn totals(&self) -> Vec<Totals> {
        self.taken.borrow().clone()
    }

    pub(super) fn add_store(&self, store: Rc<LightStore>) {
        self.stores.borrow_mut().push(store);
    }

    pub(super) fn wants(&self) -> bool {
        self.wanted.get() > self.taken.borrow().len()
    }

    pub(super) fn take(&self, totals: Totals) {
        while self.wants() {
            self.taken.borrow_mut().push(totals);
        }
    }
}
