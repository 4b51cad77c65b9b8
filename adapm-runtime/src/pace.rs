//! The pace of a worker: the average duration of its steps, measured between some of its calls.

use std::time::{Duration, Instant};

use adapm_core::Clock;

/// The last measurement, and the average step duration since the one before.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    looked: Option<(Clock, Instant)>,
    /// In nanoseconds.
    step: Option<u64>,
    /// Steps until the next measurement: reading the time can cost as much as a short step.
    until_look: u64,
}

impl Pace {
    /// Returns true if `steps` steps take at least `time` at the pace of those before `clock`, the
    /// worker's clock at `now`. Also true if no step has been measured.
    pub(crate) fn lasts(
        &mut self,
        steps: u64,
        time: Duration,
        clock: Clock,
        now: impl FnOnce() -> Instant,
    ) -> bool {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self.looked {
            Some((before, since)) => {
                let raised_by = clock.0.saturating_sub(before.0);
                if raised_by > 0 && raised_by >= self.until_look {
                    let now = now();
                    let step = nanos(now.saturating_duration_since(since)) / raised_by;
                    self.until_look = (nanos(time) / LOOKS / step.max(1)).min(STEPS_MAX);
                    (self.step, self.looked) = (Some(step), Some((clock, now)));
                }
            }
            None => self.looked = Some((clock, now())),
        }
        self.step.is_none_or(|step| step.saturating_mul(steps) >= nanos(time))
    }
}

/// Measurements within the time asked for, if the pace stays the same.
const LOOKS: u64 = 8;

/// Maximum number of steps between measurements, as steps may suddenly take longer.
const STEPS_MAX: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_micros(500);

    #[test]
    fn steps_last_as_long_as_the_latest() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let at = |micros| move || start + Duration::from_micros(micros);
        assert!(pace.lasts(1, ROUND, Clock(7), at(0)), "nothing is known");
        assert!(pace.lasts(1, ROUND, Clock(7), at(900)), "the first step is not over");
        assert!(!pace.lasts(1, ROUND, Clock(17), at(1_000)), "100 us each");
        assert!(!pace.lasts(4, ROUND, Clock(17), at(90_000)), "the same step");
        assert!(pace.lasts(5, ROUND, Clock(17), at(90_000)));
        assert!(pace.lasts(1, ROUND, Clock(18), at(91_000)), "90 ms");
        assert!(!pace.lasts(1, ROUND, Clock(1_018), at(92_000)), "1 us each");
        assert!(!pace.lasts(1, ROUND, Clock(1_049), at(192_000)), "not looked at yet");
        assert!(pace.lasts(1, ROUND, Clock(1_050), at(192_001)), "3 ms each");
        assert!(pace.lasts(u64::MAX, ROUND, Clock(1_051), at(192_002)));
        assert!(!pace.lasts(u64::MAX, ROUND, Clock(1_083), at(192_002)), "no time at all");
    }

    #[test]
    fn the_time_is_looked_at_for_the_first_step_and_then_seldom_if_steps_are_short() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let mut looks = 0;
        for clock in 0..320 {
            pace.lasts(1, ROUND, Clock(clock), || {
                looks += 1;
                start + Duration::from_micros(clock)
            });
        }
        assert_eq!(looks, 11, "at the start, after a step, then after each 32");
        for clock in 320..420 {
            pace.lasts(1, ROUND, Clock(clock), || {
                looks += 1;
                start + Duration::from_millis(clock)
            });
        }
        assert_eq!(
            looks,
            11 + 99,
            "the last long pause is found 32 steps after the look before, then each step"
        );
    }
}
