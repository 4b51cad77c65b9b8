//! The packets of a pipe: a header, a head and values, with a proof that they are as they were
//! sent.
//!
//! ```text
//!  0      2      3         4           8             12      20      28           32
//!  | "aD" | kind | version | head_len  | values_len  |  seq  |  ack  | header_crc | proof | head ... | values ... |
//! ```
//!
//! All little-endian. `header_crc` is the CRC-32C of the first 28 bytes, so that a length is
//! trusted, and waited for, only if it is intact. The highest bit of the kind says that the sender
//! waits for the acknowledgement, the next one that the packet is sealed, which determines the
//! proof:
//!
//! | packet | proof | shows |
//! | --- | --- | --- |
//! | plain | 4 bytes: CRC-32C of head and values | nothing was changed by chance |
//! | sealed | 32 bytes: a tag of the head, a tag of the values | they come from the other end of the link, in this place, unread and unchanged ([`Channel`](crate::net::noise::Channel)) |
//!
//! The first four bytes stay as they are forever: by them nodes of any two versions recognize each
//! other. `seq` and `ack` are the link session's ([`adapm_core::link`]); greetings leave them zero
//! and have no values.
//!
//! Not here: the content of greetings ([`crate::net::hello`]), keys, sockets, and time.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::io;

use adapm_core::link::{self, Seq};
use adapm_core::transport::Frame;

use crate::error::SystemError;

pub use reader::PacketReader;
pub use writer::{Draft, Outgoing, PacketWriter};

/// Version of everything on the wire between nodes.
pub const PROTOCOL_VERSION: u8 = 4;
/// Bytes of a header before its proof.
pub const CLEAR_BYTES: usize = 32;
/// Bytes of the header of a plain packet.
pub const HEADER_BYTES: usize = CLEAR_BYTES + CHECKSUM_BYTES;
/// Bytes of the header of a sealed packet.
pub const SEALED_HEADER_BYTES: usize = CLEAR_BYTES + 2 * TAG_BYTES;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A packet of the link session.
    Link(link::Kind),
    /// Part of the handshake.
    Greeting(Greeting),
}

/// The steps of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// The dialing node's key of this connection, if it has a token.
    Open,
    /// The listening node's.
    Opened,
    /// The dialing node identifies itself.
    Hello,
    /// The listening node identifies itself, and states where to go on.
    Welcome,
    /// Either side ends the attempt and states why.
    Refuse,
}

/// The clear part of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of the packet.
    pub kind: Kind,
    /// True if head and values are sealed.
    pub is_sealed: bool,
    /// Bytes of the head.
    pub head_len: usize,
    /// Bytes of the values.
    pub values_len: usize,
    /// The link session's number.
    pub seq: Seq,
    /// The link session's acknowledgement.
    pub ack: Seq,
    /// True if the link session waits for the acknowledgement of this packet.
    pub wants_ack: bool,
}

/// A complete packet, not yet verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    header: Header,
    clear: [u8; CLEAR_BYTES],
    proof: Proof,
    frame: Frame,
}

/// The proof after the clear part of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    Checksum([u8; CHECKSUM_BYTES]),
    /// Tags of the head and of the values.
    Tags([Tag; 2]),
}

/// The tag of a sealed part.
pub(crate) type Tag = [u8; TAG_BYTES];

/// A complete and verified packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The kind of the packet.
    pub kind: Kind,
    /// The link session's number.
    pub seq: Seq,
    /// The link session's acknowledgement.
    pub ack: Seq,
    /// True if the link session waits for the acknowledgement of this packet.
    pub wants_ack: bool,
    /// The content.
    pub frame: Frame,
}

/// Reasons why a pipe yields no more packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes are not those of a node.
    #[error("the received bytes are not from an adapm node")]
    Magic,
    /// The peer speaks another version.
    #[error("the peer speaks version {theirs} of the protocol, this node {PROTOCOL_VERSION}")]
    Version {
        /// The peer's version.
        theirs: u8,
    },
    /// A kind of packet that does not exist.
    #[error("a packet of unknown kind {0}")]
    Kind(u8),
    /// A packet above the bound; nothing was allocated for it.
    #[error("a packet claims {bytes} bytes, {limit} are allowed")]
    Oversize {
        /// Bytes of head and values that were claimed.
        bytes: u64,
        /// The bound.
        limit: usize,
    },
    /// The checksum is wrong.
    #[error("a packet arrived corrupt (wrong checksum)")]
    Checksum,
    /// It is not the packet that the other end of the link has sealed here.
    #[error(
        "a packet is not the one that the peer sealed: something on the way changes, repeats or drops packets"
    )]
    Unopened,
    /// The pipe ended between two packets.
    #[error("the connection was closed")]
    Ended,
    /// The pipe ended in the middle of a packet.
    #[error("the connection was closed within a packet")]
    EndedWithin,
    /// The pipe leads back to itself: TCP may connect a port without a listener to itself, by
    /// chance.
    #[error("nobody listens there (the connection led back to itself)")]
    Itself,
    /// The system reports an error.
    #[error("{0}")]
    Io(SystemError),
}

/// Memory of frames for reuse: at most a few, and of bounded size.
#[derive(Debug, Default)]
pub struct Spares {
    frames: Vec<Frame>,
    bytes: usize,
}

impl Header {
    /// Decodes the clear part of a header. Its checksum protects against chance, not against forged
    /// claims.
    ///
    /// # Errors
    /// If it is not one of this version, is corrupt, or claims more than `limit` bytes.
    pub fn decode(bytes: &[u8; CLEAR_BYTES], limit: usize) -> Result<Self, Fault> {
        let u32_at =
            |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let u64_at =
            |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if bytes[..2] != MAGIC {
            return Err(Fault::Magic);
        }
        if bytes[3] != PROTOCOL_VERSION {
            return Err(Fault::Version { theirs: bytes[3] });
        }
        if u32_at(HEADER_CRC_AT) != crc32c::crc32c(&bytes[..HEADER_CRC_AT]) {
            return Err(Fault::Checksum);
        }
        let kind =
            Kind::of_byte(bytes[2] & !(WANTS_ACK | IS_SEALED)).ok_or(Fault::Kind(bytes[2]))?;
        let (head_len, values_len) = (u32_at(4), u32_at(8));
        let claimed = u64::from(head_len) + u64::from(values_len);
        if claimed > limit as u64 {
            return Err(Fault::Oversize { bytes: claimed, limit });
        }
        Ok(Self {
            kind,
            is_sealed: bytes[2] & IS_SEALED != 0,
            head_len: head_len as usize,
            values_len: values_len as usize,
            seq: Seq(u64_at(12)),
            ack: Seq(u64_at(20)),
            wants_ack: bytes[2] & WANTS_ACK != 0,
        })
    }

    /// Returns the bytes of the whole header.
    const fn bytes(&self) -> usize {
        if self.is_sealed { SEALED_HEADER_BYTES } else { HEADER_BYTES }
    }
}

impl Proof {
    /// Reads the bytes after the clear part. Returns `None` if their number is wrong.
    fn read(header: &Header, bytes: &[u8]) -> Option<Self> {
        if !header.is_sealed {
            return bytes.try_into().ok().map(Self::Checksum);
        }
        let (head, values) = bytes.split_first_chunk::<TAG_BYTES>()?;
        Some(Self::Tags([*head, values.try_into().ok()?]))
    }
}

impl Kind {
    const fn byte(self) -> u8 {
        match self {
            Self::Link(link::Kind::Data) => 0,
            Self::Link(link::Kind::Bye) => 1,
            Self::Link(link::Kind::Ack) => 2,
            Self::Link(link::Kind::Heartbeat) => 3,
            Self::Link(link::Kind::Part) => 4,
            Self::Greeting(Greeting::Open) => 16,
            Self::Greeting(Greeting::Opened) => 17,
            Self::Greeting(Greeting::Hello) => 18,
            Self::Greeting(Greeting::Welcome) => 19,
            Self::Greeting(Greeting::Refuse) => 20,
        }
    }

    const fn of_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Link(link::Kind::Data),
            1 => Self::Link(link::Kind::Bye),
            2 => Self::Link(link::Kind::Ack),
            3 => Self::Link(link::Kind::Heartbeat),
            4 => Self::Link(link::Kind::Part),
            16 => Self::Greeting(Greeting::Open),
            17 => Self::Greeting(Greeting::Opened),
            18 => Self::Greeting(Greeting::Hello),
            19 => Self::Greeting(Greeting::Welcome),
            20 => Self::Greeting(Greeting::Refuse),
            _ => return None,
        })
    }
}

impl Incoming {
    /// Builds a packet from its three parts, as delivered by pipes that keep messages apart.
    ///
    /// # Errors
    /// If they are not the parts of one packet of at most `limit` bytes.
    pub fn of_parts(header: &[u8], frame: Frame, limit: usize) -> Result<Self, Fault> {
        let (clear, proof) = header.split_first_chunk().ok_or(Fault::Magic)?;
        let header = Header::decode(clear, limit)?;
        let proof = Proof::read(&header, proof).ok_or(Fault::Magic)?;
        if (header.head_len, header.values_len) != (frame.head.len(), frame.values.len()) {
            return Err(Fault::EndedWithin);
        }
        Ok(Self { header, clear: *clear, proof, frame })
    }

    /// Returns the bytes of head and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.frame.len()
    }

    /// Verifies a plain packet.
    ///
    /// # Errors
    /// If it is sealed, or its checksum is wrong.
    pub fn check(self) -> Result<Packet, Fault> {
        let Proof::Checksum(expected) = self.proof else { return Err(Fault::Unopened) };
        if checksum(&self.frame.head, self.frame.values.bytes()) != expected {
            return Err(Fault::Checksum);
        }
        Ok(self.believed())
    }

    /// Opens a sealed packet by `open`, which gets its head, then its values; empty parts are
    /// skipped.
    ///
    /// # Errors
    /// If it is not sealed, or does not open.
    pub(crate) fn open(
        mut self,
        open: impl FnOnce(&[u8; CLEAR_BYTES], [Tag; 2], &mut [u8], &mut [u8]) -> bool,
    ) -> Result<Packet, Fault> {
        let Proof::Tags(tags) = self.proof else { return Err(Fault::Unopened) };
        let Frame { head, values } = &mut self.frame;
        if open(&self.clear, tags, head, values.bytes_mut()) {
            Ok(self.believed())
        } else {
            Err(Fault::Unopened)
        }
    }

    fn believed(self) -> Packet {
        let Header { kind, seq, ack, wants_ack, .. } = self.header;
        Packet { kind, seq, ack, wants_ack, frame: self.frame }
    }
}

impl Spares {
    /// Takes memory for a frame; its content is arbitrary.
    pub fn take(&mut self) -> Frame {
        let Some(frame) = self.frames.pop() else { return Frame::default() };
        self.bytes -= held(&frame);
        frame
    }

    /// Keeps the memory of `frame` if there is room for it.
    ///
    /// Its content is kept as well: memory that will be overwritten need not be cleared.
    pub fn keep(&mut self, frame: Frame) {
        let bytes = held(&frame);
        if bytes > 0 && self.frames.len() < SPARES_MAX && self.bytes + bytes <= SPARE_BYTES_MAX {
            self.bytes += bytes;
            self.frames.push(frame);
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error.into())
    }
}

/// Writes the header's own checksum, after the rest of its clear part.
pub fn finish(clear: &mut [u8; CLEAR_BYTES]) {
    let crc = crc32c::crc32c(&clear[..HEADER_CRC_AT]);
    clear[HEADER_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
}

/// Returns the CRC-32C of head and values.
fn checksum(head: &[u8], values: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let crc = if head.is_empty() { 0 } else { crc32c::crc32c(head) };
    let crc = if values.is_empty() { crc } else { crc32c::crc32c_append(crc, values) };
    crc.to_le_bytes()
}

fn held(frame: &Frame) -> usize {
    frame.head.capacity() + frame.values.len()
}

const CHECKSUM_BYTES: usize = 4;
pub(crate) const TAG_BYTES: usize = 16;
const HEADER_CRC_AT: usize = 28;
/// Bits of the kind.
const WANTS_ACK: u8 = 0x80;
const IS_SEALED: u8 = 0x40;
const MAGIC: [u8; 2] = *b"aD";
const SPARES_MAX: usize = 8;
/// Twice the largest frame.
const SPARE_BYTES_MAX: usize = 2 * adapm_core::wire::FRAME_BYTES_MAX;
