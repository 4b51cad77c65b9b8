//! The time by which links are judged: that of the machine, without the periods in which this
//! endpoint did nothing.
//!
//! A process that was stopped for a while, or whose thread was busy elsewhere, has received nothing
//! in that time: its peers must not count as silent for it.

use core::time::Duration;
use std::time::Instant as Wall;

use adapm_core::Instant;

/// The time since the endpoint was opened, as far as it was awake.
#[derive(Debug)]
pub(super) struct Clock {
    last: Wall,
    now: Instant,
    /// Longest time between two looks that counts in full.
    grace: Duration,
    /// The announced wait of the endpoint until the next look; `None`: forever.
    planned: Option<Duration>,
}

impl Clock {
    pub(super) fn new(grace: Duration) -> Self {
        Self { last: Wall::now(), now: Instant::ZERO, grace, planned: Some(Duration::ZERO) }
    }

    /// Announces that the next look may come this much later.
    pub(super) fn plan(&mut self, wait: Option<Duration>) {
        self.planned = wait;
    }

    /// Reads the clock.
    pub(super) fn look(&mut self) -> Instant {
        self.look_at(Wall::now())
    }

    /// Returns the time of the last look.
    pub(super) fn now(&self) -> Instant {
        self.now
    }

    fn look_at(&mut self, wall: Wall) -> Instant {
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
    fn a_spell_of_absence_counts_as_the_grace_only() {
        let mut clock = Clock::new(Duration::from_secs(2));
        let start = clock.last;
        let look = |clock: &mut Clock, secs: u64| {
            clock.look_at(start + Duration::from_secs(secs)).nanos() / 1_000_000_000
        };
        assert_eq!(look(&mut clock, 1), 1);
        assert_eq!(look(&mut clock, 100), 3);
        clock.plan(Some(Duration::from_secs(5)));
        assert_eq!(look(&mut clock, 104), 7, "a wait that was planned counts");
        clock.plan(Some(Duration::from_secs(5)));
        assert_eq!(look(&mut clock, 204), 14);
        clock.plan(None);
        assert_eq!(look(&mut clock, 304), 114);
        assert_eq!(look(&mut clock, 305), 115);
    }
}
