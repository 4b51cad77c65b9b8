//! What an engine keeps beside the store: side maps that hold only keys in which something is going on.
//!
//! | map | a key is in it while |
//! | --- | --- |
//! | `queues` | operations of this node wait or are unanswered |
//! | `parked` | entries of other nodes wait for a grant |

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;

use smallvec::SmallVec;

use crate::config::NodeConfig;
use crate::engine::input::OpId;
use crate::engine::late::Late;
use crate::id::{Counter, Key, NodeId, Ticket};
use crate::slot::Location;
use crate::time::Instant;

/// A map from keys whose iteration order is the same in every run; it must not reach an output all the same.
pub(crate) type KeyMap<T> = hashbrown::HashMap<Key, T, foldhash::fast::FixedState>;

/// A map from operations, as [`KeyMap`].
pub(crate) type OpMap<T> = hashbrown::HashMap<OpId, T, foldhash::fast::FixedState>;

/// Pull, push or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Pull,
    Push,
    Set,
}

/// One key of one operation of this node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) op: OpId,
    pub(crate) access: Access,
    /// Where the key's elements stand in the operation's values.
    pub(crate) offset: usize,
}

/// Operations of this node on one key, in program order.
#[derive(Debug)]
pub(crate) struct Queue<V> {
    /// The one operation message sent and not answered.
    pub(crate) unanswered: Option<Unanswered<V>>,
    pub(crate) waiting: VecDeque<Item>,
    /// Whether the front is a set that has left with a request and is not answered.
    pub(crate) set_sent: bool,
}

impl<V> Default for Queue<V> {
    fn default() -> Self {
        Self { unanswered: None, waiting: VecDeque::new(), set_sent: false }
    }
}

/// An operation message on one key: one pull for several, or several pushes added up, or one set.
#[derive(Debug)]
pub(crate) struct Unanswered<V> {
    pub(crate) access: Access,
    pub(crate) items: SmallVec<[Item; 1]>,
    /// Several updates added up, kept to be sent again; empty where the operation of the only item has what was sent.
    pub(crate) payload: Vec<V>,
    /// Where it went first, and by which fact.
    pub(crate) asked: Location,
    /// The secret of the message by which it went.
    pub(crate) secret: Ticket,
}

impl<V> Unanswered<V> {
    /// Whether `from` can have got the entry, of `key`: it was asked, or has the ticket.
    pub(crate) fn has_reached(&self, from: NodeId, key: Key, ticket: Ticket) -> bool {
        if ticket == Ticket::NONE { from == self.asked.node } else { ticket == self.secret.of_key(key) }
    }
}

/// An operation of a worker with keys not done yet.
#[derive(Debug)]
pub(crate) struct OpState<V> {
    pub(crate) remaining: usize,
    /// A pull's result, or the updates or values of a push or set.
    pub(crate) values: Vec<V>,
    pub(crate) access: Option<Access>,
}

/// Whose an entry is, and how it came here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    /// Who asks.
    pub(crate) origin: NodeId,
    /// Who has sent the entry here: the origin, or who has passed it on.
    pub(crate) by: NodeId,
    /// How many nodes have passed it on.
    pub(crate) hops: u32,
    /// The entry's ticket; the secret of its message if the origin has sent it here.
    ticket: Ticket,
    is_direct: bool,
}

impl Asker {
    /// `origin` has sent the entry here, in a message with this secret.
    pub(crate) fn direct(origin: NodeId, secret: Ticket) -> Self {
        Self { origin, by: origin, hops: 0, ticket: secret, is_direct: true }
    }

    /// `by` has passed the entry on with its ticket.
    pub(crate) fn forwarded(origin: NodeId, by: NodeId, hops: u32, ticket: Ticket) -> Self {
        Self { origin, by, hops, ticket, is_direct: false }
    }

    /// What the answer carries.
    pub(crate) fn reply(&self) -> Ticket {
        if self.is_direct { Ticket::NONE } else { self.ticket }
    }

    /// The ticket with which the entry, of `key`, is passed on.
    pub(crate) fn onward(&self, key: Key) -> Ticket {
        if self.is_direct { self.ticket.of_key(key) } else { self.ticket }
    }
}

/// An entry of another node that waits for a grant on its way here.
#[derive(Debug)]
pub(crate) struct Parked<V> {
    pub(crate) asker: Asker,
    pub(crate) counter: Counter,
    pub(crate) asked: AskedFor<Vec<V>>,
}

/// What an entry of a node asks of an owner, with the update or value `[value_len]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum AskedFor<P> {
    Intent,
    Localize,
    Pull,
    Push(P),
    Set(P),
}

impl<P> AskedFor<P> {
    pub(crate) fn map<Q>(self, payload: impl FnOnce(P) -> Q) -> AskedFor<Q> {
        match self {
            Self::Intent => AskedFor::Intent,
            Self::Localize => AskedFor::Localize,
            Self::Pull => AskedFor::Pull,
            Self::Push(update) => AskedFor::Push(payload(update)),
            Self::Set(value) => AskedFor::Set(payload(value)),
        }
    }
}

impl<V: Copy> AskedFor<&[V]> {
    pub(crate) fn owned(self) -> AskedFor<Vec<V>> {
        self.map(<[V]>::to_vec)
    }
}

impl<V> AskedFor<Vec<V>> {
    pub(crate) fn borrowed(&self) -> AskedFor<&[V]> {
        match self {
            Self::Intent => AskedFor::Intent,
            Self::Localize => AskedFor::Localize,
            Self::Pull => AskedFor::Pull,
            Self::Push(update) => AskedFor::Push(update),
            Self::Set(value) => AskedFor::Set(value),
        }
    }
}

/// The mark towards one peer ([`crate::engine::collective`], `wait_sync`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum SyncMark {
    /// There is none.
    #[default]
    Absent,
    /// It leaves with the last change that is sealed.
    Sealed,
    /// The peer has not told all yet that was due when it arrived there.
    Asked,
}

/// An unanswered intent or localize entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The low [`ROUND_BITS`] of the number of the round that asked.
    pub(crate) round: u32,
    /// Whether it was a localize.
    pub(crate) localize: bool,
}

/// Low bits of a round's number that are kept: nothing is unanswered for as many rounds as these can count.
pub(crate) const ROUND_BITS: u32 = 24;

/// What this engine knows of one other node.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// The one request sent to it and not answered.
    pub(crate) outstanding: Option<Outstanding>,
    /// It told that there is something here for this node, its last response was cut, or it is to show that it answers.
    pub(crate) news: bool,
    /// This node's mark, if one is on its way.
    pub(crate) mark: SyncMark,
    /// Its entries parked here.
    pub(crate) parked: usize,
    /// Replicas held here of keys that it owns.
    pub(crate) replicas: usize,
    /// What is to be said to it when it can be asked again.
    pub(crate) late: Late,
    /// Whose turn is next when not everything fits into a request to it.
    pub(crate) turn: Turn,
}

/// Who gets room first in the next request: without it, keys that always have something to say would starve the others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// Whether changes of replicas come before intents and localizes.
    pub(crate) changes_first: bool,
    /// The first key with an intent or localize that was left behind, or not looked at.
    pub(crate) wanted: Key,
    /// The first key with a change that was left behind, or not looked at.
    pub(crate) changed: Key,
}

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Outstanding {
    pub(crate) round: u64,
    pub(crate) releases: Vec<Key>,
    pub(crate) sets: Vec<Key>,
    pub(crate) localizes: Vec<Key>,
}

/// The current round.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) started: Instant,
    /// Requests of this round not answered.
    pub(crate) peers: usize,
    /// Grants asked for in this round that are not here.
    pub(crate) grants: usize,
    /// Durations in nanoseconds of the last rounds that asked for something.
    pub(crate) durations: heapless::Deque<u64, 16>,
    /// Their median.
    usual: u64,
    /// The last round in which a worker asked for a key that was not here, or waited for it or for all nodes.
    pub(crate) awaited: u64,
    /// Keys of which answers told in the last round.
    pub(crate) brought: usize,
    /// Least intervals from the last round to the next, less one, if nobody waits.
    pause: u64,
}

impl Round {
    /// Whether answers or grants of this round are awaited.
    pub(crate) fn is_open(&self) -> bool {
        self.peers + self.grants > 0
    }

    /// How long after its start the next round may begin: as early as any may where workers have waited of late, as they do where
    /// signals come shortly before keys are needed; else so that most rounds carry as many keys as they are worth.
    pub(crate) fn interval(&self, config: &NodeConfig, number: u64) -> u64 {
        let (least, most) = (config.round_nanos_min, config.round_nanos_max);
        if self.hurries(number) { least } else { least.saturating_mul(1 + self.pause).min(most).max(least) }
    }

    fn hurries(&self, number: u64) -> bool {
        number <= self.awaited + HURRIED_ROUNDS
    }

    /// Notes with how many keys the round begins. Rounds become rarer step by step: timers expect the next to be as long as the last.
    pub(crate) fn carries(&mut self, keys: usize, number: u64) {
        let keys = keys + mem::take(&mut self.brought);
        if self.hurries(number) {
            self.pause = 0;
        } else if keys < ROUND_WORTH / 2 {
            self.pause = (self.pause + 1).min(PAUSE_MAX);
        } else if keys > ROUND_WORTH {
            self.pause /= 2;
        }
    }

    /// How long a round may stay open before what is missing is left behind.
    pub(crate) fn patience(&self, least: u64) -> u64 {
        self.usual.max(least).saturating_mul(PATIENCE_ROUNDS)
    }

    /// Notes how long a round took.
    pub(crate) fn took(&mut self, nanos: u64) {
        if self.durations.is_full() {
            self.durations.pop_front();
        }
        self.durations.push_back(nanos).expect("room was just made");
        let mut durations: heapless::Vec<u64, 16> = self.durations.iter().copied().collect();
        durations.sort_unstable();
        self.usual = durations[durations.len() / 2];
    }
}

/// Keys that cost about as much as what a round costs by itself: four messages, four threads that wake up.
const ROUND_WORTH: usize = 256;

/// So rounds are at most four least intervals apart for that: replicas are stale for about as long.
const PAUSE_MAX: u64 = 3;

/// Rounds that hurry after somebody has waited, and at the start.
const HURRIED_ROUNDS: u64 = 8;

/// What takes this many times as long as rounds do is left behind.
const PATIENCE_ROUNDS: u64 = 4;

/// Work for the next round; lists may hold a key twice or in vain and are looked through in key order.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// Replicas that may have no interest left.
    pub(crate) release: Vec<Key>,
    /// Keys made dirty by workers.
    pub(crate) dirty: Vec<Key>,
    /// Replicas with a set at the front of their queue.
    pub(crate) set: Vec<Key>,
    /// Keys whose operation found no room to park.
    pub(crate) resend: Vec<Key>,
}

impl Agenda {
    pub(crate) fn is_empty(&self) -> bool {
        let lists = [&self.release, &self.dirty, &self.set, &self.resend];
        lists.iter().all(|list| list.is_empty())
    }
}
