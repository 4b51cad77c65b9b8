//! Calls that end when all participants have done their part: barrier, quiesce, the end of a run,
//! `wait_sync`, and ticks (protocol, "Operations", "Ticks").
//!
//! Node 0 coordinates calls of all nodes. [`Collectives`] is the machine; its parts are
//! independent.
//!
//! A call that waits for long receives one report of the missing participants: a node reports its
//! own workers, node 0 reports nodes. Participants that wait in another collective call will never
//! come: workers that mix a barrier with a quiesce deadlock.

mod barrier;
mod calls;
mod presence;
mod quiesce;
mod sync;
mod tick;

use alloc::vec::Vec;

use crate::clock::Tick;
use crate::engine::ctx::{Ctx, Env};
use crate::engine::entry::Request;
use crate::engine::input::OpId;
use crate::engine::output::{Absent, Collective};
use crate::error::{Fault, OpError};
use crate::id::{ChannelId, Key, NodeId, WorkerId};
use crate::node_set::NodeSet;
use crate::policy::Bound;
use crate::time::Instant;
use crate::wire::Message;
use crate::wire::message::{Barrier, Body, Mark, Quiesce};
use barrier::Barriers;
use presence::{COORDINATOR, Presence};
use quiesce::Quiesces;
use sync::{Caller, Syncs};
use tick::Ticks;

pub(super) use sync::Begun;

/// Collective calls of this node, and of all nodes on the coordinator.
#[derive(Debug)]
pub(super) struct Collectives {
    presence: Presence,
    barriers: Barriers,
    quiesces: Quiesces,
    syncs: Syncs,
    ticks: Ticks,
}

impl Collectives {
    pub(super) fn new(nodes: usize, workers: usize, bound: Option<Bound>) -> Self {
        Self {
            presence: Presence::new(workers),
            barriers: Barriers::default(),
            quiesces: Quiesces::new(nodes),
            syncs: Syncs::default(),
            ticks: Ticks::new(nodes, workers, bound),
        }
    }

    /// Returns true if a barrier, a quiesce, a tick or the end of the run is pending.
    pub(super) fn waits_for_nodes(&self) -> bool {
        !self.barriers.calls.is_empty() || self.quiesces.is_waiting() || self.ticks.is_waiting()
    }

    /// Returns true if a `wait_sync`, or the part of this node in a quiesce or a tick, is
    /// unfinished.
    pub(super) fn waits_for_sync(&self) -> bool {
        !self.syncs.is_empty()
    }

    /// Returns true if no operation follows on this node.
    pub(super) fn is_leaving(&self) -> bool {
        self.quiesces.is_leaving()
    }

    /// Returns the time of the next action that is due without input.
    pub(super) fn next_step_at(&self, ctx: &Ctx<impl Env>) -> Option<Instant> {
        self.next_report_at(ctx).into_iter().chain(self.quiesces.next_wave_at()).min()
    }

    /// Counts a non-control message of `node` as applied.
    pub(super) fn note_applied(&mut self, node: NodeId) {
        self.quiesces.note_applied(node);
    }

    pub(super) fn call_barrier(&mut self, ctx: &mut Ctx<impl Env>, worker: WorkerId, op: OpId) {
        self.barriers.call(ctx, &self.presence, worker, op);
        self.note_own_calls(ctx);
    }

    pub(super) fn call_quiesce(&mut self, ctx: &mut Ctx<impl Env>, worker: WorkerId, op: OpId) {
        self.quiesces.call(ctx, &self.presence, worker, op);
        self.note_own_calls(ctx);
    }

    /// Begins to leave: no operation follows on this node.
    pub(super) fn leave(&mut self, ctx: &mut Ctx<impl Env>, op: OpId) {
        self.quiesces.leave(ctx, &self.presence, op);
    }

    /// Ends a worker: its intents expire with its clock, and no call waits for it.
    pub(super) fn end_worker(&mut self, ctx: &mut Ctx<impl Env>, worker: WorkerId, op: OpId) {
        self.presence.live[worker.index()] = false;
        self.ticks.end(worker);
        ctx.done(op, Vec::new());
        if self.presence.live() == 0 && ctx.first_lost.is_none() {
            if ctx.config.node == COORDINATOR {
                self.note_ended(ctx, COORDINATOR);
            } else {
                barrier::tell(ctx, COORDINATOR, Barrier::Ended);
            }
        }
        self.barriers.progress(ctx, &self.presence);
        self.quiesces.progress_calls(ctx, &self.presence);
        self.note_own_calls(ctx);
    }

    pub(super) fn handle_barrier(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        from: NodeId,
        step: Barrier,
    ) -> Result<(), Fault> {
        match step {
            Barrier::Clock { tick } => self.ticks.handle_clock(ctx, from, tick),
            Barrier::Least { tick } => self.ticks.handle_least(from, tick),
            Barrier::Ended if ctx.config.node == COORDINATOR => {
                self.note_ended(ctx, from);
                Ok(())
            }
            _ => self.barriers.handle(ctx, &self.presence, from, step),
        }
    }

    /// Records that a node has no live workers left (coordinator only).
    fn note_ended(&mut self, ctx: &mut Ctx<impl Env>, node: NodeId) {
        self.presence.ended.insert(node);
        self.quiesces.progress_waves(ctx, &self.presence);
        self.barriers.complete(ctx, &self.presence);
    }

    pub(super) fn handle_quiesce(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        from: NodeId,
        step: Quiesce,
    ) -> Result<(), Fault> {
        self.quiesces.handle(ctx, &self.presence, from, step)
    }

    /// Starts a wave, if it is time.
    pub(super) fn start_due_wave(&mut self, ctx: &mut Ctx<impl Env>) {
        self.quiesces.start_due(ctx);
    }

    /// Takes the probe to be answered with the state after this input: the wave, and true if it
    /// settles.
    pub(super) fn take_probe(&mut self) -> Option<(u64, bool)> {
        self.quiesces.take_probe()
    }

    /// Answers a probe of `wave`: reports this node's state to the coordinator.
    pub(super) fn report(&mut self, ctx: &mut Ctx<impl Env>, wave: u64, busy: bool) {
        self.quiesces.report(ctx, &self.presence, wave, busy);
    }

    /// Begins a `wait_sync` of a worker.
    pub(super) fn wait_sync(&mut self, op: OpId, begun: Begun) {
        self.syncs.begin(Caller::Worker(op), begun);
    }

    /// Begins the part of this node in a settling wave: it reports once everything in `begun` is
    /// done.
    pub(super) fn settle(&mut self, wave: u64, begun: Begun) {
        self.syncs.begin(Caller::Wave(wave), begun);
    }

    /// Raises the tick of a worker.
    pub(super) fn tick(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        call: (WorkerId, OpId),
        tick: Tick,
        waits: bool,
    ) -> Result<(), OpError> {
        self.ticks.raise(ctx, call, tick, waits)
    }

    /// Returns true if ticks are bounded.
    pub(super) fn is_bounded(&self) -> bool {
        self.ticks.is_bounded()
    }

    /// Returns true if own workers have ended, all of them.
    pub(super) fn has_ended(&self) -> bool {
        self.presence.live() == 0
    }

    /// Returns a tick such that every update made anywhere before it is in the main copies.
    pub(super) fn least_tick(&self) -> Tick {
        self.ticks.least()
    }

    /// Returns the tick before which kept copies have to be given up, if it has risen.
    pub(super) fn next_expiry(&mut self) -> Option<Tick> {
        self.ticks.next_expiry()
    }

    /// Lets workers pass their ticks; `oldest`: see [`Ticks::pass`].
    pub(super) fn pass_ticks(&mut self, ctx: &mut Ctx<impl Env>, oldest: Option<Tick>) {
        self.ticks.pass(ctx, oldest);
    }

    /// Returns true if it is time to settle what own workers have done before their ticks.
    pub(super) fn may_settle_ticks(&self) -> bool {
        self.ticks.may_settle()
    }

    /// Begins to settle: done once everything in `begun` is.
    pub(super) fn settle_ticks(&mut self, begun: Begun) {
        self.ticks.settle();
        self.syncs.begin(Caller::Tick, begun);
    }

    /// Returns true if a tick waits for changes to leave, but for no refresh.
    pub(super) fn settles_only(&self) -> bool {
        self.ticks.settles_only()
    }

    /// Returns true if a mark could begin towards a peer for which `is_free` returns true.
    pub(super) fn wants_mark(&self, is_free: impl Fn(NodeId) -> bool) -> bool {
        self.syncs.wants_mark(is_free)
    }

    /// Begins a mark towards `node`. Returns [`Mark::None`], and begins none, if no call waits for
    /// the node.
    pub(super) fn begin_mark(&mut self, node: NodeId) -> Mark {
        self.syncs.cover(node)
    }

    /// Records that `node` has sent everything that was due when the mark arrived.
    pub(super) fn note_synced(&mut self, node: NodeId) {
        self.syncs.note_synced(node);
    }

    /// Records the answer to an intent or localize of this node for `key`.
    pub(super) fn note_answered(&mut self, key: Key, request: Request) {
        self.syncs.note_answered(key, request);
    }

    /// Advances `wait_sync` calls after an operation or an answer. Returns those that end.
    /// `concerned` lists the peers with which changes may still have to be exchanged, for the mark
    /// that a call needs.
    pub(super) fn progress_syncs(
        &mut self,
        is_unfinished: impl Fn(OpId) -> bool,
        concerned: impl Fn(Mark) -> NodeSet,
    ) -> Vec<Caller> {
        self.syncs.progress(is_unfinished, concerned)
    }

    /// Ends `wait_sync` calls.
    pub(super) fn end_syncs(&mut self, ctx: &mut Ctx<impl Env>, callers: Vec<Caller>) {
        for caller in callers {
            match caller {
                Caller::Worker(op) => ctx.done(op, Vec::new()),
                Caller::Wave(wave) => self.report(ctx, wave, false),
                Caller::Tick => self.ticks.note_settled(ctx),
            }
        }
    }

    /// Gives up all calls and all coordination after the loss of a peer. Returns the operations
    /// that fail.
    pub(super) fn give_up(&mut self) -> Vec<OpId> {
        let mut ops: Vec<OpId> = self.syncs.take_ops().collect();
        ops.extend(self.barriers.take_ops());
        ops.extend(self.quiesces.take_ops());
        ops.extend(self.ticks.take_ops());
        self.presence.ended = NodeSet::new();
        ops
    }

    /// Returns the time of the next report of missing participants.
    fn next_report_at(&self, ctx: &Ctx<impl Env>) -> Option<Instant> {
        let all = [
            &self.barriers.calls.patience,
            &self.barriers.all,
            &self.quiesces.calls.patience,
            &self.quiesces.all,
            &self.ticks.patience,
        ];
        all.into_iter().filter_map(|patience| patience.until(&ctx.config)).min()
    }

    /// Notes if own workers wait for others of this node. A quiesce is called on every channel;
    /// channel 0 reports.
    fn note_own_calls(&mut self, ctx: &Ctx<impl Env>) {
        self.barriers.calls.note_waiting(&self.presence, ctx.now);
        if ctx.config.channel == ChannelId(0) {
            self.quiesces.calls.note_waiting(&self.presence, ctx.now);
        }
    }

    /// Reports missing participants of calls that have waited for long.
    pub(super) fn report_missing(&mut self, ctx: &mut Ctx<impl Env>) {
        let now = ctx.now;
        if self.barriers.calls.patience.is_over(&ctx.config, now) {
            let absent = self.absent_workers(ctx, self.barriers.calls.workers());
            ctx.tell_missing(Collective::Barrier, absent);
        }
        if self.quiesces.calls.patience.is_over(&ctx.config, now) {
            let absent = self.absent_workers(ctx, self.quiesces.calls.workers());
            ctx.tell_missing(Collective::Quiesce, absent);
        }
        if self.ticks.patience.is_over(&ctx.config, now) {
            let node = ctx.config.node;
            let elsewhere = false;
            let workers = self.ticks.late_workers();
            let workers = workers.map(|worker| Absent { node, worker: Some(worker), elsewhere });
            let nodes = self.ticks.late_nodes(ctx).map(|node| Absent::node(node, elsewhere));
            let absent = workers.chain(nodes).collect();
            ctx.tell_missing(Collective::Tick, absent);
        }
        if self.barriers.all.is_over(&ctx.config, now) {
            let nodes = self.barriers.missing(ctx, &self.presence);
            let number = self.barriers.calls.number();
            for node in self.barriers.arrived().iter().filter(|node| *node != COORDINATOR) {
                ctx.send(
                    node,
                    Message::bare(Body::Barrier(Barrier::Missing {
                        number,
                        nodes: (&nodes).into(),
                    })),
                );
            }
            let arrived = self.quiesces.arrived();
            let absent =
                nodes.iter().map(|node| Absent::node(node, arrived.contains(node))).collect();
            ctx.tell_missing(Collective::Barrier, absent);
        }
        if self.quiesces.all.is_over(&ctx.config, now) {
            let arrived = self.barriers.arrived();
            let nodes =
                ctx.nodes().filter(|node| !self.quiesces.wants_rest_at(&self.presence, *node));
            let absent = nodes.map(|node| Absent::node(node, arrived.contains(node))).collect();
            ctx.tell_missing(Collective::Quiesce, absent);
        }
    }

    /// Returns own live workers that have not called.
    fn absent_workers(
        &self,
        ctx: &Ctx<impl Env>,
        callers: impl Iterator<Item = WorkerId>,
    ) -> Vec<Absent> {
        let callers: Vec<WorkerId> = callers.collect();
        let waits = |worker| {
            self.barriers
                .calls
                .workers()
                .chain(self.quiesces.calls.workers())
                .any(|caller| caller == worker)
        };
        let workers = (0..ctx.config.workers).map(|index| WorkerId(index as u16));
        let absent = workers
            .filter(|worker| self.presence.live[worker.index()] && !callers.contains(worker));
        let node = ctx.config.node;
        absent
            .map(|worker| Absent { node, worker: Some(worker), elsewhere: waits(worker) })
            .collect()
    }
}
