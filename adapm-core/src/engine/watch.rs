//! Detection of peers that are alive and do not answer: their links send heartbeats and
//! acknowledgements, and their engines nothing (protocol, "Links").
//!
//! # Which peer to blame
//! An operation may have been passed on, and a barrier waits for workers: a delay says nothing
//! about the node that was asked. A request is different: its receiver answers any request at once,
//! so a missing answer is evidence against the receiver and no other node. A node that waits for
//! others therefore sends a request, possibly empty, to each peer that owes it nothing; so a node
//! whose operation was passed on finds the unresponsive node itself.
//!
//! # Time
//! While something is waited for, the peers are checked six times in the time allowed. A peer is
//! unresponsive if at six checks in a row it owed an answer and had sent nothing since the check
//! before. Checks are counted, not time: for a node that was stopped, or whose machine slept, the
//! pause is one check, however long it took.

use alloc::vec::Vec;

use crate::engine::ctx::{Ctx, Env};
use crate::engine::effect::Effect;
use crate::engine::output::Event;
use crate::error::OpError;
use crate::id::NodeId;
use crate::time::Instant;

/// The time of the next check of the peers, and the results of the last ones.
#[derive(Debug)]
pub(super) struct Watch {
    /// `None` if nothing was waited for at the last check, or there was none.
    next: Option<Instant>,
    /// Checks in a row at which the node owed an answer and had sent nothing, by node.
    unheard: Vec<u8>,
}

impl Watch {
    pub(super) fn new(nodes: usize) -> Self {
        Self { next: None, unheard: alloc::vec![0; nodes] }
    }

    /// Returns the time of the next check.
    pub(super) fn next_look_at(&self, ctx: &Ctx<impl Env>) -> Option<Instant> {
        self.next.filter(|_| ctx.first_lost.is_none())
    }

    /// Returns true if a check is due.
    pub(super) fn is_due(&self, ctx: &Ctx<impl Env>) -> bool {
        self.next_look_at(ctx).is_some_and(|due| due <= ctx.now)
    }

    /// Returns true if no check is scheduled, and one should be if something is waited for.
    pub(super) fn may_begin(&self, ctx: &Ctx<impl Env>) -> bool {
        self.next.is_none() && ctx.first_lost.is_none() && ctx.config.unresponsive_nanos.is_some()
    }

    /// Schedules a check.
    pub(super) fn begin(&mut self, ctx: &Ctx<impl Env>) {
        let nanos = ctx.config.unresponsive_nanos.unwrap_or(u64::MAX);
        self.next = Some(ctx.now.plus_nanos((nanos / u64::from(LOOKS)).max(1)));
    }

    /// Checks the peers for which `owes` is true, if a check is due. Asks the others for an answer
    /// if `waits`.
    pub(super) fn look(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        waits: bool,
        owes: impl Fn(NodeId) -> bool,
    ) {
        if !self.is_due(ctx) {
            return;
        }
        self.next = None;
        for node in ctx.peers() {
            let unheard = &mut self.unheard[node.index()];
            if !owes(node) {
                *unheard = 0;
                if waits {
                    ctx.ask(Effect::Ask(node));
                }
                continue;
            }
            *unheard = unheard.saturating_add(1);
            if *unheard == LOOKS {
                ctx.tell(Event::Unresponsive { node });
            }
        }
    }

    /// Handles a sign of life of `node`, incoming or outgoing.
    pub(super) fn handle_heard(
        &mut self,
        ctx: &Ctx<impl Env>,
        node: NodeId,
    ) -> Result<(), OpError> {
        if node.index() >= ctx.config.nodes || node == ctx.config.node {
            return Err(OpError::NotAPeer { node });
        }
        self.hear(node);
        Ok(())
    }

    /// Records that `node` has sent something.
    pub(super) fn hear(&mut self, node: NodeId) {
        self.unheard[node.index()] = 0;
    }
}

/// Checks in a row without a message of a peer that owes an answer after which it is unresponsive.
const LOOKS: u8 = 6;
