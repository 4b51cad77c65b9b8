//! Relocation: the main copy moves, and with it the responsibility for the key (AdaPM §B.1, AdaPM §B.2.4; Lapse §3.2).
//!
//! # Departure
//! In Lapse the home starts a relocation. Here the owner gives the key away and tells the home afterwards, so that a node
//! that asks the owner directly leaves the home out (AdaPM §B.1.1).

use crate::engine::Engine;
use crate::engine::input::OpId;
use crate::engine::outgoing::GrantDraft;
use crate::engine::room::Room;
use crate::engine::state::OpState;
use crate::error::OpError;
use crate::id::{Counter, Key, NodeId, Version};
use crate::layout::Layout;
use crate::policy::Policy;
use crate::slot::{Location, State};
use crate::store::Store;
use crate::value::Block;
use crate::wire::message::{GrantKind, Owners};

impl<S: Store, P: Policy> Engine<S, P> {
    /// `localize` of a worker (Lapse §3.2): done when every key is local.
    pub(super) fn localize(&mut self, id: OpId, keys: &[Key]) {
        if let Some(node) = self.lost_for(keys, false) {
            return self.ctx.fail(id, OpError::lost(node));
        }
        self.ops
            .insert(id, OpState { remaining: keys.len() + 1, values: alloc::vec::Vec::new(), access: None });
        for &key in keys {
            match self.ctx.state(key) {
                State::Main => self.finish(id),
                State::Replica if self.ctx.first_lost.is_some() => self.finish(id),
                State::Replica => {
                    self.intents.wish(&mut self.ctx, key, id);
                    self.intents.end_waiters(&mut self.ctx, key);
                }
                State::None | State::Requested | State::Releasing => {
                    self.intents.wish(&mut self.ctx, key, id)
                }
            }
        }
        self.finish(id);
    }

    /// Grants `to` the main copy of `key`, owned here by this fact and held nowhere else.
    pub(super) fn relocate(&mut self, key: Key, counter: Counter, to: NodeId, draft: &mut GrantDraft) {
        let there = Location { node: to, counter: counter.next() };
        let keep = planted!(self.ctx, KeepMainCopy);
        draft.add(key, there.counter, GrantKind::Owner, |block| {
            self.ctx.store.with_slot(key, |mut slot| {
                block.push(slot.value);
                if !keep {
                    slot.hand_over(there);
                }
                (*slot.version, ())
            })
        });
        if !keep {
            if self.ctx.policy.relocates_under_intent() {
                self.intents.note_turn_over(key);
            }
            self.left(key, there);
        }
    }

    /// Hands `key` over to its single holder, with a value if `is_stale` or workers here have changed it since. Returns false, and
    /// leaves it here, if a value must go along for which there is no `room`; `None`: its room is taken already.
    pub(super) fn write_hand_over(
        &mut self,
        key: Key,
        to: NodeId,
        is_stale: bool,
        room: Option<&mut Room>,
        owners: &mut Owners,
        block: &mut Block,
    ) -> bool {
        let bytes_max = self.ctx.config.block_bytes_max;
        let there = Location { node: to, counter: self.ctx.word(key).counter().next() };
        let handed_over = self.ctx.store.with_slot(key, |mut slot| {
            let with_value = is_stale || (slot.word.is_dirty() && !planted!(self.ctx, HandOverUnread));
            let bytes = if with_value { size_of_val(slot.value) } else { 0 };
            if room.is_some_and(|room| !room.widen(bytes, bytes_max)) {
                return None;
            }
            if with_value {
                block.push(slot.value);
            }
            slot.hand_over(there);
            Some((*slot.version, with_value))
        });
        let Some((version, with_value)) = handed_over else { return false };
        owners.at.push(key, there.counter);
        owners.versions.push(version);
        owners.with_value.push(with_value);
        self.count_served(key, to, 0);
        self.left(key, there);
        true
    }

    fn left(&mut self, key: Key, there: Location) {
        if !planted!(self.ctx, LeakCopy) {
            self.ctx.store.release(key);
        }
        if !self.holdings.is_empty() {
            self.holdings.remove(&key);
        }
        let home = Layout::home(key, self.ctx.config.nodes);
        if home != self.ctx.config.node && home != there.node {
            let older = Location { counter: Counter(there.counter.0 - 1), ..there };
            self.outgoing.add_residence(
                home,
                key,
                if planted!(self.ctx, OlderResidence) { older } else { there },
            );
        }
        self.ctx.observe(|observer, now| observer.on_relocation(now, key, there.node, there.counter));
        self.intents.ask_later(key);
    }

    /// Ownership of a key in `state` has arrived, with a grant or hand-over of `former.node`, under the counter of `former`.
    pub(super) fn arrive(
        &mut self,
        key: Key,
        state: State,
        former: Location,
        version: Version,
        value: Option<&[S::Value]>,
    ) {
        let replica = state == State::Replica;
        if replica {
            let owner = self.owner_of_replica(key);
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
}
