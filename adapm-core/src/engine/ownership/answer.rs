//! The owner's half of a round: dirty flags, deltas, sets, releases, renewals, decisions, then one
//! grouped response; grants are sent in advance where many keys are asked for (AdaPM §B.1.2,
//! AdaPM §B.2.2).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Answering, Ownership, Stale, is_movable};
use crate::engine::budget::Budget;
use crate::engine::ctx::{Ctx, Env};
use crate::engine::effect::{Effect, PassOn};
use crate::engine::entry::Asker;
use crate::engine::intent::Intents;
use crate::engine::outgoing::GrantDraft;
use crate::error::Fault;
use crate::id::{Counter, Key, NodeId};
use crate::route::{self, Hop};
use crate::store::{self, Store};
use crate::time::Instant;
use crate::value::{Block, Value};
use crate::wire::Message;
use crate::wire::message::{Body, Mark, SyncRequest, SyncResponse};

impl Ownership {
    /// Returns true if the answer to a request is not complete.
    pub(in crate::engine) fn is_answering(&self) -> bool {
        self.answering.is_some()
    }

    /// Applies a request and begins its answer. `dirty` are keys that workers here have changed.
    pub(in crate::engine) fn handle_request<V: Value>(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        intents: &Intents,
        dirty: &[Key],
        (from, request): (NodeId, SyncRequest),
        values: &[V],
    ) -> Result<(), Fault> {
        self.check_request(from, &request)?;
        self.newsworthy.push(from);
        if let Some(since) = self.holders[from.index()].note_request(ctx.now) {
            ctx.stats.check_age.record(ctx.now.nanos_since(since));
        }
        if request.mark != Mark::None {
            self.take_dirty_for(ctx, from, dirty);
        }
        self.apply_changes(ctx, intents, from, &request, values);
        let mut asked: Vec<(Key, Counter, bool)> =
            request.localizes.iter().map(|(key, counter)| (key, counter, true)).collect();
        asked.extend(request.intents.iter().map(|(key, counter)| (key, counter, false)));
        asked.sort_unstable_by_key(|(key, ..)| *key);
        self.answering =
            Some(Box::new(Answering { from, request, asked, done: 0, handing: Vec::new() }));
        Ok(())
    }

    /// Answers the next keys of a request: sends grants in advance, or the response with the last
    /// of them.
    pub(in crate::engine) fn answer_on(&mut self, ctx: &mut Ctx<impl Env>, intents: &Intents) {
        let Some(mut answering) = self.answering.take() else { return };
        let Answering { from, request, asked, done, handing } = &mut *answering;
        let from = *from;
        let asker = Asker::direct(from, request.ticket);
        let left = &asked[*done..];
        let mut room = Budget::default();
        let fits = |(key, ..): &&(Key, Counter, bool)| {
            room.take(ctx.value_bytes(*key), ctx.config.block_bytes_max)
        };
        let piece = left.iter().take(ctx.config.grants_max.max(1)).take_while(fits).count();
        let piece = &left[..piece];
        // A guess: all are granted, with values as long as the first.
        let bytes = piece.len() * piece.first().map_or(0, |(key, ..)| ctx.value_bytes(*key));
        let mut draft = GrantDraft::with_room(piece.len(), bytes.min(ctx.config.block_bytes_max));
        for (at, &(key, counter, localize)) in piece.iter().enumerate() {
            store::prefetch_ahead(&ctx.store, at, |at| left.get(at).map(|(key, ..)| *key));
            let packed = self.without_dirty(ctx, key);
            match route::next_hop(packed, key, counter, ctx.config.node, &ctx.config.homes) {
                Hop::Here if localize && self.is_holder(key, from) => handing.push(key),
                Hop::Here => {
                    if self.is_holder(key, from) {
                        // `from` knows what it holds: another node has asked for this replica in
                        // its name.
                        self.drop_holder(ctx, intents, key, from);
                    }
                    ctx.count_served(key, from, 0);
                    self.grant(ctx, intents, (key, packed.counter()), from, localize, &mut draft);
                }
                hop => {
                    ctx.ask(Effect::PassOn(Box::new(PassOn { hop, asker, key, counter, localize })))
                }
            }
        }
        *done += piece.len();
        if *done < asked.len() {
            if let Some(grants) = draft.into_message() {
                ctx.send(from, grants);
            }
            self.answering = Some(answering);
        } else {
            self.respond(ctx, intents, (from, &answering.request), draft, answering.handing);
        }
    }

    /// Checks that a request is possible: what a holder sends reaches the key's owner, which knows
    /// the sender as holder.
    fn check_request(&self, from: NodeId, request: &SyncRequest) -> Result<(), Fault> {
        let changes = request.deltas.iter().chain(request.sets.iter());
        for key in changes.chain(request.releases.iter()).chain(request.renews.iter()) {
            // A node that knows holders of a key owns it.
            if !self.is_holder(*key, from) {
                return Err(Fault::Impossible(*key));
            }
        }
        for key in request.intents.keys.iter() {
            if request.localizes.keys.binary_search(key).is_ok() {
                return Err(Fault::Impossible(*key));
            }
        }
        if request.mark != Mark::None && self.holders[from.index()].is_marked() {
            return Err(Fault::Unexpected);
        }
        let released = |key: &&Key| request.releases.binary_search(key).is_ok();
        let kept = request.localizes.keys.iter().chain(request.sets.iter());
        match kept.chain(request.renews.iter()).find(released) {
            Some(key) => Err(Fault::Impossible(*key)),
            None => Ok(()),
        }
    }

    /// Takes the dirty flags of the keys that `from` holds replicas of, for `wait_sync`: the answer
    /// then covers all earlier changes of workers here.
    fn take_dirty_for(&mut self, ctx: &Ctx<impl Env>, from: NodeId, dirty: &[Key]) {
        // Deferred keys are left out: they can only have become main copies, whose dirty flag is
        // taken before any replica is granted.
        for &key in dirty {
            if self.is_holder(key, from) {
                self.take_dirty(ctx, key);
            }
        }
    }

    /// Applies deltas and sets, takes the dirty flags of their keys, then applies releases and
    /// renewals.
    fn apply_changes<V: Value>(
        &mut self,
        ctx: &mut Ctx<impl Env<Value = V>>,
        intents: &Intents,
        from: NodeId,
        request: &SyncRequest,
        values: &[V],
    ) {
        let mut rest = values;
        for (at, &key) in request.deltas.iter().enumerate() {
            store::prefetch_ahead(&ctx.store, at, |at| request.deltas.get(at).copied());
            let (delta, behind) = rest.split_at(ctx.value_len(key));
            rest = behind;
            let (is_changed, version) = ctx.store.with_slot(key, |mut slot| {
                let is_changed = slot.take_dirty();
                slot.apply(delta);
                (is_changed, *slot.version)
            });
            self.mark_changes(ctx, (key, version), is_changed, Some(from));
        }
        for &key in request.sets.iter() {
            let (value, behind) = rest.split_at(ctx.value_len(key));
            rest = behind;
            let (is_changed, version) = ctx.store.with_slot(key, |mut slot| {
                let is_changed = slot.take_dirty();
                slot.set(value);
                (is_changed, *slot.version)
            });
            self.mark_changes(ctx, (key, version), is_changed, None);
        }
        for &key in request.releases.iter() {
            self.take_dirty(ctx, key);
            self.drop_holder(ctx, intents, key, from);
        }
        for &key in request.renews.iter() {
            self.renew(ctx, key, from);
        }
    }

    /// Makes the refresh of `key` to a holder due, whether it lacks a change or not: the version
    /// that the holder knows grows with what it changes itself, too.
    fn renew(&mut self, ctx: &Ctx<impl Env>, key: Key, holder: NodeId) {
        let Some(replicas) = self.replica_sets.get_mut(&key) else { return };
        if let Err(at) = replicas.stale.binary_search_by_key(&holder, |stale| stale.node) {
            replicas.stale.insert(at, Stale { node: holder, changes: 0, since: ctx.now });
        }
        self.holders[holder.index()].make_due(key);
    }

    /// Completes the answer. `localized` are the keys that `to` holds a replica of and asked to
    /// own.
    fn respond(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        intents: &Intents,
        (to, request): (NodeId, &SyncRequest),
        draft: GrantDraft,
        mut localized: Vec<Key>,
    ) {
        let free = |key: &Key| is_movable(ctx, *key) && request.sets.binary_search(key).is_err();
        localized.retain(|key| self.is_only_holder(*key, to) && free(key));
        let (grants, mut values) = draft.into_parts();
        let mut response = SyncResponse { grants, ..SyncResponse::default() };
        let mut room = Budget::default();
        let holder = &mut self.holders[to.index()];
        if request.mark == Mark::Sync {
            holder.end_waits(|_| true);
        }
        if request.mark != Mark::None {
            holder.mark();
        }
        let due = self.take_due(ctx, intents, (to, request), &localized, &mut room);
        write_refreshes(ctx, &due.refreshes, &mut response, &mut values);
        let asked_for = |key: Key| {
            self.holders[to.index()].forget(key);
            let with_value = self.take_stale(key, to).is_some();
            HandOver { key, with_value, has_room: true }
        };
        let mut handing: Vec<HandOver> = localized.into_iter().map(asked_for).collect();
        handing.extend(due.hand_overs);
        handing.sort_unstable_by_key(|hand_over| hand_over.key);
        for HandOver { key, with_value, has_room } in handing {
            let room = (!has_room).then_some(&mut room);
            // Fails without room: a worker has changed the key since it was examined.
            let owners = &mut response.hand_overs;
            if !self.write_hand_over(ctx, (key, to), with_value, room, owners, &mut values) {
                self.decide_hand_over(key, to);
            }
        }
        (response.synced, response.more) = self.holders[to.index()].note_response();
        ctx.send(to, Message { body: Box::new(Body::SyncResponse(response)), values });
    }

    /// Takes the changes to report to `to` besides the answers, oldest first, as far as there is
    /// room, so that keys that change all the time cannot starve the others. The refresh of a set,
    /// for which a worker waits, is never cut.
    fn take_due(
        &mut self,
        ctx: &Ctx<impl Env>,
        intents: &Intents,
        (to, request): (NodeId, &SyncRequest),
        localized: &[Key],
        room: &mut Budget,
    ) -> Due {
        let mut due = Due::default();
        for &key in request.sets.iter() {
            self.holders[to.index()].end_wait(key);
            due.refreshes.extend(self.take_stale(key, to).map(|since| (key, since)));
        }
        let mut decided_later = Vec::new();
        while let Some(key) = self.holders[to.index()].next_due() {
            let saying = if localized.binary_search(&key).is_ok() {
                None
            } else {
                self.due_of(ctx, intents, key, to)
            };
            let values = match saying {
                Some(Saying::HandOver { with_value: false }) | None => 0,
                Some(Saying::HandOver { with_value: true } | Saying::Refresh) => {
                    ctx.value_bytes(key)
                }
            };
            let hands_over = matches!(saying, Some(Saying::HandOver { .. }));
            let waits = hands_over && request.sets.binary_search(&key).is_ok();
            let is_free = saying.is_none() || waits;
            if !is_free && !room.take(values, ctx.config.block_bytes_max) {
                break;
            }
            self.holders[to.index()].pop_due();
            match saying {
                Some(Saying::HandOver { .. }) if waits => decided_later.push(key),
                Some(Saying::HandOver { with_value }) => {
                    self.replica_sets.entry(key).and_modify(|replicas| replicas.hand_over = false);
                    self.take_stale(key, to);
                    due.hand_overs.push(HandOver { key, with_value, has_room: with_value });
                }
                Some(Saying::Refresh) => {
                    due.refreshes.extend(self.take_stale(key, to).map(|since| (key, since)));
                }
                None => {}
            }
        }
        decided_later.into_iter().for_each(|key| self.holders[to.index()].make_due(key));
        due.refreshes.sort_unstable_by_key(|(key, _)| *key);
        due
    }

    /// Returns the pending report to `to` about `key`, if there still is one.
    fn due_of(
        &mut self,
        ctx: &Ctx<impl Env>,
        intents: &Intents,
        key: Key,
        to: NodeId,
    ) -> Option<Saying> {
        let interested = intents.is_interested(key);
        let replicas = self.replica_sets.get_mut(&key)?;
        let is_stale = replicas.stale.binary_search_by_key(&to, |stale| stale.node).is_ok();
        // A decision for another node, which has become the only holder since, stays.
        if replicas.nodes.as_slice() == [to] && replicas.hand_over {
            if interested {
                replicas.hand_over = false;
            } else if ctx.freezes.is_frozen() {
                self.postponed.push(key);
            } else {
                let with_value =
                    is_stale || ctx.store.with_slot(key, |slot| slot.packed.is_dirty());
                return Some(Saying::HandOver { with_value });
            }
        }
        is_stale.then_some(Saying::Refresh)
    }

    /// Clears `to`'s staleness for `key`. Returns the time since which it was stale, if it was.
    fn take_stale(&mut self, key: Key, to: NodeId) -> Option<Instant> {
        let replicas = self.replica_sets.get_mut(&key)?;
        let at = replicas.stale.binary_search_by_key(&to, |stale| stale.node).ok()?;
        Some(replicas.stale.remove(at).since)
    }
}

/// Writes value and version of each key, in order.
fn write_refreshes(
    ctx: &mut Ctx<impl Env>,
    due: &[(Key, Instant)],
    response: &mut SyncResponse,
    values: &mut Block,
) {
    values.reserve(due.iter().map(|(key, _)| ctx.value_bytes(*key)).sum());
    response.refreshes.0.reserve(due.len());
    response.versions.reserve(due.len());
    for (at, &(key, since)) in due.iter().enumerate() {
        store::prefetch_ahead(&ctx.store, at, |at| due.get(at).map(|(key, _)| *key));
        let version = ctx.store.with_slot(key, |slot| {
            values.push(slot.value);
            *slot.version
        });
        response.refreshes.push(key);
        response.versions.push(version);
        ctx.stats.refreshes += 1;
        ctx.stats.staleness.record(ctx.now.nanos_since(since));
    }
}

/// A report to a holder about a key that it has not asked for.
#[derive(Clone, Copy)]
enum Saying {
    Refresh,
    /// `with_value`: the value goes along, unless the main copy changes meanwhile.
    HandOver {
        with_value: bool,
    },
}

/// The part of a response besides the answers.
#[derive(Default)]
struct Due {
    /// In order, each with the time since which it was stale.
    refreshes: Vec<(Key, Instant)>,
    hand_overs: Vec<HandOver>,
}

/// A key to be handed over to its single holder.
struct HandOver {
    key: Key,
    /// True if the holder lacks a change, so that the value goes along; it also does if a worker
    /// changes it before the key leaves.
    with_value: bool,
    /// True if room for the value is reserved.
    has_room: bool,
}
