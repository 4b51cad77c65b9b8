//! Whom to ask for wanted keys, and of which of them somebody was asked and has not answered.

use alloc::vec::Vec;

use hashbrown::hash_map::Entry;

use super::Intents;
use super::state::{IntentFlag, IntentState};
use crate::engine::budget::{Candidate, RequestDrafts};
use crate::engine::ctx::{Ctx, Env};
use crate::engine::entry::{Activity, Request};
use crate::id::{Counter, Key, NodeId, Ticket};
use crate::route;
use crate::slot::{Location, PackedState, State};
use crate::store::{self, Store};

/// An intent or localize that leaves with the next request.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Want {
    /// The counter of the fact by which the receiver is asked.
    counter: Counter,
    localize: bool,
    /// True if a replica is here.
    is_here: bool,
}

impl Intents {
    /// Takes keys that may need an entry, in order: those put off for peers that can be asked now,
    /// then of the listed ones as many as one round looks at. So what is signalled at once for
    /// millions does not cost each round a look at all that are left.
    fn take_listed(&mut self, ctx: &Ctx<impl Env>, owes: impl Fn(NodeId) -> bool) -> Vec<Key> {
        let most = ctx.config.requests_max.max(1);
        let mut keys = Vec::new();
        let free = ctx.nodes().zip(&mut self.deferred).filter(|(node, _)| !owes(*node));
        for (_, deferred) in free {
            keys.extend(deferred.take(most));
        }
        keys.extend(self.listed.drain(..most.min(self.listed.len())));
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Keys that are wanted and not here, in order, as candidates for the requests of this round.
    /// Level-triggered: a key that left, or whose release was answered, is simply found again.
    /// `activity` tells what operations do on a key, `owes` which peers cannot be asked.
    pub(in crate::engine) fn wanted(
        &mut self,
        ctx: &Ctx<impl Env>,
        activity: impl Fn(Key) -> Activity,
        owes: impl Fn(NodeId) -> bool,
        drafts: &mut RequestDrafts,
    ) -> Vec<Candidate<Want>> {
        if ctx.first_lost.is_some() {
            self.listed.clear();
            return Vec::new();
        }
        let keys = self.take_listed(ctx, &owes);
        let mut candidates = Vec::with_capacity(keys.len());
        for (at, &key) in keys.iter().enumerate() {
            store::prefetch_entry_ahead(&ctx.store, at, |at| keys.get(at).copied());
            let Some(state) = self.states.get_mut(&key) else { continue };
            state.take(IntentFlag::Listed);
            if !state.is_wanted() {
                continue;
            }
            let localize = state.is(IntentFlag::Unsent);
            let packed = ctx.packed(key);
            let is_here = match (packed.state(), activity(key)) {
                (State::None, Activity::None | Activity::Waiting) => false,
                (State::Replica, Activity::None) if localize => true,
                // A set waits on the replica, and leaves first.
                (State::Replica, _) if localize => {
                    state.put(IntentFlag::Listed);
                    self.listed.push_back(key);
                    continue;
                }
                // Found again when what it waits for is answered.
                _ => continue,
            };
            let Location { node, counter } = if is_here {
                route::believed(packed, key, ctx.config.nodes)
            } else {
                asks(ctx, key, packed, state)
            };
            if owes(node) {
                state.put(IntentFlag::Listed);
                self.deferred[node.index()].put_off(key, false);
                continue;
            }
            state.take(IntentFlag::Unsent);
            if !is_here {
                state.ask(Request { round: ctx.round as u32, localize });
                self.unanswered += 1;
            }
            let want = Want { counter, localize, is_here };
            candidates.push(drafts.candidate(key, node, ctx.value_bytes(key), want));
        }
        candidates
    }

    /// Gives room to candidates for peers whose turn it is.
    pub(in crate::engine) fn share(
        &mut self,
        ctx: &Ctx<impl Env>,
        candidates: &mut [Candidate<Want>],
        drafts: &mut RequestDrafts,
        is_turn: impl Fn(NodeId) -> bool,
    ) {
        let deferred = &self.deferred;
        let first = |node: NodeId| is_turn(node).then(|| deferred[node.index()].next());
        for (node, key) in drafts.share(candidates, ctx.config.block_bytes_max, first) {
            self.deferred[node.index()].begin_with(key);
        }
    }

    /// Writes the entries into the requests. Returns for how many keys a grant is awaited.
    pub(in crate::engine) fn draft(
        &mut self,
        ctx: &Ctx<impl Env>,
        candidates: &[Candidate<Want>],
        drafts: &mut RequestDrafts,
    ) -> usize {
        let mut awaited = 0;
        for &Candidate { key, to, goes, says: Want { counter, localize, is_here }, .. } in
            candidates
        {
            if !goes {
                self.unask(key, to, localize);
                continue;
            }
            let request = &mut drafts.of(to).request;
            let entries = if localize { &mut request.localizes } else { &mut request.intents };
            entries.push(key, counter);
            if !is_here {
                ctx.store.with_slot(key, |mut slot| slot.request());
                awaited += 1;
            }
        }
        awaited
    }

    /// There was no room for an entry that [`Self::wanted`] has taken for asked: it is put off.
    fn unask(&mut self, key: Key, to: NodeId, localize: bool) {
        self.deferred[to.index()].put_off(key, false);
        let Some(state) = self.states.get_mut(&key) else { return };
        if state.unask() {
            self.unanswered -= 1;
        }
        state.put(IntentFlag::Listed);
        if localize {
            state.put(IntentFlag::Unsent);
        }
    }

    /// Returns true if an intent or localize of `key` is unanswered, and has reached `from` to
    /// judge by the ticket. After a loss nothing is kept of what was asked, and the lost node is
    /// not heard.
    pub(in crate::engine) fn awaits_grant(
        &self,
        ctx: &Ctx<impl Env>,
        from: NodeId,
        key: Key,
        ticket: Ticket,
    ) -> bool {
        let packed = ctx.peek(key);
        if packed.state() != State::Requested {
            return false;
        }
        if ctx.first_lost.is_some() {
            return true;
        }
        let Some((to, round)) = self.asked_for(ctx, key, packed) else { return false };
        if ticket == Ticket::NONE {
            from == to
        } else {
            ticket == ctx.tickets.of_request(round, to).of_key(key)
        }
    }

    /// Whom this node has asked for `key`, which is `Requested`, and the low bits of the round in
    /// which it did.
    pub(in crate::engine) fn asked_for(
        &self,
        ctx: &Ctx<impl Env>,
        key: Key,
        packed: PackedState,
    ) -> Option<(NodeId, u32)> {
        let state = self.states.get(&key)?;
        let round = state.asked_in()?;
        let before = if self.asked_before.is_empty() { None } else { self.asked_before.get(&key) };
        Some((before.copied().unwrap_or_else(|| asks(ctx, key, packed, state).node), round))
    }

    /// The entry for `key` is answered.
    pub(super) fn take_request(&mut self, key: Key) -> Option<Request> {
        let Entry::Occupied(mut entry) = self.states.entry(key) else { return None };
        let request = entry.get_mut().take_request()?;
        if entry.get().count() == 0 {
            entry.remove();
        }
        self.note_answered(key);
        Some(request)
    }

    pub(super) fn note_answered(&mut self, key: Key) {
        if !self.asked_before.is_empty() {
            self.asked_before.remove(&key);
        }
        self.unanswered -= 1;
    }
}

/// Whom to ask for a key that is not here: by the location that is known, or, if the entry was
/// turned away, the home.
fn asks(ctx: &Ctx<impl Env>, key: Key, packed: PackedState, state: &IntentState) -> Location {
    let home = route::home(key, ctx.config.nodes);
    let asks_home = state.is(IntentFlag::AskHome) && home.node != ctx.config.node;
    if asks_home { home } else { ctx.first_hop(key, packed) }
}
