//! The requester's half of a round, continued: responses, grants, and what they end (AdaPM §B.1.2; protocol, section 3).
//!
//! A grant meets a `Requested` key, a refresh or hand-over a replica of the sender's key. Anything else is an impossible
//! message, found before any of it is applied.

use hashbrown::hash_map::Entry;

use crate::error::Fault;
use crate::id::{Counter, Key, NodeId};
use crate::layout::Layout;
use crate::node::Node;
use crate::node::interest::{Mark, Request};
use crate::node::sync::SyncMark;
use crate::policy::Policy;
use crate::route;
use crate::slot::{Location, State};
use crate::store::Store;
use crate::wire::message::{GrantKind, Grants, Retry, SyncResponse};

impl<S: Store, P: Policy> Node<S, P> {
    pub(super) fn handle_sync_response(
        &mut self,
        from: NodeId,
        response: SyncResponse,
        values: &[S::Value],
    ) -> Result<(), Fault> {
        self.check_response(from, &response)?;
        let outstanding = self.peers[from.index()].outstanding.take().expect("just checked");
        self.peers[from.index()].news = response.more;
        self.close_round(outstanding.round, 1, 0);
        self.round.brought += response.refreshes.len() + response.hand_overs.versions.len();
        let mut rest = self.apply_grants(from, &response.grants, values);
        for (&key, &version) in response.refreshes.iter().zip(&response.versions) {
            let (value, behind) = rest.split_at(self.value_len(key));
            rest = behind;
            let over = planted!(self, RefreshOverPending);
            self.store.with_slot(key, |mut slot| {
                slot.refresh(version, value);
                if over {
                    slot.value.copy_from_slice(value);
                }
            });
        }
        for &key in &outstanding.sets {
            self.set_installed(key);
            // Its last intent may have expired meanwhile.
            self.look_again(key);
        }
        let owners = &response.hand_overs;
        for (((key, counter), &version), &with_value) in
            owners.at.iter().zip(&owners.versions).zip(&owners.with_value)
        {
            let len = if with_value { self.value_len(key) } else { 0 };
            let (value, behind) = rest.split_at(len);
            rest = behind;
            let here = Location { node: self.config.node, counter };
            self.arrive(key, State::Replica, here, version, with_value.then_some(value));
        }
        for &key in &outstanding.releases {
            self.store.with_slot(key, |mut slot| slot.released());
            self.absent_again(key);
        }
        for &key in &outstanding.localizes {
            self.look_again(key);
        }
        if response.synced {
            self.note_synced(from);
        }
        self.progress_syncs();
        Ok(())
    }

    pub(super) fn handle_grant(
        &mut self,
        from: NodeId,
        grants: Grants,
        values: &[S::Value],
    ) -> Result<(), Fault> {
        self.check_grants(from, &grants)?;
        self.apply_grants(from, &grants, values);
        self.progress_syncs();
        Ok(())
    }

    fn check_response(&self, from: NodeId, response: &SyncResponse) -> Result<(), Fault> {
        let Some(outstanding) = &self.peers[from.index()].outstanding else { return Err(Fault::Unexpected) };
        if response.synced && self.peers[from.index()].mark != SyncMark::Asked {
            return Err(Fault::Unexpected);
        }
        self.check_grants(from, &response.grants)?;
        let held = |key: Key| {
            let word = self.peek(key);
            word.state() == State::Replica && route::believed(word, key, self.config.nodes).node == from
        };
        if let Some(key) = response.refreshes.iter().find(|key| !held(**key)) {
            return Err(Fault::Impossible(*key));
        }
        for (key, counter) in response.hand_overs.at.iter() {
            let set = outstanding.sets.binary_search(&key).is_ok();
            if !held(key) || set || counter <= self.peek(key).counter() {
                return Err(Fault::Impossible(key));
            }
        }
        Ok(())
    }

    fn check_grants(&self, from: NodeId, grants: &Grants) -> Result<(), Fault> {
        for ((key, counter), kind) in grants.at.iter().zip(&grants.kinds) {
            let word = self.peek(key);
            let behind = *kind == GrantKind::Owner && counter <= word.counter();
            // What was never relocated is owned by its home, and a word says no more of it than that.
            let stranger = *kind != GrantKind::Owner
                && counter == Counter(0)
                && Layout::home(key, self.config.nodes) != from;
            if word.state() != State::Requested || behind || stranger {
                return Err(Fault::Impossible(key));
            }
        }
        Ok(())
    }

    /// Applies grants and returns the values behind theirs.
    fn apply_grants<'v>(&mut self, from: NodeId, grants: &Grants, values: &'v [S::Value]) -> &'v [S::Value] {
        self.round.brought += grants.kinds.len();
        let mut rest = values;
        for (((key, counter), &kind), &version) in grants.at.iter().zip(&grants.kinds).zip(&grants.versions) {
            let (value, behind) =
                rest.split_at(if kind == GrantKind::Remote { 0 } else { self.value_len(key) });
            rest = behind;
            self.spoil_queue(key);
            let request = match kind {
                GrantKind::Owner => {
                    let here = Location { node: self.config.node, counter };
                    self.arrive(key, State::Requested, here, version, Some(value))
                }
                GrantKind::Replica => {
                    let request = self.take_request(key);
                    self.store.reserve(key, true);
                    let owner = Location { node: from, counter };
                    self.store.with_slot(key, |mut slot| slot.install(version, value, owner));
                    self.peers[from.index()].replicas += 1;
                    self.stats.replicas += 1;
                    self.observe(|observer, now| observer.on_replica_installed(now, key, from));
                    self.end_waiters(key);
                    self.advance(key);
                    self.look_again(key);
                    self.unpark(key);
                    request
                }
                GrantKind::Remote => {
                    let request = self.take_request(key);
                    self.store.with_slot(key, |mut slot| slot.refuse());
                    self.learn(key, Location { node: from, counter });
                    if let Some(interest) = self.interests.get_mut(&key) {
                        interest.put(Mark::Refused);
                    }
                    self.absent_again(key);
                    request
                }
            };
            if let Some(request) = request {
                self.close_round(request.round.into(), 0, 1);
            }
        }
        rest
    }

    /// The entry for `key` is answered.
    fn take_request(&mut self, key: Key) -> Option<Request> {
        let Entry::Occupied(mut entry) = self.interests.entry(key) else { return None };
        let request = entry.get_mut().take_request()?;
        if entry.get().count() == 0 {
            entry.remove();
        }
        self.note_answered(request);
        Some(request)
    }

    /// The planted mistakes with operations that are parked for a grant.
    fn spoil_queue(&mut self, key: Key) {
        if planted!(self, ForgetParked) {
            self.queues.remove(&key);
        }
        if planted!(self, ReverseParked)
            && let Some(queue) = self.queues.get_mut(&key)
        {
            queue.waiting.make_contiguous().reverse();
        }
    }

    /// `key` has become `None`: it is asked for again if it is wanted, else what waits for it is sent.
    pub(super) fn absent_again(&mut self, key: Key) {
        self.ask_later(key);
        self.advance(key);
        self.unpark(key);
    }

    /// `key` is a replica: a localize may still want it, or nobody may want it any more.
    fn look_again(&mut self, key: Key) {
        match self.interests.get(&key).filter(|interest| interest.count() > 0) {
            None => self.agenda.release.push(key),
            Some(interest) if interest.is(Mark::Unsent) => self.ask_later(key),
            Some(_) => {}
        }
    }

    pub(super) fn handle_retry(&mut self, retry: Retry) -> Result<(), Fault> {
        if self.first_lost.is_some() {
            return Ok(());
        }
        for &key in retry.intents.iter() {
            if self.peek(key).state() != State::Requested {
                return Err(Fault::Impossible(key));
            }
        }
        for &key in retry.operations.iter() {
            if self.queues.get(&key).is_none_or(|queue| queue.unanswered.is_none()) {
                return Err(Fault::Impossible(key));
            }
        }
        for &key in retry.intents.iter() {
            self.retry_request(key);
        }
        self.agenda.resend.extend_from_slice(&retry.operations);
        self.progress_syncs();
        Ok(())
    }

    /// The intent or localize of `key` found no room to park: the key is found again in a later round.
    pub(super) fn retry_request(&mut self, key: Key) {
        let request = self.take_request(key);
        self.store.with_slot(key, |mut slot| slot.refuse());
        if let Some(request) = request {
            if let Some(interest) = self.interests.get_mut(&key).filter(|_| request.localize)
                && interest.is(Mark::Wished)
            {
                interest.put(Mark::Unsent);
            }
            self.close_round(request.round.into(), 0, 1);
        }
        self.absent_again(key);
    }
}
