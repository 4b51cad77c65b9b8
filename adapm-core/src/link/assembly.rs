//! Parts of a frame that have come, until the last one has.

use core::mem;

use crate::link::error::LinkError;
use crate::transport::Frame;
use crate::wire::FRAME_BYTES_MAX;

/// The frame that the peer is sending in parts. Memory: what has come of it, at most [`FRAME_BYTES_MAX`] bytes, and as much
/// as the frame before had, as the next one is taken to be as long.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    frame: Frame,
    /// Bytes of values of the frame before.
    before: usize,
}

impl Assembly {
    /// Whether no part of a frame has come that is not whole.
    pub(crate) fn is_empty(&self) -> bool {
        self.frame.is_empty()
    }

    /// Whether `part` can come next.
    ///
    /// # Errors
    /// If it is empty, or makes the frame longer than frames are.
    pub(crate) fn check(&self, part: &Frame) -> Result<(), LinkError> {
        let bytes = self.frame.len() + part.len();
        if part.is_empty() || bytes > FRAME_BYTES_MAX { Err(LinkError::Part { bytes }) } else { Ok(()) }
    }

    /// Appends a part.
    pub(crate) fn append(&mut self, part: &Frame) {
        if self.frame.values.is_empty() && !part.values.is_empty() {
            self.frame.values.reserve(self.before);
        }
        self.frame.head.extend_from_slice(&part.head);
        self.frame.values.push_bytes(part.values.bytes());
    }

    /// Appends the last part and hands the frame to `whole`, whose memory is used for the next one.
    pub(crate) fn finish(&mut self, part: &Frame, whole: &mut Frame) {
        self.append(part);
        self.before = self.frame.values.len();
        mem::swap(&mut self.frame, whole);
        self.frame.clear();
    }

    /// Forgets what has come.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
