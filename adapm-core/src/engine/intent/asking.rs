//! The choice of the node to ask for a wanted key, and the check of its answer.

use alloc::vec::Vec;

use hashbrown::hash_map::Entry;

use super::Intents;
use super::state::{IntentFlag, IntentState};
use crate::clock::Tick;
use crate::engine::budget::{Candidate, RequestDrafts};
use crate::engine::ctx::{Ctx, Env};
use crate::engine::entry::{Activity, AskedFor, Request, low_bits};
use crate::engine::outgoing::Passed;
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
    /// Takes keys that may need an entry, in order: those deferred for peers that can be asked now,
    /// then as many listed ones as one round examines. The bound keeps a signal for millions of
    /// keys from costing each round a look at all that are left.
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

    /// Returns the wanted keys that are absent, in order, as candidates for the requests of this
    /// round. Level-triggered: a key that left, or whose release was answered, is simply found
    /// again. Peers for which `owes` is true cannot be asked.
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
                // Found again once the pending entry is answered.
                _ => continue,
            };
            let Location { node, counter } = if is_here {
                route::believed(packed, key, &ctx.config.homes)
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
                state.ask(Request { round: ctx.round as u32, localize, at_once: false });
                self.unanswered += 1;
            }
            let want = Want { counter, localize, is_here };
            candidates.push(drafts.candidate(key, node, ctx.value_bytes(key), want));
        }
        candidates
    }

    /// Gives room to candidates for peers for which `is_turn` is true.
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

    /// Writes the entries into the requests. Returns the number of keys for which a grant is
    /// awaited.
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

    /// Defers an entry that [`Self::wanted`] counted as asked, but that had no room.
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

    /// Asks for `key`, which is absent and not asked for, on behalf of a pull: at once, by an entry
    /// of its own. The copy stays until `end`.
    pub(in crate::engine) fn keep(&mut self, ctx: &mut Ctx<impl Env>, key: Key, end: Tick) {
        let packed = ctx.packed(key);
        let state = self.states.entry(key).or_default();
        let Location { node, counter } = asks(ctx, key, packed, state);
        let round = ctx.round as u32;
        state.ask(Request { round, localize: false, at_once: true });
        self.unanswered += 1;
        self.kept.begin(key, end);
        ctx.store.with_slot(key, |mut slot| slot.request());
        let ticket = ctx.tickets.of_request(low_bits(ctx.round), node).of_key(key);
        let passed = Passed { key, counter, ticket, asked: AskedFor::Intent };
        ctx.outgoing.add_forward(node, ctx.config.node, 0, passed);
        self.activate(ctx, key);
    }

    /// Returns true if an intent or localize of `key` is unanswered and, judging by the ticket, has
    /// reached `from`. After a loss no record of requests is kept, and messages of the lost node
    /// are ignored.
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

    /// Returns the node that was asked for `key`, which is `Requested`, and the low bits of the
    /// round that asked.
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

    /// Removes and returns the unanswered entry for `key`.
    pub(super) fn take_request(&mut self, key: Key) -> Option<Request> {
        let Entry::Occupied(mut entry) = self.states.entry(key) else { return None };
        let request = self.kept.name(key, entry.get_mut().take_request()?);
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

/// Returns the location to ask for an absent key: the known one or, if the entry was turned away,
/// the home.
fn asks(ctx: &Ctx<impl Env>, key: Key, packed: PackedState, state: &IntentState) -> Location {
    let home = route::home(key, &ctx.config.homes);
    let asks_home = state.is(IntentFlag::AskHome) && home.node != ctx.config.node;
    if asks_home { home } else { ctx.first_hop(key, packed) }
}
