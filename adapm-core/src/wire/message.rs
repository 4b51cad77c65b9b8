//! Messages between nodes (protocol, "Messages").
//!
//! Entries of one kind are parallel lists, sorted by key. Values are in the message's one block, in
//! the order of the lists that carry values in the struct, each list in key order.

use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::clock::Tick;
use crate::id::{Counter, Key, NodeId, Ticket, Version};
use crate::node_set::NodeSet;
use crate::value::Block;
pub use crate::wire::lists::Keys;
use crate::wire::lists::list;

/// One message: control part and values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The control part, boxed: messages are moved through queues.
    pub body: Box<Body>,
    /// The values of all entries that carry one.
    pub values: Block,
}

/// The control part of a message. The order of variants and fields is the wire format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// To the owner (or location, or home): all entries of a round. Answered by `SyncResponse`.
    SyncRequest(SyncRequest),
    /// From the owner: the answer to one `SyncRequest`.
    SyncResponse(SyncResponse),
    /// From the owner to the origin of a forwarded intent or localize, or of a request for many
    /// keys, ahead of its response.
    Grant(Grants),
    /// From the owner: there are news for the receiver, which should send a request.
    News,
    /// From a node that is not the owner: entries of `origin` to be passed on.
    Forward(Forward),
    /// Pulls, pushes and sets. Answered by `Answer`s that together cover all keys.
    Operation(Operation),
    /// From the owner to the origin of operations.
    Answer(Answer),
    /// From a node at its parking bound to the origin: ask again in a later round.
    Retry(Retry),
    /// From the old owner to the home: the new owners of keys.
    Residence(Residence),
    /// Barriers and ticks of all workers; node 0 coordinates.
    Barrier(Barrier),
    /// Waves that detect rest; node 0 coordinates.
    Quiesce(Quiesce),
}

/// Keys with the counter of the fact "the receiver owns the key"; 0 if the receiver is asked as the
/// home.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The keys.
    pub keys: Keys,
    /// One counter per key.
    #[serde(deserialize_with = "list")]
    pub counters: Vec<Counter>,
}

/// One round's request to one peer. Values: those of `deltas`, then those of `sets`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncRequest {
    /// Keys with an update of the sender's replica; the receiver owns them.
    pub deltas: Keys,
    /// Keys whose value is overwritten; the receiver owns them.
    pub sets: Keys,
    /// Keys whose replica the sender releases; the receiver owns them.
    pub releases: Keys,
    /// Keys whose replica at the sender the receiver refreshes, whatever its policy refreshes; the
    /// receiver owns them.
    pub renews: Keys,
    /// Keys for which the sender's intent has become active.
    pub intents: Asked,
    /// Keys that a worker of the sender wants moved there.
    pub localizes: Asked,
    /// A mark, if the sender waits for everything that is due to it now. The receiver takes the
    /// dirty flag of every main copy that the sender holds a replica of.
    pub mark: Mark,
    /// The secret from which the tickets of its intents and localizes derive; [`Ticket::NONE`]
    /// without any.
    pub ticket: Ticket,
}

/// The purpose of a request besides its entries, weakest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Mark {
    /// None: the answer may be cut anywhere.
    #[default]
    None,
    /// The sender waits for all refreshes that are due by the policy.
    Check,
    /// The sender waits for everything that its replicas lack.
    Sync,
}

/// Answers to intents and localizes. Values: one for each entry whose kind carries one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// The keys, each with the counter of the fact "this is its owner": for `Owner` the receiver,
    /// else the sender.
    pub at: Asked,
    /// The kind of each grant.
    #[serde(deserialize_with = "list")]
    pub kinds: Vec<GrantKind>,
    /// The version of each main copy; 0 for `Remote`.
    #[serde(deserialize_with = "list")]
    pub versions: Vec<Version>,
    /// The ticket of each entry, [`Ticket::NONE`] if it was asked directly; empty if all were.
    #[serde(deserialize_with = "list")]
    pub tickets: Vec<Ticket>,
}

/// The kind of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrantKind {
    /// A replica, with a value.
    Replica,
    /// Ownership, with a value.
    Owner,
    /// Nothing: the sender stays owner, and the receiver uses operations.
    Remote,
}

/// Ownership of keys that the receiver holds a replica of. Values: one for each entry that carries
/// one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owners {
    /// The keys, each with the counter under which the receiver owns it.
    pub at: Asked,
    /// The version of each main copy.
    #[serde(deserialize_with = "list")]
    pub versions: Vec<Version>,
    /// True if a value comes along; false if the receiver's replica is current.
    #[serde(deserialize_with = "list")]
    pub with_value: Vec<bool>,
}

/// The answer to a request, which it also acknowledges. Values: those of `grants`, `refreshes`,
/// `hand_overs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncResponse {
    /// Answers to the request's intents and localizes for keys the sender owns, except those sent
    /// ahead by `Grant`.
    pub grants: Grants,
    /// Replicas of the receiver that had become stale.
    pub refreshes: Keys,
    /// The version of each refresh.
    #[serde(deserialize_with = "list")]
    pub versions: Vec<Version>,
    /// Keys whose replica at the receiver becomes the main copy.
    pub hand_overs: Owners,
    /// True if there is more: ask again.
    pub more: bool,
    /// True if everything is reported that was due when the receiver's mark arrived.
    pub synced: bool,
}

/// Entries on their way to their owner. Values: those of the operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forward {
    /// The node that asked.
    pub origin: NodeId,
    /// The number of nodes that have passed the entries on.
    pub hops: u32,
    /// Intents of the origin.
    pub intents: Asked,
    /// Localizes of the origin.
    pub localizes: Asked,
    /// Operations of the origin, without a ticket.
    pub operation: Operation,
    /// The ticket of each entry: of intents, localizes, pulls, pushes, sets.
    #[serde(deserialize_with = "list")]
    pub tickets: Vec<Ticket>,
}

/// Operations of one node. Values: those of `pushes`, then those of `sets`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Keys to be read.
    pub pulls: Asked,
    /// Keys to be added to.
    pub pushes: Asked,
    /// Keys to be overwritten.
    pub sets: Asked,
    /// The secret from which the tickets of its entries derive.
    pub ticket: Ticket,
}

/// Answers of an owner to operations. Values: those of `pulls`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Keys that were read; the sender's relocation counter goes with each.
    pub pulls: Asked,
    /// Keys to which a push or set was applied.
    pub done: Asked,
    /// The ticket of each entry, of pulls, then of those done, as in [`Grants`].
    #[serde(deserialize_with = "list")]
    pub tickets: Vec<Ticket>,
}

/// Entries that found no room to park.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Keys of intents and localizes.
    pub intents: Keys,
    /// Keys of operations.
    pub operations: Keys,
    /// The ticket of each entry, of intents, then of operations, as in [`Grants`].
    #[serde(deserialize_with = "list")]
    pub tickets: Vec<Ticket>,
}

/// New owners of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residence {
    /// The keys, each with its new counter.
    pub at: Asked,
    /// The new owner of each.
    #[serde(deserialize_with = "list")]
    pub owners: Vec<NodeId>,
}

/// Steps of a barrier, which are numbered from 0, and of ticks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Barrier {
    /// To node 0: all live workers of the sender have arrived at barrier `number`.
    Arrived {
        /// The barrier.
        number: u64,
    },
    /// To node 0: the sender has no live workers and will arrive at no further barrier.
    Ended,
    /// From node 0: barrier `number` is complete.
    Passed {
        /// The barrier.
        number: u64,
    },
    /// From node 0: barrier `number` still waits for these nodes.
    Missing {
        /// The barrier.
        number: u64,
        /// The nodes.
        #[serde(deserialize_with = "list")]
        nodes: Vec<NodeId>,
    },
    /// To node 0: every update that workers of the sender have made before `tick` is in the main
    /// copies, and none of them will make another one.
    Clock {
        /// The tick; never falls.
        tick: Tick,
    },
    /// From node 0: the same of all nodes.
    Least {
        /// The tick; never falls.
        tick: Tick,
    },
}

/// Steps of a quiesce. Numbered from 0 per channel; the last one of a run is the leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quiesce {
    /// To node 0: all live workers of the sender call quiesce `number`.
    Arrived {
        /// The quiesce.
        number: u64,
    },
    /// To node 0: the sender wants to leave the cluster; it takes part in every quiesce from here
    /// on.
    Leaving,
    /// From node 0: report for wave `wave`.
    Probe {
        /// The wave.
        wave: u64,
        /// True to report once all work begun there is done, for a quiesce; false to report the
        /// present state, for the end.
        settle: bool,
    },
    /// To node 0: the sender's state in wave `wave`.
    Report {
        /// The wave.
        wave: u64,
        /// True if anything is pending: dirty keys, releases, sets, stale holders, parked or
        /// unanswered entries.
        busy: bool,
        /// Messages sent so far, control aside.
        sent: u64,
        /// Messages applied so far, control aside.
        applied: u64,
    },
    /// From node 0: quiesce `number` is complete.
    Done {
        /// The quiesce.
        number: u64,
    },
    /// From node 0: all nodes have left and everything is applied: end.
    Left,
}

impl Message {
    /// Creates a message without values.
    #[must_use]
    pub fn bare(body: Body) -> Self {
        Self { body: Box::new(body), values: Block::new() }
    }

    /// Returns true if the message only coordinates barriers and waves: quiesce does not count it.
    #[must_use]
    pub fn is_control(&self) -> bool {
        matches!(*self.body, Body::Barrier(_) | Body::Quiesce(_))
    }
}

/// Collects entries, which must come in ascending order of keys.
impl FromIterator<(Key, Counter)> for Asked {
    fn from_iter<I: IntoIterator<Item = (Key, Counter)>>(entries: I) -> Self {
        let (keys, counters) = entries.into_iter().unzip();
        Self { keys: Keys(keys), counters }
    }
}

impl Asked {
    /// Appends an entry; keys must come in ascending order.
    pub fn push(&mut self, key: Key, counter: Counter) {
        self.keys.push(key);
        self.counters.push(counter);
    }

    /// Returns an iterator over the entries.
    pub fn iter(&self) -> impl Iterator<Item = (Key, Counter)> + '_ {
        self.keys.iter().copied().zip(self.counters.iter().copied())
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl Forward {
    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        let Operation { pulls, pushes, sets, .. } = &self.operation;
        [&self.intents, &self.localizes, pulls, pushes, sets].into_iter().map(Asked::len).sum()
    }

    /// Returns true if there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the tickets of a message in wire format: empty if all its entries were asked directly.
#[must_use]
pub fn tickets(each: impl Iterator<Item = Ticket> + Clone) -> Vec<Ticket> {
    if each.clone().all(|ticket| ticket == Ticket::NONE) { Vec::new() } else { each.collect() }
}

/// Converts a set of nodes to its wire format.
impl From<&NodeSet> for Vec<NodeId> {
    fn from(set: &NodeSet) -> Self {
        set.as_slice().to_vec()
    }
}
