//! `wait_sync`: every push made before is in the main copies, and every replica here has been
//! refreshed since the call (protocol, "Operations"). A quiesce has each node do the same, twice; a
//! node that settles behind a tick does it with refreshes as its policy wants them.
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
use crate::id::{Key, NodeId};
use crate::node_set::NodeSet;
use crate::wire::message::Mark;

/// Unfinished work at the time of a call.
#[derive(Debug)]
pub(in crate::engine) struct Begun {
    /// Operations, ascending.
    pub(in crate::engine) ops: Vec<OpId>,
    /// The round, and the number of intents and localizes sent in rounds until then that are
    /// unanswered: their grants may carry older values.
    pub(in crate::engine) round: u64,
    pub(in crate::engine) requests: usize,
    /// Keys that pulls have asked for between rounds and that are unanswered, ascending.
    pub(in crate::engine) asked: Vec<Key>,
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
pub(in crate::engine) enum Caller {
    Worker(OpId),
    /// The wave of a quiesce.
    Wave(u64),
    /// The tick of own workers.
    Tick,
}

impl Caller {
    /// Returns the mark that the call needs from each concerned peer.
    fn mark(self) -> Mark {
        match self {
            Self::Worker(_) | Self::Wave(_) => Mark::Sync,
            Self::Tick => Mark::Check,
        }
    }
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
            Caller::Wave(_) | Caller::Tick => None,
        })
    }

    /// Returns true if a call waits for a mark that has not begun, towards a peer for which
    /// `is_free` returns true.
    pub(super) fn wants_mark(&self, is_free: impl Fn(NodeId) -> bool) -> bool {
        let awaited = self.waits.iter().flat_map(|wait| wait.peers.iter().flatten());
        awaited.into_iter().any(|peer| !peer.is_covered && is_free(peer.node))
    }

    pub(super) fn note_answered(&mut self, key: Key, request: Request) {
        for SyncWait { begun, .. } in &mut self.waits {
            if request.at_once {
                begun.asked.retain(|asked| *asked != key);
            } else if begun.includes(request) {
                begun.requests = begun.requests.saturating_sub(1);
            }
        }
    }

    /// Advances calls. Returns the callers of those that are done. A wave ends only after earlier
    /// calls of workers, since calls made before a quiesce end before it.
    pub(super) fn progress(
        &mut self,
        is_unfinished: impl Fn(OpId) -> bool,
        concerned: impl Fn(Mark) -> NodeSet,
    ) -> Vec<Caller> {
        let (mut done, mut worker_waits) = (Vec::new(), false);
        for SyncWait { caller, begun, peers } in &mut self.waits {
            while begun.ops.last().is_some_and(|op| !is_unfinished(*op)) {
                begun.ops.pop();
            }
            let is_done = begun.ops.is_empty() && begun.requests == 0 && begun.asked.is_empty();
            if is_done && peers.is_none() {
                let each = concerned(caller.mark());
                *peers =
                    Some(each.iter().map(|node| Awaited { node, is_covered: false }).collect());
            }
            let is_of_wave = matches!(caller, Caller::Wave(_));
            if peers.as_ref().is_some_and(Vec::is_empty) && !(is_of_wave && worker_waits) {
                done.push(*caller);
            } else {
                worker_waits |= matches!(caller, Caller::Worker(_));
            }
        }
        if !done.is_empty() {
            self.waits.retain(|wait| !done.contains(&wait.caller));
        }
        done
    }

    /// Begins the strongest mark that a call wants from `node`, and covers all calls that it is
    /// strong enough for. Returns [`Mark::None`] if there are none.
    pub(super) fn cover(&mut self, node: NodeId) -> Mark {
        let awaits = |wait: &SyncWait| {
            wait.peers.iter().flatten().any(|peer| peer.node == node && !peer.is_covered)
        };
        let marks = self.waits.iter().filter(|wait| awaits(wait)).map(|wait| wait.caller.mark());
        let strongest = marks.max().unwrap_or_default();
        for SyncWait { caller, peers, .. } in &mut self.waits {
            let is_enough = caller.mark() <= strongest;
            for peer in peers.iter_mut().flatten().filter(|peer| peer.node == node) {
                peer.is_covered |= is_enough;
            }
        }
        strongest
    }

    /// Records that `node` has sent everything that was due when the mark arrived.
    pub(super) fn note_synced(&mut self, node: NodeId) {
        for peers in self.waits.iter_mut().filter_map(|wait| wait.peers.as_mut()) {
            peers.retain(|peer| peer.node != node || !peer.is_covered);
        }
    }
}
