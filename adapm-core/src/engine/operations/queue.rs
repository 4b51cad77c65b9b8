//! What is kept of an operation of this node, and of the keys on which some wait.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::engine::entry::Access;
use crate::engine::input::OpId;
use crate::id::{Key, NodeId, Ticket};
use crate::slot::Location;

/// An operation of a worker with keys not done yet.
#[derive(Debug)]
pub(super) struct OpState<V> {
    pub(super) remaining: usize,
    /// A pull's result, or the updates or values of a push or set.
    pub(super) values: Vec<V>,
    /// `None`: a localize.
    pub(super) access: Option<Access>,
}

/// One key of one operation of this node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) op: OpId,
    pub(super) access: Access,
    /// Where the key's elements stand in the operation's values.
    pub(super) offset: usize,
}

/// Operations of this node on one key, in program order.
#[derive(Debug)]
pub(super) struct Queue<V> {
    /// The one operation message sent and not answered.
    pub(super) unanswered: Option<Unanswered<V>>,
    pub(super) waiting: VecDeque<Item>,
    /// True if the front is a set that has left with a request and is not answered.
    pub(super) set_sent: bool,
}

impl<V> Default for Queue<V> {
    fn default() -> Self {
        Self { unanswered: None, waiting: VecDeque::new(), set_sent: false }
    }
}

impl<V> Queue<V> {
    /// A queue in which nothing waits behind an operation message.
    pub(super) fn sent(unanswered: Unanswered<V>) -> Self {
        Self { unanswered: Some(unanswered), ..Self::default() }
    }

    pub(super) fn pop(&mut self) -> Option<Item> {
        self.set_sent = false;
        self.waiting.pop_front()
    }
}

/// An operation message on one key: one pull for several, or several pushes added up, or one set.
#[derive(Debug)]
pub(super) struct Unanswered<V> {
    pub(super) access: Access,
    pub(super) items: SmallVec<[Item; 1]>,
    /// Several updates added up, kept to be sent again; empty where the operation of the only item has what was sent.
    pub(super) payload: Vec<V>,
    /// Where it went first, and by which fact.
    pub(super) asked: Location,
    /// The secret of the message by which it went.
    pub(super) secret: Ticket,
}

impl<V> Unanswered<V> {
    /// Returns true if `from` can have got the entry, of `key`: it was asked, or has the ticket.
    pub(super) fn has_reached(&self, from: NodeId, key: Key, ticket: Ticket) -> bool {
        if ticket == Ticket::NONE { from == self.asked.node } else { ticket == self.secret.of_key(key) }
    }
}
