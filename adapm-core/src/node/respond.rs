//! The owner's half of a round: fold, deltas, sets, releases, decisions, then one grouped response, after grants in advance
//! where many keys are asked for (AdaPM §B.1.2, AdaPM §B.2.2).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;

use crate::error::Fault;
use crate::id::{Counter, Key, NodeId};
use crate::node::Node;
use crate::node::drafts::GrantDraft;
use crate::node::round::sorted;
use crate::node::state::{AskedFor, Holding};
use crate::policy::Policy;
use crate::route::{self, Hop};
use crate::slot::State;
use crate::store::{self, Store};
use crate::time::Instant;
use crate::value::{Block, Value};
use crate::wire::Message;
use crate::wire::message::{Body, SyncRequest, SyncResponse};

/// A request whose answer takes shape.
pub(super) struct Answering {
    from: NodeId,
    request: SyncRequest,
    /// Its intents and localizes in key order; true: a localize.
    asked: Vec<(Key, Counter, bool)>,
    /// How many of them are answered.
    done: usize,
    /// Keys of which `from` has a replica and asks to become owner.
    handing: Vec<Key>,
}

impl<S: Store, P: Policy> Node<S, P> {
    pub(super) fn handle_sync_request(
        &mut self,
        from: NodeId,
        request: SyncRequest,
        values: &[S::Value],
    ) -> Result<(), Fault> {
        self.check_sync_request(from, &request)?;
        let since = self.peers[from.index()].answered.replace(self.now);
        self.peers[from.index()].told = false;
        self.newsworthy.push(from);
        if let Some(since) = since {
            self.stats.check_age.record(self.now.nanos_since(since));
        }
        self.fold_for(from, &request);
        self.apply_changes(from, &request, values);
        let mut asked: Vec<(Key, Counter, bool)> =
            request.localizes.iter().map(|(key, counter)| (key, counter, true)).collect();
        asked.extend(request.intents.iter().map(|(key, counter)| (key, counter, false)));
        asked.sort_unstable_by_key(|(key, ..)| *key);
        self.answering = Some(Box::new(Answering { from, request, asked, done: 0, handing: Vec::new() }));
        Ok(())
    }

    /// Answers the next keys of a request: grants in advance, or the response with the last of them.
    pub(super) fn answer_on(&mut self, mut answering: Box<Answering>) {
        let Answering { from, asked, done, handing, .. } = &mut *answering;
        let from = *from;
        let left = &asked[*done..];
        let piece = &left[..left.len().min(self.config.grants_max.max(1))];
        // A guess: all are granted with values, as long as the first.
        let bytes = piece.len() * piece.first().map_or(0, |(key, ..)| self.value_len(*key) * S::Value::WIDTH);
        let mut draft = GrantDraft::with_room(piece.len(), bytes.min(self.config.block_bytes_max));
        for (at, &(key, counter, localize)) in piece.iter().enumerate() {
            store::prefetch_ahead(&self.store, at, |at| left.get(at).map(|(key, ..)| *key));
            let entry = if localize { AskedFor::Localize } else { AskedFor::Intent };
            let word = self.folded(key);
            match route::next_hop(word, key, counter, self.config.node, self.config.nodes) {
                Hop::Here if localize && self.is_holder(key, from) => handing.push(key),
                Hop::Here => {
                    self.count_served(key, from, 0);
                    self.grant(key, word.counter(), from, localize, &mut draft);
                }
                hop => self.pass_on(hop, from, 0, key, counter, entry),
            }
        }
        *done += piece.len();
        if *done < asked.len() {
            self.send_grants(from, draft);
            self.answering = Some(answering);
        } else {
            self.respond(from, &answering.request, draft, answering.handing);
        }
    }

    /// Whatever a request says must be possible: a delta, set or release meets its owner, who knows the holder.
    fn check_sync_request(&self, from: NodeId, request: &SyncRequest) -> Result<(), Fault> {
        for key in request.deltas.iter().chain(request.sets.iter()).chain(request.releases.iter()) {
            // Whoever knows the holders of a key owns it.
            if !self.is_holder(*key, from) && !planted!(self, SkipForeignDelta) {
                return Err(Fault::Impossible(*key));
            }
        }
        for key in request.intents.keys.iter() {
            let twice = request.localizes.keys.binary_search(key).is_ok();
            let held = self.is_holder(*key, from) && request.releases.binary_search(key).is_err();
            if twice || held {
                return Err(Fault::Impossible(*key));
            }
        }
        let released = |key: &&Key| request.releases.binary_search(key).is_ok();
        match request.localizes.keys.iter().chain(request.sets.iter()).find(released) {
            Some(key) => Err(Fault::Impossible(*key)),
            None => Ok(()),
        }
    }

    /// For `wait_sync`: holders hear of everything that workers here have changed before the answer.
    fn fold_for(&mut self, from: NodeId, request: &SyncRequest) {
        if !request.sync || planted!(self, IgnoreSyncMark) {
            return;
        }
        // Not what is put off: that has become a main copy at most, which is folded before anybody gets a replica of it.
        let dirty: Vec<Key> =
            self.agenda.dirty.iter().copied().filter(|key| self.is_holder(*key, from)).collect();
        for key in dirty {
            self.fold(key);
        }
    }

    /// Applies deltas and sets to keys that it folds on the way, then releases.
    fn apply_changes(&mut self, from: NodeId, request: &SyncRequest, values: &[S::Value]) {
        let mut rest = values;
        for (at, &key) in request.deltas.iter().enumerate() {
            store::prefetch_ahead(&self.store, at, |at| request.deltas.get(at).copied());
            let (delta, behind) = rest.split_at(self.value_len(key));
            rest = behind;
            if planted!(self, SkipForeignDelta) && self.state(key) != State::Main {
                continue;
            }
            let is_changed = self.store.with_slot(key, |mut slot| {
                let is_changed = slot.fold();
                slot.apply(delta);
                is_changed
            });
            if is_changed {
                self.mark_stale(key, None);
            } else if !planted!(self, SkipStale) {
                self.mark_stale(key, Some(from));
            }
        }
        for &key in request.sets.iter() {
            let (value, behind) = rest.split_at(self.value_len(key));
            rest = behind;
            let drops = planted!(self, DropSet);
            self.store.with_slot(key, |mut slot| {
                // All holders are told of the set, and with it of what workers changed before.
                let _ = slot.fold();
                if !drops {
                    slot.set(value);
                }
            });
            self.mark_stale(key, Some(from).filter(|_| planted!(self, SkipSetter)));
        }
        if !planted!(self, KeepReleased) {
            for &key in request.releases.iter() {
                self.fold(key);
                self.drop_holder(key, from);
            }
        }
    }

    /// `localized` are keys of which `to` holds a replica and asked to become owner.
    fn respond(&mut self, to: NodeId, request: &SyncRequest, draft: GrantDraft, mut localized: Vec<Key>) {
        let free = |key: &Key| self.is_movable(*key) && request.sets.binary_search(key).is_err();
        localized.retain(|key| self.is_only_holder(*key, to) && free(key));
        let decided = self.decided_hand_overs(to, request, &localized);
        let mut handing: Vec<Key> = localized.iter().chain(&decided).copied().collect();
        handing.sort_unstable();
        let (grants, mut values) = draft.into_parts();
        let mut response = SyncResponse { grants, ..SyncResponse::default() };
        self.write_refreshes(to, request, &handing, &mut response, &mut values);
        let start = values.len();
        for key in handing {
            let bytes = self.value_len(key) * S::Value::WIDTH;
            let full = values.len() > start && values.len() - start + bytes > self.config.block_bytes_max;
            if full && localized.binary_search(&key).is_err() {
                response.more = true;
                self.decide_hand_over(key, to);
                // Its refresh was left out for the hand-over.
                self.peers[to.index()].stale.push(key);
                continue;
            }
            self.write_hand_over(key, to, &mut response.hand_overs, &mut values);
        }
        self.peers[to.index()].told = response.more;
        self.send(to, Message { body: Box::new(Body::SyncResponse(response)), values });
    }

    /// Hand-overs decided earlier that still hold.
    fn decided_hand_overs(&mut self, to: NodeId, request: &SyncRequest, localized: &[Key]) -> Vec<Key> {
        let mut decided = Vec::new();
        for key in sorted(&mut self.peers[to.index()].hand_overs) {
            // A decision for another node, which has become the only holder since, stays.
            let blind = planted!(self, HandOverUnderHolders);
            let only = self.is_only_holder(key, to) || blind;
            let holds = |holding: &&mut Holding| only && (holding.hand_over || blind);
            let Some(holding) = self.holdings.get_mut(&key).filter(holds) else {
                continue;
            };
            if request.sets.binary_search(&key).is_ok() {
                self.peers[to.index()].hand_overs.push(key);
                continue;
            }
            holding.hand_over = false;
            if !self.is_interested(key) && localized.binary_search(&key).is_err() {
                decided.push(key);
            }
        }
        decided
    }

    /// Value and version of every key of which `to` lacks a change, up to the byte limit; the refresh of a set is never cut.
    fn write_refreshes(
        &mut self,
        to: NodeId,
        request: &SyncRequest,
        handing: &[Key],
        response: &mut SyncResponse,
        values: &mut Block,
    ) {
        let due = self.due_refreshes(to, request, handing, response);
        values.reserve(due.iter().map(|(key, _)| self.store.value_len(*key) * S::Value::WIDTH).sum());
        response.refreshes.0.reserve(due.len());
        response.versions.reserve(due.len());
        for (at, &(key, since)) in due.iter().enumerate() {
            store::prefetch_ahead(&self.store, at, |at| due.get(at).map(|(key, _)| *key));
            let version = self.store.with_slot(key, |slot| {
                values.push(slot.value);
                *slot.version
            });
            response.refreshes.push(key);
            response.versions.push(version);
            self.stats.refreshes += 1;
            self.stats.staleness.record(self.now.nanos_since(since));
        }
    }

    /// The keys that are refreshed, in order, with the time since when each was stale. What does not fit stays, and comes
    /// first the next time: else keys that change all the time would starve the others.
    fn due_refreshes(
        &mut self,
        to: NodeId,
        request: &SyncRequest,
        handing: &[Key],
        response: &mut SyncResponse,
    ) -> Vec<(Key, Instant)> {
        let mut due = Vec::new();
        let mut used = 0;
        for key in mem::take(&mut self.peers[to.index()].stale) {
            let Some(holding) = self.holdings.get_mut(&key) else { continue };
            let Ok(at) = holding.stale.binary_search_by_key(&to, |(node, _)| *node) else { continue };
            if handing.binary_search(&key).is_ok() {
                continue;
            }
            let bytes = self.store.value_len(key) * S::Value::WIDTH;
            let full = used > 0 && used + bytes > self.config.block_bytes_max;
            if full && request.sets.binary_search(&key).is_err() {
                self.peers[to.index()].stale.push(key);
                response.more = true;
                continue;
            }
            used += bytes;
            due.push((key, holding.stale.remove(at).1));
        }
        due.sort_unstable_by_key(|(key, _)| *key);
        due
    }
}
