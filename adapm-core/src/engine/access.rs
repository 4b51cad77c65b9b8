//! Operations of own workers that the fast path could not serve (Lapse §3.3; protocol, section 7).
//!
//! Per key a node has at most one unanswered operation message; later operations wait in program order, and waiting pushes
//! add up. So asynchronous operations keep their order whatever happens to the key (Lapse §3.4, Theorems 1 and 2).
//!
//! # Departure
//! In Lapse the home starts a relocation, so the home's order is the order of execution. Here the owner moves first and
//! tells the home afterwards; without this rule even Theorem 2 would be lost.

use alloc::vec::Vec;

use hashbrown::hash_map::Entry;
use smallvec::{SmallVec, smallvec};

use crate::engine::Engine;
use crate::engine::input::{Op, OpBody, OpId};
use crate::engine::state::{Access, Item, OpMap, OpState, Queue, Unanswered};
use crate::error::OpError;
use crate::id::{Key, Ticket};
use crate::policy::Policy;
use crate::slot::{Location, Pushed, State};
use crate::store::{self, Store};
use crate::value::accumulate;

impl<S: Store, P: Policy> Engine<S, P> {
    pub(super) fn handle_op(&mut self, op: Op<S::Value>) -> Result<(), OpError> {
        if op.worker.index() >= self.ctx.config.workers {
            return Err(OpError::UnknownWorker { worker: op.worker });
        }
        let Op { id, worker, body } = op;
        let collective = matches!(body, OpBody::WaitSync | OpBody::Barrier | OpBody::Quiesce | OpBody::Leave);
        if collective && let Some(node) = self.ctx.first_lost {
            self.ctx.fail(id, OpError::lost(node));
            return Ok(());
        }
        if !matches!(body, OpBody::Barrier) {
            self.round.awaited = self.ctx.round;
        }
        match body {
            OpBody::Pull { keys } => {
                let len = self.ctx.check_keys(&keys)?;
                self.access(id, Access::Pull, &keys, alloc::vec![S::Value::default(); len]);
            }
            OpBody::Push { keys, updates } => {
                self.check_values(&keys, &updates)?;
                self.access(id, Access::Push, &keys, updates);
            }
            OpBody::Set { keys, values } => {
                self.check_values(&keys, &values)?;
                self.access(id, Access::Set, &keys, values);
            }
            OpBody::Localize { keys } => {
                self.ctx.check_keys(&keys)?;
                self.localize(id, &keys);
            }
            OpBody::WaitSync => {
                let begun = self.begun(|access| matches!(access, Some(Access::Push | Access::Set)));
                self.collectives.wait_sync(id, begun);
            }
            OpBody::Barrier => self.collectives.call_barrier(&mut self.ctx, worker, id),
            OpBody::Quiesce => self.collectives.call_quiesce(&mut self.ctx, worker, id),
            OpBody::End => self.collectives.end_worker(&mut self.ctx, worker, id),
            OpBody::Leave => self.collectives.leave(&mut self.ctx, id),
        }
        Ok(())
    }

    /// `localize` of a worker (Lapse §3.2): done when every key is local.
    fn localize(&mut self, id: OpId, keys: &[Key]) {
        if let Some(node) = self.lost_for(keys, false) {
            return self.ctx.fail(id, OpError::lost(node));
        }
        self.ops.insert(id, OpState { remaining: keys.len() + 1, values: Vec::new(), access: None });
        for &key in keys {
            match self.ctx.state(key) {
                State::Main => self.finish(id),
                State::Replica if self.ctx.first_lost.is_some() => self.finish(id),
                State::Replica => {
                    self.intents.wish(&mut self.ctx, key, id);
                    self.intents.end_waiters(&mut self.ctx, key);
                }
                State::None | State::Requested | State::Releasing => {
                    self.intents.wish(&mut self.ctx, key, id)
                }
            }
        }
        self.finish(id);
    }

    fn check_values(&self, keys: &[Key], values: &[S::Value]) -> Result<(), OpError> {
        let expected = self.ctx.check_keys(keys)?;
        if values.len() == expected {
            Ok(())
        } else {
            Err(OpError::ValueLen { expected, given: values.len() })
        }
    }

    fn access(&mut self, id: OpId, access: Access, keys: &[Key], values: Vec<S::Value>) {
        if let Some(node) = self.lost_for(keys, access == Access::Set) {
            return self.ctx.fail(id, OpError::lost(node));
        }
        let state = OpState { remaining: keys.len() + 1, values, access: Some(access) };
        self.ops.insert(id, state);
        let mut offset = 0;
        for (at, &key) in keys.iter().enumerate() {
            store::prefetch_entry_ahead(&self.ctx.store, at, |at| keys.get(at).copied());
            self.submit(key, Item { op: id, access, offset });
            offset += self.ctx.value_len(key);
        }
        self.finish(id);
    }

    /// Serves one key of an operation at once, parks it, or sends it, and accounts for it.
    fn submit(&mut self, key: Key, item: Item) {
        let word = self.ctx.word(key);
        let asked = self.ctx.first_hop(key, word);
        let may_leave = word.state() == State::None
            && !self.intents.is_wanted(key)
            && !self.acknowledges_early(item.access);
        let queue = match self.queues.entry(key) {
            Entry::Vacant(place) if may_leave => {
                let payload = payload_of(&self.ops, item, self.ctx.store.value_len(key));
                let secret =
                    self.outgoing.add_operation(&mut self.ctx.tickets, asked, key, item.access, payload);
                let (access, items) = (item.access, smallvec![item]);
                let unanswered = Unanswered { access, items, payload: Vec::new(), asked, secret };
                place.insert(Queue { unanswered: Some(unanswered), ..Queue::default() });
                self.ctx.stats.remote += 1;
                return;
            }
            entry => entry.or_default(),
        };
        let first = queue.waiting.is_empty() && queue.unanswered.is_none();
        queue.waiting.push_back(item);
        if first {
            self.advance(key);
        }
        let Some(queue) = self.queues.get(&key) else {
            self.ctx.stats.local += 1;
            return;
        };
        // A set on a replica is the node's own entry of the next round, a copy on its way is waited for: all else is remote.
        let sent = queue.unanswered.is_some() || queue.set_sent;
        match self.ctx.state(key) {
            State::Requested | State::Releasing if !sent => self.ctx.stats.waited += 1,
            State::None if !sent => self.ctx.stats.waited += 1,
            _ => self.ctx.stats.remote += 1,
        }
    }

    /// Runs what waits on `key` as far as it can: at a local copy in place, else as one operation message.
    pub(super) fn advance(&mut self, key: Key) {
        loop {
            let Some(queue) = self.queues.get(&key) else { return };
            if queue.unanswered.is_some() {
                return;
            }
            let Some(&item) = queue.waiting.front() else {
                self.queues.remove(&key);
                return;
            };
            match self.ctx.state(key) {
                State::Main => self.serve_at_main(key, item),
                State::Replica if item.access == Access::Set => {
                    if !queue.set_sent {
                        self.agenda.set.push(key);
                    }
                    return;
                }
                State::Replica => self.serve_at_replica(key, item),
                State::Requested | State::Releasing => return,
                State::None => {
                    // Who waits for a grant sends nothing meanwhile: it could starve the grant.
                    if !self.intents.is_wanted(key) {
                        self.send_waiting(key);
                    }
                    return;
                }
            }
        }
    }

    fn serve_at_main(&mut self, key: Key, item: Item) {
        let Some(op) = self.ops.get_mut(&item.op) else { return self.pop_item(key) };
        let len = self.ctx.store.value_len(key);
        let part = &mut op.values[item.offset..item.offset + len];
        self.ctx.store.with_slot(key, |mut slot| match item.access {
            Access::Pull => part.copy_from_slice(slot.value),
            Access::Push => slot.apply(part),
            Access::Set => slot.set(part),
        });
        if item.access != Access::Pull {
            self.ownership.mark_stale(&self.ctx, key, None);
        }
        self.pop_item(key);
        self.finish(item.op);
    }

    fn serve_at_replica(&mut self, key: Key, item: Item) {
        let Some(op) = self.ops.get_mut(&item.op) else { return self.pop_item(key) };
        let len = self.ctx.store.value_len(key);
        let part = &mut op.values[item.offset..item.offset + len];
        let pushed = self.ctx.store.with_slot(key, |mut slot| match item.access {
            Access::Pull => {
                part.copy_from_slice(slot.value);
                Pushed::Done
            }
            Access::Push | Access::Set => slot.push(part),
        });
        if pushed == Pushed::Dirtied {
            self.agenda.dirty.push(key);
        }
        self.pop_item(key);
        self.finish(item.op);
    }

    fn pop_item(&mut self, key: Key) {
        let queue = self.queues.get_mut(&key).expect("an item is popped from its queue");
        queue.waiting.pop_front();
        queue.set_sent = false;
    }

    /// Takes the longest run of equal operations from the front of the queue and drafts one message for it.
    fn send_waiting(&mut self, key: Key) {
        let len = self.ctx.value_len(key);
        let asked = self.ctx.first_hop(key, self.ctx.word(key));
        let waiting = self.queues.get(&key).and_then(|queue| queue.waiting.front());
        let access = waiting.expect("only a queue with waiting operations sends").access;
        let early = self.acknowledges_early(access);
        let queue = self.queues.get_mut(&key).expect("just seen");
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
        let Some(first) = items.first() else { return self.advance(key) };
        if early && payload.is_empty() {
            payload.extend_from_slice(part(first).expect("just seen"));
        }
        let acknowledged = if early { core::mem::take(&mut items) } else { SmallVec::new() };
        queue.unanswered = Some(Unanswered { access, items, payload, asked, secret: Ticket::NONE });
        self.transmit_operation(key, asked);
        for item in acknowledged {
            self.finish(item.op);
        }
    }

    /// The planted mistakes of a node that says an operation is done when it leaves.
    fn acknowledges_early(&self, access: Access) -> bool {
        match access {
            Access::Pull => false,
            Access::Push => planted!(self.ctx, AcknowledgeEarly),
            Access::Set => planted!(self.ctx, AcknowledgeSetEarly),
        }
    }

    /// Drafts the key's unanswered operation, once more after it was turned away, for where the key is believed to be.
    pub(super) fn transmit_again(&mut self, key: Key) {
        let asked = self.ctx.first_hop(key, self.ctx.word(key));
        self.transmit_operation(key, asked);
    }

    fn transmit_operation(&mut self, key: Key, asked: Location) {
        let len = self.ctx.value_len(key);
        let queue = self.queues.get_mut(&key).expect("an unanswered operation has a queue");
        let unanswered = queue.unanswered.as_mut().expect("only an unanswered operation is transmitted");
        unanswered.asked = asked;
        let payload = match unanswered.items.first() {
            Some(item) if unanswered.payload.is_empty() => payload_of(&self.ops, *item, len),
            _ => unanswered.payload.as_slice(),
        };
        let access = unanswered.access;
        unanswered.secret = self.outgoing.add_operation(&mut self.ctx.tickets, asked, key, access, payload);
    }

    /// The owner has executed the key's unanswered operation; `value` is what a pull read.
    pub(super) fn answered(&mut self, key: Key, value: &[S::Value]) {
        let Entry::Occupied(mut queue) = self.queues.entry(key) else {
            unreachable!("an answer is checked against the queue")
        };
        let Unanswered { items, .. } =
            queue.get_mut().unanswered.take().expect("an answer meets an unanswered operation");
        let something_waits = !queue.get().waiting.is_empty();
        if !something_waits {
            queue.remove();
        }
        for item in items {
            if let Some(op) = self.ops.get_mut(&item.op) {
                if item.access == Access::Pull {
                    op.values[item.offset..item.offset + value.len()].copy_from_slice(value);
                }
                op.remaining -= 1;
                if op.remaining == 0 {
                    self.end_op(item.op);
                }
            }
        }
        self.intents.ask_later(key);
        if something_waits {
            self.advance(key);
        }
    }

    /// One key of the operation is done.
    pub(super) fn finish(&mut self, op: OpId) {
        let Some(state) = self.ops.get_mut(&op) else { return };
        state.remaining -= 1;
        if state.remaining == 0 {
            self.end_op(op);
        }
    }

    /// Every key of the operation is done.
    fn end_op(&mut self, op: OpId) {
        let state = self.ops.remove(&op).expect("an operation ends once");
        let values = if state.access == Some(Access::Pull) { state.values } else { Vec::new() };
        self.ctx.done(op, values);
    }

    /// The owner has installed the set at the front of the key's queue. After a loss the set has failed and is not there.
    pub(super) fn set_installed(&mut self, key: Key) {
        let Some(queue) = self.queues.get_mut(&key) else { return };
        debug_assert!(queue.set_sent, "only a set that was sent is installed");
        let item = queue.waiting.pop_front().expect("a sent set stays at the front");
        queue.set_sent = false;
        if planted!(self.ctx, EndTwice) {
            self.ctx.done(item.op, Vec::new());
        }
        self.finish(item.op);
        self.advance(key);
    }
}

/// What the message of an operation carries for one of its keys, of `len` elements.
fn payload_of<V>(ops: &OpMap<OpState<V>>, item: Item, len: usize) -> &[V] {
    if item.access == Access::Pull {
        return &[];
    }
    let op = ops.get(&item.op).expect("an operation is unfinished before its answer");
    &op.values[item.offset..item.offset + len]
}
