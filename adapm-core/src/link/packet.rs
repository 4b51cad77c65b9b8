//! Packets of a link session: headers, contents of numbered packets, errors, and frames that arrive
//! in parts, until they are whole.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::{fmt, mem};

use crate::id::NodeId;
use crate::transport::{CloseReason, Frame};
use crate::wire::FRAME_BYTES_MAX;

/// The number of a packet of one direction of a link, from 0.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the number after this one; saturates at the last, which no link reaches.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Carries a frame, or the last part of one; numbered.
    Data,
    /// Carries a part of a frame that the next numbered packet continues; numbered.
    Part,
    /// The last numbered packet: the peer ends.
    Bye,
    /// Only acknowledges.
    Ack,
    /// Shows that the peer is alive, and how far it has sent.
    Heartbeat,
}

/// The part of a packet that the session writes and reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind.
    pub kind: Kind,
    /// Its number; for an unnumbered packet the number of the next numbered one.
    pub seq: Seq,
    /// The number that the sender expects next: all earlier packets have arrived.
    pub ack: Seq,
    /// True if the sender waits for the acknowledgement of this packet: send it at once.
    pub wants_ack: bool,
}

/// The content of a numbered packet: a frame, or a part of one; shares the frame's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    frame: Arc<Frame>,
    from: usize,
    to: usize,
}

impl Content {
    /// Returns all of `frame` as content.
    #[must_use]
    pub fn whole(frame: Arc<Frame>) -> Self {
        let to = frame.len();
        Self { frame, from: 0, to }
    }

    /// Returns the bytes `from..to` of the head followed by the values.
    pub(crate) fn part(frame: Arc<Frame>, from: usize, to: usize) -> Self {
        debug_assert!(from <= to && to <= frame.len(), "a part is within its frame");
        Self { frame, from, to }
    }

    /// Returns its bytes of the frame's head.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        let head = &self.frame.head[..];
        &head[self.from.min(head.len())..self.to.min(head.len())]
    }

    /// Returns its bytes of the frame's values.
    #[must_use]
    pub fn values(&self) -> &[u8] {
        let head_len = self.frame.head.len();
        &self.frame.values.bytes()
            [self.from.saturating_sub(head_len)..self.to.saturating_sub(head_len)]
    }

    /// Returns the number of bytes of both.
    #[must_use]
    pub fn len(&self) -> usize {
        self.to - self.from
    }

    /// Returns true if it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the content into a frame of its own, as a pipe delivers it.
    #[must_use]
    pub fn to_frame(&self) -> Frame {
        let mut frame = Frame { head: self.head().to_vec(), ..Frame::default() };
        frame.values.push_bytes(self.values());
        frame
    }

    /// Returns the memory of the frame, unless it is still shared.
    pub(crate) fn into_memory(self) -> Option<Frame> {
        Arc::try_unwrap(self.frame).ok()
    }
}

/// The reason that a frame was not accepted for sending; it is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendRefusal {
    /// The window is full: [`crate::link::Event::Room`] tells when to try again.
    Full,
    /// The peer is dead or has left, or this side has said goodbye.
    Ended,
}

/// An impossible packet or resumption. The session is unchanged; drop the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// Packets are missing: the pipe has lost them, or the peer never sent them.
    #[error("packets are missing: {expected} was due, {given} came")]
    Gap {
        /// The number that was due.
        expected: Seq,
        /// The number that came.
        given: Seq,
    },
    /// An acknowledgement of a packet that was never sent.
    #[error("packets before {given} are acknowledged, but none from {next} on was sent")]
    Unsent {
        /// The number of the next packet.
        next: Seq,
        /// The number that the peer claims to expect.
        given: Seq,
    },
    /// The peer wants to resume at an impossible position: acknowledged before, or never sent.
    #[error("the peer resumes at {given}, which is not in {from}..={to}")]
    Resume {
        /// The first unacknowledged number.
        from: Seq,
        /// The number after the last.
        to: Seq,
        /// The number that the peer asks for.
        given: Seq,
    },
    /// A numbered packet after a bye.
    #[error("a packet came after the last one")]
    BehindBye,
    /// A bye without a valid reason.
    #[error("a bye gives no valid reason")]
    CloseReason,
    /// A part of a frame that is empty, or makes it too long, or a bye within a frame.
    #[error("an invalid part of a frame came ({bytes} bytes)")]
    Part {
        /// Bytes that the frame would have.
        bytes: usize,
    },
    /// A packet on a pipe that is not up.
    #[error("a packet came on a pipe that is not up")]
    Down,
    /// A pipe to a dead peer: it was given up for good, whatever its fate.
    #[error("a pipe came up to a peer that was given up before")]
    GivenUp,
    /// A datagram that no sound node sends: it is to be dropped, as its sender is not known.
    #[error("a datagram came that no sound node sends")]
    Malformed,
    /// A datagram of a node that is no peer.
    #[error("a datagram came of a node that is no peer")]
    Stranger,
}

impl LinkError {
    /// Returns true if only a peer that breaks the rules can be the cause; a gap can be the fault
    /// of the pipe.
    #[must_use]
    pub const fn blames_peer(self) -> bool {
        !matches!(
            self,
            Self::Gap { .. } | Self::Down | Self::GivenUp | Self::Malformed | Self::Stranger
        )
    }
}

/// Returns the content of a bye with this reason.
pub(crate) fn goodbye_bytes(close_reason: CloseReason) -> Vec<u8> {
    match close_reason {
        CloseReason::Finished => alloc::vec![0],
        CloseReason::Failed => alloc::vec![1],
        CloseReason::Lost(NodeId(node)) => {
            let [low, high] = node.to_le_bytes();
            alloc::vec![2, low, high]
        }
    }
}

/// Returns the reason in a bye; `None` if it is invalid.
pub(crate) fn read_goodbye(bytes: &[u8]) -> Option<CloseReason> {
    match *bytes {
        [0] => Some(CloseReason::Finished),
        [1] => Some(CloseReason::Failed),
        [2, low, high] => Some(CloseReason::Lost(NodeId(u16::from_le_bytes([low, high])))),
        _ => None,
    }
}

/// The frame that the peer is sending in parts. Memory: the parts so far, at most
/// [`FRAME_BYTES_MAX`] bytes, and as much as the previous frame had, as a guess for the next one.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    frame: Frame,
    /// Bytes of values of the previous frame.
    before: usize,
}

impl Assembly {
    /// Returns true if no frame is incomplete.
    pub(crate) fn is_empty(&self) -> bool {
        self.frame.is_empty()
    }

    /// Checks that `part` can come next.
    ///
    /// # Errors
    /// If it is empty, or makes the frame longer than allowed.
    pub(crate) fn check(&self, part: &Frame) -> Result<(), LinkError> {
        let bytes = self.frame.len() + part.len();
        if part.is_empty() || bytes > FRAME_BYTES_MAX {
            Err(LinkError::Part { bytes })
        } else {
            Ok(())
        }
    }

    /// Appends a part.
    pub(crate) fn append(&mut self, part: &Frame) {
        if self.frame.values.is_empty() && !part.values.is_empty() {
            self.frame.values.reserve(self.before);
        }
        self.frame.head.extend_from_slice(&part.head);
        self.frame.values.push_bytes(part.values.bytes());
    }

    /// Appends the last part and hands the frame to `whole`, whose memory is reused for the next
    /// one.
    pub(crate) fn finish(&mut self, part: &Frame, whole: &mut Frame) {
        self.append(part);
        self.before = self.frame.values.len();
        mem::swap(&mut self.frame, whole);
        self.frame.clear();
    }

    /// Forgets the parts.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
