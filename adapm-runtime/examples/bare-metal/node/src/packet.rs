//! The packets of the line: postcard, a checksum after it, and COBS around both, so that only the
//! end of a packet is a zero byte.
//!
//! After any garbage the reader starts anew at the next zero byte; the checksum detects damage.

use alloc::vec;
use alloc::vec::Vec;

use adapm_core::link::{Header, Kind, Seq};
use crc::{CRC_32_ISCSI, Crc};
use serde::{Deserialize, Serialize};

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Packet<'a> {
    /// The dialing end begins pipe `pipe`, and expects packet `expects` next.
    Hello {
        /// Number of the pipe.
        pipe: u32,
        /// The packet that the end expects next.
        expects: u64,
        /// The digest of the settings that both ends must share.
        terms: u64,
    },
    /// The answer to a hello, of the same pipe.
    Welcome {
        /// Number of the pipe.
        pipe: u32,
        /// The packet that the end expects next.
        expects: u64,
        /// The digest of the settings that both ends must share.
        terms: u64,
    },
    /// The answering end asks to be dialed: it has no pipe, or has lost bytes of this one.
    Call,
    /// A packet of the link session.
    Session {
        /// Number of the pipe it was written to.
        pipe: u32,
        /// [`Kind`] as a number.
        kind: u8,
        /// Number of the packet.
        seq: u64,
        /// The number expected next.
        ack: u64,
        /// True if the sender waits for the acknowledgement of this packet.
        wants_ack: bool,
        /// Head of the frame.
        head: &'a [u8],
        /// Values of the frame.
        values: &'a [u8],
    },
}

impl Packet<'_> {
    /// Creates a packet of the session with the parts of its frame.
    #[must_use]
    pub fn session<'a>(pipe: u32, header: Header, head: &'a [u8], values: &'a [u8]) -> Packet<'a> {
        let kind =
            KINDS.iter().position(|kind| *kind == header.kind).expect("all kinds are listed") as u8;
        let Header { seq, ack, wants_ack, .. } = header;
        Packet::Session { pipe, kind, seq: seq.0, ack: ack.0, wants_ack, head, values }
    }

    /// Appends the encoded packet, with a zero before it too, which ends any garbage.
    pub fn write(&self, line: &mut Vec<u8>) {
        let mut bytes =
            postcard::to_allocvec(self).expect("a packet is made of integers and bytes");
        bytes.extend_from_slice(&CHECK.checksum(&bytes).to_le_bytes());
        line.push(END);
        let start = line.len();
        line.resize(start + cobs::max_encoding_length(bytes.len()), END);
        let len = cobs::encode(&bytes, &mut line[start..]);
        line.truncate(start + len);
        line.push(END);
    }
}

/// Returns the header of a session's packet, or `None` if its kind does not exist.
#[must_use]
pub fn header(kind: u8, seq: u64, ack: u64, wants_ack: bool) -> Option<Header> {
    KINDS.get(usize::from(kind)).map(|kind| Header {
        kind: *kind,
        seq: Seq(seq),
        ack: Seq(ack),
        wants_ack,
    })
}

/// A reader that finds the packets in the bytes of a line.
#[derive(Debug)]
pub struct Reader {
    bytes: Vec<u8>,
    limit: usize,
    is_overfull: bool,
}

impl Reader {
    /// Creates a reader of packets of up to `limit` bytes on the line.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, is_overfull: false }
    }

    /// Takes the next byte; calls `found` at the end of a packet, with `None` if it is damaged.
    pub fn feed(&mut self, byte: u8, found: impl FnOnce(Option<Packet<'_>>)) {
        if byte != END {
            self.is_overfull |= self.bytes.len() == self.limit;
            if !self.is_overfull {
                self.bytes.push(byte);
            }
            return;
        }
        if !self.bytes.is_empty() {
            let is_whole = !core::mem::take(&mut self.is_overfull);
            found(if is_whole { read(&mut self.bytes) } else { None });
            self.bytes.clear();
        }
    }
}

fn read(bytes: &mut [u8]) -> Option<Packet<'_>> {
    let len = cobs::decode_in_place(bytes).ok()?;
    let (bytes, check) = bytes[..len].split_last_chunk()?;
    if CHECK.checksum(bytes) != u32::from_le_bytes(*check) {
        return None;
    }
    let (packet, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(packet)
}

/// Encodes a packet, for tests and tools.
#[must_use]
pub fn written(packet: &Packet<'_>) -> Vec<u8> {
    let mut line = vec![];
    packet.write(&mut line);
    line
}

const END: u8 = 0;
static CHECK: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
/// In the order of their numbers.
const KINDS: [Kind; 5] = [Kind::Data, Kind::Bye, Kind::Ack, Kind::Heartbeat, Kind::Part];
