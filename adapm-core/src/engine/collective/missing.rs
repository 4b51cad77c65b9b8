//! Collective calls that wait for long: who is missing is told once (protocol, section 7).
//!
//! A node tells which of its own workers are missing when others of them have called; node 0 tells which nodes are. Who waits in
//! the other call will never come: workers that mix a barrier with a quiesce wait for each other.

use alloc::vec::Vec;

use super::Collectives;
use super::presence::COORDINATOR;
use crate::engine::ctx::{Ctx, Env};
use crate::engine::output::{Absent, Collective};
use crate::id::{ChannelId, WorkerId};
use crate::time::Instant;
use crate::wire::Message;
use crate::wire::message::{Barrier, Body};

impl Collectives {
    /// When some collective call will have waited for long.
    pub(super) fn next_report_at(&self, ctx: &Ctx<impl Env>) -> Option<Instant> {
        let all = [&self.barriers.own, &self.barriers.all, &self.quiesces.own, &self.quiesces.all];
        all.into_iter().filter_map(|patience| patience.until(&ctx.config)).min()
    }

    /// Notes whether own workers wait for others of this node. Of all channels that a quiesce is called on, the first tells.
    pub(super) fn note_own_calls(&mut self, ctx: &Ctx<impl Env>) {
        let live = self.presence.live();
        let waits = |calls: usize| calls > 0 && calls < live;
        let (barriers, quiesces) = (self.barriers.callers().count(), self.quiesces.callers().count());
        self.barriers.own.set(waits(barriers), ctx.now);
        self.quiesces.own.set(waits(quiesces) && ctx.config.channel == ChannelId(0), ctx.now);
    }

    /// Tells who is missing, where a call has waited for long.
    pub(in crate::engine) fn report_missing(&mut self, ctx: &mut Ctx<impl Env>) {
        let now = ctx.now;
        if self.barriers.own.is_over(&ctx.config, now) {
            let absent = self.absent_workers(ctx, self.barriers.callers());
            ctx.tell_missing(Collective::Barrier, absent);
        }
        if self.quiesces.own.is_over(&ctx.config, now) {
            let absent = self.absent_workers(ctx, self.quiesces.callers());
            ctx.tell_missing(Collective::Quiesce, absent);
        }
        if self.barriers.all.is_over(&ctx.config, now) {
            let nodes = self.barriers.missing(ctx, &self.presence);
            let number = self.barriers.number();
            for node in self.barriers.arrived().iter().filter(|node| *node != COORDINATOR) {
                ctx.send(
                    node,
                    Message::bare(Body::Barrier(Barrier::Missing { number, nodes: (&nodes).into() })),
                );
            }
            let arrived = self.quiesces.arrived();
            let absent = nodes.iter().map(|node| Absent::node(node, arrived.contains(node))).collect();
            ctx.tell_missing(Collective::Barrier, absent);
        }
        if self.quiesces.all.is_over(&ctx.config, now) {
            let arrived = self.barriers.arrived();
            let nodes = ctx.nodes().filter(|node| !self.quiesces.wants_rest_at(&self.presence, *node));
            let absent = nodes.map(|node| Absent::node(node, arrived.contains(node))).collect();
            ctx.tell_missing(Collective::Quiesce, absent);
        }
    }

    /// Own workers that are not among those that have called, and have not ended.
    fn absent_workers(&self, ctx: &Ctx<impl Env>, callers: impl Iterator<Item = WorkerId>) -> Vec<Absent> {
        let callers: Vec<WorkerId> = callers.collect();
        let waits =
            |worker| self.barriers.callers().chain(self.quiesces.callers()).any(|caller| caller == worker);
        let workers = (0..ctx.config.workers).map(|index| WorkerId(index as u16));
        let absent = workers.filter(|worker| self.presence.live[worker.index()] && !callers.contains(worker));
        let node = ctx.config.node;
        absent.map(|worker| Absent { node, worker: Some(worker), elsewhere: waits(worker) }).collect()
    }
}
