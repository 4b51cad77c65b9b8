//! What leaves a node: the one door out.

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
    /// Tell a worker.
    Event(Event<V>),
    /// Nothing more to do before the next input.
    Wait {
        /// When to feed [`crate::engine::Input::Timeout`]; `None`: only other inputs matter.
        until: Option<Instant>,
        /// What the node waits for.
        reason: Reason,
    },
}

/// Something for a worker of this node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<V> {
    /// The operation is done; a pull's values `[sum of value_len]` in the order of its keys, else
    /// empty.
    Done {
        /// The operation.
        op: OpId,
        /// What it read.
        values: Vec<V>,
    },
    /// The operation cannot be done.
    Failed {
        /// The operation.
        op: OpId,
        /// Why.
        error: OpError,
    },
    /// A barrier or quiesce has waited for long. Told once a call: of its own workers by each node,
    /// of nodes by node 0, and of a barrier by all that wait.
    Missing {
        /// Which.
        call: Collective,
        /// For whom.
        absent: Vec<Absent>,
    },
    /// The peer owes an answer and has sent nothing at all for
    /// [`crate::config::NodeConfig::unresponsive_nanos`]. Nothing follows by itself: the driver may
    /// feed [`crate::engine::Input::PeerLost`].
    Unresponsive {
        /// Which.
        node: NodeId,
    },
}

/// A call that ends when all workers of all nodes have made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// [`crate::engine::OpBody::Barrier`].
    Barrier,
    /// [`crate::engine::OpBody::Quiesce`].
    Quiesce,
}

/// A worker or node that a collective call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The node.
    pub node: NodeId,
    /// The worker; `None`: one of the node's at least, which knows more.
    pub worker: Option<WorkerId>,
    /// It waits in the other collective call meanwhile.
    pub elsewhere: bool,
}

impl Absent {
    /// Some worker of a node.
    pub(super) fn node(node: NodeId, elsewhere: bool) -> Self {
        Self { node, worker: None, elsewhere }
    }
}

/// What a node waits for, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A round is open: answers or grants are on their way.
    Round {
        /// Whether there is something to say already in the next round, which begins when this one
        /// ends or at `until`: nothing that happens here makes it begin earlier.
        more: bool,
    },
    /// The next round may begin at `until`; of what happens here only operations make it begin
    /// earlier.
    NextRound,
    /// A barrier or quiesce.
    Others,
    /// Nothing at all.
    Idle,
}
