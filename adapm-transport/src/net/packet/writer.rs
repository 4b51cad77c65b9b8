//! Packets to the wire: written in one call as far as the pipe takes them, resumed at any byte.
//!
//! Frames stay where they are: header, head and values go into one vectored write, together with packets that wait.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::sync::Arc;

use adapm_core::link::{self, Content, Seq};
use adapm_core::transport::Frame;

use super::{HEADER_BYTES, Kind, MAGIC, PROTOCOL_VERSION, WANTS_ACK, checksum, seal};

/// A packet to be written; shares its frame with whoever may have to write it again.
#[derive(Clone, Debug)]
pub struct Outgoing {
    header: [u8; HEADER_BYTES],
    content: Option<Content>,
}

impl Outgoing {
    /// A packet with all of a frame.
    ///
    /// # Panics
    /// If head or values are longer than 4 GiB, far above the bound on packets.
    #[must_use]
    pub fn new(kind: Kind, seq: Seq, ack: Seq, frame: Option<Arc<Frame>>) -> Self {
        Self::sealed(kind.byte(), seq, ack, frame.map(Content::whole))
    }

    /// A packet of the link session.
    #[must_use]
    pub fn link(header: link::Header, content: Option<Content>) -> Self {
        let kind = Kind::Link(header.kind).byte() | if header.wants_ack { WANTS_ACK } else { 0 };
        Self::sealed(kind, header.seq, header.ack, content)
    }

    /// A packet with its checksums; costs a look at all its bytes.
    fn sealed(kind: u8, seq: Seq, ack: Seq, content: Option<Content>) -> Self {
        let parts = content.as_ref().map(|content| (content.head(), content.values()));
        let (head, values) = parts.unwrap_or_default();
        let len = |bytes: usize| u32::try_from(bytes).expect("a packet is small").to_le_bytes();
        let mut header = [0; HEADER_BYTES];
        header[..2].copy_from_slice(&MAGIC);
        (header[2], header[3]) = (kind, PROTOCOL_VERSION);
        header[4..8].copy_from_slice(&len(head.len()));
        header[8..12].copy_from_slice(&len(values.len()));
        header[12..20].copy_from_slice(&seq.0.to_le_bytes());
        header[20..28].copy_from_slice(&ack.0.to_le_bytes());
        header[28..32].copy_from_slice(&checksum(head, values).to_le_bytes());
        seal(&mut header);
        Self { header, content }
    }

    /// A message of a handshake.
    #[must_use]
    pub fn greeting(kind: Kind, bytes: Vec<u8>) -> Self {
        let frame = Frame { head: bytes, ..Frame::default() };
        Self::new(kind, Seq::default(), Seq::default(), Some(Arc::new(frame)))
    }

    /// Header, head and values, as they follow each other on the wire.
    #[must_use]
    pub fn parts(&self) -> [&[u8]; 3] {
        match &self.content {
            Some(content) => [&self.header, content.head(), content.values()],
            None => [&self.header, &[], &[]],
        }
    }

    /// Bytes on the wire.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a packet has a header at least")]
    pub fn len(&self) -> usize {
        HEADER_BYTES + self.content.as_ref().map_or(0, Content::len)
    }
}

/// Packets that wait for a pipe, in order, and how far the first of them was written.
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

    /// Writes as much as `sink` takes, and returns whether nothing is left.
    ///
    /// # Errors
    /// What the sink reports, but that it would block or was interrupted.
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

    /// Packets that were not written whole.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.queue.len()
    }

    /// Bytes that were not written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.waiting
    }

    /// Calls of [`Write::write_vectored`] so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Points `slices` at what is to be written next, and returns how many are used.
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

/// Parts of packets in one call.
const SLICES_MAX: usize = 96;
