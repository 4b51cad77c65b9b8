//! Packets to the wire: written in one call as far as the pipe takes them, resumed at any byte.
//!
//! Frames stay where they are: header, head and values go into one vectored write, together with
//! queued packets.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::sync::Arc;

use adapm_core::link::{self, Content, Seq};
use adapm_core::transport::Frame;

use super::{
    CLEAR_BYTES, Greeting, IS_SEALED, Kind, MAGIC, PROTOCOL_VERSION, SEALED_HEADER_BYTES, Tag,
    WANTS_ACK,
};
use super::{HEADER_BYTES, checksum, finish};

/// The content of a packet, before it is protected.
#[derive(Clone, Debug)]
pub struct Draft {
    kind: u8,
    seq: Seq,
    ack: Seq,
    content: Option<Content>,
}

/// A packet to be written.
#[derive(Clone, Debug)]
pub struct Outgoing {
    header: [u8; SEALED_HEADER_BYTES],
    body: Body,
}

/// The body after a header.
#[derive(Clone, Debug)]
enum Body {
    /// Unsealed; shared with holders that may have to write it again.
    Plain(Option<Content>),
    /// Sealed.
    Sealed { bytes: Vec<u8>, head_len: usize },
}

impl Draft {
    /// Creates a packet of any kind.
    #[must_use]
    pub fn new(kind: Kind, seq: Seq, ack: Seq, frame: Frame) -> Self {
        Self { kind: kind.byte(), seq, ack, content: Some(Content::whole(Arc::new(frame))) }
    }

    /// Creates a packet of the link session.
    #[must_use]
    pub fn link(header: link::Header, content: Option<Content>) -> Self {
        let kind = Kind::Link(header.kind).byte() | if header.wants_ack { WANTS_ACK } else { 0 };
        Self { kind, seq: header.seq, ack: header.ack, content }
    }

    /// Creates a message of a handshake.
    #[must_use]
    pub fn greeting(greeting: Greeting, bytes: Vec<u8>) -> Self {
        Self::new(
            Kind::Greeting(greeting),
            Seq::default(),
            Seq::default(),
            Frame { head: bytes, ..Frame::default() },
        )
    }

    /// Returns the packet with its checksums; costs one pass over all its bytes.
    ///
    /// # Panics
    /// If head or values are longer than 4 GiB, far above the bound on packets.
    #[must_use]
    pub fn check(self) -> Outgoing {
        let (head, values) = self.parts();
        let (clear, crc) = (self.clear(0), checksum(head, values));
        let mut header = [0; SEALED_HEADER_BYTES];
        header[..CLEAR_BYTES].copy_from_slice(&clear);
        header[CLEAR_BYTES..HEADER_BYTES].copy_from_slice(&crc);
        Outgoing { header, body: Body::Plain(self.content) }
    }

    /// Returns the packet sealed by `seal`, which gets its head, then its values, in place; empty
    /// parts are skipped.
    ///
    /// # Panics
    /// If head or values are longer than 4 GiB, far above the bound on packets.
    pub(crate) fn seal(
        self,
        seal: impl FnOnce(&[u8; CLEAR_BYTES], &mut [u8], &mut [u8]) -> [Tag; 2],
    ) -> Outgoing {
        let (head, values) = self.parts();
        let (clear, head_len) = (self.clear(IS_SEALED), head.len());
        let mut bytes = Vec::with_capacity(head_len + values.len());
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(values);
        let (head, values) = bytes.split_at_mut(head_len);
        let tags = seal(&clear, head, values);
        let mut header = [0; SEALED_HEADER_BYTES];
        header[..CLEAR_BYTES].copy_from_slice(&clear);
        header[CLEAR_BYTES..].copy_from_slice(tags.as_flattened());
        Outgoing { header, body: Body::Sealed { bytes, head_len } }
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        self.content.as_ref().map(|content| (content.head(), content.values())).unwrap_or_default()
    }

    fn clear(&self, bits: u8) -> [u8; CLEAR_BYTES] {
        let (head, values) = self.parts();
        let len = |bytes: usize| u32::try_from(bytes).expect("a packet is small").to_le_bytes();
        let mut clear = [0; CLEAR_BYTES];
        clear[..2].copy_from_slice(&MAGIC);
        (clear[2], clear[3]) = (self.kind | bits, PROTOCOL_VERSION);
        clear[4..8].copy_from_slice(&len(head.len()));
        clear[8..12].copy_from_slice(&len(values.len()));
        clear[12..20].copy_from_slice(&self.seq.0.to_le_bytes());
        clear[20..28].copy_from_slice(&self.ack.0.to_le_bytes());
        finish(&mut clear);
        clear
    }
}

impl Outgoing {
    /// Returns header, head and values, in the order of the wire.
    #[must_use]
    pub fn parts(&self) -> [&[u8]; 3] {
        match &self.body {
            Body::Plain(Some(content)) => {
                [&self.header[..HEADER_BYTES], content.head(), content.values()]
            }
            Body::Plain(None) => [&self.header[..HEADER_BYTES], &[], &[]],
            Body::Sealed { bytes, head_len } => {
                let (head, values) = bytes.split_at(*head_len);
                [&self.header, head, values]
            }
        }
    }

    /// Returns the bytes on the wire.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a packet has a header at least")]
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Plain(content) => HEADER_BYTES + content.as_ref().map_or(0, Content::len),
            Body::Sealed { bytes, .. } => SEALED_HEADER_BYTES + bytes.len(),
        }
    }
}

/// Packets queued for a pipe, in order, and the written part of the first of them.
#[derive(Debug, Default)]
pub struct PacketWriter {
    queue: VecDeque<Outgoing>,
    /// Bytes of the first packet that were written.
    written: usize,
    /// Bytes of all packets that were not.
    waiting: usize,
    /// Calls of the system.
    calls: u64,
}

impl PacketWriter {
    /// Appends a packet.
    pub fn push(&mut self, packet: Outgoing) {
        self.waiting += packet.len();
        self.queue.push_back(packet);
    }

    /// Writes as much as `sink` takes. Returns true if nothing is left.
    ///
    /// # Errors
    /// Errors of the sink, except that it would block or was interrupted.
    pub fn write(&mut self, sink: &mut impl Write) -> io::Result<bool> {
        while !self.queue.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let used = self.gather(&mut slices);
            let result = sink.write_vectored(&slices[..used]);
            self.calls += 1;
            match result {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.advance(bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Returns the number of packets not written completely.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.queue.len()
    }

    /// Returns the number of bytes not written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.waiting
    }

    /// Returns the number of calls of [`Write::write_vectored`] so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Points `slices` at the next bytes to write. Returns the number of slices in use.
    fn gather<'a>(&'a self, slices: &mut [IoSlice<'a>; SLICES_MAX]) -> usize {
        let (mut used, mut skip) = (0, self.written);
        for packet in &self.queue {
            if used + 3 > SLICES_MAX {
                break;
            }
            for part in packet.parts() {
                let skipped = skip.min(part.len());
                skip -= skipped;
                if skipped < part.len() {
                    slices[used] = IoSlice::new(&part[skipped..]);
                    used += 1;
                }
            }
        }
        used
    }

    fn advance(&mut self, bytes: usize) {
        self.waiting -= bytes;
        self.written += bytes;
        while let Some(first) = self.queue.front()
            && self.written >= first.len()
        {
            self.written -= first.len();
            self.queue.pop_front();
        }
    }
}

/// Maximum number of parts of packets in one call.
const SLICES_MAX: usize = 96;
