//! Relocation: the main copy moves, and with it the responsibility for the key (AdaPM §B.1, AdaPM §B.2.4; Lapse §3.2).
//!
//! # Departure
//! In Lapse the home starts a relocation. Here the owner gives the key away and tells the home afterwards, so that a node
//! that asks the owner directly leaves the home out (AdaPM §B.1.1).

use hashbrown::hash_map::Entry;

use crate::engine::Engine;
use crate::engine::drafts::GrantDraft;
use crate::engine::input::OpId;
use crate::engine::interest::{Mark, Request};
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
                    self.wish(key, id);
                    self.end_waiters(key);
                }
                State::None | State::Requested | State::Releasing => self.wish(key, id),
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
            if self.ctx.policy.relocates_under_intent()
                && let Some(interest) = self.interests.get_mut(&key)
            {
                interest.put(Mark::HadTurn);
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
            self.draft_residence(home, key, if planted!(self.ctx, OlderResidence) { older } else { there });
        }
        self.ctx.observe(|observer, now| observer.on_relocation(now, key, there.node, there.counter));
        self.ask_later(key);
    }

    /// Ownership of a key in `state` has arrived, with a grant or hand-over of `former.node`, under the counter of `former`. Returns
    /// the request that is so answered.
    pub(super) fn arrive(
        &mut self,
        key: Key,
        state: State,
        former: Location,
        version: Version,
        value: Option<&[S::Value]>,
    ) -> Option<Request> {
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
        let mut request = None;
        if let Entry::Occupied(mut entry) = self.interests.entry(key) {
            let interest = entry.get_mut();
            interest.take(Mark::HadTurn);
            interest.take(Mark::Unsent);
            request = interest.take_request();
            let is_granted = interest.take(Mark::Wished);
            let is_last = interest.signals == 0;
            if is_last {
                entry.remove();
            }
            if is_granted {
                self.grant_wish(key);
                if is_last {
                    self.lost_interest(key);
                }
            }
        }
        self.forget_asked_before(key);
        request.into_iter().for_each(|request| self.note_answered(request));
        self.advance(key);
        self.unpark(key);
        request
    }

    /// The localize of `key` has brought ownership.
    fn grant_wish(&mut self, key: Key) {
        let Some(wish) = self.wishes.remove(&key) else { return };
        if let Some(due) = wish.due {
            self.agenda.wishes.remove(&(due, key));
        }
        wish.waiters.into_iter().for_each(|waiter| self.finish(waiter));
    }
}
