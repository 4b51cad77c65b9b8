//! What the loss of a peer ends (protocol, section 9): operations of this node, its copies of the peer's keys, and every
//! wait for the peer.
//!
//! | what | after a loss |
//! | --- | --- |
//! | unfinished operations, collective ones too | fail and name the lost node |
//! | new operations | served at once where all their keys are local, else fail at once |
//! | replicas of the lost node's keys | are gone; what they had not sent is gone with them |
//! | main copies here | stay; the lost node is no holder any more, and is never granted anything |
//! | a key `Requested` | stays so: a survivor's grant may be on its way, and must not be lost |
//! | a key `Releasing` | stays so until the release is answered, forever if nobody is left to answer |
//! | rounds with survivors | go on with deltas, releases, refreshes, hand-overs; nothing new is asked for |
//! | entries of other nodes | served by an owner, passed on to survivors, never parked |
//! | barriers, waves | nothing is coordinated or answered any more |
//! | messages of the lost node | ignored |
//! | answers to what has failed, own entries that come back | ignored: they are late, nobody is to blame |
//!
//! # Why no operation that needs another node begins after a loss
//! Survivors hear of a loss at different moments. An operation that leaves now may pass a node that has dropped what it
//! waits for, or be forwarded to the lost node by one that has not heard of it yet, and its answer would never come. To
//! wait soundly, word of a loss would have to travel ahead of everything that its finder says afterwards: one more message
//! for a cluster that must be started again anyway. So a node either serves an operation itself or fails it, and whoever
//! waits for an entry that a survivor has dropped hears of the loss in time, which fails all that it waits for.

use alloc::vec::Vec;
use core::mem;

use crate::engine::Engine;
use crate::engine::input::OpId;
use crate::engine::state::KeyMap;
use crate::error::OpError;
use crate::id::{Key, NodeId};
use crate::policy::Policy;
use crate::route;
use crate::slot::State;
use crate::store::Store;

impl<S: Store, P: Policy> Engine<S, P> {
    /// Costs one look at every held copy of the store, once per lost node.
    pub(super) fn handle_peer_lost(&mut self, node: NodeId) -> Result<(), OpError> {
        if node.index() >= self.ctx.config.nodes || node == self.ctx.config.node {
            return Err(OpError::NotAPeer { node });
        }
        if !self.ctx.lost.insert(node) {
            return Ok(());
        }
        self.ctx.first_lost.get_or_insert(node);
        self.fail_all(node);
        self.forget_questions();
        let peer = mem::take(&mut self.peers[node.index()]);
        // Replicas that have become main copies here may be among them.
        self.agenda.dirty.extend(peer.late.changed);
        self.agenda.dirty.extend(peer.late.sealed);
        if let Some(outstanding) = peer.outstanding
            && !planted!(self.ctx, AwaitLost)
        {
            self.close_round(outstanding.round, 1, 0);
        }
        let orphans = if planted!(self.ctx, KeepOrphan) { Vec::new() } else { self.replicas_of(node) };
        for key in orphans {
            self.ctx.store.with_slot(key, |mut slot| slot.abandon());
            self.ctx.store.release(key);
            self.ctx.observe(|observer, now| observer.on_replica_released(now, key));
        }
        self.residences.forget_peer(&mut self.ctx, node);
        self.intents.forget_asked_before();
        self.ownership.forget_peer(&mut self.ctx, &self.intents, node);
        Ok(())
    }

    /// The lost node without which an operation on `keys` cannot be done; `None` if all of them are local, or none is lost.
    pub(super) fn lost_for(&self, keys: &[Key], needs_owner: bool) -> Option<NodeId> {
        let first = self.ctx.first_lost?;
        let local = |key: &&Key| match self.ctx.peek(**key).state() {
            State::Main => true,
            State::Replica => !needs_owner,
            State::None | State::Requested | State::Releasing => false,
        };
        let far = keys.iter().find(|key| !local(key))?;
        let hop = self.ctx.first_hop(*far, self.ctx.peek(*far)).node;
        Some(if self.ctx.is_lost(hop) || planted!(self.ctx, NameHopAsLost) { hop } else { first })
    }

    /// Every unfinished operation waits for another node: for the lost one, or for one that may have dropped it.
    fn fail_all(&mut self, node: NodeId) {
        let spared = if planted!(self.ctx, ForgetForwarded) { self.sent_elsewhere(node) } else { Vec::new() };
        let mut ops: Vec<OpId> = mem::take(&mut self.ops).into_keys().collect();
        ops.sort_unstable();
        ops.extend(self.collectives.give_up());
        for op in ops.into_iter().filter(|op| !spared.contains(op)) {
            self.ctx.fail(op, OpError::lost(node));
        }
    }

    /// The planted mistake: operations whose message left for a survivor, who may have forwarded it to the lost node.
    fn sent_elsewhere(&self, node: NodeId) -> Vec<OpId> {
        let away = |key: &Key| self.ctx.first_hop(*key, self.ctx.word(*key)).node != node;
        let queues = self.queues.iter().filter(|(key, _)| away(key));
        let unanswered = queues.filter_map(|(_, queue)| queue.unanswered.as_ref());
        unanswered.flat_map(|unanswered| unanswered.items.iter().map(|item| item.op)).collect()
    }

    /// Drops what waits for answers, here and for others. Requests to survivors stay: they are answered.
    fn forget_questions(&mut self) {
        self.queues = KeyMap::default();
        self.parked = KeyMap::default();
        for peer in &mut self.peers {
            peer.parked = 0;
            peer.late.wanted.clear();
        }
        self.close_round(self.ctx.round, 0, self.round.grants);
        for list in [&mut self.agenda.set, &mut self.agenda.resend] {
            *list = Vec::new();
        }
        self.intents.give_up(&mut self.ctx);
    }

    /// Replicas held here of keys that `node` owns: a main copy does not move while somebody else holds a replica.
    fn replicas_of(&self, node: NodeId) -> Vec<Key> {
        let mut keys = Vec::new();
        self.ctx.store.visit(self.ctx.layout.keys(), |key, slot| {
            let owner = route::believed(*slot.word, key, self.ctx.config.nodes).node;
            if slot.word.state() == State::Replica && owner == node && self.ctx.is_own_channel(key) {
                keys.push(key);
            }
        });
        keys
    }
}
