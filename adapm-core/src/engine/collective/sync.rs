//! `wait_sync`: every push made before is in the main copies, and every replica here has been
//! refreshed since the call (protocol, "Operations"). A quiesce has each node do the same, twice.
//!
//! # Later changes are not waited for
//! A call fixes its conditions when it begins, on both sides, so continued writes cannot keep it
//! from ending:
//!
//! - the operations and intents that are unanswered then;
//! - for each owner, the changes that are deferred then (`Deferred::sealed`): the request with the
//!   last of them carries a mark, and later changes come after it;
//! - at the owner, the changes due to the requester when the mark arrives: the response with the
//!   last of them says so.
//!
//! A peer has one mark at a time. Calls that come while one is in flight share the next.

use alloc::vec::Vec;
use core::mem;

use crate::engine::entry::{ROUND_BITS, Request};
use crate::engine::input::OpId;
use crate::id::NodeId;

/// Unfinished work at the time of a call.
#[derive(Debug)]
pub(in crate::engine) struct Begun {
    /// Operations, ascending.
    pub(in crate::engine) ops: Vec<OpId>,
    /// The round, and the number of intents and localizes sent until then that are unanswered:
    /// their grants may carry older values.
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
    /// Peers that still have to answer a mark; `None` while `begun` is unfinished.
    peers: Option<Vec<Awaited>>,
}

/// The origin of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Caller {
    Worker(OpId),
    /// The wave of a quiesce.
    Wave(u64),
}

#[derive(Debug)]
struct Awaited {
    node: NodeId,
    /// True if the mark in flight began after the call.
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

    /// Gives up all calls. Returns the operations of workers.
    pub(super) fn take_ops(&mut self) -> impl Iterator<Item = OpId> + use<> {
        mem::take(&mut self.waits).into_iter().filter_map(|wait| match wait.caller {
            Caller::Worker(op) => Some(op),
            Caller::Wave(_) => None,
        })
    }

    /// Returns true if a call waits for a mark that has not begun, towards a peer for which
    /// `is_free` returns true.
    pub(super) fn wants_mark(&self, is_free: impl Fn(NodeId) -> bool) -> bool {
        let awaited = self.waits.iter().flat_map(|wait| wait.peers.iter().flatten());
        awaited.into_iter().any(|peer| !peer.is_covered && is_free(peer.node))
    }

    pub(super) fn note_answered(&mut self, request: Request) {
        for wait in self.waits.iter_mut().filter(|wait| wait.begun.includes(request)) {
            wait.begun.requests = wait.begun.requests.saturating_sub(1);
        }
    }

    /// Advances calls. Returns the callers of those that are done. A wave ends only after earlier
    /// calls of workers, since calls made before a quiesce end before it.
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

    /// Covers all calls that wait for `node` by the mark that begins. Returns false if there are
    /// none.
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

    /// Records that `node` has sent everything that was due when the mark arrived.
    pub(super) fn note_synced(&mut self, node: NodeId) {
        for peers in self.waits.iter_mut().filter_map(|wait| wait.peers.as_mut()) {
            peers.retain(|peer| peer.node != node || !peer.is_covered);
        }
    }
}
