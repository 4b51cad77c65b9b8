//! What goes over a pipe: packets of a fixed header, a head and values, under two checksums.
//!
//! ```text
//!  0      2      3         4           8             12      20      28         32           36
//!  | "aD" | kind | version | head_len  | values_len  |  seq  |  ack  | body_crc | header_crc | head ... | values ... |
//! ```
//!
//! All little-endian. The checksums are CRC-32C: `body_crc` of the head and the values, `header_crc` of the first 32 bytes, so that a
//! length is believed, and waited for, only if it came as it was sent. The highest bit of the kind says that the sender waits
//! for the acknowledgement. The first four bytes stay as they are for ever: by them a node of any version knows that it speaks with one of another. `seq` and `ack` are the link
//! session's ([`adapm_core::link`]); greetings leave them zero and have no values.
//!
//! Not here: what greetings say ([`crate::net::hello`]), sockets, and time.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

use core::fmt;
use std::io;

use adapm_core::link::{self, Seq};
use adapm_core::transport::Frame;

use crate::error::SystemError;

pub use reader::PacketReader;
pub use writer::{Outgoing, PacketWriter};

/// Version of everything on the wire between nodes.
pub const PROTOCOL_VERSION: u8 = 3;
/// Bytes of a packet's header.
pub const HEADER_BYTES: usize = 36;

/// What a packet is for.
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
    /// The dialing node says who it is.
    Hello,
    /// The listening node says who it is, and proves that it knows the token.
    Welcome,
    /// The dialing node proves that it knows the token.
    Proof,
    /// The listening node believes it and says where to go on.
    Ready,
    /// Either side ends the attempt and says why.
    Refuse,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the packet is for.
    pub kind: Kind,
    /// Bytes of its head.
    pub head_len: usize,
    /// Bytes of its values.
    pub values_len: usize,
    /// The link session's number.
    pub seq: Seq,
    /// The link session's acknowledgement.
    pub ack: Seq,
    /// Whether the link session waits for the acknowledgement of this packet.
    pub wants_ack: bool,
    /// The checksum of head and values.
    pub body_crc: u32,
}

/// A whole packet with a checksum that is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What it is for.
    pub kind: Kind,
    /// The link session's number.
    pub seq: Seq,
    /// The link session's acknowledgement.
    pub ack: Seq,
    /// Whether the link session waits for the acknowledgement of this packet.
    pub wants_ack: bool,
    /// What it carries.
    pub frame: Frame,
}

/// Why a pipe gives no more packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes are not those of a node.
    Magic,
    /// The peer speaks another version.
    Version {
        /// What it speaks.
        theirs: u8,
    },
    /// A kind of packet that does not exist.
    Kind(u8),
    /// A packet above the bound; nothing was allocated for it.
    Oversize {
        /// Bytes of head and values that were claimed.
        bytes: u64,
        /// The bound.
        limit: usize,
    },
    /// The checksum is wrong.
    Checksum,
    /// The pipe ended between two packets.
    Ended,
    /// The pipe ended in the middle of a packet.
    EndedWithin,
    /// The pipe leads back to itself: TCP connects a port that nobody listens at with the same port, by chance.
    Itself,
    /// The system reports an error.
    Io(SystemError),
}

/// Memory of frames to be used again: at most a few, and of bounded size.
#[derive(Debug, Default)]
pub struct Spares {
    frames: Vec<Frame>,
    bytes: usize,
}

impl Header {
    /// Reads a header, which is as it was sent; what it claims may still be false.
    ///
    /// # Errors
    /// If it is not one of this version, is corrupt, or claims more than `limit` bytes.
    pub fn decode(bytes: &[u8; HEADER_BYTES], limit: usize) -> Result<Self, Fault> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if bytes[..2] != MAGIC {
            return Err(Fault::Magic);
        }
        if bytes[3] != PROTOCOL_VERSION {
            return Err(Fault::Version { theirs: bytes[3] });
        }
        if u32_at(HEADER_CRC_AT) != crc32c::crc32c(&bytes[..HEADER_CRC_AT]) {
            return Err(Fault::Checksum);
        }
        let kind = Kind::of_byte(bytes[2] & !WANTS_ACK).ok_or(Fault::Kind(bytes[2]))?;
        let (head_len, values_len) = (u32_at(4), u32_at(8));
        let claimed = u64::from(head_len) + u64::from(values_len);
        if claimed > limit as u64 {
            return Err(Fault::Oversize { bytes: claimed, limit });
        }
        Ok(Self {
            kind,
            head_len: head_len as usize,
            values_len: values_len as usize,
            seq: Seq(u64_at(12)),
            ack: Seq(u64_at(20)),
            wants_ack: bytes[2] & WANTS_ACK != 0,
            body_crc: u32_at(28),
        })
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
            Self::Greeting(Greeting::Hello) => 16,
            Self::Greeting(Greeting::Welcome) => 17,
            Self::Greeting(Greeting::Proof) => 18,
            Self::Greeting(Greeting::Ready) => 19,
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
            16 => Self::Greeting(Greeting::Hello),
            17 => Self::Greeting(Greeting::Welcome),
            18 => Self::Greeting(Greeting::Proof),
            19 => Self::Greeting(Greeting::Ready),
            20 => Self::Greeting(Greeting::Refuse),
            _ => return None,
        })
    }
}

impl Packet {
    /// A packet from its three parts, as pipes that keep messages apart deliver them.
    ///
    /// # Errors
    /// If they are not one sound packet of at most `limit` bytes.
    pub fn of_parts(header: &[u8], frame: Frame, limit: usize) -> Result<Self, Fault> {
        let bytes = header.try_into().map_err(|_| Fault::Magic)?;
        let header = Header::decode(bytes, limit)?;
        if (header.head_len, header.values_len) != (frame.head.len(), frame.values.len()) {
            return Err(Fault::EndedWithin);
        }
        Self::checked(header, frame)
    }

    fn checked(header: Header, frame: Frame) -> Result<Self, Fault> {
        if checksum(&frame.head, frame.values.bytes()) != header.body_crc {
            return Err(Fault::Checksum);
        }
        let Header { kind, seq, ack, wants_ack, .. } = header;
        Ok(Self { kind, seq, ack, wants_ack, frame })
    }
}

impl Spares {
    /// Memory for a frame; its content is what it happens to be.
    pub fn take(&mut self) -> Frame {
        let Some(frame) = self.frames.pop() else { return Frame::default() };
        self.bytes -= held(&frame);
        frame
    }

    /// Keeps the memory of `frame` if there is room for it.
    ///
    /// Its content is kept as well: memory that is overwritten anyway need not be cleared.
    pub fn keep(&mut self, frame: Frame) {
        let bytes = held(&frame);
        if bytes > 0 && self.frames.len() < SPARES_MAX && self.bytes + bytes <= SPARE_BYTES_MAX {
            self.bytes += bytes;
            self.frames.push(frame);
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("what came is not from an adapm node"),
            Self::Version { theirs } => {
                write!(f, "the peer speaks version {theirs} of the protocol, this node {PROTOCOL_VERSION}")
            }
            Self::Kind(byte) => write!(f, "a packet of unknown kind {byte}"),
            Self::Oversize { bytes, limit } => {
                write!(f, "a packet claims {bytes} bytes, {limit} are allowed")
            }
            Self::Checksum => f.write_str("a packet arrived corrupt (wrong checksum)"),
            Self::Ended => f.write_str("the connection was closed"),
            Self::EndedWithin => f.write_str("the connection was closed within a packet"),
            Self::Itself => f.write_str("nobody listens there (the connection led back to itself)"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Fault {}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error.into())
    }
}

/// Writes the header's own checksum, behind all else of it.
pub fn seal(header: &mut [u8; HEADER_BYTES]) {
    let crc = crc32c::crc32c(&header[..HEADER_CRC_AT]);
    header[HEADER_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
}

/// CRC-32C of what follows a header.
fn checksum(head: &[u8], values: &[u8]) -> u32 {
    let crc = if head.is_empty() { 0 } else { crc32c::crc32c(head) };
    if values.is_empty() { crc } else { crc32c::crc32c_append(crc, values) }
}

fn held(frame: &Frame) -> usize {
    frame.head.capacity() + frame.values.len()
}

const HEADER_CRC_AT: usize = 32;
/// The bit of the kind.
const WANTS_ACK: u8 = 0x80;
const MAGIC: [u8; 2] = *b"aD";
const SPARES_MAX: usize = 8;
/// Two of the largest frames.
const SPARE_BYTES_MAX: usize = 2 * adapm_core::wire::FRAME_BYTES_MAX;
