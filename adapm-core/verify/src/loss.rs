//! Nodes that vanish from a lockstep cluster: what they had on its way stays, up to a point, and survivors are told of the
//! loss one by one, whenever the test likes.
//!
//! What can hold after a loss is judged as before; this file keeps account of what cannot: keys whose main copy was at the
//! lost node, came from it too late or was sent to it, and facts that a home never got.

use std::collections::BTreeSet;

use adapm_core::engine::{Input, OpId, Reason};
use adapm_core::error::OpError;
use adapm_core::id::{Key, NodeId, WorkerId};
use adapm_core::slot::State;
use adapm_core::wire::Message;

use crate::check::Checks;
use crate::cluster::Cluster;
use crate::flight::{Entry, Kind};
use crate::violation::{Violation, hold};

/// Who is gone, who knows, and what is gone with them.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Nodes that vanished, in order.
    gone: Vec<NodeId>,
    /// (survivor, vanished node) for every survivor that was told.
    told: BTreeSet<(NodeId, NodeId)>,
    /// Keys without a main copy.
    doomed: BTreeSet<Key>,
    /// Keys of which a fact on its way to the home is gone.
    unrecorded: BTreeSet<Key>,
}

impl Losses {
    /// Whether any node has vanished.
    #[must_use]
    pub fn any(&self) -> bool {
        !self.gone.is_empty()
    }

    /// Whether `node` has vanished.
    #[must_use]
    pub fn is_gone(&self, node: NodeId) -> bool {
        self.gone.contains(&node)
    }

    /// Whether `survivor` was told of a loss.
    #[must_use]
    pub fn is_told(&self, survivor: NodeId) -> bool {
        self.gone.iter().any(|node| self.knows(survivor, *node))
    }

    /// Whether `survivor` was told of the loss of `node`.
    #[must_use]
    pub fn knows(&self, survivor: NodeId, node: NodeId) -> bool {
        self.told.contains(&(survivor, node))
    }

    /// Whether the main copy of `key` is gone.
    #[must_use]
    pub fn is_doomed(&self, key: Key) -> bool {
        self.doomed.contains(&key)
    }

    /// Whether a fact about `key` has not reached its home.
    #[must_use]
    pub fn is_unrecorded(&self, key: Key) -> bool {
        self.unrecorded.contains(&key)
    }

    /// The nodes that have vanished, in order.
    #[must_use]
    pub fn gone(&self) -> &[NodeId] {
        &self.gone
    }

    /// Takes note of entries that will never arrive.
    pub(super) fn note(&mut self, dropped: &[Entry]) {
        for entry in dropped {
            if entry.kind.is_ownership() {
                self.doomed.insert(entry.key);
            }
            if entry.kind == Kind::Residence {
                self.unrecorded.insert(entry.key);
            }
        }
    }
}

impl Cluster {
    /// Nodes that have not vanished, in order.
    pub fn living(&self) -> impl Iterator<Item = NodeId> + use<> {
        let gone = self.losses.gone.clone();
        self.nodes().filter(move |node| !gone.contains(node))
    }

    /// What is known of losses.
    #[must_use]
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Survivors that have not been told of a loss, with the vanished node.
    #[must_use]
    pub fn untold(&self) -> Vec<(NodeId, NodeId)> {
        let pairs = self.living().flat_map(|node| self.losses.gone.iter().map(move |gone| (node, *gone)));
        pairs.filter(|(node, gone)| !self.losses.knows(*node, *gone)).collect()
    }

    /// `node` vanishes in the middle of everything. Of its messages on their way to each other node, `arriving` says how many
    /// will still arrive: the first so many. All messages to it are gone.
    pub fn vanish(&mut self, node: NodeId, mut arriving: impl FnMut(NodeId, usize) -> usize) {
        self.note(|cluster| format!("{:?} {node} vanishes", cluster.now));
        for other in self.nodes().filter(|other| *other != node) {
            let count = self.air.queue(node, other).count();
            let keep = if self.losses.is_gone(other) { 0 } else { arriving(other, count) };
            self.air.cut(node, other, keep);
            self.air.cut(other, node, 0);
        }
        self.air.close(node);
        let untouched = |key: &Key| self.setup.home(*key) == node && self.is_untouched(*key);
        let owned = self.keys().filter(|key| self.state(node, *key) == State::Main || untouched(key));
        let owned: Vec<Key> = owned.collect();
        self.losses.doomed.extend(owned);
        self.losses.note(&self.air.take_dropped());
        self.losses.gone.push(node);
        self.members[node.index()].vanish();
        self.signalled.retain(|(signaller, _)| *signaller != node);
        let open: Vec<OpId> = self.calls.open().filter(|(_, who)| who.0 == node).map(|(op, _)| op).collect();
        for op in open {
            self.give_up(op);
        }
    }

    /// Tells `survivor` that `node`, which has vanished, is lost. Whatever of its messages is still on its way is too late.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn tell_lost(&mut self, survivor: NodeId, node: NodeId) -> Result<(), Violation> {
        self.air.forsake(node, survivor);
        self.losses.note(&self.air.take_dropped());
        self.losses.told.insert((survivor, node));
        self.drain_quietly(survivor)?;
        self.feed(survivor, Input::PeerLost(node))?;
        self.finish_step(survivor)
    }

    /// `node` vanishes, if it has not yet, and all survivors are told.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn lose(&mut self, node: NodeId) -> Result<(), Violation> {
        if !self.losses.is_gone(node) {
            self.vanish(node, |_, count| count);
        }
        for (survivor, gone) in self.untold() {
            if gone == node {
                self.tell_lost(survivor, gone)?;
            }
        }
        Ok(())
    }

    /// A message of a lost node arrives: it must change nothing and blame nobody.
    pub(super) fn deliver_late(
        &mut self,
        to: NodeId,
        from: NodeId,
        message: Message,
    ) -> Result<(), Violation> {
        let text = self.describe(&message);
        let before = self.memory_of(to);
        let (result, said) = self.members[to.index()].feed(self.now, Input::Message(from, message));
        hold!(self.setup.checks => LateBlamesNobody, result.is_ok(), "{to} blames {from}, which it has lost, for {text}: {result:?}");
        hold!(self.setup.checks => LateSaysNothing, said.is_silent(), "{to} answers {from}, which it has lost: {said:?}");
        let after = self.memory_of(to);
        hold!(self.setup.checks => LateChangesNothing, before == after, "{to} has lost {from}, and yet {text} changes it");
        Ok(())
    }

    /// Takes the end of an operation that failed: only a loss that the node was told of may be the reason.
    pub(super) fn failed(&mut self, node: NodeId, op: OpId, error: &OpError) -> Result<(), Violation> {
        let lost = match error {
            OpError::PeerLost { node, address: None } => Some(*node),
            _ => None,
        };
        let told = lost.is_some_and(|lost| self.losses.knows(node, lost));
        hold!(self.setup.checks => FailsForLoss, told, "{node} fails {op:?}: {error}");
        hold!(Checks::ALL => EndsOnce, self.calls.is_open(op), "{op:?} fails, but it is none or has ended before");
        self.give_up(op);
        Ok(())
    }

    /// The operation ends without a result; whether its writes count nobody knows.
    fn give_up(&mut self, op: OpId) {
        let (who, accesses) = self.calls.give_up(op);
        self.members[who.0.index()].workers[who.1.index()].order.finish(&op);
        for access in accesses {
            self.oracle.fail(access);
        }
        self.unblock(who, op);
    }

    pub(super) fn unblock(&mut self, who: (NodeId, WorkerId), op: OpId) {
        let worker = &mut self.members[who.0.index()].workers[who.1.index()];
        if worker.blocked == Some(op) {
            worker.blocked = None;
        }
    }

    /// What must hold after a step of a node that was told of a loss: nothing waits there, neither operation nor round.
    pub(super) fn check_bereaved(&self, node: NodeId) -> Result<(), Violation> {
        if !self.losses.is_told(node) {
            return Ok(());
        }
        let open = self.calls.open().find(|(_, who)| who.0 == node);
        hold!(self.setup.checks => BereavedEnds, open.is_none(), "{node} has lost {:?}, and {open:?} still waits", self.losses.gone);
        let awaited = self
            .nodes()
            .filter(|peer| !self.losses.knows(node, *peer))
            .any(|peer| self.air.unanswered(node, peer) > 0);
        let waits = matches!(self.members[node.index()].node.reason(), Reason::Round { .. });
        hold!(self.setup.checks => BereavedRound, awaited || !waits, "the round of {node} waits for a node that is lost");
        Ok(())
    }
}
