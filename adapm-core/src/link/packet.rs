//! What a link session says in every packet, what a numbered packet carries, and what of it the
//! session refuses: from its own side a full way, from the peer what a sound one cannot say; and a
//! frame that comes in parts, until it is whole.

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
    /// The number behind this one; the last has none behind it, which nobody reaches.
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

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Carries a frame, or the last part of one; numbered.
    Data,
    /// Carries a part of a frame that the next numbered packet goes on with; numbered.
    Part,
    /// The last numbered packet: the peer ends.
    Bye,
    /// Acknowledges only.
    Ack,
    /// Says that the peer lives, and how far it has sent.
    Heartbeat,
}

/// The part of a packet that the session writes and reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the packet is for.
    pub kind: Kind,
    /// Its number; of an unnumbered packet the number that the next numbered one will have.
    pub seq: Seq,
    /// The number that the sender expects next: all before it have arrived.
    pub ack: Seq,
    /// Whether the sender waits for the acknowledgement of this packet: it is to be sent at once.
    pub wants_ack: bool,
}

/// What a numbered packet carries: a frame, or a part of one; the memory is the frame's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    frame: Arc<Frame>,
    from: usize,
    to: usize,
}

impl Content {
    /// All of `frame`.
    #[must_use]
    pub fn whole(frame: Arc<Frame>) -> Self {
        let to = frame.len();
        Self { frame, from: 0, to }
    }

    /// The bytes `from..to` of the head and the values behind it.
    pub(crate) fn part(frame: Arc<Frame>, from: usize, to: usize) -> Self {
        debug_assert!(from <= to && to <= frame.len(), "a part is within its frame");
        Self { frame, from, to }
    }

    /// The bytes of the frame's head that it carries.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        let head = &self.frame.head[..];
        &head[self.from.min(head.len())..self.to.min(head.len())]
    }

    /// The bytes of the frame's values that it carries.
    #[must_use]
    pub fn values(&self) -> &[u8] {
        let head_len = self.frame.head.len();
        &self.frame.values.bytes()
            [self.from.saturating_sub(head_len)..self.to.saturating_sub(head_len)]
    }

    /// Bytes of both.
    #[must_use]
    pub fn len(&self) -> usize {
        self.to - self.from
    }

    /// Whether it carries nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A frame of its own with what it carries, as a pipe delivers it.
    #[must_use]
    pub fn to_frame(&self) -> Frame {
        let mut frame = Frame { head: self.head().to_vec(), ..Frame::default() };
        frame.values.push_bytes(self.values());
        frame
    }

    /// The memory of the frame, once nobody else needs it.
    pub(crate) fn into_memory(self) -> Option<Frame> {
        Arc::try_unwrap(self.frame).ok()
    }
}

/// Why a frame was not accepted for sending; it is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendRefusal {
    /// Too much waits for the peer's acknowledgement: [`crate::link::Event::Room`] tells when to
    /// try again.
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
    /// The peer wants to go on where it cannot: what it asks for was acknowledged before, or was
    /// never sent.
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
    CloseReason,
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
    /// Whether only a peer that breaks the rules can be the cause; a gap can be the fault of the
    /// pipe.
    #[must_use]
    pub const fn blames_peer(self) -> bool {
        !matches!(self, Self::Gap { .. } | Self::Down | Self::GivenUp)
    }
}

/// What a bye carries to say `close_reason`, why its sender ends.
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

/// What the bytes of a bye say; `None` if it cannot be understood.
pub(crate) fn read_goodbye(bytes: &[u8]) -> Option<CloseReason> {
    match *bytes {
        [0] => Some(CloseReason::Finished),
        [1] => Some(CloseReason::Failed),
        [2, low, high] => Some(CloseReason::Lost(NodeId(u16::from_le_bytes([low, high])))),
        _ => None,
    }
}

/// The frame that the peer is sending in parts. Memory: what has come of it, at most
/// [`FRAME_BYTES_MAX`] bytes, and as much as the frame before had, as the next one is taken to be
/// as long.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    frame: Frame,
    /// Bytes of values of the frame before.
    before: usize,
}

impl Assembly {
    /// Whether no part of a frame has come that is not whole.
    pub(crate) fn is_empty(&self) -> bool {
        self.frame.is_empty()
    }

    /// Whether `part` can come next.
    ///
    /// # Errors
    /// If it is empty, or makes the frame longer than frames are.
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

    /// Appends the last part and hands the frame to `whole`, whose memory is used for the next one.
    pub(crate) fn finish(&mut self, part: &Frame, whole: &mut Frame) {
        self.append(part);
        self.before = self.frame.values.len();
        mem::swap(&mut self.frame, whole);
        self.frame.clear();
    }

    /// Forgets what has come.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
