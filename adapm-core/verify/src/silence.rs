//! Time-outs of tests: a test waits as long as something moves, however busy the machine, and for
//! [`patience`] after the last move. A bound on the total time would fail a sound run that gets a
//! twentieth of a processor.
//!
//! Not here: durations that are part of a claim. No test asserts one.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

/// Milliseconds set by [`set_patience`]; 0 if not set.
static PATIENCE_MILLIS: AtomicU64 = AtomicU64::new(0);

/// Returns the time without any progress after which a wait fails: two minutes, or the seconds of
/// `ADAPM_PATIENCE`.
///
/// # Panics
/// If `ADAPM_PATIENCE` is not a number.
#[must_use]
pub fn patience() -> Duration {
    match PATIENCE_MILLIS.load(Ordering::Relaxed) {
        0 => {}
        millis => return Duration::from_millis(millis),
    }
    let Ok(text) = std::env::var("ADAPM_PATIENCE") else { return Duration::from_secs(120) };
    let seconds = text
        .parse()
        .unwrap_or_else(|_| panic!("ADAPM_PATIENCE is {text:?}: give a number of seconds"));
    Duration::from_secs(seconds)
}

/// Sets [`patience`] for this process: for tests of the suites themselves, which meet faults on
/// purpose.
pub fn set_patience(patience: Duration) {
    PATIENCE_MILLIS.store(patience.as_millis() as u64, Ordering::Relaxed);
}

/// The time since a progress report of type `P` last changed.
///
/// ```
/// use adapm_verify::silence::Silence;
///
/// let mut silence = Silence::new();
/// let mut received = 0;
/// while received < 100 {
///     received += 1;
///     assert!(!silence.is_too_long(received), "nothing arrives any more");
/// }
/// ```
#[derive(Debug)]
pub struct Silence<P> {
    since: Instant,
    last: Option<P>,
}

impl<P: PartialEq> Silence<P> {
    /// Starts the time.
    #[must_use]
    pub fn new() -> Self {
        Self { since: Instant::now(), last: None }
    }

    /// Returns true if `progress` has been the same for longer than [`patience`]. With `P = ()`
    /// that is the time since the start.
    pub fn is_too_long(&mut self, progress: P) -> bool {
        self.left(progress).is_none()
    }

    /// Returns the time until the silence is too long, if `progress` stays the same; `None` if it
    /// is too long.
    pub fn left(&mut self, progress: P) -> Option<Duration> {
        match &self.last {
            Some(last) if *last == progress => {}
            Some(_) => *self = Self { since: Instant::now(), last: Some(progress) },
            None => self.last = Some(progress),
        }
        patience().checked_sub(self.since.elapsed())
    }
}

impl<P: PartialEq> Default for Silence<P> {
    fn default() -> Self {
        Self::new()
    }
}
