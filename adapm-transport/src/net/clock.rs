//! The time by which links are timed out: that of the machine, without the periods in which this
//! endpoint did nothing.
//!
//! A process that was stopped for a while, or whose thread was busy elsewhere, has received nothing
//! in that time: its peers must not be suspected for its own absence.

use core::time::Duration;
use std::time::Instant as Wall;

use adapm_core::Instant;

/// The time since the endpoint was opened, as far as it was running or waiting on purpose.
#[derive(Debug)]
pub(super) struct AwakeTime {
    /// Machine time of the last [`AwakeTime::advance`].
    last: Wall,
    /// Awake time of the last [`AwakeTime::advance`].
    now: Instant,
    /// Longest time beyond the planned wait that counts; any more is absence.
    grace: Duration,
    /// Longest wait announced before the next [`AwakeTime::advance`]; `None`: forever.
    planned: Option<Duration>,
}

impl AwakeTime {
    pub(super) fn new(grace: Duration) -> Self {
        Self { last: Wall::now(), now: Instant::ZERO, grace, planned: Some(Duration::ZERO) }
    }

    /// Announces a wait of at most `wait`, which counts in full; `None`: forever.
    pub(super) fn plan_wait(&mut self, wait: Option<Duration>) {
        self.planned = wait;
    }

    /// Adds the machine time since the last call, as far as it counts, and returns the sum.
    pub(super) fn advance(&mut self) -> Instant {
        self.advance_to(Wall::now())
    }

    /// Returns the time of the last [`AwakeTime::advance`].
    pub(super) fn now(&self) -> Instant {
        self.now
    }

    fn advance_to(&mut self, wall: Wall) -> Instant {
        let passed = wall.saturating_duration_since(self.last);
        let counted =
            self.planned.map_or(passed, |planned| passed.min(planned.saturating_add(self.grace)));
        self.last = wall;
        self.planned = Some(Duration::ZERO);
        self.now = self.now + counted;
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unplanned_absence_counts_as_the_grace_at_most() {
        let mut clock = AwakeTime::new(Duration::from_secs(2));
        let start = clock.last;
        let seconds_at = |clock: &mut AwakeTime, secs: u64| {
            clock.advance_to(start + Duration::from_secs(secs)).nanos() / 1_000_000_000
        };
        assert_eq!(seconds_at(&mut clock, 1), 1);
        assert_eq!(seconds_at(&mut clock, 100), 3);
        clock.plan_wait(Some(Duration::from_secs(5)));
        assert_eq!(seconds_at(&mut clock, 104), 7, "a planned wait counts in full");
        clock.plan_wait(Some(Duration::from_secs(5)));
        assert_eq!(seconds_at(&mut clock, 204), 14);
        clock.plan_wait(None);
        assert_eq!(seconds_at(&mut clock, 304), 114);
        assert_eq!(seconds_at(&mut clock, 305), 115);
    }
}
