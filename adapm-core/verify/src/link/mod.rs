//! Two link sessions over a pipe that delays, cuts, drops and repeats, under a test's control, in
//! virtual time.
//!
//! | file | subject |
//! | --- | --- |
//! | `pipe` | packets in flight, and the rest after a cut |
//! | [`End`] | the two ends |
//! | `pair` | both ends, step by step |
//! | `judge` | checks after every step |
//! | `lie` | packets that no sound peer sends |
//! | `random` | schedules from seeds |
//!
//! A step that breaks a claim of [`adapm_core::link::Session`] returns a [`Broken`].

mod end;
mod judge;
mod lie;
mod pair;
mod pipe;
pub mod random;

use core::fmt;

use crate::planted::LinkBug;

pub use end::End;
pub use lie::Lie;
pub use pair::{Pair, Side};

/// A promise of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Claim {
    /// Every frame arrives exactly once, in order.
    Once,
    /// Unacknowledged data stays within the window.
    Memory,
    /// Only delivered frames are acknowledged.
    Acknowledged,
    /// After a refusal, room is reported once, when there is some.
    Room,
    /// A peer that is silent or acknowledges nothing is suspected, recovers or is dead exactly when
    /// it should be.
    FailureDetector,
    /// A pipe carries at most four times the bytes acknowledged on it, and one packet.
    Pace,
    /// A goodbye is reported after everything sent before, with its reason; and its sender learns
    /// that it arrived.
    CloseReason,
    /// Nothing is written before it is due, and due packets have a deadline.
    Quiet,
    /// Impossible packets are refused and change nothing; possible ones are accepted.
    Refusal,
}

impl Claim {
    /// Returns the claim that `bug` breaks.
    #[must_use]
    pub fn broken_by(bug: LinkBug) -> Self {
        match bug {
            LinkBug::RepeatDelivery | LinkBug::ForgetParts => Self::Once,
            LinkBug::ForgetUnacknowledged | LinkBug::AcknowledgeAhead => Self::Acknowledged,
            LinkBug::IgnoreWindow => Self::Memory,
            LinkBug::ForgetRoom => Self::Room,
            LinkBug::DrainEarly => Self::CloseReason,
            LinkBug::ResumeCountsAsLife | LinkBug::DeafToBytes | LinkBug::IgnoreStall => {
                Self::FailureDetector
            }
            LinkBug::WriteAgain => Self::Pace,
        }
    }
}

/// A claim that does not hold, returned by tests; its text is one line.
#[derive(Clone, PartialEq, Eq)]
pub struct Broken {
    /// The claim.
    pub claim: Claim,
    /// The place and the failure.
    pub what: String,
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is broken: {}", self.claim, self.what)
    }
}

/// Returns a [`Broken`] unless the condition holds.
macro_rules! claim {
    ($claim:ident, $condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::link::Broken {
                claim: $crate::link::Claim::$claim,
                what: format!($($what)+),
            });
        }
    };
}

use claim;
