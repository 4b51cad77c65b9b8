//! Physical time, always passed in: the core reads no clock.

use core::fmt;
use core::ops::Add;
use core::time::Duration;

/// A point in monotonic time, in nanoseconds since an origin that the driver chooses, printed in
/// microseconds (`1500us`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant {
    nanos: u64,
}

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self { nanos: 0 };

    /// Returns the point `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self { nanos }
    }

    /// Returns the point `micros` microseconds after the origin.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self { nanos: micros * 1_000 }
    }

    /// Returns the nanoseconds since the origin.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.nanos
    }

    /// Returns the point `nanos` nanoseconds later.
    #[must_use]
    pub const fn plus_nanos(self, nanos: u64) -> Self {
        Self { nanos: self.nanos.saturating_add(nanos) }
    }

    /// Returns the nanoseconds since `earlier`, 0 if it is later.
    #[must_use]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.nanos.saturating_sub(earlier.nanos)
    }
}

/// Saturates at the end of time.
impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        self.plus_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.nanos / 1_000)
    }
}
