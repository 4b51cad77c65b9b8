//! Ticks: a bound on how far workers are apart, and thereby on how stale a read may be (AdaPM §A.3,
//! OSDI'14 §3.5; protocol, "Ticks"). Node 0 coordinates.
//!
//! A node *settles* behind its workers: once its slowest worker has reached a tick, it does what a
//! `wait_sync` does ([`super::sync`]), then tells node 0 that every update made here before that
//! tick is in a main copy. Node 0 tells all nodes the least such tick. A worker passes its tick
//! once the least is near enough, and the copies of its node are fresh enough.
//!
//! # What a peer may claim
//! Only a node itself knows the ticks of its workers, so one that claims too much has others read
//! stale values, and one that stands still stops them. Claims that contradict earlier ones or this
//! node are refused: ticks that fall, and a least tick above that of this node.

use alloc::vec::Vec;
use core::mem;

use super::barrier::tell;
use super::calls::Patience;
use super::presence::COORDINATOR;
use crate::clock::Tick;
use crate::engine::ctx::{Ctx, Env};
use crate::engine::input::OpId;
use crate::error::{Fault, OpError};
use crate::id::{ChannelId, NodeId, WorkerId};
use crate::policy::{Bound, By};
use crate::wire::message::Barrier;

/// Ticks of own workers, and of all nodes on the coordinator.
#[derive(Debug)]
pub(super) struct Ticks {
    /// `None`: no worker waits, and nothing is sent.
    bound: Option<Bound>,
    /// By own worker.
    workers: Vec<Tick>,
    /// Own workers that wait.
    calls: Vec<(Tick, OpId)>,
    /// Updates made here before it are in the main copies, as node 0 was told.
    settled: Tick,
    /// Replicas here have been refreshed since `least` was this.
    fresh: Tick,
    /// Updates made anywhere before it are in the main copies.
    least: Tick,
    /// Copies that must not be read from this tick on are given up.
    expired: Tick,
    /// What `settled` and `fresh` become when the sync that runs has ended.
    running: Option<(Tick, Tick)>,
    /// Coordinator: the `settled` of each node.
    nodes: Vec<Tick>,
    /// Wait for others, and the `least` during it.
    pub(super) patience: Patience,
    awaited: Tick,
}

impl Ticks {
    pub(super) fn new(nodes: usize, workers: usize, bound: Option<Bound>) -> Self {
        Self {
            bound,
            workers: alloc::vec![Tick::default(); workers],
            calls: Vec::new(),
            settled: Tick::default(),
            fresh: Tick::default(),
            least: Tick::default(),
            expired: Tick::default(),
            running: None,
            nodes: alloc::vec![Tick::default(); nodes],
            patience: Patience::default(),
            awaited: Tick::default(),
        }
    }

    pub(super) fn is_bounded(&self) -> bool {
        self.bound.is_some()
    }

    /// Returns true if an own worker waits.
    pub(super) fn is_waiting(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Returns a tick such that every update made anywhere before it is in the main copies.
    pub(super) fn least(&self) -> Tick {
        self.least
    }

    /// Raises the tick of a worker. `op` ends at once unless it `waits` and there is a bound.
    pub(super) fn raise(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        (worker, op): (WorkerId, OpId),
        tick: Tick,
        waits: bool,
    ) -> Result<(), OpError> {
        let last = &mut self.workers[worker.index()];
        if tick < *last || *last == Tick::INFINITY {
            return Err(OpError::TickBack { worker, tick, last: *last });
        }
        *last = tick;
        if waits && self.is_bounded() {
            self.calls.push((tick, op));
        } else {
            ctx.done(op, Vec::new());
        }
        Ok(())
    }

    /// Ends a worker: it holds nobody up.
    pub(super) fn end(&mut self, worker: WorkerId) {
        self.workers[worker.index()] = Tick::INFINITY;
    }

    /// Returns the tick of the slowest own worker.
    fn own(&self) -> Tick {
        self.workers.iter().copied().min().unwrap_or(Tick::INFINITY)
    }

    /// Returns true if copies are given up in time, so that a tick waits for no refresh.
    pub(super) fn settles_only(&self) -> bool {
        matches!(self.bound, Some(Bound { by: By::Expiry, .. }))
    }

    /// Returns true if a sync has to run: there is something to tell, or a worker waits for
    /// refreshes.
    pub(super) fn may_settle(&self) -> bool {
        let lags = !self.settles_only() && self.is_waiting() && self.least > self.fresh;
        self.is_bounded() && self.running.is_none() && (self.own() > self.settled || lags)
    }

    /// Begins a sync.
    pub(super) fn settle(&mut self) {
        self.running = Some((self.own(), self.least));
    }

    /// Records that the sync has ended.
    pub(super) fn note_settled(&mut self, ctx: &mut Ctx<impl Env>) {
        let Some((settled, fresh)) = self.running.take() else { return };
        self.fresh = fresh;
        if settled <= self.settled {
            return;
        }
        self.settled = settled;
        if ctx.config.node == COORDINATOR {
            self.note_node(ctx, COORDINATOR, settled);
        } else {
            tell(ctx, COORDINATOR, Barrier::Clock { tick: settled });
        }
    }

    pub(super) fn handle_clock(
        &mut self,
        ctx: &mut Ctx<impl Env>,
        from: NodeId,
        tick: Tick,
    ) -> Result<(), Fault> {
        let coordinates = ctx.config.node == COORDINATOR && self.is_bounded();
        if !coordinates || tick <= self.nodes[from.index()] {
            return Err(Fault::Unexpected);
        }
        self.note_node(ctx, from, tick);
        Ok(())
    }

    pub(super) fn handle_least(&mut self, from: NodeId, tick: Tick) -> Result<(), Fault> {
        if from != COORDINATOR || tick <= self.least || tick > self.settled {
            return Err(Fault::Unexpected);
        }
        self.least = tick;
        Ok(())
    }

    /// Records the tick of a node, and tells all if the least has risen (coordinator only).
    fn note_node(&mut self, ctx: &mut Ctx<impl Env>, node: NodeId, tick: Tick) {
        self.nodes[node.index()] = tick;
        let least = self.nodes.iter().copied().min().unwrap_or_default();
        if least > self.least {
            self.least = least;
            for node in ctx.peers() {
                tell(ctx, node, Barrier::Least { tick: least });
            }
        }
    }

    /// Returns the tick before which copies have to be given up, if it has risen: a worker may pass
    /// it as soon as they are. Not earlier: the worker that all wait for would be given copies
    /// that are too old before it reads them.
    pub(super) fn next_expiry(&mut self) -> Option<Tick> {
        let Bound { ticks, by: By::Expiry } = self.bound? else { return None };
        let near = self.calls.iter().filter(|(tick, _)| self.least >= tick.before(ticks));
        let latest = near.map(|(tick, _)| *tick).max().filter(|tick| *tick > self.expired)?;
        self.expired = latest;
        Some(latest)
    }

    /// Lets workers pass. `oldest` is the least tick from which a copy that is still here or on its
    /// way must not be read.
    pub(super) fn pass(&mut self, ctx: &mut Ctx<impl Env>, oldest: Option<Tick>) {
        let Some(Bound { ticks, by }) = self.bound else { return };
        let (least, fresh) = (self.least, self.fresh);
        let passes = |tick: Tick| {
            let is_fresh = match by {
                By::Expiry => oldest.is_none_or(|oldest| oldest > tick),
                By::Refresh => fresh >= tick.before(ticks),
            };
            least >= tick.before(ticks) && is_fresh
        };
        for (_, op) in self.calls.extract_if(.., |(tick, _)| passes(*tick)) {
            ctx.done(op, Vec::new());
        }
        self.note_waiting(ctx);
    }

    /// Notes whether somebody is waited for since the least tick has last risen.
    fn note_waiting(&mut self, ctx: &Ctx<impl Env>) {
        if mem::replace(&mut self.awaited, self.least) < self.least {
            self.patience.set(false, ctx.now);
        }
        let is_late =
            || self.late_workers().next().is_some() || self.late_nodes(ctx).next().is_some();
        let waits = ctx.config.channel == ChannelId(0) && is_late();
        self.patience.set(waits, ctx.now);
    }

    /// Returns own workers for which an own worker waits.
    pub(super) fn late_workers(&self) -> impl Iterator<Item = WorkerId> + '_ {
        let is_late = self.is_behind(self.calls.iter().map(|(tick, _)| *tick).max());
        let late = (0..).zip(&self.workers).filter(move |(_, tick)| is_late(tick));
        late.map(|(index, _)| WorkerId(index))
    }

    /// Returns the other nodes for which some node waits (coordinator only).
    pub(super) fn late_nodes(&self, ctx: &Ctx<impl Env>) -> impl Iterator<Item = NodeId> + '_ {
        let settled = self.nodes.iter().copied().filter(|tick| *tick < Tick::INFINITY);
        let first = settled.chain(self.calls.iter().map(|(tick, _)| *tick)).max();
        let is_late = self.is_behind(first.filter(|_| ctx.config.node == COORDINATOR));
        let late = (0..).zip(&self.nodes).skip(1).filter(move |(_, tick)| is_late(tick));
        late.map(|(index, _)| NodeId(index))
    }

    /// Returns whether a tick is too far behind that of who is `first`, if anybody is.
    fn is_behind(&self, first: Option<Tick>) -> impl Fn(&Tick) -> bool + use<> {
        let least = first.zip(self.bound).map(|(tick, bound)| tick.before(bound.ticks));
        move |tick| least.is_some_and(|least| *tick < least)
    }

    /// Gives up all calls and the bound: from here on nobody waits. Returns their operations.
    pub(super) fn take_ops(&mut self) -> impl Iterator<Item = OpId> + use<> {
        self.bound = None;
        self.running = None;
        self.patience = Patience::default();
        mem::take(&mut self.calls).into_iter().map(|(_, op)| op)
    }
}
