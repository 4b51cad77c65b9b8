//! Replication: the owner is the hub of all replicas of its keys (AdaPM §4.1, AdaPM §B.1.2; protocol, section 3).

use core::mem;

use crate::engine::Engine;
use crate::engine::outgoing::GrantDraft;
use crate::error::Fault;
use crate::id::{Counter, Key, NodeId};
use crate::policy::Policy;
use crate::route;
use crate::slot::{State, Word};
use crate::store::{Look, Store};
use crate::wire::Message;
use crate::wire::message::{Body, GrantKind};

impl<S: Store, P: Policy> Engine<S, P> {
    /// Grants `to` a replica of `key`, owned here.
    pub(super) fn replicate(&mut self, key: Key, counter: Counter, to: NodeId, draft: &mut GrantDraft) {
        draft.add(key, counter, GrantKind::Replica, |block| {
            self.ctx.store.with_slot(key, |mut slot| {
                slot.watch(true);
                block.push(slot.value);
                (*slot.version, ())
            })
        });
        if !planted!(self.ctx, ForgetHolder) {
            let holding = self.holdings.entry(key).or_default();
            holding.nodes.insert(to);
            holding.hand_over &= planted!(self.ctx, HandOverUnderHolders);
        }
        self.ctx.observe(|observer, now| observer.on_replica_set_up(now, key, to));
    }

    /// Notes that every holder of `key` but `except` lacks a change.
    pub(super) fn mark_stale(&mut self, key: Key, except: Option<NodeId>) {
        let Some(holding) = self.holdings.get_mut(&key) else { return };
        let again = planted!(self.ctx, MarkStaleAgain);
        // Of many holders most are stale already when the next change comes.
        if holding.stale.len() == holding.nodes.len() && !again {
            return;
        }
        let mut at = 0;
        for node in holding.nodes.iter().filter(|node| Some(*node) != except) {
            while holding.stale.get(at).is_some_and(|(stale, _)| *stale < node) {
                at += 1;
            }
            if again || holding.stale.get(at).is_none_or(|(stale, _)| *stale != node) {
                holding.stale.insert(at, (node, self.ctx.now));
                self.peers[node.index()].due.push_back(key);
                self.newsworthy.push(node);
            }
        }
    }

    /// If `key` is owned here and workers have changed it since its holders were last marked, marks them. Returns its word.
    pub(super) fn fold(&mut self, key: Key) -> Word {
        let (is_changed, word) = self.ctx.store.with_slot(key, |mut slot| {
            let is_changed = slot.word.state() == State::Main && slot.fold();
            (is_changed, *slot.word)
        });
        if is_changed {
            self.mark_stale(key, None);
        }
        word
    }

    /// The key's word as `Engine::word` gives it, folded if `key` is owned here.
    pub(super) fn folded(&mut self, key: Key) -> Word {
        if let Look::Held { .. } = self.ctx.store.look(key) {
            return self.fold(key);
        }
        match self.ctx.word(key) {
            word if word.state() == State::Main => self.fold(key),
            word => word,
        }
    }

    pub(super) fn drop_holder(&mut self, key: Key, node: NodeId) {
        let Some(holding) = self.holdings.get_mut(&key) else { return };
        holding.nodes.remove(node);
        if !planted!(self.ctx, KeepStale) {
            holding.stale.retain(|(stale, _)| *stale != node);
        }
        holding.hand_over = false;
        if holding.nodes.is_empty() {
            if !planted!(self.ctx, LeakSideEntry) {
                self.holdings.remove(&key);
            }
            self.ctx.store.with_slot(key, |mut slot| slot.watch(false));
        }
        self.ctx.observe(|observer, now| observer.on_replica_dropped(now, key, node));
        self.reconsider(key);
    }

    pub(super) fn is_holder(&self, key: Key, node: NodeId) -> bool {
        self.holdings.get(&key).is_some_and(|holding| holding.nodes.contains(node))
    }

    pub(super) fn is_only_holder(&self, key: Key, node: NodeId) -> bool {
        self.holdings.get(&key).is_some_and(|holding| holding.nodes.as_slice() == [node])
    }

    /// The owner of a replica held here: while it is held, the main copy can only move here.
    pub(super) fn owner_of_replica(&self, key: Key) -> NodeId {
        route::believed(self.ctx.word(key), key, self.ctx.config.nodes).node
    }

    /// Whether a localize entry of a replica is on its way: per key at most one entry is unanswered.
    pub(super) fn is_localizing(&self, key: Key, word: Word) -> bool {
        let Some(location) = word.location() else { return false };
        let outstanding = &self.peers[location.node.index()].outstanding;
        outstanding.as_ref().is_some_and(|outstanding| outstanding.localizes.binary_search(&key).is_ok())
    }

    pub(super) fn handle_news(&mut self, from: NodeId) -> Result<(), Fault> {
        self.peers[from.index()].news = true;
        Ok(())
    }

    /// Tells every peer for which something has come up since its last request, once.
    pub(super) fn send_news(&mut self) {
        let mut nodes = mem::take(&mut self.newsworthy);
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes.drain(..) {
            let peer = &mut self.peers[node.index()];
            if !peer.due.is_empty() && !peer.told {
                peer.told = true;
                self.ctx.send(node, Message::bare(Body::News));
            }
        }
        self.newsworthy = nodes;
    }
}
