//! `quiesce` and the end of a run (protocol, "Operations"): waves over all nodes, which node 0
//! coordinates.
//!
//! After every live worker has called `quiesce`, two waves *settle*: each node reports once all is
//! done that had begun there when the probe arrived ([`super::sync`]). After the first, every push
//! made before the calls is in its main copy; after the second, it is in every replica as well.
//! Later operations are not waited for, so a thread that goes on localizing or writing keeps no
//! quiesce from ending.
//!
//! At the end of a run, after all nodes have begun to leave, waves look for *rest*: each node
//! reports its state. Two successive waves in which no node has pending work and messages sent
//! equal messages applied, with the same totals in both, prove that nothing is in flight.
//!
//! # What a peer may claim
//! Only a node itself knows that its workers have called, that it has no pending work, and what it
//! has sent and applied. A liar that adds the messages in flight between others to its own totals
//! ends a quiesce early, and one that is always busy lets none end: sums cannot tell. Claims that
//! contradict earlier ones or this node are refused: totals that shrink, that are below the
//! messages received from that node, or that no node can reach; a second arrival; an end for which
//! no worker here has called.

use alloc::vec::Vec;
use core::mem;

use super::calls::{Calls, Patience};
use super::presence::{COORDINATOR, Presence};
use crate::engine::ctx::{Ctx, Env};
use crate::engine::effect::Effect;
use crate::engine::input::OpId;
use crate::error::Fault;
use crate::id::{ChannelId, NodeId, WorkerId};
use crate::node_set::NodeSet;
use crate::time::Instant;
use crate::wire::Message;
use crate::wire::message::{Body, Quiesce};

/// Quiesces of this node, and of all nodes on the coordinator.
#[derive(Debug, Default)]
pub(super) struct Quiesces {
    /// Calls of own workers, and the number of quiesces that have ended.
    pub(super) calls: Calls,
    leave: Vec<OpId>,
    /// A probe to be answered at the end of the input: the wave, and true if it settles.
    probe: Option<(u64, bool)>,
    arrived: NodeSet,
    leaving: NodeSet,
    wave: Option<Wave>,
    waves: u64,
    next_wave: Option<Instant>,
    /// Messages applied here, by sender, control aside.
    applied: Vec<u64>,
    /// Coordinator: the last report of each node.
    reported: Vec<Totals>,
    /// Coordinator: wait for nodes to call.
    pub(super) all: Patience,
}

/// Messages that a node has sent and applied so far, control aside.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    sent: u64,
    applied: u64,
}

/// One wave that the coordinator runs.
#[derive(Debug)]
struct Wave {
    number: u64,
    kind: WaveKind,
    reported: NodeSet,
    busy: bool,
    total: Totals,
}

/// The purpose of a wave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WaveKind {
    /// A quiesce: the first or the second of its waves.
    Settle { is_second: bool },
    /// The end of the run, with the total of the wave before if it found rest.
    Rest { before: Option<u64> },
}

impl Quiesces {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            applied: alloc::vec![0; nodes],
            reported: alloc::vec![Totals::default(); nodes],
            ..Self::default()
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.calls.is_empty() || self.is_leaving()
    }

    pub(super) fn is_leaving(&self) -> bool {
        !self.leave.is_empty()
    }

    /// Returns, on the coordinator, the nodes that have arrived at the current quiesce.
    pub(super) fn arrived(&self) -> &NodeSet {
        &self.arrived
    }

    /// Returns the time of the coordinator's next wave.
    pub(super) fn next_wave_at(&self) -> Option<Instant> {
        self.next_wave
    }

    pub(super) fn note_applied(&mut self, node: NodeId) {
        self.applied[node.index()] += 1;
    }

    /// Gives up all calls and resets the quiesces. Returns the operations of the calls.
    pub(super) fn take_ops(&mut self) -> impl Iterator<Item = OpId> + use<> {
        let Self { mut calls, leave, .. } = mem::replace(self, Self::new(self.applied.len()));
        calls.take_ops().chain(leave)
    }

    pub(super) fn call(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        presence: &Presence,
        worker: WorkerId,
        op: OpId,
    ) {
        self.calls.push(worker, op);
        self.progress_calls(ctx, presence);
    }

    pub(super) fn leave(&mut self, ctx: &mut Ctx<impl Env>, presence: &Presence, op: OpId) {
        self.leave.push(op);
        self.tell(ctx, presence, Quiesce::Leaving);
    }

    /// Arrives at the quiesce if all own workers have called.
    pub(super) fn progress_calls(&mut self, ctx: &mut Ctx<impl Env>, presence: &Presence) {
        if self.calls.arrive(presence) {
            let number = self.calls.number();
            self.tell(ctx, presence, Quiesce::Arrived { number });
        }
    }

    /// Sends a step to the coordinator, which may be this node.
    fn tell(&mut self, ctx: &mut Ctx<impl Env>, presence: &Presence, step: Quiesce) {
        if ctx.config.node == COORDINATOR {
            self.coordinate(ctx, presence, COORDINATOR, &step);
        } else {
            tell(ctx, COORDINATOR, step);
        }
    }

    pub(super) fn handle(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        presence: &Presence,
        from: NodeId,
        step: Quiesce,
    ) -> Result<(), Fault> {
        let coordinates = ctx.config.node == COORDINATOR;
        match step {
            Quiesce::Arrived { number }
                if coordinates && number == self.calls.number() && !self.arrived.contains(from) => {
            }
            Quiesce::Leaving if coordinates => {}
            Quiesce::Report { wave, sent, applied, .. }
                if coordinates
                    && self.awaits_report(from, wave)
                    && self.may_have_counted(from, Totals { sent, applied }) => {}
            Quiesce::Probe { wave, settle } if from == COORDINATOR => {
                ctx.ask(Effect::Hurry);
                self.probe = Some((wave, settle));
            }
            Quiesce::Done { number }
                if from == COORDINATOR
                    && number == self.calls.number()
                    && self.wants_rest(presence) =>
            {
                self.calls.end(ctx)
            }
            Quiesce::Left if from == COORDINATOR && self.is_leaving() => self.end_leave(ctx),
            _ => return Err(Fault::Unexpected),
        }
        if coordinates {
            self.coordinate(ctx, presence, from, &step);
        }
        Ok(())
    }

    /// Returns true if this node's workers have called, or none of them ever will.
    fn wants_rest(&self, presence: &Presence) -> bool {
        self.calls.has_arrived() || self.is_leaving() || presence.live() == 0
    }

    fn may_have_counted(&self, from: NodeId, totals: Totals) -> bool {
        let reported = self.reported[from.index()];
        let sent_min = self.applied[from.index()].max(reported.sent);
        (sent_min..TOTAL_END).contains(&totals.sent)
            && (reported.applied..TOTAL_END).contains(&totals.applied)
    }

    fn awaits_report(&self, from: NodeId, wave: u64) -> bool {
        self.wave.as_ref().is_some_and(|open| open.number == wave && !open.reported.contains(from))
    }

    fn coordinate(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        presence: &Presence,
        from: NodeId,
        step: &Quiesce,
    ) {
        match *step {
            Quiesce::Arrived { .. } => {
                self.arrived.insert(from);
            }
            Quiesce::Leaving => {
                self.leaving.insert(from);
            }
            Quiesce::Report { busy, sent, applied, .. } => {
                self.reported[from.index()] = Totals { sent, applied };
                let wave = self.wave.as_mut().expect("a report is checked against the wave");
                wave.reported.insert(from);
                wave.busy |= busy;
                wave.total.sent += sent;
                wave.total.applied += applied;
            }
            Quiesce::Probe { .. } | Quiesce::Done { .. } | Quiesce::Left => {}
        }
        self.progress_waves(ctx, presence);
    }

    /// Returns true if every node waits for rest: it called, it leaves, or it has no workers left.
    fn all_want_rest(&self, ctx: &Ctx<impl Env>, presence: &Presence) -> bool {
        let someone = !self.arrived.is_empty() || self.leaving.len() == ctx.config.nodes;
        someone && ctx.nodes().all(|node| self.wants_rest_at(presence, node))
    }

    /// Returns true if `node` waits for rest (coordinator only).
    pub(super) fn wants_rest_at(&self, presence: &Presence, node: NodeId) -> bool {
        self.arrived.contains(node) || self.leaving.contains(node) || presence.ended.contains(node)
    }

    /// Starts the first wave, or completes the current one if all have reported (coordinator only).
    pub(super) fn progress_waves(&mut self, ctx: &mut Ctx<impl Env>, presence: &Presence) {
        if ctx.config.node != COORDINATOR {
            return;
        }
        let waits = !self.arrived.is_empty() && !self.all_want_rest(ctx, presence);
        self.all.set(waits && ctx.config.channel == ChannelId(0), ctx.now);
        let Some(wave) = &self.wave else {
            if self.all_want_rest(ctx, presence) && self.next_wave.is_none() {
                self.start_wave(ctx, self.first_wave());
            }
            return;
        };
        if wave.reported.len() < ctx.config.nodes {
            return;
        }
        let Wave { kind, busy, total, .. } = *wave;
        let rest = !busy && total.sent == total.applied;
        self.wave = None;
        match kind {
            WaveKind::Settle { is_second: false } => {
                self.start_wave(ctx, WaveKind::Settle { is_second: true });
            }
            WaveKind::Settle { .. } => self.announce_rest(ctx, presence),
            WaveKind::Rest { before } if rest && before == Some(total.sent) => {
                self.announce_rest(ctx, presence)
            }
            WaveKind::Rest { .. } if rest => {
                self.start_wave(ctx, WaveKind::Rest { before: Some(total.sent) })
            }
            WaveKind::Rest { .. } => {
                self.next_wave = Some(ctx.now.plus_nanos(ctx.config.round_nanos_min));
            }
        }
    }

    fn first_wave(&self) -> WaveKind {
        if self.arrived.is_empty() {
            WaveKind::Rest { before: None }
        } else {
            WaveKind::Settle { is_second: false }
        }
    }

    /// Starts the next wave if it is due.
    pub(super) fn start_due(&mut self, ctx: &mut Ctx<impl Env>) {
        if self.next_wave.is_some_and(|at| at <= ctx.now) {
            self.start_wave(ctx, self.first_wave());
        }
    }

    fn start_wave(&mut self, ctx: &mut Ctx<impl Env>, kind: WaveKind) {
        self.next_wave = None;
        self.waves += 1;
        let number = self.waves;
        let reported = NodeSet::new();
        self.wave = Some(Wave { number, kind, reported, busy: false, total: Totals::default() });
        let settle = matches!(kind, WaveKind::Settle { .. });
        for node in ctx.nodes() {
            if node != ctx.config.node {
                tell(ctx, node, Quiesce::Probe { wave: number, settle });
            }
        }
        self.probe = Some((number, settle));
    }

    /// Takes the probe to be answered: the wave, and true if it settles.
    pub(super) fn take_probe(&mut self) -> Option<(u64, bool)> {
        self.probe.take()
    }

    /// Reports the state of this node in `wave` to the coordinator.
    pub(super) fn report(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        presence: &Presence,
        wave: u64,
        busy: bool,
    ) {
        let (sent, applied) = (ctx.stats.messages_sent, ctx.stats.messages_applied);
        self.tell(ctx, presence, Quiesce::Report { wave, busy, sent, applied });
    }

    fn announce_rest(&mut self, ctx: &mut Ctx<impl Env>, presence: &Presence) {
        let others = ctx.nodes().skip(1);
        if self.arrived.is_empty() {
            others.for_each(|node| tell(ctx, node, Quiesce::Left));
            return self.end_leave(ctx);
        }
        let number = self.calls.number();
        self.arrived = NodeSet::new();
        others.for_each(|node| tell(ctx, node, Quiesce::Done { number }));
        self.calls.end(ctx);
        self.progress_waves(ctx, presence);
    }

    fn end_leave(&mut self, ctx: &mut Ctx<impl Env>) {
        self.leaving = NodeSet::new();
        for op in mem::take(&mut self.leave) {
            ctx.done(op, Vec::new());
        }
    }
}

/// Sends a step of a quiesce to another node.
fn tell(ctx: &mut Ctx<impl Env>, to: NodeId, step: Quiesce) {
    ctx.send(to, Message::bare(Body::Quiesce(step)));
}

/// Bound on the messages that a node counts: this many, times the most nodes, still fits into 64
/// bits.
const TOTAL_END: u64 = 1 << 48;
