//! What tests, statistics and quiesce see of an engine.

use alloc::vec::Vec;

use crate::engine::Engine;
use crate::id::NodeId;
use crate::policy::Policy;
use crate::store::Store;

/// What an engine keeps for one key, for tests.
#[cfg(feature = "testing")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyView {
    /// State, bits and location.
    pub word: crate::slot::Word,
    /// The version of a held copy.
    pub version: crate::id::Version,
    /// Nodes that the owner knows to have a replica.
    pub holders: Vec<NodeId>,
    /// Holders that lack a change.
    pub stale: Vec<NodeId>,
    /// Active signals, each as often as it names the key, and the localize.
    pub intent_count: usize,
    /// Entries of other nodes that wait here.
    pub parked: usize,
    /// Where this node's unanswered operation message went first, if there is one.
    pub unanswered: Option<crate::slot::Location>,
    /// Operations of this node that wait.
    pub waiting: usize,
}

impl<S: Store, P: Policy> Engine<S, P> {
    /// Returns true if nothing waits: no dirty keys, releases, sets, stale holders, parked or unanswered entries, and no signals
    /// that a round was due to look at.
    pub fn is_at_rest(&self) -> bool {
        let is_left = |(node, _): &(NodeId, &super::state::Peer)| !self.ctx.is_lost(*node);
        let peers = self.ctx.nodes().zip(&self.peers).filter(is_left).map(|(_, peer)| peer);
        let busy =
            |peer: &super::state::Peer| peer.outstanding.is_some() || peer.news || !peer.late.is_empty();
        self.ownership.is_at_rest(&self.ctx)
            && !peers.into_iter().any(busy)
            && self.agenda.is_empty()
            && self.intents.is_at_rest()
            && self.queues.is_empty()
            && self.parked.is_empty()
            && self.ops.is_empty()
            && !self.collectives.waits_for_sync()
    }

    /// Entries in all side maps and queues: the memory for protocol state in units of entries.
    pub fn side_entries(&self) -> usize {
        let queues: usize = self.queues.values().map(|queue| queue.waiting.len() + 1).sum();
        let parked: usize = self.parked.values().map(Vec::len).sum();
        let peers: usize = self.peers.iter().map(|peer| peer.late.len()).sum();
        let agenda = &self.agenda;
        let lists = [&agenda.release, &agenda.dirty, &agenda.set, &agenda.resend];
        let lists: usize = lists.iter().map(|list| list.len()).sum();
        let machines =
            self.intents.side_entries() + self.ownership.side_entries() + self.residences.side_entries();
        machines + queues + parked + peers + lists + self.ops.len()
    }

    /// What the engine keeps for `key`.
    #[cfg(feature = "testing")]
    pub fn inspect(&self, key: crate::id::Key) -> KeyView {
        let (word, version) = self.ctx.store.with_slot(key, |slot| (*slot.word, *slot.version));
        let [holders, stale] = self.ownership.holders_of(key);
        let queue = self.queues.get(&key);
        KeyView {
            word,
            version,
            holders,
            stale,
            intent_count: self.intents.count(key),
            parked: self.parked.get(&key).map_or(0, Vec::len),
            unanswered: queue.and_then(|queue| queue.unanswered.as_ref()).map(|unanswered| unanswered.asked),
            waiting: queue.map_or(0, |queue| queue.waiting.len()),
        }
    }

    /// Plants a mistake, to prove that the suites find it.
    #[cfg(feature = "testing")]
    pub fn plant(&mut self, bug: crate::testing::Bug) {
        self.ctx.bug = Some(bug);
    }
}
