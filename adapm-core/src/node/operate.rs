//! Operations and forwarded entries of other nodes, and answers to own ones (Lapse §3.3; protocol, sections 5 and 7).
//!
//! Only an owner executes another node's operation; a replica neither answers nor absorbs it.

use alloc::vec::Vec;

use crate::error::Fault;
use crate::id::{Counter, Key, NodeId};
use crate::node::Node;
use crate::node::state::{Access, AskedFor, Unanswered};
use crate::policy::Policy;
use crate::route::{self, Hop};
use crate::slot::{Location, State, Word};
use crate::store::{self, Look, Store};
use crate::wire::message::{Answer, Asked, Forward, Operation};

impl<S: Store, P: Policy> Node<S, P> {
    pub(super) fn handle_operation(
        &mut self,
        from: NodeId,
        operation: Operation,
        values: &[S::Value],
    ) -> Result<(), Fault> {
        self.pass_operation(from, 0, operation, values);
        Ok(())
    }

    pub(super) fn handle_forward(&mut self, forward: Forward, values: &[S::Value]) -> Result<(), Fault> {
        let Forward { origin, hops, intents, localizes, operation } = forward;
        if self.peers[origin.index()].lost {
            return Ok(());
        }
        if origin == self.config.node {
            if self.first_lost.is_some() {
                return Ok(());
            }
            self.check_own(&intents, &localizes, &operation)?;
        }
        for (entries, asked) in [(&intents, AskedFor::Intent), (&localizes, AskedFor::Localize)] {
            for (key, counter) in entries.iter() {
                self.serve_or_pass(origin, hops, key, counter, asked);
            }
        }
        self.pass_operation(origin, hops, operation, values);
        Ok(())
    }

    /// Entries of this node that come back must be unanswered.
    fn check_own(&self, intents: &Asked, localizes: &Asked, operation: &Operation) -> Result<(), Fault> {
        let requested = |key: &Key| self.peek(*key).state() == State::Requested;
        if let Some(key) = intents.keys.iter().chain(localizes.keys.iter()).find(|key| !requested(key)) {
            return Err(Fault::Impossible(*key));
        }
        let lists = [
            (&operation.pulls, Access::Pull),
            (&operation.pushes, Access::Push),
            (&operation.sets, Access::Set),
        ];
        for (list, access) in lists {
            self.check_unanswered(list, |unanswered, _| unanswered.access == access)?;
        }
        Ok(())
    }

    /// The operation on each key must be unanswered and fit the counter that stands with the key.
    fn check_unanswered(
        &self,
        list: &Asked,
        fits: impl Fn(&Unanswered<S::Value>, Counter) -> bool,
    ) -> Result<(), Fault> {
        for (key, counter) in list.iter() {
            let unanswered = self.queues.get(&key).and_then(|queue| queue.unanswered.as_ref());
            if !unanswered.is_some_and(|unanswered| fits(unanswered, counter)) {
                return Err(Fault::Impossible(key));
            }
        }
        Ok(())
    }

    fn pass_operation(&mut self, origin: NodeId, hops: u32, operation: Operation, values: &[S::Value]) {
        let mut rest = values;
        let Operation { pulls, pushes, sets } = operation;
        for (list, access) in [(&pulls, Access::Pull), (&pushes, Access::Push), (&sets, Access::Set)] {
            for (at, (key, counter)) in list.iter().enumerate() {
                store::prefetch_ahead(&self.store, at, |at| list.keys.get(at).copied());
                let len = if access == Access::Pull { 0 } else { self.value_len(key) };
                let (payload, behind) = rest.split_at(len);
                rest = behind;
                let asked = match access {
                    Access::Pull => AskedFor::Pull,
                    Access::Push => AskedFor::Push(payload),
                    Access::Set => AskedFor::Set(payload),
                };
                self.serve_or_pass(origin, hops, key, counter, asked);
            }
        }
    }

    /// Serves an entry of `origin` if this node owns the key, else passes it on.
    pub(super) fn serve_or_pass(
        &mut self,
        origin: NodeId,
        hops: u32,
        key: Key,
        counter: Counter,
        asked: AskedFor<&[S::Value]>,
    ) {
        // A main copy is here for certain, and what is asked for is done in the step that folds it.
        let is_main = self.store.look(key) == Look::Held { with_delta: false };
        if is_main && !matches!(asked, AskedFor::Intent | AskedFor::Localize) {
            self.count_served(key, origin, hops);
            return self.execute(origin, key, asked);
        }
        let word = self.folded(key);
        let hop = route::next_hop(word, key, counter, self.config.node, self.config.nodes);
        if hop != Hop::Here {
            if !self.answer_wrongly(origin, key, word, counter, &asked) {
                self.pass_on(hop, origin, hops, key, counter, asked);
            }
            return;
        }
        self.count_served(key, origin, hops);
        match asked {
            AskedFor::Intent | AskedFor::Localize => {
                // A node that has become owner needs no grant from itself, a holder gets its answer as a hand-over.
                if origin != self.config.node && !self.is_holder(key, origin) {
                    let mut draft = self.take_grant_draft(origin);
                    self.grant(key, word.counter(), origin, asked == AskedFor::Localize, &mut draft);
                    self.put_grant_draft(origin, draft);
                }
            }
            operation => self.execute(origin, key, operation),
        }
    }

    /// The planted mistakes of a node that is not the owner and answers all the same.
    fn answer_wrongly(
        &mut self,
        origin: NodeId,
        key: Key,
        word: Word,
        counter: Counter,
        asked: &AskedFor<&[S::Value]>,
    ) -> bool {
        let (pull, push) = (*asked == AskedFor::Pull, matches!(asked, AskedFor::Push(_)));
        let reads = planted!(self, AnswerFromReplica) && pull && word.state() == State::Replica;
        let gone = word.state() == State::None && word.location().is_some();
        let absorbs = planted!(self, ApplyAtStaleOwner) && push && gone;
        if origin == self.config.node || !(reads || absorbs) {
            return false;
        }
        if reads {
            self.answer_pull(origin, key);
        } else {
            self.answer_done(origin, key, counter);
        }
        true
    }

    fn execute(&mut self, origin: NodeId, key: Key, asked: AskedFor<&[S::Value]>) {
        let is_own = origin == self.config.node;
        if !is_own && asked == AskedFor::Pull {
            if self.answer_pull(origin, key) {
                self.mark_stale(key, None);
            }
            return;
        }
        let mut value = Vec::new();
        let (is_changed, counter) = self.store.with_slot(key, |mut slot| {
            let is_changed = slot.fold();
            match asked {
                AskedFor::Push(update) => slot.apply(update),
                AskedFor::Set(new) => slot.set(new),
                _ => value.extend_from_slice(slot.value),
            }
            (is_changed, slot.word.counter())
        });
        if is_changed || asked != AskedFor::Pull {
            self.mark_stale(key, None);
        }
        if !is_own {
            self.answer_done(origin, key, counter);
        } else if self.queues.get(&key).is_some_and(|queue| queue.unanswered.is_some()) {
            self.answered(key, &value);
        }
    }

    pub(super) fn handle_answer(
        &mut self,
        from: NodeId,
        answer: Answer,
        values: &[S::Value],
    ) -> Result<(), Fault> {
        if self.first_lost.is_some() && !planted!(self, BlameLateAnswer) {
            return Ok(());
        }
        let believes = planted!(self, BelieveAnyAnswer);
        let may_answer = |unanswered: &Unanswered<S::Value>, counter| {
            believes || unanswered.may_be_answered_by(Location { node: from, counter })
        };
        self.check_unanswered(&answer.pulls, |unanswered, counter| {
            unanswered.access == Access::Pull && may_answer(unanswered, counter)
        })?;
        self.check_unanswered(&answer.done, |unanswered, counter| {
            unanswered.access != Access::Pull && may_answer(unanswered, counter)
        })?;
        let mut rest = values;
        for (at, (key, counter)) in answer.pulls.iter().enumerate() {
            store::prefetch_entry_ahead(&self.store, at, |at| answer.pulls.keys.get(at).copied());
            let (value, behind) = rest.split_at(self.value_len(key));
            rest = behind;
            self.learn(key, Location { node: from, counter });
            self.answered(key, value);
        }
        for (at, (key, counter)) in answer.done.iter().enumerate() {
            store::prefetch_entry_ahead(&self.store, at, |at| answer.done.keys.get(at).copied());
            self.learn(key, Location { node: from, counter });
            self.answered(key, &[]);
        }
        Ok(())
    }

    pub(super) fn count_served(&mut self, key: Key, origin: NodeId, hops: u32) {
        self.stats.hops.record(u64::from(hops));
        self.observe(|observer, now| observer.on_served(now, key, origin, hops));
    }
}
