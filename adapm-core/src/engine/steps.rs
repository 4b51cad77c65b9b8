//! Steps in which several machines take part: a round, its answers, an entry of some node, the loss
//! of a peer.
//!
//! Each machine does its own part; only this file defines their order.
//!
//! # After a loss
//! (protocol, "Links")
//!
//! | subject | after a loss |
//! | --- | --- |
//! | unfinished operations, collective ones too | fail and name the lost node |
//! | new operations | served at once if all their keys are local, otherwise fail at once |
//! | replicas of the lost node's keys | are dropped, with their unsent deltas |
//! | main copies here | stay; the lost node is removed from the holders, and is never granted anything |
//! | early facts at a home | from survivors: believed at once; from a lost node: once they follow, or the recorded owner is lost as well |
//! | a key `Requested` | stays so: a survivor's grant may be in flight, and must not be lost |
//! | a key `Releasing` | stays so until the release is answered, forever if no node is left to answer |
//! | rounds with survivors | continue with deltas, releases, refreshes, hand-overs; nothing new is asked for |
//! | entries of other nodes | served by an owner, passed on to survivors, never parked |
//! | barriers, waves | nothing is coordinated or answered any more |
//! | messages of the lost node | ignored |
//! | answers to failed operations, own entries that come back | ignored: they are late, no node is to blame |
//!
//! Survivors learn of a loss at different moments, so no operation that needs another node begins
//! after one: it may pass a node that has dropped the grant it waits for, or be forwarded to the
//! lost node by one that has not learned of it yet, and its answer would never come. To wait
//! soundly, news of a loss would have to travel ahead of all later messages of its finder: one more
//! message for a cluster that must be restarted anyway. So a node either serves an operation itself
//! or fails it; a node whose entry a survivor has dropped learns of the loss in time, which fails
//! its pending operations.

use alloc::vec::Vec;

use crate::clock::Tick;
use crate::config::NodeConfig;
use crate::engine::Engine;
use crate::engine::budget::RequestDrafts;
use crate::engine::effect::Effect;
use crate::engine::entry::{Access, Activity, AskedFor, Asker, Entry, Request};
use crate::engine::input::{Op, OpBody, OpId};
use crate::engine::ownership::Served;
use crate::error::{Fault, OpError};
use crate::id::{Key, NodeId, Ticket, Version, WorkerId};
use crate::policy::Policy;
use crate::slot::{Location, State};
use crate::store::{self, Look, Store};
use crate::wire::message::{Forward, GrantKind, Grants, Operation, Retry, SyncResponse};

impl<S: Store, P: Policy> Engine<S, P> {
    pub(super) fn handle_op(&mut self, op: Op<S::Value>) -> Result<(), OpError> {
        if op.worker.index() >= self.ctx.config.workers {
            return Err(OpError::UnknownWorker { worker: op.worker });
        }
        let Op { id, worker, body } = op;
        if body.fails_behind_a_loss()
            && let Some(node) = self.ctx.first_lost
        {
            self.ctx.fail(id, OpError::lost(node));
            return Ok(());
        }
        if !matches!(body, OpBody::Barrier) {
            self.round.hurry();
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
            OpBody::Renew { keys } => {
                self.ctx.check_keys(&keys)?;
                self.access(id, Access::Renew, &keys, Vec::new());
            }
            OpBody::Localize { keys } => {
                self.ctx.check_keys(&keys)?;
                if let Some(node) = self.ctx.lost_for(&keys, false) {
                    self.ctx.fail(id, OpError::lost(node));
                } else {
                    let awaited = self.intents.localize(&mut self.ctx, id, &keys);
                    self.operations.begin_localize(&mut self.ctx, id, awaited);
                }
            }
            OpBody::WaitSync => {
                let begun = self.begun(|access| matches!(access, Some(Access::Push | Access::Set)));
                self.collectives.wait_sync(id, begun);
            }
            OpBody::Barrier => self.collectives.call_barrier(&mut self.ctx, worker, id),
            OpBody::Quiesce => self.collectives.call_quiesce(&mut self.ctx, worker, id),
            OpBody::Tick { tick, waits } => {
                self.collectives.tick(&mut self.ctx, (worker, id), tick, waits)?;
            }
            OpBody::Freeze => self.ctx.freezes.freeze(worker, id),
            OpBody::Thaw => {
                self.thaw(worker);
                self.ctx.done(id, Vec::new());
            }
            OpBody::End => {
                self.thaw(worker);
                self.collectives.end_worker(&mut self.ctx, worker, id);
                if self.collectives.has_ended() {
                    self.intents.end_kept(&mut self.ctx, Tick::INFINITY);
                }
            }
            OpBody::Leave => self.collectives.leave(&mut self.ctx, id),
        }
        Ok(())
    }

    fn thaw(&mut self, worker: WorkerId) {
        self.ctx.freezes.thaw(worker);
        if !self.ctx.freezes.is_frozen() {
            self.ownership.hand_over_postponed();
        }
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
        match self.ctx.lost_for(keys, access.needs_owner()) {
            Some(node) => self.ctx.fail(id, OpError::lost(node)),
            None => {
                self.operations.access(&mut self.ctx, &self.intents, (id, access), keys, values)
            }
        }
    }

    /// Returns true if a round could have something to send, and may begin.
    pub(super) fn has_work(&self) -> bool {
        !self.ctx.freezes.is_frozen()
            && (self.round.has_work(self.ctx.now)
                || self.round.has_waits() && self.goes_at_once()
                || self.operations.has_work()
                || self.intents.has_work(|node| self.round.owes(node))
                || self.wants_mark())
    }

    /// Returns true if changes do not wait for more: workers wait for other nodes, or have ended.
    pub(super) fn goes_at_once(&self) -> bool {
        self.collectives.waits_for_sync()
            || self.collectives.waits_for_nodes()
            || self.collectives.has_ended()
    }

    /// Returns true if a round could begin a mark.
    pub(super) fn wants_mark(&self) -> bool {
        self.collectives.wants_mark(|node| self.round.may_mark(node))
    }

    /// Runs a round: processes signals, examines wanted keys and changed replicas, and sends each
    /// peer at most one request.
    pub(super) fn begin_round(&mut self) {
        let at_once = self.goes_at_once();
        if at_once {
            self.round.end_waits();
        }
        let is_answered = self.round.begin(&mut self.ctx);
        self.intents.update(&mut self.ctx, is_answered);
        self.follow_effects();
        self.intents.expire_localizes(&mut self.ctx);
        self.follow_effects();
        self.operations.resend(&mut self.ctx);
        let mut drafts = RequestDrafts::new(self.ctx.config.nodes);
        let (operations, round) = (&self.operations, &self.round);
        let mut wanted = self.intents.wanted(
            &self.ctx,
            |key| operations.activity(key),
            |node| round.owes(node),
            &mut drafts,
        );
        let fronts = self.operations.take_fronts();
        let take_dirty = |ctx: &_, key| {
            self.ownership.take_dirty(ctx, key);
        };
        let mut changed = self.round.changed(
            &self.ctx,
            &self.intents,
            &self.operations,
            (fronts, at_once),
            take_dirty,
            &mut drafts,
        );
        if self.operations.any() || self.collectives.waits_for_sync() {
            self.round.hurry();
        }
        self.round.carry(wanted.len() + changed.len());
        if drafts.exceed(self.ctx.config.block_bytes_max) {
            let round = &self.round;
            let first = |node: NodeId| !round.changes_first(node);
            self.intents.share(&self.ctx, &mut wanted, &mut drafts, first);
            self.round.share(&self.ctx, &mut changed, &mut drafts);
            let round = &self.round;
            self.intents
                .share(&self.ctx, &mut wanted, &mut drafts, |node| round.changes_first(node));
        }
        let grants = self.intents.draft(&self.ctx, &wanted, &mut drafts);
        self.round.await_grants(grants);
        drafts.reserve(&changed);
        for (at, candidate) in changed.iter().enumerate() {
            store::prefetch_ahead(&self.ctx.store, at, |at| Some(changed.get(at)?.key));
            let change = candidate.says;
            let sends = change.has_front && candidate.goes;
            let front =
                if sends { self.operations.send_front(candidate.key, change.len) } else { None };
            if self.round.draft(&mut self.ctx, candidate, front, &mut drafts) {
                self.intents.note_gone(candidate.key);
            }
        }
        for node in self.ctx.peers() {
            let begin_mark = || self.collectives.begin_mark(node);
            self.round.send_request(&mut self.ctx, node, drafts.take(node), begin_mark);
        }
    }

    pub(super) fn handle_sync_response(
        &mut self,
        from: NodeId,
        response: SyncResponse,
        values: &[S::Value],
    ) -> Result<(), Fault> {
        check_grants(&self.ctx.config, from, &response.grants)?;
        self.round.check_response(&self.ctx, &self.intents, from, &response)?;
        let asked = self.round.note_response(&self.ctx, from, &response);
        let mut rest = self.apply_grants(from, &response.grants, values, |_, _, _| true);
        let refreshes = &response.refreshes;
        for (at, (&key, &version)) in refreshes.iter().zip(&response.versions).enumerate() {
            store::prefetch_ahead(&self.ctx.store, at, |at| refreshes.get(at).copied());
            let value = take(&mut rest, self.ctx.value_len(key));
            if self.ctx.holds_replica_of(from, key) {
                self.ctx.refresh(key, version, value);
                if self.operations.note_refreshed(&mut self.ctx, &self.intents, key) {
                    // Its last intent may have expired meanwhile.
                    self.look_again(key);
                }
            }
        }
        for &key in &asked.sets {
            self.operations.note_installed(&mut self.ctx, &self.intents, key);
            // Its last intent may have expired meanwhile.
            self.look_again(key);
        }
        let owners = &response.hand_overs;
        for (((key, counter), &version), &with_value) in
            owners.at.iter().zip(&owners.versions).zip(&owners.with_value)
        {
            let value = take(&mut rest, if with_value { self.ctx.value_len(key) } else { 0 });
            if self.ctx.holds_replica_of(from, key) {
                self.round.note_owned(from);
                let former = Location { node: from, counter };
                self.arrive(key, State::Replica, former, version, with_value.then_some(value));
            }
        }
        for &key in &asked.releases {
            self.ctx.store.with_slot(key, |mut slot| slot.released());
            self.absent_again(key);
        }
        for &key in &asked.localizes {
            self.look_again(key);
        }
        if response.synced {
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
        check_grants(&self.ctx.config, from, &grants)?;
        // Entries that `from` was not asked and has not received by their ticket are skipped:
        // another node may have asked in the name of this one.
        let is_awaited = |engine: &Self, key, ticket| {
            engine.intents.awaits_grant(&engine.ctx, from, key, ticket)
        };
        self.apply_grants(from, &grants, values, is_awaited);
        Ok(())
    }

    /// Applies awaited grants. Returns the values after those of the grants.
    fn apply_grants<'v>(
        &mut self,
        from: NodeId,
        grants: &Grants,
        values: &'v [S::Value],
        is_awaited: impl Fn(&Self, Key, Ticket) -> bool,
    ) -> &'v [S::Value] {
        self.round.note_grants(grants);
        let mut rest = values;
        let tickets = grants.tickets.iter().copied().chain(core::iter::repeat(Ticket::NONE));
        let entries = grants.at.iter().zip(&grants.kinds).zip(&grants.versions).zip(tickets);
        for (at, ((((key, counter), &kind), &version), ticket)) in entries.enumerate() {
            store::prefetch_ahead(&self.ctx.store, at, |at| grants.at.keys.get(at).copied());
            let len = if kind == GrantKind::Remote { 0 } else { self.ctx.value_len(key) };
            let value = take(&mut rest, len);
            if !is_awaited(self, key, ticket) {
                continue;
            }
            let there = Location { node: from, counter };
            match kind {
                GrantKind::Owner => self.arrive(key, State::Requested, there, version, Some(value)),
                GrantKind::Replica => {
                    self.ctx.install_replica(key, version, value, there);
                    self.round.note_replica(from);
                    let request = self.intents.note_replica(&mut self.ctx, key);
                    self.note_answered(key, request);
                    self.operations.advance(&mut self.ctx, &self.intents, key);
                    self.look_again(key);
                    self.unpark_later(key);
                }
                GrantKind::Remote => {
                    self.ctx.store.with_slot(key, |mut slot| slot.refuse());
                    self.ctx.learn(key, there);
                    let request = self.intents.note_refused(key);
                    self.note_answered(key, request);
                    self.intents.note_gone(key);
                    self.absent_again(key);
                }
            }
        }
        rest
    }

    /// Takes ownership of a key in `state`, by a grant or hand-over of `former.node` under the
    /// counter of `former`.
    fn arrive(
        &mut self,
        key: Key,
        state: State,
        former: Location,
        version: Version,
        value: Option<&[S::Value]>,
    ) {
        self.ctx.take_ownership(key, state, former, version, value);
        let request = self.intents.note_owned(&mut self.ctx, key);
        self.note_answered(key, request);
        self.intents.note_gone(key);
        self.operations.advance(&mut self.ctx, &self.intents, key);
        self.unpark_later(key);
    }

    /// Records the answer to an intent or localize of this node for an absent key.
    fn note_answered(&mut self, key: Key, request: Option<Request>) {
        if let Some(request) = request {
            self.collectives.note_answered(key, request);
            self.round.note_answered(&self.ctx, request);
        }
    }

    /// Asks for `key` on behalf of the pulls that wait for it, unless that is done already.
    pub(super) fn keep(&mut self, key: Key) {
        let is_absent = self.ctx.state(key) == State::None && !self.intents.knows(key);
        if is_absent
            && self.operations.activity(key) == Activity::Waiting
            && let Some(end) = self.ctx.policy.keep(self.collectives.least_tick())
        {
            self.intents.keep(&mut self.ctx, key, end);
        }
    }

    /// Continues with `key`, which has become `None`: asks for it again if it is wanted, otherwise
    /// sends its waiting operations.
    fn absent_again(&mut self, key: Key) {
        self.intents.ask_later(key);
        self.operations.advance(&mut self.ctx, &self.intents, key);
        self.unpark_later(key);
    }

    /// Re-examines a replica of `key`: a localize may still want ownership, or no intent may be
    /// left.
    fn look_again(&mut self, key: Key) {
        if !self.intents.is_interested(key) {
            self.round.release_later(key);
        } else if self.intents.wants_ownership(key) {
            self.intents.ask_later(key);
        }
    }

    /// Schedules parked entries of `key`, whose local copy has changed, after the rest of this
    /// input.
    fn unpark_later(&mut self, key: Key) {
        if self.operations.has_parked() {
            self.ctx.ask(Effect::Unpark(key));
        }
    }

    /// Handles the end of intent for `key`: releases a replica, offers a main copy to a holder, or
    /// sends waiting operations.
    pub(super) fn note_unwanted(&mut self, key: Key) {
        // A main copy held nowhere else needs no decision.
        if self.ctx.store.look(key) == (Look::Held { with_delta: false })
            && !self.ownership.has_holders(key)
        {
            return;
        }
        match self.ctx.state(key) {
            State::Replica => self.round.release_later(key),
            State::Main => self.ownership.reconsider(&mut self.ctx, &self.intents, key),
            State::None => self.operations.advance(&mut self.ctx, &self.intents, key),
            State::Requested | State::Releasing => {}
        }
    }

    /// Handles the refusal of this node's intent or localize of `key`: a later round asks the home.
    pub(super) fn note_turned_away(&mut self, key: Key) {
        self.ctx.store.with_slot(key, |mut slot| slot.refuse());
        let request = self.intents.note_turned_away(key);
        self.note_answered(key, request);
        self.intents.note_gone(key);
        self.absent_again(key);
    }

    /// Handles refusals by `from`. Ignores entries that cannot have reached it: another one sent
    /// meanwhile would ask twice.
    pub(super) fn handle_retry(&mut self, from: NodeId, retry: Retry) -> Result<(), Fault> {
        if self.ctx.first_lost.is_some() {
            return Ok(());
        }
        let mut tickets = retry.tickets.iter().copied().chain(core::iter::repeat(Ticket::NONE));
        for (&key, ticket) in retry.intents.iter().zip(tickets.by_ref()) {
            if self.intents.awaits_grant(&self.ctx, from, key, ticket) {
                self.note_turned_away(key);
            }
        }
        for (&key, ticket) in retry.operations.iter().zip(tickets) {
            self.operations.handle_retry(from, (key, ticket));
        }
        Ok(())
    }

    pub(super) fn handle_operation(
        &mut self,
        from: NodeId,
        operation: Operation,
        values: &[S::Value],
    ) -> Result<(), Fault> {
        let asker = Asker::direct(from, operation.ticket);
        self.serve_operation(&operation, values, || asker);
        Ok(())
    }

    pub(super) fn handle_forward(
        &mut self,
        from: NodeId,
        forward: Forward,
        values: &[S::Value],
    ) -> Result<(), Fault> {
        let Forward { origin, hops, intents, localizes, operation, tickets } = forward;
        let is_own = origin == self.ctx.config.node;
        if self.ctx.is_lost(origin) || (is_own && self.ctx.first_lost.is_some()) {
            return Ok(());
        }
        let mut tickets = tickets.iter();
        let mut next = || {
            let ticket = *tickets.next().expect("a forward has a ticket for each entry");
            Asker::forwarded(origin, from, hops, ticket)
        };
        for (entries, asked) in [(&intents, AskedFor::Intent), (&localizes, AskedFor::Localize)] {
            for (key, counter) in entries.iter() {
                let asker = next();
                if !is_own || self.intents.awaits_grant(&self.ctx, asker.by, key, asker.reply()) {
                    self.serve(Entry { asker, key, counter, asked });
                }
            }
        }
        self.serve_operation(&operation, values, next);
        Ok(())
    }

    /// Serves the entries of an operation; `next` returns the asker of each. Own entries that come
    /// back are skipped unless they are unanswered: they were never sent, or are answered already,
    /// and the node that passes them on need not be to blame.
    fn serve_operation(
        &mut self,
        operation: &Operation,
        values: &[S::Value],
        mut next: impl FnMut() -> Asker,
    ) {
        let mut rest = values;
        let Operation { pulls, pushes, sets, .. } = operation;
        for (list, access) in [(pulls, Access::Pull), (pushes, Access::Push), (sets, Access::Set)] {
            for (at, (key, counter)) in list.iter().enumerate() {
                store::prefetch_ahead(&self.ctx.store, at, |at| list.keys.get(at).copied());
                let is_pull = access == Access::Pull;
                let payload = take(&mut rest, if is_pull { 0 } else { self.ctx.value_len(key) });
                let asker = next();
                let by = (asker.by, asker.reply());
                if asker.origin == self.ctx.config.node
                    && !self.operations.awaits_answer(by, key, is_pull)
                {
                    continue;
                }
                let asked = match access {
                    Access::Pull => AskedFor::Pull,
                    Access::Push => AskedFor::Push(payload),
                    Access::Set => AskedFor::Set(payload),
                    Access::Renew => unreachable!("a renewal goes with a request"),
                };
                self.serve(Entry { asker, key, counter, asked });
            }
        }
    }

    /// Serves an entry if this node owns the key, else passes it on.
    pub(super) fn serve(&mut self, entry: Entry<&[S::Value]>) {
        match self.ownership.serve(&mut self.ctx, &self.intents, &entry) {
            Served::Done => {}
            Served::Own(value) if self.operations.activity(entry.key) == Activity::Unanswered => {
                self.operations.note_executed(&mut self.ctx, &self.intents, entry.key, &value);
            }
            Served::Own(_) => {}
            Served::Elsewhere(hop) => self.operations.pass_on(&mut self.ctx, hop, entry),
            Served::Refused => self.operations.turn_away(&mut self.ctx, entry),
        }
    }

    /// Fails every unfinished operation, since it waits for the lost node or for one that may have
    /// dropped it. Costs a visit of every held copy of the store, once per lost node.
    pub(super) fn handle_peer_lost(&mut self, node: NodeId) -> Result<(), OpError> {
        if node.index() >= self.ctx.config.nodes || node == self.ctx.config.node {
            return Err(OpError::NotAPeer { node });
        }
        if !self.ctx.lost.insert(node) {
            return Ok(());
        }
        self.ctx.first_lost.get_or_insert(node);
        let mut ops = self.operations.give_up();
        ops.extend(self.collectives.give_up());
        ops.extend(self.ctx.freezes.give_up());
        self.ownership.hand_over_postponed();
        for op in ops {
            self.ctx.fail(op, OpError::lost(node));
        }
        // Requests to survivors stay: they are answered.
        self.round.forget_peer(&self.ctx, node);
        self.intents.give_up(&mut self.ctx);
        for key in self.ctx.replicas_of(node) {
            self.ctx.abandon_replica(key);
        }
        self.residences.believe_survivors(&mut self.ctx);
        self.intents.forget_asked_before();
        self.ownership.forget_peer(&mut self.ctx, &self.intents, node);
        Ok(())
    }
}

/// Checks that the node that grants a key owns it or has just owned it, as far as this node can
/// know.
fn check_grants(config: &NodeConfig, from: NodeId, grants: &Grants) -> Result<(), Fault> {
    for ((key, counter), kind) in grants.at.iter().zip(&grants.kinds) {
        // A key that was never relocated is owned by its home; that much is certain.
        let fact =
            if *kind == GrantKind::Owner { counter.0.checked_sub(1) } else { Some(counter.0) };
        let stranger = fact == Some(0) && config.homes.home(key) != from;
        if fact.is_none() || stranger {
            return Err(Fault::Impossible(key));
        }
    }
    Ok(())
}

/// Takes the first `len` elements off `values`.
fn take<'v, V>(values: &mut &'v [V], len: usize) -> &'v [V] {
    values.split_off(..len).expect("the shape of a message is checked before it is handled")
}
