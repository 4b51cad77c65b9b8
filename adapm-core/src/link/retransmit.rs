//! Retransmission buffer: numbered packets of one direction that are unacknowledged; bounded,
//! written in order, again after a resume.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use crate::link::packet::{Content, Kind, Seq};
use crate::time::Instant;
use crate::transport::Frame;

/// Packets `base..next`; those before `base + written` were written to the pipe in use.
#[derive(Debug, Default)]
pub(crate) struct RetransmitBuffer {
    base: Seq,
    items: VecDeque<Item>,
    bytes: usize,
    written: usize,
    /// Bytes of the written ones.
    under_way: usize,
    /// Memory of acknowledged frames, for the next ones.
    spares: Vec<Frame>,
}

#[derive(Debug)]
struct Item {
    kind: Kind,
    content: Content,
    /// Time when it was written to the pipe in use.
    written: Instant,
    /// Number of times that it was written, to any pipe; saturates.
    writes: u8,
}

impl Item {
    fn new(kind: Kind, content: Content) -> Self {
        Self { kind, content, written: Instant::ZERO, writes: 0 }
    }
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// Time when the last of the packets was written; `None` if that was to an earlier pipe.
    pub(crate) written: Option<Instant>,
    /// True if each of them was written once: `written` then tells the round trip.
    pub(crate) is_first: bool,
    /// Bytes of all of them.
    pub(crate) bytes: usize,
    /// Bytes of the largest of them.
    pub(crate) largest: usize,
}

/// Returns the number of packets that a frame of `bytes` bytes is cut into.
pub(crate) fn packets_of(bytes: usize, cut_bytes: usize) -> usize {
    bytes.div_ceil(cut_bytes).max(1)
}

impl RetransmitBuffer {
    /// Appends a frame, cut into packets of at most `cut_bytes`, and leaves recycled memory in
    /// `frame`.
    pub(crate) fn push(&mut self, kind: Kind, frame: &mut Frame, cut_bytes: usize) {
        let spare = self.spares.pop().unwrap_or_default();
        let frame = Arc::new(mem::replace(frame, spare));
        let len = frame.len();
        self.bytes += len;
        let mut from = 0;
        while len - from > cut_bytes {
            let content = Content::part(Arc::clone(&frame), from, from + cut_bytes);
            self.items.push_back(Item::new(Kind::Part, content));
            from += cut_bytes;
        }
        let content = Content::part(frame, from, len);
        self.items.push_back(Item::new(kind, content));
    }

    /// Returns the next packet to write to the pipe in use, and counts it as written.
    pub(crate) fn write_next(&mut self, now: Instant) -> Option<(Kind, Seq, Content)> {
        let item = self.items.get_mut(self.written)?;
        let seq = Seq(self.base.0 + self.written as u64);
        item.written = now;
        item.writes = item.writes.saturating_add(1);
        self.written += 1;
        self.under_way += weight(item.content.len());
        Some((item.kind, seq, item.content.clone()))
    }

    /// Returns the first packet once more, if it was written: the peer misses it.
    pub(crate) fn write_first_again(&mut self, now: Instant) -> Option<(Kind, Seq, Content)> {
        let item = self.items.front_mut().filter(|_| self.written > 0)?;
        item.written = now;
        item.writes = item.writes.saturating_add(1);
        Some((item.kind, self.base, item.content.clone()))
    }

    /// Forgets the packets before `ack`, which must be within `base..=next`. Returns `None` if
    /// there are none.
    pub(crate) fn acknowledge(&mut self, ack: Seq) -> Option<Acknowledged> {
        debug_assert!(
            self.base <= ack && ack <= self.next(),
            "the caller checks what is acknowledged"
        );
        let mut all: Option<Acknowledged> = None;
        while self.base < ack
            && let Some(Item { content, written, writes, .. }) = self.items.pop_front()
        {
            let bytes = content.len();
            self.base = self.base.next();
            self.bytes -= bytes;
            let was_written = self.written > 0;
            if was_written {
                self.written -= 1;
                self.under_way -= weight(bytes);
            }
            let before = all.map_or((0, 0, true), |all| (all.bytes, all.largest, all.is_first));
            all = Some(Acknowledged {
                written: was_written.then_some(written),
                is_first: before.2 && writes == 1,
                bytes: before.0 + bytes,
                largest: before.1.max(bytes),
            });
            if self.spares.len() < SPARES_MAX
                && let Some(mut frame) = content.into_memory()
            {
                frame.clear();
                self.spares.push(frame);
            }
        }
        all
    }

    /// Marks every packet as unwritten, for a new pipe.
    pub(crate) fn rewind(&mut self) {
        (self.written, self.under_way) = (0, 0);
    }

    /// Forgets everything: no peer will read it.
    pub(crate) fn discard(&mut self) {
        self.base = self.next();
        self.items.clear();
        self.spares.clear();
        (self.bytes, self.written, self.under_way) = (0, 0, 0);
    }

    /// Returns the first unacknowledged number.
    pub(crate) fn base(&self) -> Seq {
        self.base
    }

    /// Returns the number of the next packet to be pushed.
    pub(crate) fn next(&self) -> Seq {
        Seq(self.base.0 + self.items.len() as u64)
    }

    /// Returns the number of the next packet to be written.
    pub(crate) fn next_written(&self) -> Seq {
        Seq(self.base.0 + self.written as u64)
    }

    /// Returns true if every packet was written to the pipe in use.
    pub(crate) fn is_written(&self) -> bool {
        self.written == self.items.len()
    }

    pub(crate) fn packets(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes, headers included, that were written to the pipe in use and are
    /// unacknowledged.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Returns the size of the first unacknowledged packet in bytes.
    pub(crate) fn first_bytes(&self) -> usize {
        self.items.front().map_or(0, |item| item.content.len())
    }
}

/// Returns the approximate size of a packet of `bytes` bytes on a pipe.
pub(crate) fn weight(bytes: usize) -> usize {
    bytes + HEADER_BYTES
}

const SPARES_MAX: usize = 4;
/// A header and the network's overhead.
const HEADER_BYTES: usize = 64;
