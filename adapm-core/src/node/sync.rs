//! `wait_sync`: every push made before is in the main copies, and every replica here has been refreshed since the call
//! (protocol, section 7).

use alloc::vec::Vec;

use crate::id::NodeId;
use crate::node::Node;
use crate::node::input::OpId;
use crate::node::state::Access;
use crate::policy::Policy;
use crate::route;
use crate::slot::State;
use crate::store::Store;

/// One waiting call.
#[derive(Debug)]
pub(super) struct SyncWait {
    op: OpId,
    /// Pushes and sets that were unfinished at the call.
    writes: Vec<OpId>,
    /// Once the writes are done: peers that still have to answer a marked request without `more`. `None` before.
    peers: Option<Vec<Awaited>>,
}

#[derive(Debug)]
struct Awaited {
    node: NodeId,
    /// Whether a marked request that left after the call is on its way.
    sent: bool,
}

impl SyncWait {
    pub(super) fn op(&self) -> OpId {
        self.op
    }

    /// Whether a marked request still has to leave.
    pub(super) fn wants_request(&self) -> bool {
        self.peers.as_ref().is_some_and(|peers| peers.iter().any(|peer| !peer.sent))
    }
}

impl<S: Store, P: Policy> Node<S, P> {
    pub(super) fn wait_sync(&mut self, op: OpId) {
        let is_write = |access| matches!(access, Some(Access::Push | Access::Set));
        let mut writes: Vec<OpId> =
            self.ops.iter().filter(|(_, state)| is_write(state.access)).map(|(id, _)| *id).collect();
        writes.sort_unstable();
        self.syncs.push(SyncWait { op, writes, peers: None });
        self.progress_syncs();
    }

    /// Moves waiting calls on after an operation or an answer.
    pub(super) fn progress_syncs(&mut self) {
        let mut done = Vec::new();
        for sync in &mut self.syncs {
            sync.writes.retain(|op| self.ops.contains_key(op));
            if sync.writes.is_empty() && sync.peers.is_none() {
                // A peer is concerned if replicas of its keys are here, or a request to it may carry their last deltas.
                let concerned = self
                    .peers
                    .iter()
                    .enumerate()
                    .filter(|(_, peer)| peer.replicas > 0 || peer.outstanding.is_some());
                let awaited = concerned.map(|(index, _)| Awaited { node: NodeId(index as u16), sent: false });
                sync.peers = Some(awaited.collect());
            }
            if sync.peers.as_ref().is_some_and(Vec::is_empty) {
                done.push(sync.op);
            }
        }
        self.syncs.retain(|sync| !done.contains(&sync.op));
        for op in done {
            self.done(op, Vec::new());
        }
    }

    /// Whether the request to `node` that leaves now carries the mark: everything dirty for that node leaves with it.
    pub(super) fn wants_sync(&mut self, node: NodeId) -> bool {
        if !self.syncs.iter().any(SyncWait::wants_request) || self.owes_answer(node) {
            return false;
        }
        let is_late = !self.peers[node.index()].late.changed.is_empty() && !planted!(self, MarkPastLate);
        if is_late || self.agenda.dirty.iter().any(|key| self.holds_for(*key, node)) {
            return false;
        }
        let mut wanted = false;
        for awaited in self.syncs.iter_mut().filter_map(|sync| sync.peers.as_mut()).flatten() {
            if awaited.node == node {
                awaited.sent = true;
                wanted = true;
            }
        }
        wanted
    }

    fn holds_for(&self, key: crate::id::Key, node: NodeId) -> bool {
        let word = self.word(key);
        word.state() == State::Replica && route::believed(word, key, self.config.nodes).node == node
    }

    /// A request to `node` was answered.
    pub(super) fn note_synced(&mut self, node: NodeId, marked: bool, more: bool) {
        if !marked {
            return;
        }
        for peers in self.syncs.iter_mut().filter_map(|sync| sync.peers.as_mut()) {
            if more {
                peers.iter_mut().filter(|peer| peer.node == node).for_each(|peer| peer.sent = false);
            } else {
                peers.retain(|peer| peer.node != node || !peer.sent);
            }
        }
        self.progress_syncs();
    }
}
