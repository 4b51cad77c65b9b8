//! Logical time of one worker (AdaPM §3).
//!
//! A worker raises its clock when it starts a batch; intents name windows of it. Clocks of
//! different workers are unrelated.

use core::fmt;
use core::ops::Add;

use serde::{Deserialize, Serialize};

/// The logical clock of one worker, printed `@7`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Clock(pub u64);

impl Clock {
    /// The clock of a worker that has ended: all its intents have expired.
    pub const INFINITY: Self = Self(u64::MAX);

    /// Returns the clocks passed since `earlier`, 0 if it is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns true if the worker has ended.
    #[must_use]
    pub fn is_ended(self) -> bool {
        self == Self::INFINITY
    }
}

impl From<u64> for Clock {
    fn from(clock: u64) -> Self {
        Self(clock)
    }
}

/// Adds clocks, saturating at [`Clock::INFINITY`].
///
/// ```
/// use adapm_core::Clock;
///
/// assert_eq!(Clock::from(40) + 2, Clock(42));
/// assert_eq!(Clock(40) + u64::MAX, Clock::INFINITY);
/// ```
impl Add<u64> for Clock {
    type Output = Self;

    fn add(self, clocks: u64) -> Self {
        Self(self.0.saturating_add(clocks))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_ended() { f.write_str("@end") } else { write!(f, "@{}", self.0) }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
