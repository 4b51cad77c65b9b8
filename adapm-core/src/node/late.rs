//! What is to be said to a peer that still owes an answer, or did not fit into the request to it: looked at again when the peer can
//! be asked, not in every round until then.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::mem;

use crate::id::{Key, NodeId};
use crate::node::Node;
use crate::policy::Policy;
use crate::store::Store;

/// Keys that wait for one peer, each once.
#[derive(Debug, Default)]
pub(crate) struct Late {
    /// Keys to ask it for.
    pub(crate) wanted: BTreeSet<Key>,
    /// Keys whose replica has changed, is set or is given up.
    pub(crate) changed: BTreeSet<Key>,
}

impl Late {
    pub(crate) fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.changed.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.wanted.len() + self.changed.len()
    }
}

impl<S: Store, P: Policy> Node<S, P> {
    /// Whether `to` still owes an answer: at most one request to a peer is under way.
    pub(super) fn owes_answer(&self, to: NodeId) -> bool {
        self.peers[to.index()].outstanding.is_some()
    }

    /// Keys that waited for peers which can be asked now: of each as many as a round looks at, from the one on at which its last
    /// request ended.
    pub(super) fn take_late_wanted(&mut self) -> Vec<Key> {
        let most = self.config.requests_max.max(1);
        if planted!(self, ForgetLate) {
            self.peers.iter_mut().for_each(|peer| peer.late = Late::default());
        }
        let free = self.peers.iter_mut().filter(|peer| peer.outstanding.is_none());
        free.flat_map(|peer| take(&mut peer.late.wanted, peer.turn.wanted, most)).collect()
    }

    /// As [`Self::take_late_wanted`], of replicas that have something to say.
    pub(super) fn take_late_changed(&mut self) -> Vec<Key> {
        let most = self.config.requests_max.max(1);
        let free = self.peers.iter_mut().filter(|peer| peer.outstanding.is_none());
        free.flat_map(|peer| take(&mut peer.late.changed, peer.turn.changed, most)).collect()
    }
}

/// Takes at most `most` keys: those from `first` on, then those before it.
fn take(keys: &mut BTreeSet<Key>, first: Key, most: usize) -> Vec<Key> {
    if keys.len() <= most {
        return mem::take(keys).into_iter().collect();
    }
    let taken: Vec<Key> = keys.range(first..).chain(keys.range(..first)).take(most).copied().collect();
    taken.iter().for_each(|key| assert!(keys.remove(key), "it was just found"));
    taken
}
