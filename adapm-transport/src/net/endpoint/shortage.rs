//! [`Shortage`]: whether this node's system refuses to take connections in, and for how long by now.

use core::time::Duration;

use adapm_core::Instant;

use crate::error::SystemError;
use crate::net::clock::later;

/// What the system has refused, most often for too many open files.
///
/// A connection that is let in between two refusals does not end the shortage: it may have got the place of one that was dropped.
#[derive(Debug, Default)]
pub(super) struct Shortage(Option<Refusals>);

#[derive(Clone, Copy, Debug)]
struct Refusals {
    error: SystemError,
    first: Instant,
    last: Instant,
}

impl Shortage {
    /// The system has refused a connection.
    pub(super) fn note(&mut self, error: SystemError, now: Instant) {
        let going_on = self.0.filter(|known| now < later(known.last, OVER_AFTER));
        self.0 = Some(Refusals { error, first: going_on.map_or(now, |known| known.first), last: now });
    }

    /// Why connections cannot be taken in, if that goes on for `time` or longer.
    pub(super) fn lasts(&self, time: Duration, now: Instant) -> Option<SystemError> {
        let known = self.0.filter(|known| now < later(known.last, OVER_AFTER))?;
        (later(known.first, time) <= now).then_some(known.error)
    }
}

/// After this time without a refusal there is room again.
const OVER_AFTER: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_shortage_goes_on_while_something_is_refused_now_and_then() {
        let error = SystemError::from(io::Error::from_raw_os_error(24));
        let second = Duration::from_secs(1);
        let mut shortage = Shortage::default();
        assert!(shortage.lasts(Duration::ZERO, at(0)).is_none());
        shortage.note(error, at(100));
        assert!(shortage.lasts(second, at(1_099)).is_none());
        assert!(shortage.lasts(second, at(1_100)).is_some());
        // Another one 2.9 s later is the same shortage, which is over 3 s after it.
        shortage.note(error, at(3_000));
        assert!(shortage.lasts(second, at(5_999)).is_some());
        assert!(shortage.lasts(second, at(6_000)).is_none());
        shortage.note(error, at(6_000));
        assert!(shortage.lasts(second, at(6_999)).is_none());
        assert!(shortage.lasts(second, at(7_000)).is_some());
    }
}
