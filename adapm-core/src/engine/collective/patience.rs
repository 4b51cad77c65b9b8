//! How long a collective call has waited.

use crate::config::NodeConfig;
use crate::time::Instant;

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
    pub(super) fn is_over(&mut self, config: &NodeConfig, now: Instant) -> bool {
        let is_over = self.until(config).is_some_and(|until| until <= now);
        self.is_told |= is_over;
        is_over
    }
}
