//! Entries that nodes send to each other: their origin, and what they ask for.

use alloc::vec::Vec;

use crate::id::{Counter, Key, NodeId, Ticket};

/// The kind of an operation on keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Pull,
    Push,
    Set,
    /// Never leaves as an operation: a replica's goes with a request, all others are nothing to do.
    Renew,
}

impl Access {
    /// Returns true if a replica leaves it to the owner.
    pub(super) fn needs_owner(self) -> bool {
        matches!(self, Self::Set | Self::Renew)
    }
}

/// The origin of an entry, and its route to this node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    /// The origin.
    pub(super) origin: NodeId,
    /// The node that sent the entry here: the origin, or the last that passed it on.
    pub(super) by: NodeId,
    /// The number of nodes that have passed it on.
    pub(super) hops: u32,
    /// The entry's ticket; the secret of its message if the origin sent it here.
    ticket: Ticket,
    is_direct: bool,
}

impl Asker {
    /// Describes an entry that `origin` has sent here, in a message with this secret.
    pub(super) fn direct(origin: NodeId, secret: Ticket) -> Self {
        Self { origin, by: origin, hops: 0, ticket: secret, is_direct: true }
    }

    /// Describes an entry that `by` has passed on with its ticket.
    pub(super) fn forwarded(origin: NodeId, by: NodeId, hops: u32, ticket: Ticket) -> Self {
        Self { origin, by, hops, ticket, is_direct: false }
    }

    /// Returns the ticket that the answer carries.
    pub(super) fn reply(&self) -> Ticket {
        if self.is_direct { Ticket::NONE } else { self.ticket }
    }

    /// Returns the ticket with which the entry, for `key`, is passed on.
    pub(super) fn onward(&self, key: Key) -> Ticket {
        if self.is_direct { self.ticket.of_key(key) } else { self.ticket }
    }
}

/// An entry on its way to the owner of `key`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<P> {
    pub(super) asker: Asker,
    pub(super) key: Key,
    /// The counter of the location by which it was sent here.
    pub(super) counter: Counter,
    pub(super) asked: AskedFor<P>,
}

impl<V: Copy> Entry<&[V]> {
    pub(super) fn owned(self) -> Entry<Vec<V>> {
        let Self { asker, key, counter, asked } = self;
        Entry { asker, key, counter, asked: asked.map(<[V]>::to_vec) }
    }
}

impl<V> Entry<Vec<V>> {
    pub(super) fn borrowed(&self) -> Entry<&[V]> {
        let Self { asker, key, counter, ref asked } = *self;
        Entry { asker, key, counter, asked: asked.as_ref().map(Vec::as_slice) }
    }
}

/// The request of an entry, with its update or value `[value_len]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum AskedFor<P> {
    Intent,
    Localize,
    Pull,
    Push(P),
    Set(P),
}

impl<P> AskedFor<P> {
    /// Returns true if the owner decides where the main copy goes.
    pub(super) fn is_request(&self) -> bool {
        matches!(self, Self::Intent | Self::Localize)
    }

    pub(super) fn as_ref(&self) -> AskedFor<&P> {
        match self {
            Self::Intent => AskedFor::Intent,
            Self::Localize => AskedFor::Localize,
            Self::Pull => AskedFor::Pull,
            Self::Push(update) => AskedFor::Push(update),
            Self::Set(value) => AskedFor::Set(value),
        }
    }

    pub(super) fn map<Q>(self, payload: impl FnOnce(P) -> Q) -> AskedFor<Q> {
        match self {
            Self::Intent => AskedFor::Intent,
            Self::Localize => AskedFor::Localize,
            Self::Pull => AskedFor::Pull,
            Self::Push(update) => AskedFor::Push(payload(update)),
            Self::Set(value) => AskedFor::Set(payload(value)),
        }
    }
}

/// An unanswered intent or localize entry of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The low [`ROUND_BITS`] of the number of the round that asked.
    pub(super) round: u32,
    /// True for a localize.
    pub(super) localize: bool,
    /// True if a pull asked between two rounds: no round waits for the answer.
    pub(super) at_once: bool,
}

/// Low bits of a round's number that are kept: no entry stays unanswered for as many rounds as
/// these can count.
pub(super) const ROUND_BITS: u32 = 24;

/// Returns the part of a round's number that is kept with an unanswered entry.
pub(super) fn low_bits(round: u64) -> u32 {
    round as u32 & ((1 << ROUND_BITS) - 1)
}

/// The state of this node's operations on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// No operation.
    None,
    /// Operations wait.
    Waiting,
    /// An operation message is sent and unanswered.
    Unanswered,
}
