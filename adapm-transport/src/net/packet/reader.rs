//! Packets from the wire: a reader that can stop and go on at any byte.
//!
//! Small packets come through a staging buffer, many with one call. The missing part of a large
//! packet is read straight into its frame, with a little of what follows in the same vectored call,
//! so that large values are copied once, from the kernel to their final place. A frame grows by at
//! most 1 MiB ahead of the received bytes: a length that is claimed and not sent costs nothing.

use std::io::{self, IoSliceMut, Read};

use adapm_core::transport::Frame;

use super::{CLEAR_BYTES, Fault, Header, Incoming, Proof, Spares};

/// A reader that cuts a stream of bytes into packets.
#[derive(Debug)]
pub struct PacketReader {
    limit: usize,
    staging: Vec<u8>,
    start: usize,
    end: usize,
    body: Option<Body>,
    /// True if the last packet was read directly: the next one is usually as large.
    was_large: bool,
    /// True if a call that fills less than it could means that nothing is left.
    trusts_short: bool,
    was_short: bool,
    bytes: u64,
    calls: u64,
}

/// A packet whose header has come.
#[derive(Debug)]
struct Body {
    packet: Incoming,
    /// Bytes of head and values received.
    got: usize,
}

impl PacketReader {
    /// Creates a reader of packets of at most `limit` bytes of head and values.
    ///
    /// While the limit is below 4 KiB, so is all memory of the reader: raise it once the peer is
    /// known.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let staging = if limit < GREETING_BYTES { GREETING_BYTES - limit } else { STAGING_BYTES };
        let staging = staging.max(STAGING_BYTES_MIN);
        Self {
            limit,
            staging: vec![0; staging],
            start: 0,
            end: 0,
            body: None,
            was_large: false,
            trusts_short: false,
            was_short: false,
            bytes: 0,
            calls: 0,
        }
    }

    /// Allows larger packets from the next header on.
    pub fn raise_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.staging.resize(STAGING_BYTES.max(self.end), 0);
    }

    /// Sets whether a call that fills less than it could is taken as "would block". Correct for a
    /// socket with edge-triggered events, until its other side has closed; saves every second call.
    pub fn trust_short(&mut self, trusts: bool) {
        self.trusts_short = trusts;
        self.was_short &= trusts;
    }

    /// Notes that the source has new bytes: an earlier short call says nothing about them.
    pub fn hear_news(&mut self) {
        self.was_short = false;
    }

    /// Returns the next packet, or `None` if `source` would block first; received parts are kept.
    ///
    /// # Errors
    /// If no more packets can come; further calls are useless.
    pub fn read(
        &mut self,
        source: &mut impl Read,
        spares: &mut Spares,
    ) -> Result<Option<Incoming>, Fault> {
        loop {
            let Some(body) = &mut self.body else {
                self.body = self.read_header(spares)?;
                if self.body.is_none() && !self.fill(source)? {
                    return Ok(None);
                }
                continue;
            };
            self.start += body.take(&self.staging[self.start..self.end]);
            if body.missing() == 0 {
                let body = self.body.take().expect("it is here");
                self.was_large = body.got >= DIRECT_BYTES_MIN;
                return Ok(Some(body.packet));
            }
            let goes_on = if body.missing() < DIRECT_BYTES_MIN {
                self.fill(source)?
            } else {
                self.fill_body(source)?
            };
            if !goes_on {
                return Ok(None);
            }
        }
    }

    /// Takes a header out of the staging buffer, if it is complete.
    fn read_header(&mut self, spares: &mut Spares) -> Result<Option<Body>, Fault> {
        let staged = &self.staging[self.start..self.end];
        let Some((clear, behind)) = staged.split_first_chunk::<CLEAR_BYTES>() else {
            return Ok(None);
        };
        let header = Header::decode(clear, self.limit)?;
        let proof = behind
            .get(..header.bytes() - CLEAR_BYTES)
            .and_then(|bytes| Proof::read(&header, bytes));
        let body = proof.map(|proof| Body::new(header, *clear, proof, spares.take()));
        self.start += body.as_ref().map_or(0, |_| header.bytes());
        Ok(body)
    }

    /// Returns the number of bytes read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of calls of [`Read`] so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns true if a packet has come in part.
    #[must_use]
    pub fn is_within(&self) -> bool {
        self.body.is_some() || self.start < self.end
    }

    /// Reads into the staging buffer, which holds less than a header. Returns false if the source
    /// would block.
    fn fill(&mut self, source: &mut impl Read) -> Result<bool, Fault> {
        if self.start > 0 {
            self.staging.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.is_drained() {
            return Ok(false);
        }
        let end =
            if self.was_large { self.staging.len().min(BEHIND_BYTES) } else { self.staging.len() };
        let room = &mut self.staging[self.end..end];
        let (room, result) = (room.len(), source.read(room));
        let Some(read) = self.settle(result, room)? else { return Ok(false) };
        self.end += read;
        Ok(true)
    }

    /// Reads into the frame, and bytes after it into the empty staging buffer. Returns false if the
    /// source would block.
    fn fill_body(&mut self, source: &mut impl Read) -> Result<bool, Fault> {
        debug_assert_eq!(self.start, self.end, "the body has taken what was there");
        (self.start, self.end) = (0, 0);
        if self.is_drained() {
            return Ok(false);
        }
        let body = self.body.as_mut().expect("the caller has seen it");
        let target = body.room();
        let wanted = target.len();
        let behind = self.staging.len().min(BEHIND_BYTES);
        let room = wanted + behind;
        let behind = IoSliceMut::new(&mut self.staging[..behind]);
        let result = source.read_vectored(&mut [IoSliceMut::new(target), behind]);
        let Some(read) = self.settle(result, room)? else { return Ok(false) };
        let direct = read.min(wanted);
        self.body.as_mut().expect("it is still there").got += direct;
        self.end = read - direct;
        Ok(true)
    }

    /// Returns true if the previous call has shown that nothing is left.
    fn is_drained(&mut self) -> bool {
        core::mem::take(&mut self.was_short)
    }

    /// Interprets the result of a call of `source` with room for `room` bytes; `None`: would block.
    fn settle(&mut self, result: io::Result<usize>, room: usize) -> Result<Option<usize>, Fault> {
        self.calls += 1;
        match result {
            Ok(0) if self.is_within() => Err(Fault::EndedWithin),
            Ok(0) => Err(Fault::Ended),
            Ok(read) => {
                self.bytes += read as u64;
                self.was_short = self.trusts_short && read < room;
                Ok(Some(read))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Some(0)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Body {
    fn new(header: Header, clear: [u8; CLEAR_BYTES], proof: Proof, mut frame: Frame) -> Self {
        frame.head.truncate(header.head_len);
        if frame.values.len() > header.values_len {
            frame.values.resize(header.values_len);
        }
        Self { packet: Incoming { header, clear, proof, frame }, got: 0 }
    }

    fn missing(&self) -> usize {
        self.packet.header.head_len + self.packet.header.values_len - self.got
    }

    /// Returns memory for the next bytes: of the head until it is complete, then of the values.
    fn room(&mut self) -> &mut [u8] {
        let Incoming { header, frame, .. } = &mut self.packet;
        if self.got < header.head_len {
            let end = header.head_len.min(self.got + GROWTH_BYTES);
            if frame.head.len() < end {
                frame.head.resize(end, 0);
            }
            return &mut frame.head[self.got..];
        }
        let got = self.got - header.head_len;
        let end = header.values_len.min(got + GROWTH_BYTES);
        if frame.values.len() < end {
            frame.values.resize(end);
        }
        &mut frame.values.bytes_mut()[got..]
    }

    /// Copies bytes of this packet out of `bytes`, and returns their number.
    fn take(&mut self, mut bytes: &[u8]) -> usize {
        let before = self.got;
        while !bytes.is_empty() && self.missing() > 0 {
            let room = self.room();
            let taken = room.len().min(bytes.len());
            room[..taken].copy_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            self.got += taken;
        }
        self.got - before
    }
}

/// Bound of all memory of a reader whose limit is below this.
const GREETING_BYTES: usize = 4 << 10;
const STAGING_BYTES: usize = 64 << 10;
const STAGING_BYTES_MIN: usize = 512;
/// Missing bytes from which on the frame is read into directly.
const DIRECT_BYTES_MIN: usize = 16 << 10;
/// Most bytes read after a large packet: the next one is usually as large, and all of it that is
/// staged is copied once more.
const BEHIND_BYTES: usize = 4 << 10;
/// Bytes by which a frame grows ahead of the received ones.
const GROWTH_BYTES: usize = 1 << 20;
