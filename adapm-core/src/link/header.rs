//! What a link session says in every packet.

use core::fmt;

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
    /// Carries a frame; numbered.
    Data,
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
}
