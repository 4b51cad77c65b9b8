//! What a home knows of the owners of its keys (Lapse §3.5; protocol, section 5).
//!
//! A key moves from owner to owner, each of whom tells the home where it went, and these facts may overtake each other. A fact is
//! believed if it continues what is known: it comes from the owner that is recorded, and its counter is the next. Until then it is
//! kept aside. So a node that never owned a key cannot lead its home astray, and a home is at most as far behind as the
//! slowest of these messages.

use alloc::vec::Vec;

use crate::engine::Engine;
use crate::error::Fault;
use crate::id::{Counter, Key, NodeId};
use crate::layout::Layout;
use crate::policy::Policy;
use crate::route;
use crate::slot::{Location, State, Word};
use crate::store::Store;
use crate::wire::message::Residence;

/// What a node says of a key that it had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fact {
    by: NodeId,
    /// Where it went, and the counter there.
    to: Location,
}

impl Fact {
    /// Whether it continues `known`.
    fn follows(&self, known: Location) -> bool {
        self.by == known.node && self.to.counter.0 == known.counter.0 + 1
    }
}

impl<S: Store, P: Policy> Engine<S, P> {
    pub(super) fn handle_residence(&mut self, from: NodeId, residence: Residence) -> Result<(), Fault> {
        let facts = || residence.at.iter().zip(&residence.owners);
        for ((key, counter), owner) in facts() {
            // Only homes are told, and nobody is told what it was given itself, or that a key stays.
            let away = Layout::home(key, self.ctx.config.nodes) != self.ctx.config.node;
            if away || *owner == self.ctx.config.node || *owner == from || counter == Counter(0) {
                return Err(Fault::Impossible(key));
            }
        }
        for ((key, counter), &owner) in facts() {
            self.hear_fact(key, Fact { by: from, to: Location { node: owner, counter } });
        }
        Ok(())
    }

    fn hear_fact(&mut self, key: Key, fact: Fact) {
        let word = self.ctx.word(key);
        let known = route::believed(word, key, self.ctx.config.nodes);
        if planted!(self.ctx, TrustLatestFact) {
            self.ctx.store.with_slot(key, |mut slot| {
                if slot.word.state() == State::None {
                    *slot.word = Word::EMPTY;
                }
                slot.learn(fact.to);
            });
            return self.unpark(key);
        }
        // Whoever gave the home a copy has told it the counter: it cannot be behind.
        let is_held = matches!(word.state(), State::Main | State::Replica);
        // After a loss the fact in between may be gone, and who is left is believed.
        let is_believed =
            fact.follows(known) || self.ctx.first_lost.is_some() || planted!(self.ctx, BelieveAnyResidence);
        if is_held || fact.to.counter <= known.counter {
            self.settle_early(key);
        } else if is_believed {
            self.record(key, word, fact.to);
            self.settle_early(key);
        } else if self.peers[fact.by.index()].early < EARLY_MAX {
            self.peers[fact.by.index()].early += 1;
            self.early.entry(key).or_default().push(fact);
        }
    }

    /// Looks again at facts that have come early: those that follow on what is known are believed, those behind it are forgotten.
    fn settle_early(&mut self, key: Key) {
        if self.early.is_empty() {
            return;
        }
        let Some(mut facts) = self.early.remove(&key) else { return };
        facts.sort_unstable_by_key(|fact| (fact.to.counter, fact.by));
        let any = self.ctx.first_lost.is_some();
        facts.retain(|fact| {
            let word = self.ctx.word(key);
            let known = route::believed(word, key, self.ctx.config.nodes);
            let is_held = matches!(word.state(), State::Main | State::Replica);
            let is_news = fact.to.counter > known.counter;
            let is_believed = is_news && !is_held && (any || fact.follows(known));
            if is_believed {
                self.record(key, word, fact.to);
            }
            let stays = is_news && !is_believed;
            if !stays {
                self.peers[fact.by.index()].early -= 1;
            }
            stays
        });
        if !facts.is_empty() {
            self.early.insert(key, facts);
        }
    }

    fn record(&mut self, key: Key, word: Word, there: Location) {
        if word.state() == State::Requested {
            let asked = self.ctx.first_hop(key, word).node;
            self.intents.note_asked_before(key, asked);
        }
        self.ctx.store.with_slot(key, |mut slot| slot.learn(there));
        self.unpark(key);
    }

    /// A node is lost, and perhaps a fact between two others: all that is left is believed.
    pub(super) fn settle_all_early(&mut self, lost: NodeId) {
        for facts in self.early.values_mut() {
            facts.retain(|fact| fact.by != lost);
        }
        self.peers[lost.index()].early = 0;
        let mut keys: Vec<Key> = self.early.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            self.settle_early(key);
        }
        self.intents.forget_asked_before();
    }
}

/// Facts of one node that are kept aside; of a node that tells so many ahead of others, the next are not heard, and entries reach
/// their owners by way of former ones.
const EARLY_MAX: usize = 1 << 16;
