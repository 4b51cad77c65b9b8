//! Decisions: the owner chooses between relocation and replication (AdaPM §4.1, AdaPM §B.1.1, AdaPM §B.2.4; protocol,
//! section 4).
//!
//! The policy proposes; the mechanism lets the main copy move only when no node other than the receiver holds a replica.

use crate::engine::Engine;
use crate::engine::outgoing::GrantDraft;
use crate::id::{Counter, Key, NodeId, Version};
use crate::node_set::NodeSet;
use crate::policy::{Placement, Policy, View};
use crate::slot::State;
use crate::store::Store;
use crate::wire::message::GrantKind;

impl<S: Store, P: Policy> Engine<S, P> {
    /// Answers an intent or localize of `origin`, which holds no replica, for a key owned here and just folded.
    pub(super) fn grant(
        &mut self,
        key: Key,
        counter: Counter,
        origin: NodeId,
        localize: bool,
        draft: &mut GrantDraft,
    ) {
        let owner_has_intent = self.intents.is_interested(key) && !planted!(self.ctx, HideOwnIntent);
        let movable = counter < Counter::MAX;
        let none = NodeSet::new();
        let holders = self.holdings.get(&key).map_or(&none, |holding| &holding.nodes);
        let placement = if localize {
            // The worker's own decision, under every policy (Lapse §3.2).
            let alone = holders.is_empty() || planted!(self.ctx, RelocateUnderHolders);
            if alone && movable { Placement::Relocate } else { Placement::Replicate }
        } else {
            let holders = if planted!(self.ctx, HideHolders) { &none } else { holders };
            let wanted = self.ctx.policy.place(&View { key, requester: origin, holders, owner_has_intent });
            let safe = movable
                && holders.is_empty()
                && (!owner_has_intent || self.ctx.policy.relocates_under_intent());
            match wanted {
                Placement::Relocate if !safe => {
                    self.ctx.stats.coerced += 1;
                    Placement::Replicate
                }
                wanted => wanted,
            }
        };
        match placement {
            Placement::Relocate => self.relocate(key, counter, origin, draft),
            Placement::Replicate => self.replicate(key, counter, origin, draft),
            Placement::Keep => {
                self.ctx.stats.refusals += 1;
                draft.add(key, counter, GrantKind::Remote, |_| (Version(0), ()));
            }
        }
    }

    /// Asks the policy again for the single remaining holder of a key for which the owner has no active intent.
    pub(super) fn reconsider(&mut self, key: Key) {
        let Some(holding) = self.holdings.get(&key) else { return };
        if self.intents.is_interested(key) || self.ctx.state(key) != State::Main {
            return;
        }
        let [holder] = *holding.nodes.as_slice() else { return };
        if holding.hand_over {
            return;
        }
        let view = View { key, requester: holder, holders: &NodeSet::new(), owner_has_intent: false };
        if self.is_movable(key) && self.ctx.policy.place(&view) == Placement::Relocate {
            self.decide_hand_over(key, holder);
        }
    }

    /// Whether the key's relocation counter has room: a peer may have given it any.
    pub(super) fn is_movable(&self, key: Key) -> bool {
        self.ctx.word(key).counter() < Counter::MAX
    }

    /// The key goes to its single holder with the response to that node's next request.
    pub(super) fn decide_hand_over(&mut self, key: Key, holder: NodeId) {
        if let Some(holding) = self.holdings.get_mut(&key) {
            holding.hand_over = true;
            self.peers[holder.index()].due.push_back(key);
            self.newsworthy.push(holder);
        }
    }
}
