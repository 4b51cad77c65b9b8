//! Arbitrary messages from a seed or from the bytes of a fuzzer, and ways to corrupt them.
//!
//! One generator serves property tests, fuzz targets and replays, needs no library at run time, and
//! returns the same message for the same seed or bytes forever. Not here: schedules and inputs of
//! an engine.

use adapm_core::clock::Tick;
use adapm_core::error::Fault;
use adapm_core::id::{ChannelId, Counter, Key, NodeId, Ticket, Version};
use adapm_core::layout::Layout;
use adapm_core::transport::Frame;
use adapm_core::value::{Block, Value};
use adapm_core::wire::message::{
    Answer, Asked, Barrier, Body, Forward, GrantKind, Grants, Keys, Mark, Message, Operation,
    Owners, Quiesce, Residence, Retry, SyncRequest, SyncResponse,
};
use adapm_core::wire::shape;

use crate::rng::mix;

/// Most keys of one message before corruption.
const KEYS_MAX: u64 = 24;
/// Most steps of the search for a key of the channel.
const TRIES_MAX: u64 = 64;

/// A supply of choices: endless from a seed; zeros after the end of given bytes, so that short
/// inputs yield small messages.
pub struct Choices<'a>(Source<'a>);

enum Source<'a> {
    Seed(u64),
    Bytes(&'a [u8]),
}

impl<'a> Choices<'a> {
    /// Creates the choices of `seed`.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(Source::Seed(mix(seed)))
    }

    /// Creates choices from `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self(Source::Bytes(bytes))
    }

    /// Returns a number below `bound`, 0 if `bound` is 0; takes as few bytes as the bound needs.
    pub fn below(&mut self, bound: u64) -> u64 {
        let width = (64 - bound.saturating_sub(1).leading_zeros()).div_ceil(8) as usize;
        self.take(width).checked_rem(bound).unwrap_or(0)
    }

    /// Returns a number of any size, small ones as likely as large ones.
    pub fn number(&mut self) -> u64 {
        let bits = self.below(65) as u32;
        self.take(8) & u64::MAX.checked_shr(64 - bits).unwrap_or(0)
    }

    /// Returns any 64 bits.
    pub fn word(&mut self) -> u64 {
        self.take(8)
    }

    /// Returns true or false.
    pub fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Returns true if given bytes are used up; never with a seed.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        matches!(self.0, Source::Bytes([]))
    }

    fn take(&mut self, width: usize) -> u64 {
        match &mut self.0 {
            Source::Seed(state) => {
                *state = state.wrapping_add(1);
                mix(*state) & u64::MAX.checked_shr(64 - 8 * width as u32).unwrap_or(0)
            }
            Source::Bytes(bytes) => {
                let (taken, rest) = bytes.split_at(width.min(bytes.len()));
                *bytes = rest;
                taken.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
            }
        }
    }
}

/// The ids that messages may contain to pass [`shape::check`].
#[derive(Clone, Copy, Debug)]
pub struct Space<'a> {
    /// Keys and value lengths.
    pub layout: &'a Layout,
    /// Number of nodes.
    pub nodes: usize,
    /// The channel of all keys.
    pub channel: ChannelId,
    /// Number of channels.
    pub channels: usize,
}

impl Space<'_> {
    /// Returns a message of any kind that [`shape::check`] passes, with arbitrary bytes as values.
    /// All kinds are about equally likely.
    #[must_use]
    pub fn message<V: Value>(&self, choices: &mut Choices<'_>) -> Message {
        let body = match choices.below(11) {
            0 => Body::News,
            1 => Body::SyncRequest(self.request(choices)),
            2 => Body::SyncResponse(self.response(choices)),
            3 => Body::Grant(self.grants(choices)),
            4 => Body::Forward(self.forward(choices)),
            5 => Body::Operation(self.operation(choices)),
            6 => Body::Answer(self.answer(choices)),
            7 => Body::Retry(self.retry(choices)),
            8 => Body::Residence(self.residence(choices)),
            9 => Body::Barrier(self.barrier(choices)),
            _ => Body::Quiesce(quiesce(choices)),
        };
        let mut message = Message { body: Box::new(body), values: Block::new() };
        let verdict =
            shape::check::<V>(&message, self.layout, self.nodes, self.channel, self.channels);
        if let Err(Fault::BlockLen { expected, .. }) = verdict {
            message.values.resize(expected);
            for byte in message.values.bytes_mut() {
                *byte = choices.below(256) as u8;
            }
        }
        message
    }

    /// Returns strictly ascending keys of the channel, possibly none.
    pub fn keys(&self, choices: &mut Choices<'_>) -> Keys {
        let end = self.layout.keys().end.0;
        let mut keys = Vec::new();
        let mut next = choices.below(end);
        for _ in 0..choices.below(KEYS_MAX) {
            let candidates = (next..end).take(TRIES_MAX as usize).map(Key);
            let ours = |key: &Key| Layout::channel(*key, self.channels) == self.channel;
            let Some(key) = candidates.clone().find(ours) else { break };
            keys.push(key);
            let gap = if choices.flag() { choices.below(4) } else { choices.number() };
            next = key.0.saturating_add(1).saturating_add(gap);
        }
        Keys(keys)
    }

    /// Returns a node of the cluster.
    pub fn node(&self, choices: &mut Choices<'_>) -> NodeId {
        NodeId(choices.below(self.nodes as u64) as u16)
    }

    fn asked(&self, choices: &mut Choices<'_>) -> Asked {
        let mut asked = Asked::default();
        for key in self.keys(choices).iter() {
            asked.push(*key, counter(choices));
        }
        asked
    }

    fn request(&self, choices: &mut Choices<'_>) -> SyncRequest {
        let mark = match choices.below(3) {
            0 => Mark::None,
            1 => Mark::Check,
            _ => Mark::Sync,
        };
        let ticket = Ticket(choices.number());
        let mut request = SyncRequest { mark, ticket, ..SyncRequest::default() };
        for key in self.keys(choices).iter().copied() {
            match choices.below(5) {
                0 => request.intents.push(key, counter(choices)),
                1 => request.localizes.push(key, counter(choices)),
                2 => request.releases.push(key),
                3 => request.renews.push(key),
                _ => request.sets.push(key),
            }
            if choices.flag() {
                request.deltas.push(key);
            }
        }
        request
    }

    fn response(&self, choices: &mut Choices<'_>) -> SyncResponse {
        let refreshes = self.keys(choices);
        let mut response = SyncResponse {
            versions: refreshes.iter().map(|_| Version(choices.number())).collect(),
            refreshes,
            more: choices.flag(),
            synced: choices.flag(),
            ..SyncResponse::default()
        };
        for key in self.keys(choices).iter().copied() {
            if choices.flag() {
                grant(&mut response.grants, key, choices);
            } else {
                hand_over(&mut response.hand_overs, key, choices);
            }
        }
        response
    }

    fn grants(&self, choices: &mut Choices<'_>) -> Grants {
        let mut grants = Grants::default();
        for key in self.keys(choices).iter().copied() {
            grant(&mut grants, key, choices);
        }
        grants.tickets = some_tickets(grants.kinds.len(), choices);
        grants
    }

    fn forward(&self, choices: &mut Choices<'_>) -> Forward {
        let (mut intents, mut localizes) = (Asked::default(), Asked::default());
        for key in self.keys(choices).iter().copied() {
            let list = if choices.flag() { &mut intents } else { &mut localizes };
            list.push(key, counter(choices));
        }
        let operation = Operation { ticket: Ticket::NONE, ..self.operation(choices) };
        let (origin, hops) = (self.node(choices), choices.number() as u32);
        let mut forward =
            Forward { origin, hops, intents, localizes, operation, tickets: Vec::new() };
        forward.tickets = tickets(forward.len(), choices);
        forward
    }

    fn operation(&self, choices: &mut Choices<'_>) -> Operation {
        let (pulls, pushes, sets) = (self.asked(choices), self.asked(choices), self.asked(choices));
        Operation { pulls, pushes, sets, ticket: Ticket(choices.number()) }
    }

    fn answer(&self, choices: &mut Choices<'_>) -> Answer {
        let (pulls, done) = (self.asked(choices), self.asked(choices));
        let tickets = some_tickets(pulls.len() + done.len(), choices);
        Answer { pulls, done, tickets }
    }

    fn retry(&self, choices: &mut Choices<'_>) -> Retry {
        let (intents, operations) = (self.keys(choices), self.keys(choices));
        let tickets = some_tickets(intents.len() + operations.len(), choices);
        Retry { intents, operations, tickets }
    }

    fn residence(&self, choices: &mut Choices<'_>) -> Residence {
        let at = self.asked(choices);
        let owners = at.keys.iter().map(|_| self.node(choices)).collect();
        Residence { at, owners }
    }

    fn barrier(&self, choices: &mut Choices<'_>) -> Barrier {
        let number = choices.number();
        match choices.below(6) {
            0 => Barrier::Arrived { number },
            1 => Barrier::Ended,
            2 => Barrier::Passed { number },
            3 => Barrier::Clock { tick: Tick::new(0, number) },
            4 => Barrier::Least { tick: Tick::new(0, number) },
            _ => {
                let mut nodes: Vec<NodeId> =
                    (0..choices.below(4)).map(|_| self.node(choices)).collect();
                nodes.sort_unstable();
                nodes.dedup();
                Barrier::Missing { number, nodes }
            }
        }
    }
}

/// Changes one thing about `message` that [`shape::check`] may or may not notice; the message can
/// still be encoded.
pub fn spoil(message: &mut Message, choices: &mut Choices<'_>) {
    let mut asked = asked_lists(&mut message.body);
    let at = choices.below(asked.len() as u64) as usize;
    let Some(asked) = asked.get_mut(at) else {
        message.values.resize(choices.below(64) as usize);
        return;
    };
    match choices.below(5) {
        0 => asked.counters.push(counter(choices)),
        1 => drop(asked.counters.pop()),
        2 => asked.counters.iter_mut().for_each(|counter| *counter = Counter(choices.number())),
        3 => {
            let next = asked.keys.last().map_or(0, |last| last.0.saturating_add(1));
            let key = Key(next.saturating_add(choices.number()));
            if asked.keys.last().is_none_or(|last| *last < key) {
                asked.push(key, counter(choices));
            }
        }
        _ => message.values.resize(choices.below(64) as usize),
    }
}

/// Changes, cuts or lengthens the head of `frame` by a byte or more, or its values.
pub fn damage(frame: &mut Frame, choices: &mut Choices<'_>) {
    let at = choices.below(frame.head.len() as u64) as usize;
    match choices.below(5) {
        0 => frame.head.truncate(at),
        1 => frame.head.push(choices.below(256) as u8),
        2 => frame.values.resize(choices.below(64) as usize),
        3 if at < frame.head.len() => drop(frame.head.remove(at)),
        _ => {
            if let Some(byte) = frame.head.get_mut(at) {
                *byte ^= 1 << choices.below(8);
            }
        }
    }
}

/// Returns a ticket for each entry.
fn tickets(entries: usize, choices: &mut Choices<'_>) -> Vec<Ticket> {
    (0..entries).map(|_| Ticket(choices.number().max(1))).collect()
}

/// Returns a ticket for each entry, or none at all.
fn some_tickets(entries: usize, choices: &mut Choices<'_>) -> Vec<Ticket> {
    if choices.flag() { tickets(entries, choices) } else { Vec::new() }
}

fn counter(choices: &mut Choices<'_>) -> Counter {
    Counter(choices.number() & Counter::MAX.0)
}

fn grant(grants: &mut Grants, key: Key, choices: &mut Choices<'_>) {
    grants.at.push(key, counter(choices));
    let kinds = [GrantKind::Replica, GrantKind::Owner, GrantKind::Remote];
    grants.kinds.push(kinds[choices.below(3) as usize]);
    grants.versions.push(Version(choices.number()));
}

fn hand_over(owners: &mut Owners, key: Key, choices: &mut Choices<'_>) {
    owners.at.push(key, counter(choices));
    owners.versions.push(Version(choices.number()));
    owners.with_value.push(choices.flag());
}

fn quiesce(choices: &mut Choices<'_>) -> Quiesce {
    let number = choices.number();
    match choices.below(6) {
        0 => Quiesce::Arrived { number },
        1 => Quiesce::Leaving,
        2 => Quiesce::Probe { wave: number, settle: number.is_multiple_of(2) },
        3 => Quiesce::Report {
            wave: number,
            busy: choices.flag(),
            sent: choices.number(),
            applied: choices.number(),
        },
        4 => Quiesce::Done { number },
        _ => Quiesce::Left,
    }
}

fn asked_lists(body: &mut Body) -> Vec<&mut Asked> {
    match body {
        Body::SyncRequest(request) => Vec::from([&mut request.intents, &mut request.localizes]),
        Body::SyncResponse(response) => {
            Vec::from([&mut response.grants.at, &mut response.hand_overs.at])
        }
        Body::Grant(grants) => Vec::from([&mut grants.at]),
        Body::Forward(forward) => {
            Vec::from([&mut forward.intents, &mut forward.localizes, &mut forward.operation.pushes])
        }
        Body::Operation(operation) => {
            Vec::from([&mut operation.pulls, &mut operation.pushes, &mut operation.sets])
        }
        Body::Answer(answer) => Vec::from([&mut answer.pulls, &mut answer.done]),
        Body::Residence(residence) => Vec::from([&mut residence.at]),
        Body::News | Body::Retry(_) | Body::Barrier(_) | Body::Quiesce(_) => Vec::new(),
    }
}
