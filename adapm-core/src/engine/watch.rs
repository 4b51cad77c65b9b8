//! Peers that live and do not answer: their links send heartbeats and acknowledgements, and their
//! engines nothing (protocol, "Links").
//!
//! # Whom to blame
//! An operation may have been passed on, and a barrier waits for workers: that they take long says
//! nothing of the node that was asked. A request is different. Whoever gets one answers it at once,
//! whatever it asks for, so a request without an answer is evidence against its receiver, and
//! against nobody else. A node that waits for others therefore asks each of them that owes it
//! nothing, by a request that may be empty; so also one that waits for an operation which others
//! have passed on finds out by itself which node does not answer.
//!
//! # Time
//! While something is waited for, the peers are looked at six times in the time allowed. A peer is
//! unresponsive if at so many looks in a row it owed an answer and nothing of it had come since the
//! look before. Looks are counted, not time: for a node that was stopped, or whose machine slept,
//! the pause is one look, however long it took.

use alloc::vec::Vec;

use crate::engine::ctx::{Ctx, Env};
use crate::engine::effect::Effect;
use crate::engine::output::Event;
use crate::error::OpError;
use crate::id::NodeId;
use crate::time::Instant;

/// When the peers are looked at, and what was seen.
#[derive(Debug)]
pub(super) struct Watch {
    /// `None`: nothing was waited for at the last look, or there was none.
    next: Option<Instant>,
    /// Of each node, looks in a row at which it owed an answer and nothing of it had come.
    unheard: Vec<u8>,
}

impl Watch {
    pub(super) fn new(nodes: usize) -> Self {
        Self { next: None, unheard: alloc::vec![0; nodes] }
    }

    /// When the peers are looked at next.
    pub(super) fn next_look_at(&self, ctx: &Ctx<impl Env>) -> Option<Instant> {
        self.next.filter(|_| ctx.first_lost.is_none())
    }

    /// Returns true if the peers are to be looked at now.
    pub(super) fn is_due(&self, ctx: &Ctx<impl Env>) -> bool {
        self.next_look_at(ctx).is_some_and(|due| due <= ctx.now)
    }

    /// Returns true if nobody looks at the peers yet, and somebody would if something were waited
    /// for.
    pub(super) fn may_begin(&self, ctx: &Ctx<impl Env>) -> bool {
        self.next.is_none() && ctx.first_lost.is_none() && ctx.config.unresponsive_nanos.is_some()
    }

    /// Begins to look at the peers.
    pub(super) fn begin(&mut self, ctx: &Ctx<impl Env>) {
        let nanos = ctx.config.unresponsive_nanos.unwrap_or(u64::MAX);
        self.next = Some(ctx.now.plus_nanos((nanos / u64::from(LOOKS)).max(1)));
    }

    /// Looks at the peers, if that is due: at those of which `owes` says that they owe an answer.
    /// The others are asked for one where something is waited for.
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

    /// Something of `node` has come, or arrives there of what it was sent.
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

    /// Something of `node` has come.
    pub(super) fn hear(&mut self, node: NodeId) {
        self.unheard[node.index()] = 0;
    }
}

/// Looks in a row without a word of a peer that owes an answer, after which it is unresponsive.
const LOOKS: u8 = 6;
