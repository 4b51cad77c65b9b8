//! `wait_sync`: every push made before is in the main copies, and every replica here has been refreshed since the call
//! (protocol, section 7). A quiesce has each node do the same, twice.
//!
//! # What happens after the call is not waited for
//! What a call waits for is fixed when it begins, on both sides, so nobody who goes on writing can keep it from ending:
//!
//! - the operations and the intents that are unanswered then;
//! - towards each owner, the changes that are put off then (`late.sealed`): with the last of them a request leaves that is
//!   marked, and what workers change meanwhile comes behind it;
//! - at the owner, what is due to the requester when the mark arrives: the response with the last of it says so.
//!
//! A peer has one mark at a time. Calls that come while one is on its way share the next.

use alloc::vec::Vec;

use crate::engine::Engine;
use crate::engine::input::OpId;
use crate::engine::interest::{ROUND_BITS, Request};
use crate::engine::state::Access;
use crate::id::NodeId;
use crate::policy::Policy;
use crate::store::Store;

/// One waiting call.
#[derive(Debug)]
pub(super) struct SyncWait {
    caller: Caller,
    /// Operations that were unfinished at the call.
    ops: Vec<OpId>,
    /// The round of the call, and how many intents and localizes that left until then are unanswered: their grants may tell of
    /// an earlier time.
    round: u64,
    requests: usize,
    /// Once those are done: peers that still have to answer a mark. `None` before.
    peers: Option<Vec<Awaited>>,
}

/// Who waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Caller {
    Worker(OpId),
    /// The wave of a quiesce.
    Wave(u64),
}

#[derive(Debug)]
struct Awaited {
    node: NodeId,
    /// Whether the mark that is on its way began after the call.
    is_covered: bool,
}

/// The mark towards one peer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum SyncMark {
    /// There is none.
    #[default]
    Absent,
    /// It leaves with the last change that is sealed.
    Sealed,
    /// The peer has not told all yet that was due when it arrived there.
    Asked,
}

impl SyncWait {
    /// The operation that fails if the wait is given up.
    pub(super) fn op(&self) -> Option<OpId> {
        match self.caller {
            Caller::Worker(op) => Some(op),
            Caller::Wave(_) => None,
        }
    }

    /// Whether it waits for a mark that has not begun, of a peer of which `is_free` says that one may.
    fn wants_mark(&self, is_free: impl Fn(NodeId) -> bool) -> bool {
        self.peers.iter().flatten().any(|peer| !peer.is_covered && is_free(peer.node))
    }

    fn was_asked_before(&self, request: Request) -> bool {
        let rounds_since = self.round.wrapping_sub(request.round.into()) << (u64::BITS - ROUND_BITS);
        rounds_since < 1 << (u64::BITS - 1)
    }
}

impl<S: Store, P: Policy> Engine<S, P> {
    pub(super) fn wait_sync(&mut self, op: OpId) {
        let is_write = |access| matches!(access, Some(Access::Push | Access::Set));
        let writes = self.ops.iter().filter(|(_, state)| is_write(state.access)).map(|(id, _)| *id).collect();
        self.wait_for(Caller::Worker(op), writes);
    }

    /// The part of this node in a wave of a quiesce, of which it reports when that is done: all that has begun here.
    pub(super) fn settle(&mut self, wave: u64) {
        let ops =
            if planted!(self, QuiesceWhileBusy) { Vec::new() } else { self.ops.keys().copied().collect() };
        self.wait_for(Caller::Wave(wave), ops);
    }

    fn wait_for(&mut self, caller: Caller, mut ops: Vec<OpId>) {
        ops.sort_unstable();
        let (round, requests) = (self.round.number, self.requested);
        self.syncs.push(SyncWait { caller, ops, round, requests, peers: None });
        self.progress_syncs();
    }

    /// Whether a round could begin a mark.
    pub(super) fn wants_mark(&self) -> bool {
        let is_free = |node: NodeId| {
            let peer = &self.peers[node.index()];
            peer.mark == SyncMark::Absent && peer.outstanding.is_none()
        };
        self.syncs.iter().any(|sync| sync.wants_mark(is_free))
    }

    /// An intent or localize of this node is answered.
    pub(super) fn note_answered(&mut self, request: Request) {
        self.requested -= 1;
        for sync in self.syncs.iter_mut().filter(|sync| sync.was_asked_before(request)) {
            sync.requests = sync.requests.saturating_sub(1);
        }
    }

    /// Moves waiting calls on after an operation or an answer.
    pub(super) fn progress_syncs(&mut self) {
        let mut done = Vec::new();
        let ignores_marks = planted!(self, QuiesceWhileBusy);
        for sync in &mut self.syncs {
            while sync.ops.last().is_some_and(|op| !self.ops.contains_key(op)) {
                sync.ops.pop();
            }
            if sync.ops.is_empty() && sync.requests == 0 && sync.peers.is_none() {
                // A peer is concerned if replicas of its keys are here, or a request to it may carry their last deltas.
                let concerned = self
                    .peers
                    .iter()
                    .enumerate()
                    .filter(|(_, peer)| !peer.lost && (peer.replicas > 0 || peer.outstanding.is_some()));
                let awaited =
                    concerned.map(|(index, _)| Awaited { node: NodeId(index as u16), is_covered: false });
                sync.peers = Some(awaited.collect());
            }
            let hurries = ignores_marks && matches!(sync.caller, Caller::Wave(_));
            if hurries || sync.peers.as_ref().is_some_and(Vec::is_empty) {
                done.push(sync.caller);
            }
        }
        if done.is_empty() {
            return;
        }
        self.syncs.retain(|sync| !done.contains(&sync.caller));
        for caller in done {
            match caller {
                Caller::Worker(op) => self.done(op, Vec::new()),
                Caller::Wave(wave) => self.report(wave, false),
            }
        }
    }

    /// Whether the request to `node` that leaves now carries a mark; what is put off for it now stays behind a mark that begins.
    pub(super) fn takes_mark(&mut self, node: NodeId) -> bool {
        let seals = !planted!(self, MarkPastLate);
        let peer = &mut self.peers[node.index()];
        if peer.outstanding.is_some() {
            return false;
        }
        if peer.mark == SyncMark::Absent {
            for awaited in self.syncs.iter_mut().filter_map(|sync| sync.peers.as_mut()).flatten() {
                if awaited.node == node {
                    awaited.is_covered = true;
                    peer.mark = SyncMark::Sealed;
                }
            }
            if peer.mark == SyncMark::Sealed && seals {
                peer.late.seal();
            }
        }
        let leaves = peer.mark == SyncMark::Sealed && peer.late.sealed.is_empty();
        if leaves {
            peer.mark = SyncMark::Asked;
        }
        leaves
    }

    /// `node` has told all that was due when the mark arrived.
    pub(super) fn note_synced(&mut self, node: NodeId) {
        self.peers[node.index()].mark = SyncMark::Absent;
        for peers in self.syncs.iter_mut().filter_map(|sync| sync.peers.as_mut()) {
            peers.retain(|peer| peer.node != node || !peer.is_covered);
        }
    }
}
