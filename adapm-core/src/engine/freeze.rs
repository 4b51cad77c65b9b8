//! `freeze` and `thaw`: nodes between which no main copy moves (protocol, "Operations").
//!
//! Whatever brings a node a main copy answers a request or an entry of that node: a grant, or the
//! hand-over in a response. A frozen node asks for no key, and hands over none that was not asked
//! for. So once all nodes are frozen, and nothing of theirs is unanswered, all main copies stay.
//!
//! A frozen node that waits for others still looks for peers that do not answer, by requests that
//! ask for nothing. One that was not frozen then may have handed a key over in its answer: behind
//! a barrier of frozen nodes a second call waits for that.

use alloc::vec::Vec;

use crate::engine::input::OpId;
use crate::id::WorkerId;

/// The workers that keep this node frozen.
#[derive(Debug)]
pub(super) struct Freezes {
    /// By worker.
    frozen: Vec<bool>,
    /// Calls that wait for answers.
    waiting: Vec<OpId>,
}

impl Freezes {
    pub(super) fn new(workers: usize) -> Self {
        Self { frozen: alloc::vec![false; workers], waiting: Vec::new() }
    }

    /// Returns true if nothing may be asked.
    pub(super) fn is_frozen(&self) -> bool {
        self.frozen.contains(&true)
    }

    /// Returns true if a call waits for answers.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn freeze(&mut self, worker: WorkerId, op: OpId) {
        self.frozen[worker.index()] = true;
        self.waiting.push(op);
    }

    pub(super) fn thaw(&mut self, worker: WorkerId) {
        self.frozen[worker.index()] = false;
    }

    /// Ends the calls, as nothing is unanswered. Returns their operations.
    pub(super) fn take_waiting(&mut self) -> Vec<OpId> {
        core::mem::take(&mut self.waiting)
    }

    /// Thaws the node for all workers. Returns the operations that wait.
    pub(super) fn give_up(&mut self) -> Vec<OpId> {
        self.frozen.fill(false);
        self.take_waiting()
    }
}
