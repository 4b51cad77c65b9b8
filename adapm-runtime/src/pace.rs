//! How long a worker's steps take, by the time between the calls that ask.

use std::time::{Duration, Instant};

use adapm_core::Clock;

/// When a worker's clock was found raised last, and how long a step took on average since the time before.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    raised: Option<(Clock, Instant)>,
    /// In nanoseconds.
    step: Option<u128>,
}

impl Pace {
    /// Whether `steps` steps last for `time`, if they take as long as those before `clock`, which is the worker's `now`. So they do
    /// if no step has been seen.
    pub(crate) fn lasts(&mut self, steps: u64, time: Duration, clock: Clock, now: Instant) -> bool {
        match self.raised {
            Some((before, _)) if before == clock => {}
            Some((before, since)) => {
                let steps = clock.0.saturating_sub(before.0).max(1);
                self.step = Some(now.saturating_duration_since(since).as_nanos() / u128::from(steps));
                self.raised = Some((clock, now));
            }
            None => self.raised = Some((clock, now)),
        }
        self.step.is_none_or(|step| step.saturating_mul(steps.into()) >= time.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_micros(500);

    #[test]
    fn steps_last_as_long_as_the_latest() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let at = |micros| start + Duration::from_micros(micros);
        assert!(pace.lasts(1, ROUND, Clock(7), at(0)), "nothing is known");
        assert!(pace.lasts(1, ROUND, Clock(7), at(900)), "the first step is not over");
        assert!(!pace.lasts(1, ROUND, Clock(17), at(1_000)), "100 us each");
        assert!(!pace.lasts(4, ROUND, Clock(17), at(90_000)), "the same step");
        assert!(pace.lasts(5, ROUND, Clock(17), at(90_000)));
        assert!(pace.lasts(1, ROUND, Clock(18), at(91_000)), "90 ms");
        assert!(!pace.lasts(1, ROUND, Clock(1_018), at(92_000)), "1 us each");
        assert!(pace.lasts(u64::MAX, ROUND, Clock(1_019), at(92_001)));
        assert!(!pace.lasts(u64::MAX, ROUND, Clock(1_020), at(92_001)), "no time at all");
    }
}
