//! `barrier`: a collective call of all live workers of all nodes; node 0 coordinates (protocol,
//! "Operations").
//!
//! Only a node itself knows that its workers have arrived or ended, so its word is taken for its
//! own workers; it cannot speak for other nodes.

use core::mem;

use super::calls::{Calls, Patience};
use super::presence::{COORDINATOR, Presence};
use crate::engine::ctx::{Ctx, Env};
use crate::engine::input::OpId;
use crate::engine::output::{Absent, Collective};
use crate::error::Fault;
use crate::id::{NodeId, WorkerId};
use crate::node_set::NodeSet;
use crate::wire::Message;
use crate::wire::message::{Barrier, Body};

/// Barriers of this node, and of all nodes on the coordinator.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    /// Calls of own workers, and the number of barriers passed.
    pub(super) calls: Calls,
    /// Coordinator: nodes that have arrived at the current barrier.
    arrived: NodeSet,
    /// Coordinator: wait for nodes.
    pub(super) all: Patience,
}

impl Barriers {
    /// Returns, on the coordinator, the nodes that have arrived at the current barrier.
    pub(super) fn arrived(&self) -> &NodeSet {
        &self.arrived
    }

    /// Gives up all calls and resets the barriers. Returns the operations of the calls.
    pub(super) fn take_ops(&mut self) -> impl Iterator<Item = OpId> + use<> {
        mem::take(self).calls.take_ops()
    }

    pub(super) fn call(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        presence: &Presence,
        worker: WorkerId,
        op: OpId,
    ) {
        self.calls.push(worker, op);
        self.progress(ctx, presence);
    }

    /// Arrives at the barrier if all own workers have called.
    pub(super) fn progress(&mut self, ctx: &mut Ctx<impl Env>, presence: &Presence) {
        if self.calls.arrive(presence) {
            if ctx.config.node == COORDINATOR {
                self.arrive(ctx, presence, COORDINATOR);
            } else {
                tell(ctx, COORDINATOR, Barrier::Arrived { number: self.calls.number() });
            }
        }
    }

    /// Handles the steps of a barrier; that a node has ended is not one of them.
    pub(super) fn handle(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        presence: &Presence,
        from: NodeId,
        step: Barrier,
    ) -> Result<(), Fault> {
        let coordinates = ctx.config.node == COORDINATOR;
        match step {
            Barrier::Arrived { number }
                if coordinates && number == self.calls.number() && !self.arrived.contains(from) =>
            {
                self.arrive(ctx, presence, from);
            }
            Barrier::Passed { number }
                if from == COORDINATOR
                    && number == self.calls.number()
                    && self.calls.has_arrived() =>
            {
                self.calls.end(ctx);
            }
            Barrier::Missing { number, nodes }
                if from == COORDINATOR
                    && number == self.calls.number()
                    && self.may_miss(ctx.config.node, &nodes) =>
            {
                let absent = nodes.into_iter().map(|node| Absent::node(node, false)).collect();
                ctx.tell_missing(Collective::Barrier, absent);
            }
            _ => return Err(Fault::Unexpected),
        }
        Ok(())
    }

    /// Returns true if a barrier at which `own` waits can lack `nodes`, ascending.
    fn may_miss(&self, own: NodeId, nodes: &[NodeId]) -> bool {
        self.calls.has_arrived() && !nodes.is_empty() && nodes.binary_search(&own).is_err()
    }

    /// Records the arrival of a node (coordinator only).
    fn arrive(&mut self, ctx: &mut Ctx<impl Env>, presence: &Presence, node: NodeId) {
        self.arrived.insert(node);
        self.all.set(true, ctx.now);
        self.complete(ctx, presence);
    }

    /// Lets all nodes pass if none is missing (coordinator only).
    pub(super) fn complete(&mut self, ctx: &mut Ctx<impl Env>, presence: &Presence) {
        if !self.missing(ctx, presence).is_empty() || self.arrived.is_empty() {
            return;
        }
        let number = self.calls.number();
        self.calls.end(ctx);
        let arrived = mem::take(&mut self.arrived);
        for node in arrived.iter().filter(|node| *node != COORDINATOR) {
            tell(ctx, node, Barrier::Passed { number });
        }
        self.all.set(false, ctx.now);
    }

    /// Returns the nodes that the current barrier waits for (coordinator only).
    pub(super) fn missing(&self, ctx: &Ctx<impl Env>, presence: &Presence) -> NodeSet {
        let is_there =
            |node: &NodeId| self.arrived.contains(*node) || presence.ended.contains(*node);
        ctx.nodes().filter(|node| !is_there(node)).collect()
    }
}

/// Sends a step of a barrier to another node.
pub(super) fn tell(ctx: &mut Ctx<impl Env>, to: NodeId, step: Barrier) {
    ctx.send(to, Message::bare(Body::Barrier(step)));
}
