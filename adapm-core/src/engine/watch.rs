//! Peers that live and do not answer: their links send heartbeats and acknowledgements, and their engines nothing (protocol,
//! section 9).
//!
//! # Whom to blame
//! An operation may have been passed on, and a barrier waits for workers: that they take long says nothing of the node that was
//! asked. A request is different. Whoever gets one answers it at once, whatever it asks for, so a request without an answer is
//! evidence against its receiver, and against nobody else. A node that waits for others therefore asks each of them that owes it
//! nothing, by a request that may be empty; so also one that waits for an operation which others have passed on finds out by
//! itself which node does not answer.
//!
//! # Time
//! While something is waited for, the peers are looked at six times in the time allowed. A peer is unresponsive if at so many
//! looks in a row it owed an answer and nothing of it had come since the look before. Looks are counted, not time: for a node that
//! was stopped, or whose machine slept, the pause is one look, however long it took.

use crate::engine::Engine;
use crate::engine::output::{Event, Output};
use crate::error::OpError;
use crate::id::NodeId;
use crate::policy::Policy;
use crate::store::Store;
use crate::time::Instant;

/// When the peers are looked at next; `None`: nothing was waited for at the last look, or there was none.
#[derive(Debug, Default)]
pub(super) struct Watch {
    next: Option<Instant>,
}

impl<S: Store, P: Policy> Engine<S, P> {
    /// When the peers are looked at next: the first [`Input::Timeout`](crate::engine::Input::Timeout) from then on counts
    /// (protocol, section 9). `None`: nothing is waited for, a peer is lost, or [`unresponsive_nanos`](crate::config::NodeConfig::unresponsive_nanos) is not set. A driver
    /// that knows of slow ways feeds [`Input::Heard`](crate::engine::Input::Heard) before that.
    #[must_use]
    pub fn next_look_at(&self) -> Option<Instant> {
        self.watch.next.filter(|_| self.ctx.first_lost.is_none())
    }

    /// Begins to look at the peers, if something is waited for and nobody looks yet.
    pub(super) fn begin_watch(&mut self) {
        let Some(nanos) = self.ctx.config.unresponsive_nanos else { return };
        if self.watch.next.is_some() || self.ctx.first_lost.is_some() {
            return;
        }
        if self.waits_for_others() || self.peers.iter().any(|peer| peer.outstanding.is_some()) {
            self.watch.next = Some(self.ctx.now.plus_nanos((nanos / u64::from(LOOKS)).max(1)));
        }
    }

    /// Looks at the peers, if that is due.
    pub(super) fn look_at_peers(&mut self) {
        let Some(due) = self.next_look_at().filter(|due| *due <= self.ctx.now) else { return };
        self.watch.next = None;
        let waits = self.waits_for_others();
        let looks = if planted!(self.ctx, CountAbsence) { self.looks_since(due) } else { 1 };
        let counts_all = planted!(self.ctx, BlameUnasked);
        let asks = waits && !planted!(self.ctx, NeverAskIdle);
        let others =
            self.peers.iter_mut().enumerate().filter(|(index, _)| *index != self.ctx.config.node.index());
        for (index, peer) in others {
            if peer.outstanding.is_none() && !counts_all {
                peer.unheard = 0;
                peer.news |= asks;
                continue;
            }
            let before = peer.unheard;
            peer.unheard = before.saturating_add(looks);
            if before < LOOKS && peer.unheard >= LOOKS {
                let node = NodeId(u16::try_from(index).expect("node ids are 16 bits wide"));
                self.ctx.outputs.push_back(Output::Event(Event::Unresponsive { node }));
            }
        }
    }

    /// Something of `node` has come, or arrives there of what it was sent.
    pub(super) fn handle_heard(&mut self, node: NodeId) -> Result<(), OpError> {
        if node.index() >= self.ctx.config.nodes || node == self.ctx.config.node {
            return Err(OpError::NotAPeer { node });
        }
        self.hear(node);
        Ok(())
    }

    pub(super) fn hear(&mut self, node: NodeId) {
        if !planted!(self.ctx, DeafToAnswers) {
            self.peers[node.index()].unheard = 0;
        }
    }

    /// Returns true if an operation of this node, collective or not, an intent or a localize is unanswered.
    fn waits_for_others(&self) -> bool {
        !self.ops.is_empty()
            || self.intents.unanswered() > 0
            || self.collectives.waits_for_sync()
            || self.collectives.waits_for_nodes()
    }

    /// The planted mistake: the looks that there would have been until now.
    fn looks_since(&self, due: Instant) -> u8 {
        let interval = self.ctx.config.unresponsive_nanos.unwrap_or_default() / u64::from(LOOKS);
        u8::try_from(1 + self.ctx.now.nanos_since(due) / interval.max(1)).unwrap_or(u8::MAX)
    }
}

/// Looks in a row without a word of a peer that owes an answer, after which it is unresponsive.
const LOOKS: u8 = 6;
