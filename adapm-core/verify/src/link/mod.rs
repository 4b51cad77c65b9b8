//! Two link sessions over a pipe that delays, cuts, drops and repeats, under a test's control, in
//! virtual time.
//!
//! | file | under_test |
//! | --- | --- |
//! | `pipe` | what is on its way, and what a cut leaves of it |
//! | [`End`] | the two ends |
//! | `pair` | both ends, step by step |
//! | `judge` | what must hold after every step |
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

/// What a session promises.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Claim {
    /// Every frame arrives exactly once, in order.
    Once,
    /// What waits for an acknowledgement is within the window.
    Memory,
    /// Only what was handed on is acknowledged.
    Acknowledged,
    /// After a refusal there is word of room, once, when there is.
    Room,
    /// A peer that is silent or acknowledges nothing is suspected, recovers or is dead exactly when
    /// it should be.
    FailureDetector,
    /// What is written is at most four times as much as was acknowledged on the same pipe, and one
    /// packet.
    Pace,
    /// A goodbye is told behind everything sent before, with its reason; and its sender learns that
    /// it arrived.
    CloseReason,
    /// Nothing is written before it is due, and what is due has a deadline.
    Quiet,
    /// What a sound peer cannot say is refused and changes nothing; what it can say is not.
    Refusal,
}

impl Claim {
    /// The claim that `bug` breaks.
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

/// A claim that does not hold. Tests return it; its text is one line for people.
#[derive(Clone, PartialEq, Eq)]
pub struct Broken {
    /// The claim.
    pub claim: Claim,
    /// Where, and what.
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
