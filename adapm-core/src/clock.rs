//! Logical time of one worker (AdaPM §3), and ticks, by which workers wait for each other.
//!
//! A worker raises its clock when it starts a batch; intents name windows of it. Clocks of
//! different workers are unrelated; their ticks can be compared.

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

/// The progress of one worker, in a form in which workers can be compared: the barriers and
/// quiesces that it has passed, then the clocks since. Printed `1@7`.
///
/// Workers need not have equal numbers of clocks: a worker that waits at a barrier already stands
/// at the first tick behind it and holds nobody up, and behind the barrier nobody is late.
///
/// ```
/// use adapm_core::clock::Tick;
///
/// let tick = Tick::new(1, 7);
/// assert!(Tick::new(0, 9) < tick && tick < Tick::new(2, 0));
/// assert_eq!((tick.before(3), tick.before(9)), (Tick::new(1, 4), Tick::new(1, 0)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Tick(u64);

impl Tick {
    /// The tick of a worker that has ended: it holds nobody up.
    pub const INFINITY: Self = Self(u64::MAX);

    /// Bits of the clocks since the last barrier.
    const COUNT_BITS: u32 = 40;
    const COUNT_MAX: u64 = (1 << Self::COUNT_BITS) - 1;

    /// Creates the tick `count` clocks after barrier or quiesce number `epoch`. Both saturate, at
    /// 2^24 - 2 and 2^40 - 1.
    #[must_use]
    pub const fn new(epoch: u64, count: u64) -> Self {
        let most = u64::MAX >> Self::COUNT_BITS;
        let epoch = if epoch < most { epoch } else { most - 1 };
        let count = if count < Self::COUNT_MAX { count } else { Self::COUNT_MAX };
        Self(epoch << Self::COUNT_BITS | count)
    }

    /// Returns the tick `ticks` earlier, or the first one since the barrier.
    #[must_use]
    pub const fn before(self, ticks: u64) -> Self {
        let count = self.0 & Self::COUNT_MAX;
        Self(self.0 - if count < ticks { count } else { ticks })
    }

    /// Returns the tick `ticks` later, at most the last one before the next barrier.
    #[must_use]
    pub const fn after(self, ticks: u64) -> Self {
        let left = Self::COUNT_MAX - (self.0 & Self::COUNT_MAX);
        Self(self.0 + if left < ticks { left } else { ticks })
    }
}

impl fmt::Debug for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::INFINITY => f.write_str("@end"),
            Self(tick) => write!(f, "{}@{}", tick >> Self::COUNT_BITS, tick & Self::COUNT_MAX),
        }
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
