//! Operations and forwarded entries of other nodes, and answers to own ones (Lapse §3.3; protocol, sections 5 and 7).
//!
//! Only an owner executes another node's operation; a replica neither answers nor absorbs it.

use alloc::vec::Vec;

use crate::engine::Engine;
use crate::engine::state::{Access, AskedFor, Asker, Unanswered};
use crate::error::Fault;
use crate::id::{Counter, Key, NodeId, Ticket};
use crate::layout::Layout;
use crate::policy::Policy;
use crate::route::{self, Hop};
use crate::slot::{Location, State, Word};
use crate::store::{self, Look, Store};
use crate::wire::message::{Answer, Forward, Operation};

impl<S: Store, P: Policy> Engine<S, P> {
    pub(super) fn handle_operation(
        &mut self,
        from: NodeId,
        operation: Operation,
        values: &[S::Value],
    ) -> Result<(), Fault> {
        let asker = Asker::direct(from, operation.ticket);
        self.pass_operation(&operation, values, || asker);
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
                if !is_own || self.awaits_grant(asker.by, key, asker.reply()) {
                    self.serve_or_pass(asker, key, counter, asked);
                }
            }
        }
        self.pass_operation(&operation, values, next);
        Ok(())
    }

    /// `next` tells of each entry whose it is. Entries of this node that come back must be unanswered: what is not was never
    /// sent, or is answered already, for which he who passes it on need not be to blame.
    fn pass_operation(
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
                let len = if access == Access::Pull { 0 } else { self.ctx.value_len(key) };
                let (payload, behind) = rest.split_at(len);
                rest = behind;
                let asker = next();
                let is_own = asker.origin == self.ctx.config.node;
                if is_own && !self.awaits_answer(asker.by, key, access == Access::Pull, asker.reply()) {
                    continue;
                }
                let asked = match access {
                    Access::Pull => AskedFor::Pull,
                    Access::Push => AskedFor::Push(payload),
                    Access::Set => AskedFor::Set(payload),
                };
                self.serve_or_pass(asker, key, counter, asked);
            }
        }
    }

    /// Returns true if an operation on `key`, a pull or not, is unanswered, and has reached `from` to judge by the ticket.
    fn awaits_answer(&self, from: NodeId, key: Key, is_pull: bool, ticket: Ticket) -> bool {
        let unanswered = self.queues.get(&key).and_then(|queue| queue.unanswered.as_ref());
        let believes = planted!(self.ctx, BelieveAnyAnswer);
        let may = |unanswered: &Unanswered<S::Value>| {
            (unanswered.access == Access::Pull) == is_pull
                && (believes || unanswered.has_reached(from, key, ticket))
        };
        unanswered.is_some_and(may)
    }

    /// Returns true if whoever sent an intent or localize here can have passed it on: who asks himself, the home, and the one
    /// from whom this node has the main copy. Any other may have known where it is, too; but an entry makes the main copy move,
    /// and a node that never had to do with the key could ask for that in the name of others.
    fn may_have_passed(&self, asker: Asker, key: Key, word: Word) -> bool {
        let former = word.location().filter(|_| word.state() == State::Main);
        asker.by == asker.origin
            || asker.origin == self.ctx.config.node
            || asker.by == Layout::home(key, self.ctx.config.nodes)
            || former.is_some_and(|former| former.node == asker.by)
            || planted!(self.ctx, BelieveAnyForward)
    }

    /// Serves an entry if this node owns the key, else passes it on.
    pub(super) fn serve_or_pass(
        &mut self,
        asker: Asker,
        key: Key,
        counter: Counter,
        asked: AskedFor<&[S::Value]>,
    ) {
        let Asker { origin, hops, .. } = asker;
        let moves = matches!(asked, AskedFor::Intent | AskedFor::Localize);
        // A main copy is here for certain, and what is asked for is done in the step that folds it.
        let is_main = self.ctx.store.look(key) == Look::Held { with_delta: false };
        if is_main && !moves {
            self.ctx.count_served(key, origin, hops);
            return self.execute(asker, key, asked);
        }
        let word = self.ownership.folded(&self.ctx, key);
        let hop = route::next_hop(word, key, counter, self.ctx.config.node, self.ctx.config.nodes);
        if moves && hop != Hop::Park && !self.may_have_passed(asker, key, word) {
            return self.turn_away(asker, key, counter, asked);
        }
        if hop != Hop::Here {
            if !self.answer_wrongly(asker, key, word, counter, &asked) {
                self.pass_on(hop, asker, key, counter, asked);
            }
            return;
        }
        self.ctx.count_served(key, origin, hops);
        if !moves {
            return self.execute(asker, key, asked);
        }
        // A node that has become owner needs no grant from itself, a holder gets its answer as a hand-over.
        if origin != self.ctx.config.node && !self.ownership.is_holder(key, origin) {
            let mut draft = self.outgoing.take_grant_draft(origin);
            draft.ticket = asker.reply();
            let localize = asked == AskedFor::Localize;
            let at = (key, word.counter());
            self.ownership.grant(&mut self.ctx, &self.intents, at, origin, localize, &mut draft);
            self.outgoing.put_grant_draft(origin, draft);
        }
    }

    /// The planted mistakes of a node that is not the owner and answers all the same.
    fn answer_wrongly(
        &mut self,
        asker: Asker,
        key: Key,
        word: Word,
        counter: Counter,
        asked: &AskedFor<&[S::Value]>,
    ) -> bool {
        let origin = asker.origin;
        let (pull, push) = (*asked == AskedFor::Pull, matches!(asked, AskedFor::Push(_)));
        let reads = planted!(self.ctx, AnswerFromReplica) && pull && word.state() == State::Replica;
        let gone = word.state() == State::None && word.location().is_some();
        let absorbs = planted!(self.ctx, ApplyAtStaleOwner) && push && gone;
        if origin == self.ctx.config.node || !(reads || absorbs) {
            return false;
        }
        if reads {
            self.outgoing.answer_pull(&self.ctx, origin, key, asker.reply());
        } else {
            self.outgoing.answer_done(origin, key, counter, asker.reply());
        }
        true
    }

    fn execute(&mut self, asker: Asker, key: Key, asked: AskedFor<&[S::Value]>) {
        let origin = asker.origin;
        let is_own = origin == self.ctx.config.node;
        if !is_own && asked == AskedFor::Pull {
            if self.outgoing.answer_pull(&self.ctx, origin, key, asker.reply()) {
                self.ownership.mark_stale(&self.ctx, key, None);
            }
            return;
        }
        let mut value = Vec::new();
        let (is_changed, counter) = self.ctx.store.with_slot(key, |mut slot| {
            let is_changed = slot.fold();
            match asked {
                AskedFor::Push(update) => slot.apply(update),
                AskedFor::Set(new) => slot.set(new),
                _ => value.extend_from_slice(slot.value),
            }
            (is_changed, slot.word.counter())
        });
        if is_changed || asked != AskedFor::Pull {
            self.ownership.mark_stale(&self.ctx, key, None);
        }
        if !is_own {
            self.outgoing.answer_done(origin, key, counter, asker.reply());
        } else if self.queues.get(&key).is_some_and(|queue| queue.unanswered.is_some()) {
            self.answered(key, &value);
        }
    }

    /// What was not asked of `from`, and has not come to it by its ticket, is passed over: another node may have asked it in the
    /// name of this one.
    pub(super) fn handle_answer(
        &mut self,
        from: NodeId,
        answer: Answer,
        values: &[S::Value],
    ) -> Result<(), Fault> {
        if self.ctx.first_lost.is_some() && !planted!(self.ctx, BlameLateAnswer) {
            return Ok(());
        }
        let mut tickets = answer.tickets.iter().copied().chain(core::iter::repeat(Ticket::NONE));
        if planted!(self.ctx, BlameLateAnswer) {
            let mut keys = answer.pulls.keys.iter().chain(answer.done.keys.iter());
            let is_late = |key: &&Key| self.queues.get(*key).is_none_or(|queue| queue.unanswered.is_none());
            if let Some(key) = keys.find(is_late) {
                return Err(Fault::Impossible(*key));
            }
        }
        let mut rest = values;
        for (at, (key, counter)) in answer.pulls.iter().enumerate() {
            store::prefetch_entry_ahead(&self.ctx.store, at, |at| answer.pulls.keys.get(at).copied());
            let (value, behind) = rest.split_at(self.ctx.value_len(key));
            rest = behind;
            let ticket = tickets.next().expect("tickets do not end");
            if self.awaits_answer(from, key, true, ticket) {
                self.ctx.learn(key, Location { node: from, counter });
                self.answered(key, value);
            }
        }
        for (at, (key, counter)) in answer.done.iter().enumerate() {
            store::prefetch_entry_ahead(&self.ctx.store, at, |at| answer.done.keys.get(at).copied());
            let ticket = tickets.next().expect("tickets do not end");
            if self.awaits_answer(from, key, false, ticket) {
                self.ctx.learn(key, Location { node: from, counter });
                self.answered(key, &[]);
            }
        }
        Ok(())
    }
}
