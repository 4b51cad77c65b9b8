//! Operations of own workers that the fast path could not serve (Lapse §3.3; protocol,
//! "Operations"), and entries of other nodes that this node does not serve itself (protocol,
//! "Routing").
//!
//! Per key a node has at most one unanswered operation message; later operations wait in program
//! order, and waiting pushes add up. So asynchronous operations keep their order even if the key
//! moves meanwhile (Lapse §3.4, Theorems 1 and 2).
//!
//! # Departure
//! In Lapse the home starts a relocation, so the home's order is the order of execution. Here the
//! owner moves first and notifies the home afterwards; without this rule even Theorem 2 would be
//! lost.

mod waiting;

use alloc::vec::Vec;
use core::mem;

use hashbrown::hash_map::Entry as MapEntry;
use smallvec::{SmallVec, smallvec};

use crate::engine::ctx::{Ctx, Env, KeyMap, OpMap};
use crate::engine::effect::Effect;
use crate::engine::entry::{Access, Activity, Entry};
use crate::engine::input::OpId;
use crate::engine::intent::Intents;
use crate::engine::outgoing;
use crate::id::{Key, NodeId, Ticket};
use crate::route::Hop;
use crate::slot::{Location, Pushed, State};
use crate::store::{self, Store};
use crate::value::{Value, accumulate};
use crate::wire::message::Answer;

use waiting::{Item, OpState, Parked, Queue, Unanswered};

/// Operations and entries that wait for keys here.
#[derive(Debug)]
pub(super) struct Operations<V> {
    ops: OpMap<OpState<V>>,
    /// Only keys on which operations of this node wait or are unanswered.
    queues: KeyMap<Queue<V>>,
    /// Replicas with a set or renewal at the front of their queue, which leaves with the next
    /// request.
    fronts: Vec<Key>,
    /// Keys whose operation was turned away because the receiver had no room to park it.
    resend: Vec<Key>,
    parked: Parked<V>,
}

impl<V: Value> Operations<V> {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            ops: OpMap::default(),
            queues: KeyMap::default(),
            fronts: Vec::new(),
            resend: Vec::new(),
            parked: Parked::new(nodes),
        }
    }

    /// Returns true if an operation of this node is unfinished.
    pub(super) fn any(&self) -> bool {
        !self.ops.is_empty()
    }

    pub(super) fn is_unfinished(&self, op: OpId) -> bool {
        self.ops.contains_key(&op)
    }

    /// Returns unfinished operations, ascending, whose access makes `is_meant` return true.
    pub(super) fn unfinished(&self, is_meant: impl Fn(Option<Access>) -> bool) -> Vec<OpId> {
        let meant = self.ops.iter().filter(|(_, state)| is_meant(state.access));
        let mut ops: Vec<OpId> = meant.map(|(id, _)| *id).collect();
        ops.sort_unstable();
        ops
    }

    /// Returns true if the next round has sets or renewals to send, or operations to send again.
    pub(super) fn has_work(&self) -> bool {
        !self.fronts.is_empty() || !self.resend.is_empty()
    }

    /// Returns true if no operation of any node waits here or is unanswered.
    pub(super) fn is_at_rest(&self) -> bool {
        self.ops.is_empty() && self.queues.is_empty() && self.parked.is_empty() && !self.has_work()
    }

    /// Returns the number of entries in all maps and lists.
    pub(super) fn side_entries(&self) -> usize {
        let queues: usize = self.queues.values().map(|queue| queue.waiting.len() + 1).sum();
        queues + self.parked.len() + self.fronts.len() + self.resend.len() + self.ops.len()
    }

    /// Returns the state of this node's operations on `key`.
    pub(super) fn activity(&self, key: Key) -> Activity {
        match self.queues.get(&key) {
            None => Activity::None,
            Some(queue) if queue.unanswered.is_some() => Activity::Unanswered,
            Some(_) => Activity::Waiting,
        }
    }

    /// Returns the first receiver of the unanswered operation message on `key`, the number of
    /// waiting operations, and the number of parked entries of other nodes.
    #[cfg(feature = "inspect")]
    pub(super) fn view(&self, key: Key) -> (Option<Location>, usize, usize) {
        let queue = self.queues.get(&key);
        let unanswered = queue.and_then(|queue| queue.unanswered.as_ref());
        let waiting = queue.map_or(0, |queue| queue.waiting.len());
        (unanswered.map(|unanswered| unanswered.asked), waiting, self.parked.count(key))
    }

    /// Begins a localize that waits for `keys` keys.
    pub(super) fn begin_localize(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        op: OpId,
        keys: usize,
    ) {
        if keys == 0 {
            return ctx.done(op, Vec::new());
        }
        self.ops.insert(op, OpState { remaining: keys, values: Vec::new(), access: None });
    }

    /// Begins an operation on `keys`; `values` `[sum of value_len]`, zeros for a pull, none for a
    /// renewal.
    pub(super) fn access(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        intents: &Intents,
        (op, access): (OpId, Access),
        keys: &[Key],
        values: Vec<V>,
    ) {
        self.ops.insert(op, OpState { remaining: keys.len() + 1, values, access: Some(access) });
        let mut offset = 0;
        for (at, &key) in keys.iter().enumerate() {
            store::prefetch_entry_ahead(&ctx.store, at, |at| keys.get(at).copied());
            self.submit(ctx, intents, key, Item { op, access, offset });
            offset += ctx.value_len(key);
        }
        self.finish(ctx, op);
    }

    /// Serves one key of an operation at once, parks it, or sends it, and accounts for it.
    fn submit(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        intents: &Intents,
        key: Key,
        item: Item,
    ) {
        let packed = ctx.packed(key);
        let asked = ctx.first_hop(key, packed);
        let may_leave = packed.state() == State::None
            && item.access != Access::Renew
            && !intents.is_wanted(key);
        let queue = match self.queues.entry(key) {
            MapEntry::Vacant(place) if may_leave && !is_kept(ctx, intents, key, item) => {
                let payload = payload_of(&self.ops, item, ctx.value_len(key));
                let secret = ctx.send_operation(asked, key, item.access, payload);
                let (access, items) = (item.access, smallvec![item]);
                place.insert(Queue::sent(Unanswered {
                    access,
                    items,
                    payload: Vec::new(),
                    asked,
                    secret,
                }));
                ctx.stats.remote += 1;
                return;
            }
            entry => entry.or_default(),
        };
        let first = queue.waiting.is_empty() && queue.unanswered.is_none();
        queue.waiting.push_back(item);
        if first {
            self.advance(ctx, intents, key);
        }
        if item.access == Access::Renew {
            return;
        }
        let Some(queue) = self.queues.get(&key) else {
            ctx.stats.local += 1;
            return;
        };
        // A set on a replica is the node's own entry of the next round, and a copy on its way is
        // waited for: all else is remote.
        let sent = queue.unanswered.is_some() || queue.front_sent;
        match ctx.state(key) {
            State::Requested | State::Releasing | State::None if !sent => ctx.stats.waited += 1,
            _ => ctx.stats.remote += 1,
        }
    }

    /// Runs operations that wait on `key` as far as possible: in place at a local copy, otherwise
    /// as one operation message.
    pub(super) fn advance(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        intents: &Intents,
        key: Key,
    ) {
        loop {
            let Some(queue) = self.queues.get_mut(&key) else { return };
            if queue.unanswered.is_some() {
                return;
            }
            let Some(&item) = queue.waiting.front() else {
                self.queues.remove(&key);
                return;
            };
            match ctx.state(key) {
                State::Replica if item.access.needs_owner() => {
                    if !queue.front_sent {
                        self.fronts.push(key);
                    }
                    return;
                }
                _ if item.access == Access::Renew => {
                    queue.pop();
                    self.finish(ctx, item.op);
                }
                state @ (State::Main | State::Replica) => {
                    queue.pop();
                    self.serve(ctx, key, item, state);
                }
                State::Requested | State::Releasing => return,
                State::None if is_kept(ctx, intents, key, item) => {
                    return ctx.ask(Effect::Keep(key));
                }
                State::None => {
                    // While a grant is awaited, nothing is sent: operations could starve the grant.
                    if !intents.is_wanted(key) && !self.send_waiting(ctx, key) {
                        continue;
                    }
                    return;
                }
            }
        }
    }

    /// Serves one key of an operation at the local copy. Skips operations that have failed
    /// meanwhile.
    fn serve(&mut self, ctx: &mut Ctx<impl Env<Value = V>>, key: Key, item: Item, state: State) {
        let Some(op) = self.ops.get_mut(&item.op) else { return };
        let len = ctx.value_len(key);
        let part = &mut op.values[item.offset..item.offset + len];
        let is_main = state == State::Main;
        let pushed = ctx.store.with_slot(key, |mut slot| {
            match item.access {
                Access::Pull => part.copy_from_slice(slot.value),
                Access::Push if is_main => slot.apply(part),
                Access::Push => return slot.push(part),
                Access::Set => slot.set(part),
                Access::Renew => unreachable!("nothing is served for it"),
            }
            Pushed::Done
        });
        if is_main && item.access != Access::Pull {
            ctx.ask(Effect::Changed(key));
        } else if pushed == Pushed::Dirtied {
            ctx.ask(Effect::Dirtied(key));
        }
        self.finish(ctx, item.op);
    }

    /// Takes the longest run of equal operations from the front of the queue and queues one message
    /// for it. Returns false if all of it has failed meanwhile, so that nothing was sent.
    fn send_waiting(&mut self, ctx: &mut Ctx<impl Env<Value = V>>, key: Key) -> bool {
        let len = ctx.value_len(key);
        let asked = ctx.first_hop(key, ctx.packed(key));
        let queue = self.queues.get_mut(&key).expect("only a queue with waiting operations sends");
        let access = queue.waiting.front().expect("as above").access;
        let part = |item: &Item| {
            let op = self.ops.get(&item.op);
            op.map(|op| op.values.get(item.offset..item.offset + len).unwrap_or(&[]))
        };
        let mut items = SmallVec::<[Item; 1]>::new();
        let mut payload = Vec::new();
        while let Some(item) = queue.waiting.front().copied() {
            let joins = item.access == access && (items.is_empty() || access != Access::Set);
            if !joins {
                break;
            }
            queue.waiting.pop_front();
            let Some(update) = part(&item) else { continue };
            if let (Access::Push, Some(first)) = (access, items.first()) {
                if payload.is_empty() {
                    payload.extend_from_slice(part(first).expect("just seen"));
                }
                accumulate(&mut payload, update);
            }
            items.push(item);
        }
        if items.is_empty() {
            return false;
        }
        queue.unanswered = Some(Unanswered { access, items, payload, asked, secret: Ticket::NONE });
        self.transmit(ctx, key, asked);
        true
    }

    fn transmit(&mut self, ctx: &mut Ctx<impl Env<Value = V>>, key: Key, asked: Location) {
        let len = ctx.value_len(key);
        let queue = self.queues.get_mut(&key).expect("an unanswered operation has a queue");
        let unanswered =
            queue.unanswered.as_mut().expect("only an unanswered operation is transmitted");
        unanswered.asked = asked;
        let payload = match unanswered.items.first() {
            Some(item) if unanswered.payload.is_empty() => payload_of(&self.ops, *item, len),
            _ => unanswered.payload.as_slice(),
        };
        unanswered.secret = ctx.send_operation(asked, key, unanswered.access, payload);
    }

    /// Queues operations again that were turned away, for the believed locations of their keys.
    pub(super) fn resend(&mut self, ctx: &mut Ctx<impl Env<Value = V>>) {
        let mut keys = mem::take(&mut self.resend);
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            if self.activity(key) == Activity::Unanswered {
                let asked = ctx.first_hop(key, ctx.packed(key));
                self.transmit(ctx, key, asked);
            }
        }
    }

    /// Returns true if an operation on `key` (a pull if `is_pull`) is unanswered and, judging by
    /// the ticket, has reached `from`.
    pub(super) fn awaits_answer(
        &self,
        (from, ticket): (NodeId, Ticket),
        key: Key,
        is_pull: bool,
    ) -> bool {
        let unanswered = self.queues.get(&key).and_then(|queue| queue.unanswered.as_ref());
        unanswered.is_some_and(|unanswered| {
            (unanswered.access == Access::Pull) == is_pull
                && unanswered.has_reached(from, key, ticket)
        })
    }

    /// Handles answers. Skips those to entries that `from` was not asked and has not received by
    /// their ticket: another node may have asked in the name of this one.
    pub(super) fn handle_answer(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        intents: &Intents,
        from: NodeId,
        answer: Answer,
        values: &[V],
    ) {
        if ctx.first_lost.is_some() {
            return;
        }
        let mut tickets = answer.tickets.iter().copied().chain(core::iter::repeat(Ticket::NONE));
        let mut rest = values;
        for (list, is_pull) in [(&answer.pulls, true), (&answer.done, false)] {
            for (at, (key, counter)) in list.iter().enumerate() {
                store::prefetch_entry_ahead(&ctx.store, at, |at| list.keys.get(at).copied());
                let (value, behind) = rest.split_at(if is_pull { ctx.value_len(key) } else { 0 });
                rest = behind;
                let ticket = tickets.next().expect("tickets do not end");
                if self.awaits_answer((from, ticket), key, is_pull) {
                    ctx.learn(key, Location { node: from, counter });
                    self.note_executed(ctx, intents, key, value);
                }
            }
        }
    }

    /// Records that the owner has executed the unanswered operation on `key`; `value` is a pull's
    /// result.
    pub(super) fn note_executed(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        intents: &Intents,
        key: Key,
        value: &[V],
    ) {
        let MapEntry::Occupied(mut queue) = self.queues.entry(key) else {
            unreachable!("an answer is checked against the queue")
        };
        let Unanswered { items, .. } =
            queue.get_mut().unanswered.take().expect("an answer meets an unanswered operation");
        let something_waits = !queue.get().waiting.is_empty();
        if !something_waits {
            queue.remove();
        }
        for item in items {
            let Some(op) = self.ops.get_mut(&item.op) else { continue };
            if item.access == Access::Pull {
                op.values[item.offset..item.offset + value.len()].copy_from_slice(value);
            }
            op.remaining -= 1;
            if op.remaining == 0 {
                self.end(ctx, item.op);
            }
        }
        if intents.is_wanted(key) {
            ctx.ask(Effect::AskLater(key));
        }
        if something_waits {
            self.advance(ctx, intents, key);
        }
    }

    /// Finishes one key of the operation. Ignores operations that have failed meanwhile.
    pub(super) fn finish(&mut self, ctx: &mut Ctx<impl Env<Value = V>>, op: OpId) {
        let Some(state) = self.ops.get_mut(&op) else { return };
        state.remaining -= 1;
        if state.remaining == 0 {
            self.end(ctx, op);
        }
    }

    /// Ends the operation: every key is done.
    fn end(&mut self, ctx: &mut Ctx<impl Env<Value = V>>, op: OpId) {
        let state = self.ops.remove(&op).expect("an operation ends once");
        let values = if state.access == Some(Access::Pull) { state.values } else { Vec::new() };
        ctx.done(op, values);
    }

    /// Handles a refusal of `from` to take an entry. Ignores entries that cannot have reached it:
    /// another one sent meanwhile would ask twice.
    pub(super) fn handle_retry(&mut self, from: NodeId, (key, ticket): (Key, Ticket)) {
        let unanswered = self.queues.get(&key).and_then(|queue| queue.unanswered.as_ref());
        if unanswered.is_some_and(|unanswered| unanswered.has_reached(from, key, ticket)) {
            self.resend.push(key);
        }
    }

    /// Takes the replicas with a set or renewal that leaves with the next request.
    pub(super) fn take_fronts(&mut self) -> Vec<Key> {
        mem::take(&mut self.fronts)
    }

    /// Returns, for a replica with waiting operations, true if an unsent set or renewal is at the
    /// front; `None` if nothing waits.
    pub(super) fn unsent_front(&self, key: Key) -> Option<bool> {
        let queue = self.queues.get(&key)?;
        queue.waiting.front().map(|item| item.access.needs_owner() && !queue.front_sent)
    }

    /// Marks the set or renewal at the front of the replica's queue as sent, and returns it; `None`
    /// if it has failed meanwhile. `len` is the key's value length.
    pub(super) fn send_front(&mut self, key: Key, len: usize) -> Option<Front<'_, V>> {
        let queue = self.queues.get_mut(&key)?;
        let item = queue.waiting.front()?;
        let op = self.ops.get(&item.op)?;
        queue.front_sent = true;
        Some(match item.access {
            Access::Renew => Front::Renew,
            _ => Front::Set(&op.values[item.offset..item.offset + len]),
        })
    }

    /// Finishes the set at the front of the key's queue, which the owner has installed. After a
    /// loss the set has failed and is not there.
    pub(super) fn note_installed(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        intents: &Intents,
        key: Key,
    ) {
        let Some(queue) = self.queues.get_mut(&key) else { return };
        debug_assert!(queue.front_sent, "only a set that was sent is installed");
        let item = queue.pop().expect("a sent set stays at the front");
        self.finish(ctx, item.op);
        self.advance(ctx, intents, key);
    }

    /// Finishes the renewal at the front of the queue of a replica that was just refreshed. Returns
    /// false if there is none that was sent.
    pub(super) fn note_refreshed(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        intents: &Intents,
        key: Key,
    ) -> bool {
        let queue = self.queues.get_mut(&key).filter(|queue| queue.front_sent);
        let renews = |queue: &&mut Queue<V>| {
            queue.waiting.front().is_some_and(|item| item.access == Access::Renew)
        };
        let Some(item) = queue.filter(renews).and_then(Queue::pop) else { return false };
        self.finish(ctx, item.op);
        self.advance(ctx, intents, key);
        true
    }

    /// Passes an entry on, parks it until this node's grant arrives, or asks its origin to try
    /// again.
    pub(super) fn pass_on(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        hop: Hop,
        entry: Entry<&[V]>,
    ) {
        let Entry { asker, key, asked, .. } = entry;
        match hop {
            Hop::Here => unreachable!("an owner serves what reaches it"),
            Hop::Next(location) => {
                let ticket = asker.onward(key);
                let asked = asked.map(<[V]>::to_vec);
                let passed = outgoing::Passed { key, counter: location.counter, ticket, asked };
                ctx.outgoing.add_forward(
                    location.node,
                    asker.origin,
                    asker.hops.saturating_add(1),
                    passed,
                );
            }
            // The grant that it would wait for may be gone, and its origin will fail it.
            Hop::Park if ctx.first_lost.is_some() => {}
            Hop::Park if self.parked.has_room(asker.origin, ctx.config.parked_max) => {
                self.parked.park(entry)
            }
            Hop::Park => self.turn_away(ctx, entry),
        }
    }

    /// Asks the origin to try again.
    pub(super) fn turn_away(&mut self, ctx: &mut Ctx<impl Env<Value = V>>, entry: Entry<&[V]>) {
        let Entry { asker, key, counter, asked } = entry;
        ctx.stats.retries += 1;
        if asker.origin != ctx.config.node {
            let asked = asked.map(|_| Vec::new());
            let passed = outgoing::Passed { key, counter, ticket: asker.reply(), asked };
            ctx.outgoing.add_retry(asker.origin, passed);
        } else if asked.is_request() {
            ctx.ask(Effect::TurnedAway(key));
        } else {
            self.resend.push(key);
        }
    }

    /// Returns true if entries of other nodes wait for news of some key.
    pub(super) fn has_parked(&self) -> bool {
        !self.parked.is_empty()
    }

    /// Takes the entries of other nodes that wait for news of `key`.
    pub(super) fn take_parked(&mut self, key: Key) -> Vec<Entry<Vec<V>>> {
        self.parked.take(key)
    }

    /// Gives up everything that waits after the loss of a peer. Returns the operations that fail,
    /// ascending.
    pub(super) fn give_up(&mut self) -> Vec<OpId> {
        let ops = self.unfinished(|_| true);
        self.ops.clear();
        self.queues = KeyMap::default();
        self.fronts = Vec::new();
        self.resend = Vec::new();
        self.parked.clear();
        ops
    }
}

/// What a replica leaves to its owner, in the next request.
pub(super) enum Front<'a, V> {
    /// The value.
    Set(&'a [V]),
    Renew,
}

/// Returns the payload of one key of an operation's message, of `len` elements.
fn payload_of<V>(ops: &OpMap<OpState<V>>, item: Item, len: usize) -> &[V] {
    if item.access == Access::Pull {
        return &[];
    }
    let op = ops.get(&item.op).expect("an operation is unfinished before its answer");
    &op.values[item.offset..item.offset + len]
}

/// Returns true if the access to an absent key is a pull that sets up a replica, for which nothing
/// has been asked yet. None does while the node is frozen.
fn is_kept(ctx: &Ctx<impl Env>, intents: &Intents, key: Key, item: Item) -> bool {
    ctx.keeps && item.access == Access::Pull && !ctx.freezes.is_frozen() && !intents.knows(key)
}
