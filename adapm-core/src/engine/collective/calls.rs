//! Calls of own workers that end together: those of the current barrier, or of the current quiesce.

use alloc::vec::Vec;
use core::mem;

use super::presence::Presence;
use crate::config::NodeConfig;
use crate::engine::ctx::{Ctx, Env};
use crate::engine::input::OpId;
use crate::id::WorkerId;
use crate::time::Instant;

/// Calls of own workers, and the arrival of this node that follows from them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    ops: Vec<(WorkerId, OpId)>,
    has_arrived: bool,
    number: u64,
    /// Wait for the other own workers.
    pub(super) patience: Patience,
}

impl Calls {
    pub(super) fn push(&mut self, worker: WorkerId, op: OpId) {
        self.ops.push((worker, op));
    }

    /// Arrives once all own live workers have called. Returns true if it does so now.
    pub(super) fn arrive(&mut self, presence: &Presence) -> bool {
        let calls = self.ops.len();
        let arrives = calls > 0 && !self.has_arrived && calls >= presence.live();
        self.has_arrived |= arrives;
        arrives
    }

    /// Ends the calls. All nodes count, even those without callers.
    pub(super) fn end(&mut self, ctx: &mut Ctx<impl Env>) {
        self.number += 1;
        self.has_arrived = false;
        for (_, op) in mem::take(&mut self.ops) {
            ctx.done(op, Vec::new());
        }
    }

    /// Gives up all calls. Returns their operations.
    pub(super) fn take_ops(&mut self) -> impl Iterator<Item = OpId> + use<> {
        mem::take(self).ops.into_iter().map(|(_, op)| op)
    }

    /// Notes whether some own workers wait for others.
    pub(super) fn note_waiting(&mut self, presence: &Presence, now: Instant) {
        let calls = self.ops.len();
        self.patience.set(calls > 0 && calls < presence.live(), now);
    }

    /// Returns own workers that wait.
    pub(super) fn workers(&self) -> impl Iterator<Item = WorkerId> + '_ {
        self.ops.iter().map(|(worker, _)| *worker)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Returns true if this node has arrived at a call that has not ended.
    pub(super) fn has_arrived(&self) -> bool {
        self.has_arrived
    }

    /// Returns the number of collective calls that have ended.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

/// Start of a wait, and a flag for its report.
#[derive(Debug, Default)]
pub(super) struct Patience {
    since: Option<Instant>,
    is_told: bool,
}

impl Patience {
    /// Starts or clears the wait.
    pub(super) fn set(&mut self, waits: bool, now: Instant) {
        if waits {
            self.since.get_or_insert(now);
        } else {
            *self = Self::default();
        }
    }

    /// Returns the time of the report, unless it has been made.
    pub(super) fn until(&self, config: &NodeConfig) -> Option<Instant> {
        self.since
            .filter(|_| !self.is_told)
            .map(|since| since.plus_nanos(config.barrier_report_nanos))
    }

    /// Returns true once, when the report is due.
    pub(super) fn is_over(&mut self, config: &NodeConfig, now: Instant) -> bool {
        let is_over = self.until(config).is_some_and(|until| until <= now);
        self.is_told |= is_over;
        is_over
    }
}
