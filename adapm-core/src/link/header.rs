//! What a link session says in every packet, and what a numbered packet carries.

use alloc::sync::Arc;
use core::fmt;

use crate::transport::Frame;

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
        &self.frame.values.bytes()[self.from.saturating_sub(head_len)..self.to.saturating_sub(head_len)]
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
