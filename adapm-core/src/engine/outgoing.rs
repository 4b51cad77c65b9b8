//! Outgoing entries of one input, grouped per receiver (AdaPM §B.2.2; protocol, "Routing").
//!
//! Values are written into the block that leaves, unless its keys turn out not to ascend or not to
//! fit into one message.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use crate::config::{ENTRIES_MAX, HEAD_BYTES};
use crate::engine::budget::Budget;
use crate::engine::entry::{Access, AskedFor};
use crate::id::{Counter, Key, NodeId, Ticket, Version};
use crate::slot::{Location, State};
use crate::store::Store;
use crate::ticket::Tickets;
use crate::value::{Block, Value};
use crate::wire::Message;
use crate::wire::message::{
    self, Answer, Asked, Body, Forward, GrantKind, Grants, Keys, Operation, Residence, Retry,
};

/// Entries to be sent at the end of the input. Ordered maps: their order reaches the outputs.
#[derive(Debug, Default)]
pub(super) struct Outgoing<V> {
    operations: BTreeMap<NodeId, OperationDraft>,
    forwards: BTreeMap<(NodeId, NodeId, u32), Vec<Passed<V>>>,
    answers: BTreeMap<NodeId, AnswerDraft>,
    grants: BTreeMap<NodeId, GrantDraft>,
    retries: BTreeMap<NodeId, Vec<Passed<V>>>,
    residences: BTreeMap<NodeId, Vec<(Key, Counter, NodeId)>>,
    /// Reused memory for messages.
    spare: Vec<(NodeId, Message)>,
}

/// One key of another node's message that is passed on or turned away.
#[derive(Debug)]
pub(super) struct Passed<V> {
    pub(super) key: Key,
    pub(super) counter: Counter,
    pub(super) ticket: Ticket,
    pub(super) asked: AskedFor<Vec<V>>,
}

/// Operations of this node for one receiver, with their updates and values.
#[derive(Debug, Default)]
struct OperationDraft {
    entries: Vec<OperationEntry>,
    values: Block,
    /// The secret of the message.
    secret: Ticket,
}

#[derive(Debug, Clone)]
struct OperationEntry {
    key: Key,
    counter: Counter,
    access: Access,
    /// Position of the update or value; empty for a pull.
    bytes: Range<usize>,
}

/// Answers for one receiver, with the values read.
#[derive(Debug, Default)]
struct AnswerDraft {
    entries: Vec<AnswerEntry>,
    values: Block,
}

/// The answer for one key.
#[derive(Debug)]
struct AnswerEntry {
    key: Key,
    counter: Counter,
    ticket: Ticket,
    /// Position of the value read, in bytes; `None` if nothing was read.
    read: Option<Range<usize>>,
}

/// Grants for one receiver, with their values.
#[derive(Debug, Default)]
pub(super) struct GrantDraft {
    entries: Vec<GrantEntry>,
    values: Block,
    /// The ticket of the entry that is answered next.
    pub(super) ticket: Ticket,
}

#[derive(Debug, Clone)]
struct GrantEntry {
    key: Key,
    counter: Counter,
    kind: GrantKind,
    version: Version,
    ticket: Ticket,
    bytes: Range<usize>,
}

impl<V: Value> Outgoing<V> {
    /// Appends an operation of this node; `payload` `[value_len]` is its update or value, empty for
    /// a pull. Returns the secret of its message.
    pub(super) fn add_operation(
        &mut self,
        tickets: &mut Tickets,
        to: Location,
        key: Key,
        access: Access,
        payload: &[V],
    ) -> Ticket {
        let draft = self.operations.entry(to.node).or_insert_with(|| OperationDraft {
            secret: tickets.of_operation(to.node),
            ..OperationDraft::default()
        });
        let start = draft.values.len();
        draft.values.push(payload);
        let bytes = start..draft.values.len();
        draft.entries.push(OperationEntry { key, counter: to.counter, access, bytes });
        draft.secret
    }

    /// Passes an entry of `origin` on to `to`, after `hops` hops.
    pub(super) fn add_forward(&mut self, to: NodeId, origin: NodeId, hops: u32, entry: Passed<V>) {
        self.forwards.entry((to, origin, hops)).or_default().push(entry);
    }

    /// Asks `origin` to try again.
    pub(super) fn add_retry(&mut self, origin: NodeId, entry: Passed<V>) {
        self.retries.entry(origin).or_default().push(entry);
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self { operations, forwards, answers, grants, retries, residences, spare: _ } = self;
        operations.is_empty()
            && forwards.is_empty()
            && answers.is_empty()
            && grants.is_empty()
            && retries.is_empty()
            && residences.is_empty()
    }

    /// Answers a pull of `to` with the local copy. Returns true if that was a main copy that
    /// workers had changed; takes its dirty flag.
    pub(super) fn answer_pull(
        &mut self,
        store: &impl Store<Value = V>,
        to: NodeId,
        key: Key,
        ticket: Ticket,
    ) -> bool {
        let draft = self.answers.entry(to).or_default();
        let start = draft.values.len();
        let (is_changed, counter) = store.with_slot(key, |mut slot| {
            draft.values.push(slot.value);
            (slot.packed.state() == State::Main && slot.take_dirty(), slot.packed.counter())
        });
        let read = Some(start..draft.values.len());
        draft.entries.push(AnswerEntry { key, counter, ticket, read });
        is_changed
    }

    /// Answers a push or set of `to` that is done.
    pub(super) fn answer_done(&mut self, to: NodeId, key: Key, counter: Counter, ticket: Ticket) {
        let draft = self.answers.entry(to).or_default();
        draft.entries.push(AnswerEntry { key, counter, ticket, read: None });
    }

    pub(super) fn add_residence(&mut self, home: NodeId, key: Key, owner: Location) {
        self.residences.entry(home).or_default().push((key, owner.counter, owner.node));
    }

    /// Takes the grants to be sent to `to` at the end of the input.
    pub(super) fn take_grant_draft(&mut self, to: NodeId) -> GrantDraft {
        self.grants.remove(&to).unwrap_or_default()
    }

    pub(super) fn put_grant_draft(&mut self, to: NodeId, draft: GrantDraft) {
        self.grants.insert(to, draft);
    }

    /// Takes all drafts as messages of at most `bytes_max` bytes each; `value_bytes(key)` is the
    /// size of a key's value.
    pub(super) fn take_messages(
        &mut self,
        bytes_max: usize,
        value_bytes: impl Fn(Key) -> usize,
    ) -> Vec<(NodeId, Message)> {
        let mut mail = Mail { bytes_max, value_bytes, messages: mem::take(&mut self.spare) };
        for (to, draft) in mem::take(&mut self.operations) {
            mail.add_operations::<V>(to, draft);
        }
        for ((to, origin, hops), entries) in mem::take(&mut self.forwards) {
            for mut batch in mail.passed(entries) {
                let mut tickets = Vec::with_capacity(batch.len());
                let mut take = |asked| {
                    let taken = batch.extract_if(.., |entry| entry.asked == asked);
                    let noted = taken.inspect(|entry| tickets.push(entry.ticket));
                    noted.map(|entry| (entry.key, entry.counter)).collect()
                };
                let (intents, localizes) = (take(AskedFor::Intent), take(AskedFor::Localize));
                let (operation, values) = forwarded(batch, &mut tickets);
                let forward = Forward { origin, hops, intents, localizes, operation, tickets };
                mail.add(to, Body::Forward(forward), values);
            }
        }
        for (to, draft) in mem::take(&mut self.answers) {
            mail.add_answers::<V>(to, draft);
        }
        for (to, draft) in mem::take(&mut self.grants) {
            mail.add_grants::<V>(to, draft);
        }
        for (to, entries) in mem::take(&mut self.retries) {
            for mut batch in mail.passed(entries) {
                let requests: Vec<_> =
                    batch.extract_if(.., |entry| entry.asked.is_request()).collect();
                let tickets =
                    message::tickets(requests.iter().chain(&batch).map(|entry| entry.ticket));
                let intents = Keys(requests.into_iter().map(|entry| entry.key).collect());
                let operations = Keys(batch.into_iter().map(|entry| entry.key).collect());
                mail.add(to, Body::Retry(Retry { intents, operations, tickets }), Block::new());
            }
        }
        for (to, mut entries) in mem::take(&mut self.residences) {
            // A key that left, returned and left again in one input: only the last location
            // matters.
            entries.sort_unstable_by_key(|(key, counter, _)| (*key, core::cmp::Reverse(*counter)));
            entries.dedup_by_key(|(key, ..)| *key);
            for batch in mail.batches(entries, |(key, ..)| *key, |_| 0) {
                let at = batch.iter().map(|(key, counter, _)| (*key, *counter)).collect();
                let owners = batch.iter().map(|(.., owner)| *owner).collect();
                mail.add(to, Body::Residence(Residence { at, owners }), Block::new());
            }
        }
        mail.messages
    }

    /// Takes the list of messages back, to reuse its memory.
    pub(super) fn keep_room(&mut self, mut messages: Vec<(NodeId, Message)>) {
        messages.clear();
        self.spare = messages;
    }
}

/// Messages under construction.
struct Mail<F> {
    bytes_max: usize,
    value_bytes: F,
    messages: Vec<(NodeId, Message)>,
}

impl<F: Fn(Key) -> usize> Mail<F> {
    fn add(&mut self, to: NodeId, body: Body, values: Block) {
        self.messages.push((to, Message { body: Box::new(body), values }));
    }

    fn add_operations<V: Value>(&mut self, to: NodeId, draft: OperationDraft) {
        let OperationDraft { entries, values, secret } = draft;
        let alike =
            entries.is_sorted_by(|one, other| one.key < other.key && one.access == other.access);
        if alike && self.fits_one(entries.iter().map(|entry| entry.key)) {
            let mut operation = Operation { ticket: secret, ..Operation::default() };
            let access = entries.first().map_or(Access::Pull, |entry| entry.access);
            *list_of(&mut operation, access) =
                entries.iter().map(|entry| (entry.key, entry.counter)).collect();
            return self.add(to, Body::Operation(operation), values);
        }
        for batch in self.batches(entries, |entry| entry.key, |entry| (self.value_bytes)(entry.key))
        {
            let mut operation = Operation { ticket: secret, ..Operation::default() };
            let mut block = Block::new();
            for access in [Access::Pull, Access::Push, Access::Set] {
                for entry in batch.iter().filter(|entry| entry.access == access) {
                    block.push(elements::<V>(&values, &entry.bytes));
                    list_of(&mut operation, access).push(entry.key, entry.counter);
                }
            }
            self.add(to, Body::Operation(operation), block);
        }
    }

    fn add_answers<V: Value>(&mut self, to: NodeId, draft: AnswerDraft) {
        let AnswerDraft { entries, values } = draft;
        let ascends = entries.is_sorted_by(|one, other| one.key < other.key);
        if ascends && self.fits_one(entries.iter().map(|entry| entry.key)) {
            // The usual case, for one message of requests: the values are in order already.
            return self.add(to, Body::Answer(answered(&entries)), values);
        }
        for batch in self.batches(entries, |entry| entry.key, |entry| (self.value_bytes)(entry.key))
        {
            let mut block = Block::new();
            for read in batch.iter().filter_map(|entry| entry.read.as_ref()) {
                block.push(elements::<V>(&values, read));
            }
            self.add(to, Body::Answer(answered(&batch)), block);
        }
    }

    fn add_grants<V: Value>(&mut self, to: NodeId, draft: GrantDraft) {
        let GrantDraft { entries, values, .. } = draft;
        for batch in self.batches(entries, |entry| entry.key, |entry| entry.bytes.len()) {
            let mut block = Block::new();
            batch.iter().for_each(|entry| block.push(elements::<V>(&values, &entry.bytes)));
            self.add(to, Body::Grant(listed(&batch)), block);
        }
    }

    /// Returns true if entries of these keys, with all their values, fit into one message.
    fn fits_one(&self, keys: impl ExactSizeIterator<Item = Key>) -> bool {
        let entries = keys.len();
        let values: usize = keys.map(&self.value_bytes).sum();
        entries <= ENTRIES_MAX && entries * HEAD_BYTES + values <= self.bytes_max
    }

    /// Splits entries into lists whose keys ascend strictly.
    fn passed<V>(&self, entries: Vec<Passed<V>>) -> Vec<Vec<Passed<V>>> {
        self.batches(entries, |entry| entry.key, |entry| (self.value_bytes)(entry.key))
    }

    /// Splits entries into strictly ascending lists, each of which fits into a message with its
    /// values, sent or asked for, whose sizes `bytes` returns. Entries of the same key keep their
    /// order.
    fn batches<T>(
        &self,
        mut entries: Vec<T>,
        key: fn(&T) -> Key,
        bytes: impl Fn(&T) -> usize,
    ) -> Vec<Vec<T>> {
        entries.sort_by_key(key);
        let mut batches = Vec::new();
        while !entries.is_empty() {
            let (mut batch, mut again, mut room) = (Vec::<T>::new(), Vec::new(), Budget::default());
            for entry in entries {
                let last = batch.last().map(key);
                if last.is_some_and(|last| last == key(&entry)) {
                    again.push(entry);
                    continue;
                }
                if !room.take(bytes(&entry), self.bytes_max) {
                    batches.push(mem::take(&mut batch));
                    room = Budget::default();
                    room.take(bytes(&entry), self.bytes_max);
                }
                batch.push(entry);
            }
            batches.push(batch);
            entries = again;
        }
        batches
    }
}

impl GrantDraft {
    /// Creates a draft with room for `grants` grants, with `bytes` bytes of values together.
    pub(super) fn with_room(grants: usize, bytes: usize) -> Self {
        let mut values = Block::new();
        values.reserve(bytes);
        Self { entries: Vec::with_capacity(grants), values, ticket: Ticket::NONE }
    }

    /// Appends a grant whose value `write` appends to the block.
    pub(super) fn add<R>(
        &mut self,
        key: Key,
        counter: Counter,
        kind: GrantKind,
        write: impl FnOnce(&mut Block) -> (Version, R),
    ) -> R {
        let start = self.values.len();
        let (version, result) = write(&mut self.values);
        let (bytes, ticket) = (start..self.values.len(), self.ticket);
        self.entries.push(GrantEntry { key, counter, kind, version, ticket, bytes });
        result
    }

    /// Returns the grants of one message: decided in key order, so the block is used as it is.
    pub(super) fn into_parts(self) -> (Grants, Block) {
        (listed(&self.entries), self.values)
    }

    /// Returns a message of grants that were decided in key order; `None` if there are none.
    pub(super) fn into_message(self) -> Option<Message> {
        let (grants, values) = self.into_parts();
        (!grants.kinds.is_empty()).then(|| Message { body: Box::new(Body::Grant(grants)), values })
    }
}

/// Returns the entries of an operation for an access.
fn list_of(operation: &mut Operation, access: Access) -> &mut Asked {
    match access {
        Access::Pull => &mut operation.pulls,
        Access::Push => &mut operation.pushes,
        Access::Set => &mut operation.sets,
        Access::Renew => unreachable!("a renewal goes with a request"),
    }
}

/// Returns the control part of some answers.
fn answered(entries: &[AnswerEntry]) -> Answer {
    let mut answer = Answer::default();
    for entry in entries {
        let list = if entry.read.is_some() { &mut answer.pulls } else { &mut answer.done };
        list.push(entry.key, entry.counter);
    }
    let (read, done) =
        (|entry: &&AnswerEntry| entry.read.is_some(), |entry: &&AnswerEntry| entry.read.is_none());
    let in_order = entries.iter().filter(read).chain(entries.iter().filter(done));
    answer.tickets = message::tickets(in_order.map(|entry| entry.ticket));
    answer
}

/// Returns the control part of some grants.
fn listed(entries: &[GrantEntry]) -> Grants {
    Grants {
        at: entries.iter().map(|entry| (entry.key, entry.counter)).collect(),
        kinds: entries.iter().map(|entry| entry.kind).collect(),
        versions: entries.iter().map(|entry| entry.version).collect(),
        tickets: message::tickets(entries.iter().map(|entry| entry.ticket)),
    }
}

/// Returns the elements in a range of bytes of a block.
fn elements<'b, V: Value>(block: &'b Block, bytes: &Range<usize>) -> &'b [V] {
    &block.values::<V>()[bytes.start / size_of::<V>()..bytes.end / size_of::<V>()]
}

/// Returns the operations of a forward; appends their tickets.
fn forwarded<V: Value>(entries: Vec<Passed<V>>, tickets: &mut Vec<Ticket>) -> (Operation, Block) {
    let mut operation = Operation::default();
    let mut values = Block::new();
    for access in [Access::Pull, Access::Push, Access::Set] {
        for entry in &entries {
            let payload = match (&entry.asked, access) {
                (AskedFor::Pull, Access::Pull) => &[][..],
                (AskedFor::Push(payload), Access::Push) | (AskedFor::Set(payload), Access::Set) => {
                    payload
                }
                _ => continue,
            };
            list_of(&mut operation, access).push(entry.key, entry.counter);
            values.push(payload);
            tickets.push(entry.ticket);
        }
    }
    (operation, values)
}
