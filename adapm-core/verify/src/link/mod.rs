//! A test bench for link sessions: two of them over a pipe that delays, cuts, drops and repeats
//! packets, step by step as a test chooses, in virtual time.
//!
//! | file | subject |
//! | --- | --- |
//! | `pipe` | packets in flight, and those that still arrive after a cut |
//! | [`End`] | one end: a session, and the frames sent and received |
//! | `pair` | both ends and the pipe; the steps that a test can take |
//! | `judge` | checks of all claims after every step |
//! | `lie` | packets that no sound peer sends |
//! | `random` | random schedules from seeds |
//! | `mesh` | nodes over datagrams that get lost, repeated, reordered, cut |
//!
//! A step that breaks a claim of [`adapm_core::link::Session`] returns a [`Broken`].

mod end;
mod judge;
mod lie;
pub mod mesh;
mod pair;
mod pipe;
pub mod random;

use core::fmt;

use crate::planted::{DatagramBug, LinkBug};

pub use end::End;
pub use lie::Lie;
pub use pair::{Pair, Side};

/// A promise of [`adapm_core::link::Session`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Claim {
    /// Frames arrive exactly once, in order.
    Once,
    /// Unacknowledged data stays within the window.
    Memory,
    /// Only delivered frames are acknowledged.
    Acknowledged,
    /// After a frame was refused for lack of room, room is reported once, as soon as there is some.
    Room,
    /// A peer that is silent or acknowledges nothing is suspected, and counts as dead, exactly when
    /// the configured times have passed; a suspected peer recovers with its first byte.
    FailureDetector,
    /// A pipe carries at most four times the bytes acknowledged on it, plus one packet.
    Pace,
    /// A goodbye is reported with its reason, after everything sent before it; its sender is
    /// notified of the arrival.
    CloseReason,
    /// No packet is written before it is due, and a session with a future packet has a deadline.
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
            LinkBug::ResumeCountsAsLife
            | LinkBug::DeafToBytes
            | LinkBug::IgnoreStall
            | LinkBug::KeepStalledPipe => Self::FailureDetector,
            LinkBug::WriteAgain => Self::Pace,
        }
    }

    /// Returns the claim that `bug` breaks.
    #[must_use]
    pub fn broken_by_datagrams(bug: DatagramBug) -> Self {
        match bug {
            DatagramBug::DeliverTwice | DatagramBug::TrustAnyLife => Self::Once,
            DatagramBug::RepeatNothing => Self::FailureDetector,
            DatagramBug::CountAhead => Self::Refusal,
            DatagramBug::ForgetGoodbye => Self::CloseReason,
            DatagramBug::IgnoreBounds => Self::Memory,
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
