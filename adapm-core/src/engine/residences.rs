//! The home's knowledge of the owners of its keys (Lapse §3.5; protocol, "Routing").
//!
//! A key moves from owner to owner; each notifies the home where the key went, and these facts may
//! overtake each other. A fact is accepted if it continues the record: it comes from the recorded
//! owner, and its counter is the next. Until then it is kept aside. So a node that never owned a
//! key cannot mislead its home, and a home is at most as far behind as the slowest of these
//! messages.

use alloc::vec::Vec;

use crate::engine::ctx::{Ctx, Env, KeyMap};
use crate::engine::effect::Effect;
use crate::error::Fault;
use crate::id::{Counter, Key, NodeId};
use crate::route;
use crate::slot::{Location, PackedState, State};
use crate::store::Store;
use crate::wire::message::Residence;

/// A former owner's report on a key.
#[derive(Clone, Copy, Debug)]
struct Fact {
    by: NodeId,
    /// The new owner, and its counter.
    to: Location,
}

impl Fact {
    /// Returns true if it continues `known`.
    fn follows(&self, known: Location) -> bool {
        self.by == known.node && self.to.counter.0 == known.counter.0 + 1
    }
}

/// Facts that a home cannot place yet.
#[derive(Debug)]
pub(super) struct Residences {
    /// Facts that do not yet follow the record of their key.
    early: KeyMap<Vec<Fact>>,
    /// Number of these facts, by the node that reported them.
    told: Vec<usize>,
}

impl Residences {
    pub(super) fn new(nodes: usize) -> Self {
        Self { early: KeyMap::default(), told: alloc::vec![0; nodes] }
    }

    /// Returns the number of facts kept aside.
    pub(super) fn side_entries(&self) -> usize {
        self.told.iter().sum()
    }

    pub(super) fn handle_residence(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        from: NodeId,
        residence: Residence,
    ) -> Result<(), Fault> {
        let facts = || residence.at.iter().zip(&residence.owners);
        for ((key, counter), owner) in facts() {
            // Only homes are notified; no node receives facts about its own arrivals, or keys that
            // stay.
            let away = ctx.config.homes.home(key) != ctx.config.node;
            if away || *owner == ctx.config.node || *owner == from || counter == Counter(0) {
                return Err(Fault::Impossible(key));
            }
        }
        for ((key, counter), &owner) in facts() {
            self.hear_fact(ctx, key, Fact { by: from, to: Location { node: owner, counter } });
        }
        Ok(())
    }

    fn hear_fact(&mut self, ctx: &mut Ctx<impl Env>, key: Key, fact: Fact) {
        let packed = ctx.packed(key);
        let known = route::believed(packed, key, &ctx.config.homes);
        // The node that gave the home a copy has also sent the counter: the home cannot be behind.
        let is_held = matches!(packed.state(), State::Main | State::Replica);
        // After a loss the fact in between may be gone, so facts from survivors are accepted.
        let is_believed = fact.follows(known) || ctx.first_lost.is_some();
        if is_held || fact.to.counter <= known.counter {
            self.settle_early(ctx, key);
        } else if is_believed {
            record(ctx, key, packed, fact.to);
            self.settle_early(ctx, key);
        } else if self.told[fact.by.index()] < EARLY_MAX {
            self.told[fact.by.index()] += 1;
            self.early.entry(key).or_default().push(fact);
        }
    }

    /// Re-examines early facts of `key`: believes those that follow the record, drops outdated
    /// ones.
    fn settle_early(&mut self, ctx: &mut Ctx<impl Env>, key: Key) {
        if self.early.is_empty() {
            return;
        }
        let Some(mut facts) = self.early.remove(&key) else { return };
        facts.sort_unstable_by_key(|fact| (fact.to.counter, fact.by));
        let any = ctx.first_lost.is_some();
        facts.retain(|fact| {
            let packed = ctx.packed(key);
            let known = route::believed(packed, key, &ctx.config.homes);
            let is_held = matches!(packed.state(), State::Main | State::Replica);
            let is_news = fact.to.counter > known.counter;
            // Facts in between begin with the recorded owner's. While it lives, its report is on
            // its way; if it is lost, that may never come.
            let may_be_gone = any && (!ctx.is_lost(fact.by) || ctx.is_lost(known.node));
            let is_believed = is_news && !is_held && (fact.follows(known) || may_be_gone);
            if is_believed {
                record(ctx, key, packed, fact.to);
            }
            let stays = is_news && !is_believed;
            if !stays {
                self.told[fact.by.index()] -= 1;
            }
            stays
        });
        if !facts.is_empty() {
            self.early.insert(key, facts);
        }
    }

    /// Believes everything that survivors have reported: a fact between two others may be lost with
    /// a node. Facts of lost nodes still wait while the recorded owner is alive, whose report may
    /// be on its way.
    pub(super) fn believe_survivors(&mut self, ctx: &mut Ctx<impl Env>) {
        let mut keys: Vec<Key> = self.early.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            self.settle_early(ctx, key);
        }
    }
}

fn record(ctx: &mut Ctx<impl Env>, key: Key, packed: PackedState, there: Location) {
    // After a loss no new requests are made, and nothing would remove this record.
    if packed.state() == State::Requested && ctx.first_lost.is_none() {
        let asked = ctx.first_hop(key, packed).node;
        ctx.ask(Effect::AskedBefore { key, asked });
    }
    ctx.store.with_slot(key, |mut slot| slot.learn(there));
    ctx.ask(Effect::Unpark(key));
}

/// Most facts of one node that are kept aside. Further ones are ignored, and entries reach their
/// owners by way of former ones. As many facts of a lost liar may stay for good.
const EARLY_MAX: usize = 1 << 16;
