//! Waiting operations of this node, by key, and entries of other nodes that wait for a grant on its
//! way to this node (protocol, "Routing").

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::engine::ctx::KeyMap;
use crate::engine::entry::{Access, Entry};
use crate::engine::input::OpId;
use crate::id::{Key, NodeId, Ticket};
use crate::slot::Location;

/// An operation of a worker with keys not done yet.
#[derive(Debug)]
pub(super) struct OpState<V> {
    pub(super) remaining: usize,
    /// A pull's result, or the updates or values of a push or set; empty for a renewal.
    pub(super) values: Vec<V>,
    /// `None`: a localize.
    pub(super) access: Option<Access>,
}

/// One key of one operation of this node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) op: OpId,
    pub(super) access: Access,
    /// Offset of the key's elements in the operation's values.
    pub(super) offset: usize,
}

/// Operations of this node on one key, in program order.
#[derive(Debug, Default)]
pub(super) struct Queue<V> {
    /// The one unanswered operation message.
    pub(super) unanswered: Option<Unanswered<V>>,
    pub(super) waiting: VecDeque<Item>,
    /// True if the front is a set or renewal that was sent with a request and is not done.
    pub(super) front_sent: bool,
}

impl<V> Queue<V> {
    /// Creates a queue with an operation message and nothing waiting behind it.
    pub(super) fn sent(unanswered: Unanswered<V>) -> Self {
        Self { unanswered: Some(unanswered), waiting: VecDeque::new(), front_sent: false }
    }

    pub(super) fn pop(&mut self) -> Option<Item> {
        self.front_sent = false;
        self.waiting.pop_front()
    }
}

/// An operation message on one key: one pull for several, or several pushes added up, or one set.
#[derive(Debug)]
pub(super) struct Unanswered<V> {
    pub(super) access: Access,
    pub(super) items: SmallVec<[Item; 1]>,
    /// Several updates added up, kept to be sent again; empty if the only item's operation has the
    /// payload.
    pub(super) payload: Vec<V>,
    /// First receiver, and the location by which it was chosen.
    pub(super) asked: Location,
    /// The secret of its message.
    pub(super) secret: Ticket,
}

impl<V> Unanswered<V> {
    /// Returns true if `from` can have received the entry, for `key`: it was asked, or has the
    /// ticket.
    pub(super) fn has_reached(&self, from: NodeId, key: Key, ticket: Ticket) -> bool {
        if ticket == Ticket::NONE {
            from == self.asked.node
        } else {
            ticket == self.secret.of_key(key)
        }
    }
}

/// Parked entries, by the key whose news they wait for, at most `max` of each node.
#[derive(Debug)]
pub(super) struct Parked<V> {
    entries: KeyMap<Vec<Entry<Vec<V>>>>,
    /// The number of entries of each node.
    of: Vec<usize>,
}

impl<V: Copy> Parked<V> {
    pub(super) fn new(nodes: usize) -> Self {
        Self { entries: KeyMap::default(), of: alloc::vec![0; nodes] }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.of.iter().sum()
    }

    /// Returns the number of entries that wait for news of `key`.
    #[cfg(feature = "inspect")]
    pub(super) fn count(&self, key: Key) -> usize {
        self.entries.get(&key).map_or(0, Vec::len)
    }

    /// Returns true if another entry of `origin` may wait.
    pub(super) fn has_room(&self, origin: NodeId, max: usize) -> bool {
        self.of[origin.index()] < max
    }

    pub(super) fn park(&mut self, entry: Entry<&[V]>) {
        self.of[entry.asker.origin.index()] += 1;
        self.entries.entry(entry.key).or_default().push(entry.owned());
    }

    /// Takes the entries that wait for news of `key`.
    pub(super) fn take(&mut self, key: Key) -> Vec<Entry<Vec<V>>> {
        // The usual case: no look-up in an empty map.
        if self.entries.is_empty() {
            return Vec::new();
        }
        let entries = self.entries.remove(&key).unwrap_or_default();
        entries.iter().for_each(|entry| self.of[entry.asker.origin.index()] -= 1);
        entries
    }

    pub(super) fn clear(&mut self) {
        self.entries = KeyMap::default();
        self.of.fill(0);
    }
}
