//! Outputs of an engine: the one door out.

use alloc::vec::Vec;

use crate::engine::input::OpId;
use crate::error::OpError;
use crate::id::{NodeId, WorkerId};
use crate::time::Instant;
use crate::wire::Message;

/// One output. Exhaustive on purpose: a driver must see a new one.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Output<V> {
    /// Send the message, after all earlier ones to that node.
    Transmit(NodeId, Message),
    /// Deliver the event to a worker.
    Event(Event<V>),
    /// Nothing to do before the next input.
    Wait {
        /// Time to feed [`crate::engine::Input::Timeout`]; `None` if only other inputs matter.
        until: Option<Instant>,
        /// The reason for which the node waits.
        reason: Reason,
    },
}

/// An event for a worker of this node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<V> {
    /// The operation is done. Carries a pull's values `[sum of value_len]` in the order of its
    /// keys; empty otherwise.
    Done {
        /// The operation.
        op: OpId,
        /// The values read.
        values: Vec<V>,
    },
    /// The operation cannot be done.
    Failed {
        /// The operation.
        op: OpId,
        /// The reason.
        error: OpError,
    },
    /// A barrier, quiesce or tick has waited for long. Reported once per call, of ticks once until
    /// the slowest moves on: each node reports its own workers, node 0 reports nodes, and for a
    /// barrier all nodes that wait do.
    Missing {
        /// The call.
        call: Collective,
        /// The missing participants.
        absent: Vec<Absent>,
    },
    /// The peer owes an answer and has sent nothing at all for
    /// [`crate::config::NodeConfig::unresponsive_nanos`]. The engine does nothing further: the
    /// driver may feed [`crate::engine::Input::PeerLost`].
    Unresponsive {
        /// The peer.
        node: NodeId,
    },
}

/// A call that ends when all workers of all nodes have made it, or come near enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// [`crate::engine::OpBody::Barrier`].
    Barrier,
    /// [`crate::engine::OpBody::Quiesce`].
    Quiesce,
    /// [`crate::engine::OpBody::Tick`].
    Tick,
}

/// A worker or node that a collective call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The node.
    pub node: NodeId,
    /// The worker; `None` for at least one worker of the node, which reports the details.
    pub worker: Option<WorkerId>,
    /// True if it waits in the other collective call meanwhile.
    pub elsewhere: bool,
}

impl Absent {
    /// Describes some worker of a node.
    pub(super) fn node(node: NodeId, elsewhere: bool) -> Self {
        Self { node, worker: None, elsewhere }
    }
}

/// The reason for which a node waits, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A round is open: answers or grants are on their way.
    Round {
        /// True if the next round, which begins when this one ends or at `until`, has something to
        /// send already: no local input makes it begin earlier.
        more: bool,
    },
    /// The next round may begin at `until`; of local inputs only operations make it begin earlier.
    NextRound,
    /// A barrier or quiesce.
    Others,
    /// Nothing at all.
    Idle,
}
