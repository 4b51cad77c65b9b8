//! Workers and nodes that can still take part in collective calls, and timers for reports of
//! missing ones.

use alloc::vec::Vec;

use crate::config::NodeConfig;
use crate::id::NodeId;
use crate::node_set::NodeSet;
use crate::time::Instant;

/// The node that coordinates barriers and waves.
pub(super) const COORDINATOR: NodeId = NodeId(0);

/// Workers and nodes that have not ended.
#[derive(Debug)]
pub(super) struct Presence {
    /// Workers of this node that have not ended.
    pub(super) live: Vec<bool>,
    /// Coordinator: nodes without live workers.
    pub(super) ended: NodeSet,
}

impl Presence {
    pub(super) fn new(workers: usize) -> Self {
        Self { live: alloc::vec![true; workers], ended: NodeSet::new() }
    }

    /// Returns the number of workers of this node that have not ended.
    pub(super) fn live(&self) -> usize {
        self.live.iter().filter(|live| **live).count()
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
