//! The steps of workers.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use adapm_core::{Instant, Key, NodeId, WorkerId};

/// A worker of a cluster.
pub type NodeWorker = (NodeId, WorkerId);

/// The wait of a worker for its operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// It waits until the operation is done.
    Wait,
    /// It goes on at once; the operation is done whenever it is.
    GoOn,
}

/// One step of a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Reads.
    Pull(Vec<Key>, Then),
    /// Adds.
    Push(Vec<Key>, Then),
    /// Overwrites.
    Set(Vec<Key>, Then),
    /// Asks for the main copies.
    Localize(Vec<Key>, Then),
    /// Signals that it will access the keys this many clocks from now, for this many clocks.
    Intent {
        /// The keys.
        keys: Vec<Key>,
        /// Clocks until the first access.
        ahead: u64,
        /// Clocks from the first access to the last, both counted.
        clocks: u64,
    },
    /// Raises its clock.
    Advance(u64),
    /// Reaches the next tick, and waits until it may pass. Nothing under a system without a bound.
    Tick,
    /// Does something else for a while.
    Compute(Duration),
    /// Refreshes the replicas of these keys.
    Renew(Vec<Key>, Then),
    /// Waits until its node's pushes have arrived and its replicas are fresh.
    WaitSync(Then),
    /// Waits for all live workers.
    Barrier,
    /// Waits for all live workers, and until everything sent is applied everywhere.
    Quiesce,
    /// Copies the main copies of its node, as all live workers do.
    Snapshot,
    /// Ends: barriers do not wait for it any more.
    End,
    /// Announces that no operation follows on its node; waits until all nodes have.
    Leave,
}

/// A choice of the steps of all workers.
pub trait Program {
    /// Returns the next step of a worker that is not waiting; `None` if it is finished.
    fn next(&mut self, now: Instant, who: NodeWorker) -> Option<Step>;
}

impl<F: FnMut(Instant, NodeWorker) -> Option<Step>> Program for F {
    fn next(&mut self, now: Instant, who: NodeWorker) -> Option<Step> {
        self(now, who)
    }
}

/// A fixed program: the steps of each worker. Workers without steps have nothing to do.
///
/// ```
/// use adapm_core::{Instant, Key, NodeId, WorkerId};
/// use adapm_verify::sim::{Program, Script, Step, Then};
///
/// let who = (NodeId(0), WorkerId(0));
/// let mut script = Script::default().with(who, [Step::Push(vec![Key(1)], Then::Wait), Step::Barrier]);
/// assert_eq!(script.next(Instant::ZERO, who), Some(Step::Push(vec![Key(1)], Then::Wait)));
/// assert_eq!(script.next(Instant::ZERO, who), Some(Step::Barrier));
/// assert_eq!(script.next(Instant::ZERO, who), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Script(BTreeMap<NodeWorker, VecDeque<Step>>);

impl Script {
    /// Appends steps to those of `who`.
    #[must_use]
    pub fn with(mut self, who: NodeWorker, steps: impl IntoIterator<Item = Step>) -> Self {
        self.0.entry(who).or_default().extend(steps);
        self
    }
}

impl Program for Script {
    fn next(&mut self, _now: Instant, who: NodeWorker) -> Option<Step> {
        self.0.get_mut(&who)?.pop_front()
    }
}
