//! `wait_sync`: every push made before is in the main copies, and every replica here has been
//! refreshed since the call (protocol, "Operations"). A quiesce has each node do the same, twice.
//!
//! # What happens after the call is not waited for
//! What a call waits for is fixed when it begins, on both sides, so nobody who goes on writing can
//! keep it from ending:
//!
//! - the operations and the intents that are unanswered then;
//! - towards each owner, the changes that are put off then (`Deferred::sealed`): with the last of
//!   them a request leaves that is marked, and what workers change meanwhile comes behind it;
//! - at the owner, what is due to the requester when the mark arrives: the response with the last
//!   of it says so.
//!
//! A peer has one mark at a time. Calls that come while one is on its way share the next.

use alloc::vec::Vec;
use core::mem;

use crate::engine::entry::{ROUND_BITS, Request};
use crate::engine::input::OpId;
use crate::id::NodeId;

/// What had begun when a call came, and is not done.
#[derive(Debug)]
pub(in crate::engine) struct Begun {
    /// Operations, ascending.
    pub(in crate::engine) ops: Vec<OpId>,
    /// The round, and how many intents and localizes that left until then are unanswered: their
    /// grants may tell of an earlier time.
    pub(in crate::engine) round: u64,
    pub(in crate::engine) requests: usize,
}

/// Calls that wait.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    waits: Vec<SyncWait>,
}

/// One waiting call.
#[derive(Debug)]
struct SyncWait {
    caller: Caller,
    begun: Begun,
    /// Once that is done: peers that still have to answer a mark. `None` before.
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

impl Begun {
    fn includes(&self, request: Request) -> bool {
        let rounds_since =
            self.round.wrapping_sub(request.round.into()) << (u64::BITS - ROUND_BITS);
        rounds_since < 1 << (u64::BITS - 1)
    }
}

impl Syncs {
    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    pub(super) fn begin(&mut self, caller: Caller, begun: Begun) {
        self.waits.push(SyncWait { caller, begun, peers: None });
    }

    /// Gives up all calls. Returns the operations of workers among them.
    pub(super) fn take_ops(&mut self) -> impl Iterator<Item = OpId> + use<> {
        mem::take(&mut self.waits).into_iter().filter_map(|wait| match wait.caller {
            Caller::Worker(op) => Some(op),
            Caller::Wave(_) => None,
        })
    }

    /// Whether a call waits for a mark that has not begun, of a peer of which `is_free` says that
    /// one may.
    pub(super) fn wants_mark(&self, is_free: impl Fn(NodeId) -> bool) -> bool {
        let awaited = self.waits.iter().flat_map(|wait| wait.peers.iter().flatten());
        awaited.into_iter().any(|peer| !peer.is_covered && is_free(peer.node))
    }

    pub(super) fn note_answered(&mut self, request: Request) {
        for wait in self.waits.iter_mut().filter(|wait| wait.begun.includes(request)) {
            wait.begun.requests = wait.begun.requests.saturating_sub(1);
        }
    }

    /// Moves calls on. Returns the callers of those that are done; a wave is only after the calls
    /// of workers that were there when it came, since what was called before a quiesce ends before
    /// it.
    pub(super) fn progress<I: Iterator<Item = NodeId>>(
        &mut self,
        is_unfinished: impl Fn(OpId) -> bool,
        concerned: impl Fn() -> I,
    ) -> Vec<Caller> {
        let (mut done, mut worker_waits) = (Vec::new(), false);
        for SyncWait { caller, begun, peers } in &mut self.waits {
            while begun.ops.last().is_some_and(|op| !is_unfinished(*op)) {
                begun.ops.pop();
            }
            if begun.ops.is_empty() && begun.requests == 0 && peers.is_none() {
                *peers =
                    Some(concerned().map(|node| Awaited { node, is_covered: false }).collect());
            }
            let is_of_wave = matches!(caller, Caller::Wave(_));
            if peers.as_ref().is_some_and(Vec::is_empty) && !(is_of_wave && worker_waits) {
                done.push(*caller);
            } else {
                worker_waits |= !is_of_wave;
            }
        }
        if !done.is_empty() {
            self.waits.retain(|wait| !done.contains(&wait.caller));
        }
        done
    }

    /// A mark begins towards `node`: it covers all calls that wait for the node. Returns false if
    /// none does.
    pub(super) fn cover(&mut self, node: NodeId) -> bool {
        let mut is_wanted = false;
        for awaited in self.waits.iter_mut().filter_map(|wait| wait.peers.as_mut()).flatten() {
            if awaited.node == node {
                awaited.is_covered = true;
                is_wanted = true;
            }
        }
        is_wanted
    }

    /// `node` has told all that was due when the mark arrived.
    pub(super) fn note_synced(&mut self, node: NodeId) {
        for peers in self.waits.iter_mut().filter_map(|wait| wait.peers.as_mut()) {
            peers.retain(|peer| peer.node != node || !peer.is_covered);
        }
    }
}
