//! Collective calls that wait for long: who is missing is told once (protocol, section 7).
//!
//! A node tells which of its own workers are missing when others of them have called; node 0 tells which nodes are. Who waits in
//! the other call will never come: workers that mix a barrier with a quiesce wait for each other.

use alloc::vec::Vec;

use super::{COORDINATOR, Collectives, barrier};
use crate::config::NodeConfig;
use crate::engine::ctx::Ctx;
use crate::engine::output::Event;
use crate::id::{ChannelId, NodeId, WorkerId};
use crate::policy::Policy;
use crate::store::Store;
use crate::time::Instant;
use crate::wire::message::Barrier;

/// A call that ends when all workers of all nodes have made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// [`crate::engine::OpBody::Barrier`].
    Barrier,
    /// [`crate::engine::OpBody::Quiesce`].
    Quiesce,
}

/// A worker or node that a collective call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The node.
    pub node: NodeId,
    /// The worker; `None`: one of the node's at least, which knows more.
    pub worker: Option<WorkerId>,
    /// It waits in the other collective call meanwhile.
    pub elsewhere: bool,
}

/// Since when something is waited for, and whether that was told.
#[derive(Debug, Default)]
pub(super) struct Patience {
    since: Option<Instant>,
    is_told: bool,
}

impl Patience {
    /// From here on it is waited, or not any more.
    pub(super) fn set(&mut self, waits: bool, now: Instant) {
        if waits {
            self.since.get_or_insert(now);
        } else {
            *self = Self::default();
        }
    }

    /// When to tell, if that is still to be done.
    pub(super) fn until(&self, config: &NodeConfig) -> Option<Instant> {
        self.since.filter(|_| !self.is_told).map(|since| since.plus_nanos(config.barrier_report_nanos))
    }

    /// Returns true once, when it is time to tell.
    fn is_over(&mut self, config: &NodeConfig, now: Instant) -> bool {
        let is_over = self.until(config).is_some_and(|until| until <= now);
        self.is_told |= is_over;
        is_over
    }
}

impl Collectives {
    /// When some collective call will have waited for long.
    pub(super) fn next_report_at(&self, ctx: &Ctx<impl Store, impl Policy>) -> Option<Instant> {
        let all = [&self.barriers.own, &self.barriers.all, &self.quiesces.own, &self.quiesces.all];
        all.into_iter().filter_map(|patience| patience.until(&ctx.config)).min()
    }

    /// Notes whether own workers wait for others of this node. Of all channels that a quiesce is called on, the first tells.
    pub(super) fn note_own_calls(&mut self, ctx: &Ctx<impl Store, impl Policy>) {
        let live = self.presence.live();
        let waits = |calls: usize| calls > 0 && calls < live;
        let (barriers, quiesces) = (self.barriers.callers().count(), self.quiesces.callers().count());
        self.barriers.own.set(waits(barriers), ctx.now);
        self.quiesces.own.set(waits(quiesces) && ctx.config.channel == ChannelId(0), ctx.now);
    }

    /// Tells who is missing, where a call has waited for long.
    pub(in crate::engine) fn report_missing(&mut self, ctx: &mut Ctx<impl Store, impl Policy>) {
        let now = ctx.now;
        if self.barriers.own.is_over(&ctx.config, now) {
            let absent = self.absent_workers(ctx, self.barriers.callers());
            tell_missing(ctx, Collective::Barrier, absent);
        }
        if self.quiesces.own.is_over(&ctx.config, now) {
            let absent = self.absent_workers(ctx, self.quiesces.callers());
            tell_missing(ctx, Collective::Quiesce, absent);
        }
        if self.barriers.all.is_over(&ctx.config, now) {
            let nodes = self.barriers.missing(ctx, &self.presence);
            let number = self.barriers.number();
            for node in self.barriers.arrived().iter().filter(|node| *node != COORDINATOR) {
                barrier::tell(ctx, node, Barrier::Missing { number, nodes: (&nodes).into() });
            }
            let arrived = self.quiesces.arrived();
            let absent = nodes.iter().map(|node| Absent::node(node, arrived.contains(node))).collect();
            tell_missing(ctx, Collective::Barrier, absent);
        }
        if self.quiesces.all.is_over(&ctx.config, now) {
            let arrived = self.barriers.arrived();
            let nodes = ctx.nodes().filter(|node| !self.quiesces.wants_rest_at(&self.presence, *node));
            let absent = nodes.map(|node| Absent::node(node, arrived.contains(node))).collect();
            tell_missing(ctx, Collective::Quiesce, absent);
        }
    }

    /// Own workers that are not among those that have called, and have not ended.
    fn absent_workers(
        &self,
        ctx: &Ctx<impl Store, impl Policy>,
        callers: impl Iterator<Item = WorkerId>,
    ) -> Vec<Absent> {
        let callers: Vec<WorkerId> = callers.collect();
        let waits =
            |worker| self.barriers.callers().chain(self.quiesces.callers()).any(|caller| caller == worker);
        let workers = (0..ctx.config.workers).map(|index| WorkerId(index as u16));
        let absent = workers.filter(|worker| self.presence.live[worker.index()] && !callers.contains(worker));
        let node = ctx.config.node;
        absent.map(|worker| Absent { node, worker: Some(worker), elsewhere: waits(worker) }).collect()
    }
}

pub(super) fn tell_missing(ctx: &mut Ctx<impl Store, impl Policy>, call: Collective, absent: Vec<Absent>) {
    if !absent.is_empty() {
        ctx.tell(Event::Missing { call, absent });
    }
}

impl Absent {
    /// Some worker of a node.
    pub(super) fn node(node: NodeId, elsewhere: bool) -> Self {
        Self { node, worker: None, elsewhere }
    }
}
