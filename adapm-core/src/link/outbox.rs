//! The numbered packets of one direction that the peer has not acknowledged: bounded, written in order, again after a resume.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use crate::link::header::{Kind, Seq};
use crate::transport::Frame;

/// Packets `base..next`; those before `base + written` were written to the pipe in use.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    base: Seq,
    items: VecDeque<(Kind, Arc<Frame>)>,
    bytes: usize,
    written: usize,
    /// Memory of acknowledged frames, for the next ones.
    spares: Vec<Frame>,
}

impl Outbox {
    /// Appends a packet and leaves recycled memory in `frame`.
    pub(crate) fn push(&mut self, kind: Kind, frame: &mut Frame) {
        let spare = self.spares.pop().unwrap_or_default();
        let frame = mem::replace(frame, spare);
        self.bytes += frame.len();
        self.items.push_back((kind, Arc::new(frame)));
    }

    /// The next packet to write to the pipe in use, which then counts as written.
    pub(crate) fn write_next(&mut self) -> Option<(Kind, Seq, Arc<Frame>)> {
        let (kind, frame) = self.items.get(self.written)?;
        let seq = Seq(self.base.0 + self.written as u64);
        self.written += 1;
        Some((*kind, seq, Arc::clone(frame)))
    }

    /// Forgets the packets before `ack`, which must be within `base..=next`.
    pub(crate) fn acknowledge(&mut self, ack: Seq) {
        debug_assert!(self.base <= ack && ack <= self.next(), "the caller checks what is acknowledged");
        while self.base < ack {
            let Some((_, frame)) = self.items.pop_front() else { return };
            self.base = self.base.next();
            self.written = self.written.saturating_sub(1);
            self.bytes -= frame.len();
            if self.spares.len() < SPARES_MAX
                && let Ok(mut frame) = Arc::try_unwrap(frame)
            {
                frame.clear();
                self.spares.push(frame);
            }
        }
    }

    /// Takes every packet as not written: the pipe is a new one.
    pub(crate) fn rewind(&mut self) {
        self.written = 0;
    }

    /// Forgets everything: nobody will read it.
    pub(crate) fn discard(&mut self) {
        self.base = self.next();
        self.items.clear();
        self.spares.clear();
        (self.bytes, self.written) = (0, 0);
    }

    /// The first number that is kept.
    pub(crate) fn base(&self) -> Seq {
        self.base
    }

    /// The number of the next packet that is pushed.
    pub(crate) fn next(&self) -> Seq {
        Seq(self.base.0 + self.items.len() as u64)
    }

    /// Whether every packet was written to the pipe in use.
    pub(crate) fn is_written(&self) -> bool {
        self.written == self.items.len()
    }

    pub(crate) fn frames(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

const SPARES_MAX: usize = 4;
