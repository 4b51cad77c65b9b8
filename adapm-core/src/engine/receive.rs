//! The requester's half of a round, continued: responses, grants, and what they end (AdaPM §B.1.2; protocol, section 3).
//!
//! A grant meets a `Requested` key, a refresh or hand-over a replica of the sender's key. Anything else is an impossible
//! message, found before any of it is applied.

use crate::engine::Engine;
use crate::engine::round::low_bits;
use crate::engine::state::SyncMark;
use crate::error::Fault;
use crate::id::{Key, NodeId, Ticket, Version};
use crate::layout::Layout;
use crate::policy::Policy;
use crate::route;
use crate::slot::{Location, State};
use crate::store::Store;
use crate::wire::message::{GrantKind, Grants, Retry, SyncResponse};

impl<S: Store, P: Policy> Engine<S, P> {
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
        let mut rest = self.apply_grants(from, &response.grants, values, |_, _, _| true);
        for (&key, &version) in response.refreshes.iter().zip(&response.versions) {
            let (value, behind) = rest.split_at(self.ctx.value_len(key));
            rest = behind;
            if !self.holds_replica_of(from, key) {
                continue;
            }
            let over = planted!(self.ctx, RefreshOverPending);
            self.ctx.store.with_slot(key, |mut slot| {
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
            let len = if with_value { self.ctx.value_len(key) } else { 0 };
            let (value, behind) = rest.split_at(len);
            rest = behind;
            if !self.holds_replica_of(from, key) {
                continue;
            }
            let here = Location { node: from, counter };
            self.arrive(key, State::Replica, here, version, with_value.then_some(value));
        }
        for &key in &outstanding.releases {
            self.ctx.store.with_slot(key, |mut slot| slot.released());
            self.absent_again(key);
        }
        for &key in &outstanding.localizes {
            self.look_again(key);
        }
        if response.synced {
            self.peers[from.index()].mark = SyncMark::Absent;
            self.collectives.note_synced(from);
        }
        Ok(())
    }

    pub(super) fn handle_grant(
        &mut self,
        from: NodeId,
        grants: Grants,
        values: &[S::Value],
    ) -> Result<(), Fault> {
        self.check_grants(from, &grants)?;
        // What was not asked of `from`, and has not come to it by its ticket, is passed over: another node may have asked it in
        // the name of this one.
        self.apply_grants(from, &grants, values, |node, key, ticket| node.awaits_grant(from, key, ticket));
        Ok(())
    }

    /// Returns true if an intent or localize of `key` is unanswered, and has reached `from` to judge by the ticket. After a loss
    /// nothing is kept of what was asked, and the lost node is not heard.
    pub(super) fn awaits_grant(&self, from: NodeId, key: Key, ticket: Ticket) -> bool {
        let word = self.ctx.peek(key);
        if word.state() != State::Requested {
            return false;
        }
        if self.ctx.first_lost.is_some() || planted!(self.ctx, BelieveAnyGrant) {
            return true;
        }
        let Some((to, round)) = self.intents.asked_for(&self.ctx, key, word) else { return false };
        if ticket == Ticket::NONE {
            from == to
        } else {
            ticket == self.ctx.tickets.of_request(round, to).of_key(key)
        }
    }

    /// Whether a replica of `key` is here, owned by `from`.
    fn holds_replica_of(&self, from: NodeId, key: Key) -> bool {
        let word = self.ctx.peek(key);
        word.state() == State::Replica && route::believed(word, key, self.ctx.config.nodes).node == from
    }

    fn check_response(&self, from: NodeId, response: &SyncResponse) -> Result<(), Fault> {
        let Some(outstanding) = &self.peers[from.index()].outstanding else { return Err(Fault::Unexpected) };
        if response.synced && self.peers[from.index()].mark != SyncMark::Asked {
            return Err(Fault::Unexpected);
        }
        self.check_grants(from, &response.grants)?;
        let asked = Some((from, low_bits(outstanding.round)));
        for key in response.grants.at.keys.iter() {
            let word = self.ctx.peek(*key);
            // A response grants what its request has asked for, whoever has asked for what else.
            let is_asked =
                self.ctx.first_lost.is_some() || self.intents.asked_for(&self.ctx, *key, word) == asked;
            if word.state() != State::Requested || !is_asked {
                return Err(Fault::Impossible(*key));
            }
        }
        // Of keys that are not held here the sender may have been told otherwise, in the name of this node.
        for (key, counter) in
            response.hand_overs.at.iter().filter(|(key, _)| self.holds_replica_of(from, *key))
        {
            let set = outstanding.sets.binary_search(&key).is_ok();
            if set || counter <= self.ctx.peek(key).counter() {
                return Err(Fault::Impossible(key));
            }
        }
        Ok(())
    }

    /// Who grants a key owns it, or has owned it so far.
    fn check_grants(&self, from: NodeId, grants: &Grants) -> Result<(), Fault> {
        for ((key, counter), kind) in grants.at.iter().zip(&grants.kinds) {
            // What was never relocated is owned by its home, and a word says no more of it than that.
            let fact = if *kind == GrantKind::Owner { counter.0.checked_sub(1) } else { Some(counter.0) };
            let stranger = fact == Some(0) && Layout::home(key, self.ctx.config.nodes) != from;
            if fact.is_none() || stranger {
                return Err(Fault::Impossible(key));
            }
        }
        Ok(())
    }

    /// Applies those grants that are awaited and returns the values behind theirs.
    fn apply_grants<'v>(
        &mut self,
        from: NodeId,
        grants: &Grants,
        values: &'v [S::Value],
        is_awaited: impl Fn(&Self, Key, Ticket) -> bool,
    ) -> &'v [S::Value] {
        self.round.brought += grants.kinds.len();
        let mut rest = values;
        let tickets = grants.tickets.iter().copied().chain(core::iter::repeat(Ticket::NONE));
        let entries = grants.at.iter().zip(&grants.kinds).zip(&grants.versions).zip(tickets);
        for ((((key, counter), &kind), &version), ticket) in entries {
            let (value, behind) =
                rest.split_at(if kind == GrantKind::Remote { 0 } else { self.ctx.value_len(key) });
            rest = behind;
            if !is_awaited(self, key, ticket) {
                continue;
            }
            self.spoil_queue(key);
            match kind {
                GrantKind::Owner => {
                    let here = Location { node: from, counter };
                    self.arrive(key, State::Requested, here, version, Some(value));
                }
                GrantKind::Replica => {
                    self.ctx.store.reserve(key, true);
                    let owner = Location { node: from, counter };
                    self.ctx.store.with_slot(key, |mut slot| slot.install(version, value, owner));
                    self.peers[from.index()].replicas += 1;
                    self.ctx.stats.replicas += 1;
                    self.ctx.observe(|observer, now| observer.on_replica_installed(now, key, from));
                    self.intents.note_replica(&mut self.ctx, key);
                    self.advance(key);
                    self.look_again(key);
                    self.unpark(key);
                }
                GrantKind::Remote => {
                    self.ctx.store.with_slot(key, |mut slot| slot.refuse());
                    self.ctx.learn(key, Location { node: from, counter });
                    self.intents.note_refused(&mut self.ctx, key);
                    self.absent_again(key);
                }
            }
        }
        rest
    }

    /// Ownership of a key in `state` has arrived, with a grant or hand-over of `former.node`, under the counter of `former`.
    fn arrive(
        &mut self,
        key: Key,
        state: State,
        former: Location,
        version: Version,
        value: Option<&[S::Value]>,
    ) {
        let replica = state == State::Replica;
        if replica {
            let owner = route::believed(self.ctx.word(key), key, self.ctx.config.nodes).node;
            self.peers[owner.index()].replicas -= 1;
        } else {
            self.ctx.store.reserve(key, false);
        }
        self.ctx.store.with_slot(key, |mut slot| slot.arrive(version, value, former));
        if replica {
            self.ctx.store.reserve(key, false);
        }
        self.ctx.stats.relocations += 1;
        self.ctx.observe(|observer, now| observer.on_arrival(now, key, former.counter));
        self.intents.note_owned(&mut self.ctx, key);
        self.advance(key);
        self.unpark(key);
    }

    /// The planted mistakes with operations that are parked for a grant.
    fn spoil_queue(&mut self, key: Key) {
        if planted!(self.ctx, ForgetParked) {
            self.queues.remove(&key);
        }
        if planted!(self.ctx, ReverseParked)
            && let Some(queue) = self.queues.get_mut(&key)
        {
            queue.waiting.make_contiguous().reverse();
        }
    }

    /// `key` has become `None`: it is asked for again if it is wanted, else what waits for it is sent.
    pub(super) fn absent_again(&mut self, key: Key) {
        self.intents.ask_later(key);
        self.advance(key);
        self.unpark(key);
    }

    /// `key` is a replica: a localize may still want it, or nobody may want it any more.
    fn look_again(&mut self, key: Key) {
        if !self.intents.is_interested(key) {
            self.agenda.release.push(key);
        } else if self.intents.wants_ownership(key) {
            self.intents.ask_later(key);
        }
    }

    /// What has not reached `from` it cannot turn away: to ask again meanwhile would be to ask twice.
    pub(super) fn handle_retry(&mut self, from: NodeId, retry: Retry) -> Result<(), Fault> {
        if self.ctx.first_lost.is_some() {
            return Ok(());
        }
        let believes = planted!(self.ctx, BelieveAnyRetry);
        let mut tickets = retry.tickets.iter().copied().chain(core::iter::repeat(Ticket::NONE));
        for (&key, ticket) in retry.intents.iter().zip(tickets.by_ref()) {
            if self.awaits_grant(from, key, ticket) {
                self.retry_request(key);
            }
        }
        for (&key, ticket) in retry.operations.iter().zip(tickets) {
            let unanswered = self.queues.get(&key).and_then(|queue| queue.unanswered.as_ref());
            if unanswered.is_some_and(|unanswered| believes || unanswered.has_reached(from, key, ticket)) {
                self.agenda.resend.push(key);
            }
        }
        Ok(())
    }

    /// The intent or localize of `key` was turned away: the key is found again in a later round, by its home.
    pub(super) fn retry_request(&mut self, key: Key) {
        self.ctx.store.with_slot(key, |mut slot| slot.refuse());
        self.intents.note_turned_away(&mut self.ctx, key);
        self.absent_again(key);
    }
}
