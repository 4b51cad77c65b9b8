//! Nodes of a lockstep cluster that stop answering and are never told lost: their peers must find out, and blame nobody else.

use adapm_core::engine::Input;
use adapm_core::id::NodeId;

use crate::cluster::Cluster;
use crate::violation::{Violation, hold};

impl Cluster {
    /// Lets time pass until `node` looks at its peers, if it is to; as a driver does, tells it before of the ways on which
    /// messages still travel.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn look(&mut self, node: NodeId) -> Result<(), Violation> {
        for peer in self.nodes().filter(|peer| *peer != node) {
            let travels = |from, to| self.air.queue(from, to).next().is_some();
            if travels(node, peer) || travels(peer, node) {
                self.hear(node, peer)?;
            }
        }
        self.look_behind(node)
    }

    /// Tells `node` that messages still travel between it and `peer`.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn hear(&mut self, node: NodeId, peer: NodeId) -> Result<(), Violation> {
        self.feed(node, Input::Heard(peer))
    }

    /// As [`Cluster::look`], of a node that was stopped and has not read what came meanwhile.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn look_behind(&mut self, node: NodeId) -> Result<(), Violation> {
        if let Some(due) = self.members[node.index()].node.engine().next_look_at() {
            self.now = self.now.max(due);
        }
        self.timeout(node)
    }

    /// All nodes look at their peers `looks` times, with all messages delivered between.
    ///
    /// # Errors
    /// If that breaks an invariant.
    pub fn look_around(&mut self, looks: usize) -> Result<(), Violation> {
        for _ in 0..looks {
            self.deliver_all()?;
            for node in self.living() {
                self.look(node)?;
                self.round(node)?;
            }
        }
        self.deliver_all()
    }

    /// Whoever waits has noticed that a node has stopped answering.
    ///
    /// # Errors
    /// If not.
    pub fn check_noticed(&self) -> Result<(), Violation> {
        let is_told = |node: NodeId| self.losses.is_told(node);
        let unaware = self.calls.open().find(|(_, who)| !is_told(who.0));
        hold!(
            self.setup.checks => UnresponsiveNoticed,
            unaware.is_none(),
            "{unaware:?} waits, and its node has not noticed that {:?} do not answer",
            self.losses.gone()
        );
        Ok(())
    }

    /// `node` calls `peers` unresponsive, and gives them up.
    pub(super) fn give_up_unresponsive(&mut self, node: NodeId, peers: Vec<NodeId>) -> Result<(), Violation> {
        for peer in peers {
            let is_gone = self.losses.is_gone(peer);
            hold!(self.setup.checks => AnsweringIsSpared, is_gone, "{node} calls {peer} unresponsive, which answers");
            if is_gone {
                self.tell_lost(node, peer)?;
            }
        }
        Ok(())
    }
}
