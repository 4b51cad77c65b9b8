//! What a link session refuses: from its own side a full way, from the peer what a sound one cannot say.

use crate::link::header::Seq;

/// Why a frame was not accepted for sending; it is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendRefusal {
    /// Too much waits for the peer's acknowledgement: [`crate::link::Event::Room`] tells when to try again.
    Full,
    /// The peer is dead or has left, or this side has said goodbye.
    Ended,
}

/// A packet or a resumption that cannot be. The session is unchanged; the pipe is to be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// Packets are missing in between: the pipe has lost them, or the peer never sent them.
    #[error("packets are missing: {expected} was to come, {given} came")]
    Gap {
        /// The number that was to come.
        expected: Seq,
        /// The number that came.
        given: Seq,
    },
    /// An acknowledgement of what was never sent.
    #[error("packets before {given} are acknowledged, but none from {next} on was sent")]
    Unsent {
        /// The number that the next packet will have.
        next: Seq,
        /// The number that the peer claims to expect.
        given: Seq,
    },
    /// The peer wants to go on where it cannot: what it asks for was acknowledged before, or was never sent.
    #[error("the peer asks to go on at {given}, which is not in {from}..={to}")]
    Resume {
        /// The first number that is still kept.
        from: Seq,
        /// The number behind the last.
        to: Seq,
        /// The number that the peer asks for.
        given: Seq,
    },
    /// A numbered packet behind a bye.
    #[error("a packet came behind the last one")]
    BehindBye,
    /// A bye without a reason that can be understood.
    #[error("a bye gives no reason that can be understood")]
    Farewell,
    /// A part of a frame that is empty, or makes it too long, or a bye within a frame.
    #[error("a part of a frame came that cannot be one ({bytes} bytes)")]
    Part {
        /// Bytes that the frame would have.
        bytes: usize,
    },
    /// A packet on a pipe that is not up.
    #[error("a packet came on a pipe that is not up")]
    Down,
    /// A pipe to a peer that is dead: it was given up for good, however it may have fared.
    #[error("a pipe came up to a peer that was given up before")]
    GivenUp,
}

impl LinkError {
    /// Whether only a peer that breaks the rules can be the cause; a gap can be the fault of the pipe.
    #[must_use]
    pub const fn blames_peer(self) -> bool {
        !matches!(self, Self::Gap { .. } | Self::Down | Self::GivenUp)
    }
}
