//! Messages between nodes: one queue per sender and receiver, and a record of every entry in them.

use std::collections::{BTreeMap, VecDeque};

use adapm_core::id::{Counter, Key, NodeId};
use adapm_core::layout::Layout;
use adapm_core::slot::State;
use adapm_core::transport::Frame;
use adapm_core::wire::message::Body;
use adapm_core::wire::{self, Message};

use crate::flight::{self, Entry, Kind};

/// All messages in flight.
#[derive(Debug)]
pub struct Network {
    layout: Layout,
    nodes: usize,
    codec: bool,
    links: Vec<VecDeque<Parcel>>,
    keys: Vec<Vec<InFlight>>,
    /// The counter with which the one unanswered entry of a node for a key first left.
    first_left: BTreeMap<(NodeId, Key), Counter>,
    /// Requests whose answer has not arrived, by the link they took.
    unanswered: Vec<usize>,
    sent: u64,
    /// Nodes that have vanished: messages to them are dropped.
    closed: Vec<bool>,
    /// Entries dropped since the last call of `take_dropped`.
    dropped: Vec<Entry>,
}

#[derive(Debug)]
struct Parcel {
    serial: u64,
    message: Message,
}

/// One entry of a message in flight.
#[derive(Clone, Debug)]
pub struct InFlight {
    serial: u64,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The entry.
    pub entry: Entry,
}

impl Network {
    /// Creates empty links among `nodes` nodes; with `codec` messages travel as bytes.
    #[must_use]
    pub fn new(layout: &Layout, nodes: usize, codec: bool) -> Self {
        let keys = layout.keys().end.0 as usize;
        Self {
            layout: layout.clone(),
            nodes,
            codec,
            links: (0..nodes * nodes).map(|_| VecDeque::new()).collect(),
            keys: vec![Vec::new(); keys],
            first_left: BTreeMap::new(),
            unanswered: vec![0; nodes * nodes],
            sent: 0,
            closed: vec![false; nodes],
            dropped: Vec::new(),
        }
    }

    /// Appends `message` to the queue from `from` to `to`.
    ///
    /// # Panics
    /// If the message does not survive encoding and decoding.
    pub fn send(&mut self, from: NodeId, to: NodeId, message: Message) {
        self.sent += 1;
        let serial = self.sent;
        let message = if self.codec { through_bytes(message) } else { message };
        let arrives = !self.closed[to.index()];
        let asks = matches!(*message.body, Body::SyncRequest(_) | Body::Operation(_));
        for entry in flight::entries(&message, |key| self.len(key)) {
            if let (true, Some(counter)) = (asks, entry.counter) {
                self.first_left.insert((from, entry.key), counter);
            }
            if arrives {
                self.keys[entry.key.0 as usize].push(InFlight { serial, from, to, entry });
            } else {
                self.dropped.push(entry);
            }
        }
        let link = self.link(from, to);
        self.unanswered[link] += usize::from(matches!(*message.body, Body::SyncRequest(_)));
        if arrives {
            self.links[link].push_back(Parcel { serial, message });
        }
    }

    /// Drops all messages from `from` to `to` but the first `keep`.
    pub fn cut(&mut self, from: NodeId, to: NodeId, keep: usize) {
        self.forget(from, to, keep);
        let link = self.link(from, to);
        self.links[link].truncate(keep);
    }

    /// Marks the messages from `from` to `to` as too late: they stay, but their entries do not
    /// count any more.
    pub fn forsake(&mut self, from: NodeId, to: NodeId) {
        self.forget(from, to, 0);
    }

    /// Drops all later messages to `node`.
    pub fn close(&mut self, node: NodeId) {
        self.closed[node.index()] = true;
    }

    /// Takes the entries dropped since the last call.
    pub fn take_dropped(&mut self) -> Vec<Entry> {
        core::mem::take(&mut self.dropped)
    }

    fn forget(&mut self, from: NodeId, to: NodeId, keep: usize) {
        let link = self.link(from, to);
        for Parcel { serial, message } in self.links[link].iter().skip(keep) {
            for entry in flight::entries(message, |key| len(&self.layout, key)) {
                self.keys[entry.key.0 as usize].retain(|in_flight| in_flight.serial != *serial);
                self.dropped.push(entry);
            }
        }
    }

    /// Takes the first message from `from` to `to`, with its entries.
    pub fn take(&mut self, from: NodeId, to: NodeId) -> Option<(Message, Vec<Entry>)> {
        let link = self.link(from, to);
        let Parcel { serial, message } = self.links[link].pop_front()?;
        if matches!(*message.body, Body::SyncResponse(_)) {
            let asked = self.link(to, from);
            self.unanswered[asked] = self.unanswered[asked].saturating_sub(1);
        }
        let entries = flight::entries(&message, |key| self.len(key));
        for entry in &entries {
            self.keys[entry.key.0 as usize].retain(|in_flight| in_flight.serial != serial);
        }
        Some((message, entries))
    }

    /// Returns the first message from `from` to `to`.
    #[must_use]
    pub fn first(&self, from: NodeId, to: NodeId) -> Option<&Message> {
        self.links[self.link(from, to)].front().map(|parcel| &parcel.message)
    }

    /// Returns all links with a message, as (sender, receiver), in order.
    #[must_use]
    pub fn loaded(&self) -> Vec<(NodeId, NodeId)> {
        let loaded = self.links.iter().enumerate().filter(|(_, link)| !link.is_empty());
        loaded
            .map(|(at, _)| (NodeId((at / self.nodes) as u16), NodeId((at % self.nodes) as u16)))
            .collect()
    }

    /// Returns all messages from `from` to `to`, first one first.
    pub fn queue(&self, from: NodeId, to: NodeId) -> impl Iterator<Item = &Message> + '_ {
        self.links[self.link(from, to)].iter().map(|parcel| &parcel.message)
    }

    /// Returns true if no message is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.iter().all(VecDeque::is_empty)
    }

    /// Returns the number of requests of `from` to `to` whose answer has not arrived.
    #[must_use]
    pub fn unanswered(&self, from: NodeId, to: NodeId) -> usize {
        self.unanswered[self.link(from, to)]
    }

    /// Returns the number of messages sent so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the entries about `key` in flight.
    #[must_use]
    pub fn about(&self, key: Key) -> &[InFlight] {
        &self.keys[key.0 as usize]
    }

    /// Returns the counter with which the last question of `origin` about `key` left it.
    #[must_use]
    pub fn first_left(&self, origin: NodeId, key: Key) -> Option<Counter> {
        self.first_left.get(&(origin, key)).copied()
    }

    fn link(&self, from: NodeId, to: NodeId) -> usize {
        from.index() * self.nodes + to.index()
    }

    fn len(&self, key: Key) -> usize {
        len(&self.layout, key)
    }
}

fn len(layout: &Layout, key: Key) -> usize {
    layout.value_len(key).expect("messages name keys of the layout")
}

fn through_bytes(message: Message) -> Message {
    let mut frame = Frame::default();
    let copy = message.clone();
    wire::encode(message, &mut frame);
    let decoded = wire::decode(&mut frame).expect("what was encoded can be decoded");
    assert_eq!(decoded, copy, "a message survives its frame");
    decoded
}

/// Number of arrivals of each entry kind in each state of the key at the receiver: the table of
/// (state, message) pairs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pairs([[u64; STATES.len()]; Kind::ALL.len()]);

/// All states of a key, in the order of their numbers.
pub const STATES: [State; 5] =
    [State::None, State::Requested, State::Replica, State::Main, State::Releasing];

impl Default for Pairs {
    fn default() -> Self {
        Self([[0; STATES.len()]; Kind::ALL.len()])
    }
}

impl Pairs {
    /// Counts one arrival.
    pub fn record(&mut self, state: State, kind: Kind) {
        self.0[kind as usize][state as usize] += 1;
    }

    /// Returns the number of arrivals of `kind` in `state`.
    #[must_use]
    pub fn count(&self, state: State, kind: Kind) -> u64 {
        self.0[kind as usize][state as usize]
    }

    /// Adds another table.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.as_flattened_mut().iter_mut().zip(other.0.as_flattened()) {
            *mine += theirs;
        }
    }
}

impl core::fmt::Display for Pairs {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:16}", "")?;
        for state in STATES {
            write!(f, "{:>11}", format!("{state:?}"))?;
        }
        for (kind, row) in Kind::ALL.iter().zip(&self.0) {
            write!(f, "\n{:16}", format!("{kind:?}"))?;
            for count in row {
                write!(f, "{count:>11}")?;
            }
        }
        Ok(())
    }
}
