//! Retransmission buffer: numbered packets of one direction that are unacknowledged; bounded,
//! written in order, again after a resume, or one by one over datagrams.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use crate::link::packet::{Content, Kind, Seq};
use crate::time::Instant;
use crate::transport::Frame;

/// Packets `base..next`; those before `base + written` were written to the pipe in use. Over
/// datagrams each of these is under way, has come out of order, or is lost and to be written again.
#[derive(Debug, Default)]
pub(crate) struct RetransmitBuffer {
    base: Seq,
    items: VecDeque<Item>,
    bytes: usize,
    written: usize,
    /// Bytes of the written ones that are under way.
    under_way: usize,
    /// Number of the written ones that are lost.
    lost: usize,
    /// Number of writes so far, and the last of them that has come.
    writes: u64,
    newest: u64,
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
    /// The number of the last of these writes, among those of all packets.
    write: u64,
    fate: Fate,
}

/// The fate of a packet that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    UnderWay,
    /// It has come, and is not acknowledged.
    Received,
    Lost,
}

impl Item {
    fn new(kind: Kind, content: Content) -> Self {
        Self { kind, content, written: Instant::ZERO, writes: 0, write: 0, fate: Fate::UnderWay }
    }

    /// Returns true if it was written once, and not taken as lost.
    fn is_first(&self) -> bool {
        self.writes == 1 && self.fate == Fate::UnderWay
    }

    /// Returns the number of the write that has come; 0 if it may be an earlier one than the last,
    /// which was then after `before`.
    fn write_that_came(&self, before: Instant) -> u64 {
        if self.writes == 1 || self.written <= before { self.write } else { 0 }
    }
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// Time when the last of the packets was written; `None` if that was to an earlier pipe.
    pub(crate) written: Option<Instant>,
    /// True if each of them was under way and written once: `written` then tells the round trip.
    pub(crate) is_first: bool,
    /// Bytes of all of them.
    pub(crate) bytes: usize,
    /// Bytes of those that had not come out of order.
    pub(crate) fresh: usize,
    /// Bytes of the largest of them.
    pub(crate) largest: usize,
}

impl Acknowledged {
    /// The effect of none.
    const NONE: Self = Self { written: None, is_first: true, bytes: 0, fresh: 0, largest: 0 };
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
        let at = if self.lost > 0 {
            self.items.iter().take(self.written).position(|item| item.fate == Fate::Lost)?
        } else {
            self.written
        };
        let item = self.items.get_mut(at)?;
        self.lost = self.lost.saturating_sub(1);
        self.written = self.written.max(at + 1);
        self.writes += 1;
        (item.written, item.write, item.fate) = (now, self.writes, Fate::UnderWay);
        item.writes = item.writes.saturating_add(1);
        self.under_way += weight(item.content.len());
        Some((item.kind, Seq(self.base.0 + at as u64), item.content.clone()))
    }

    /// Notes that the peer has a packet which is not acknowledged. Returns `None` if that is known,
    /// or it was not written. `before`: as for [`RetransmitBuffer::acknowledge`].
    pub(crate) fn note_received(&mut self, seq: Seq, before: Instant) -> Option<Acknowledged> {
        let at = usize::try_from(seq.0.checked_sub(self.base.0)?).ok()?;
        let item = self.items.iter_mut().take(self.written).nth(at)?;
        let is_first = item.is_first();
        match mem::replace(&mut item.fate, Fate::Received) {
            Fate::Received => return None,
            Fate::UnderWay => self.under_way -= weight(item.content.len()),
            Fate::Lost => self.lost -= 1,
        }
        self.newest = self.newest.max(item.write_that_came(before));
        let bytes = item.content.len();
        Some(Acknowledged {
            written: Some(item.written),
            is_first,
            bytes,
            fresh: bytes,
            largest: bytes,
        })
    }

    /// Takes those packets up to number `last` as lost that were written [`OVERTAKEN`] writes
    /// before one that has come. Returns the newest of these writes.
    pub(crate) fn find_lost(&mut self, last: Seq) -> Option<u64> {
        let up_to = (last.next().0.saturating_sub(self.base.0)).min(self.written as u64) as usize;
        let mut newest = None;
        for item in self.items.iter_mut().take(up_to) {
            if item.fate == Fate::UnderWay && item.write + OVERTAKEN <= self.newest {
                item.fate = Fate::Lost;
                self.lost += 1;
                self.under_way -= weight(item.content.len());
                newest = newest.max(Some(item.write));
            }
        }
        newest
    }

    /// Takes all packets as lost that have not come, and the first one in any case: if they all
    /// have, its repeat asks for the acknowledgement.
    pub(crate) fn lose_all(&mut self) {
        (self.lost, self.under_way) = (0, 0);
        for (at, item) in self.items.iter_mut().take(self.written).enumerate() {
            if at == 0 || item.fate != Fate::Received {
                item.fate = Fate::Lost;
                self.lost += 1;
            }
        }
    }

    /// Forgets the packets before `ack`, which must be within `base..=next`. Returns `None` if
    /// there are none. A packet that was written again after `before` may have come by an earlier
    /// write.
    pub(crate) fn acknowledge(&mut self, ack: Seq, before: Instant) -> Option<Acknowledged> {
        debug_assert!(
            self.base <= ack && ack <= self.next(),
            "the caller checks what is acknowledged"
        );
        let mut all: Option<Acknowledged> = None;
        while self.base < ack
            && let Some(item) = self.items.pop_front()
        {
            let bytes = item.content.len();
            self.base = self.base.next();
            self.bytes -= bytes;
            let was_written = self.written > 0;
            let had_come = was_written && item.fate == Fate::Received;
            if was_written {
                self.written -= 1;
                match item.fate {
                    Fate::UnderWay => self.under_way -= weight(bytes),
                    Fate::Lost => self.lost -= 1,
                    Fate::Received => {}
                }
                self.newest = self.newest.max(item.write_that_came(before));
            }
            let is_first = item.is_first();
            let Item { content, written, .. } = item;
            let sum = all.unwrap_or(Acknowledged::NONE);
            all = Some(Acknowledged {
                written: was_written.then_some(written),
                is_first: sum.is_first && is_first,
                bytes: sum.bytes + bytes,
                fresh: sum.fresh + if had_come { 0 } else { bytes },
                largest: sum.largest.max(bytes),
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
        (self.written, self.under_way, self.lost) = (0, 0, 0);
    }

    /// Forgets everything: no peer will read it.
    pub(crate) fn discard(&mut self) {
        self.base = self.next();
        self.items.clear();
        self.spares.clear();
        (self.bytes, self.written, self.under_way, self.lost) = (0, 0, 0, 0);
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

    /// Returns true if every packet was written to the pipe in use, and none is lost.
    pub(crate) fn is_written(&self) -> bool {
        self.written == self.items.len() && !self.has_lost()
    }

    /// Returns true if the next packet to write is one that is lost.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Returns true if packets that were written to the pipe in use are unacknowledged.
    pub(crate) fn awaits_ack(&self) -> bool {
        self.written > 0
    }

    pub(crate) fn packets(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes, headers included, that were written to the pipe in use, are
    /// unacknowledged, and have neither come nor got lost.
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

/// Number of later writes of which one has come, after which a packet is lost: some are overtaken.
const OVERTAKEN: u64 = 3;
const SPARES_MAX: usize = 4;
/// A header and the network's overhead.
const HEADER_BYTES: usize = 64;
