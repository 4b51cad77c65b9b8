//! A message to a frame: version byte, control part in postcard, value block as it is (protocol, section 9).
//!
//! Not here: whether the message makes sense ([`crate::wire::shape`]), and how a transport delimits frames.

use alloc::vec::Vec;
use core::mem;

use postcard::ser_flavors::Flavor;

use crate::transport::Frame;
use crate::wire::message::{Body, Message};
use crate::wire::{FRAME_BYTES_MAX, PROTOCOL_VERSION};

/// Overwrites `frame` with `message`. The value block is moved, not copied; the head reuses the frame's memory.
///
/// A frame above [`FRAME_BYTES_MAX`] is refused by its receiver: whoever composes messages bounds them.
///
/// ```
/// use adapm_core::transport::Frame;
/// use adapm_core::wire::{self, Message, message::Body};
/// let mut frame = Frame::default();
/// wire::encode(Message::bare(Body::News), &mut frame);
/// assert_eq!(wire::decode(&mut frame), Ok(Message::bare(Body::News)));
/// ```
pub fn encode(message: Message, frame: &mut Frame) {
    let mut head = mem::take(&mut frame.head);
    head.clear();
    head.push(PROTOCOL_VERSION);
    frame.head = postcard::serialize_with_flavor(&*message.body, Head(head))
        .expect("a control part is made of integers, booleans and lists of known length");
    frame.values = message.values;
    debug_assert!(frame.len() <= FRAME_BYTES_MAX, "composers of messages keep within the frame bound");
}

/// Bytes of the head of a frame with this control part, without writing it.
#[must_use]
pub fn head_bytes(body: &Body) -> usize {
    let weight = postcard::serialize_with_flavor(body, Weight(0));
    1 + weight.expect("a control part is made of integers, booleans and lists of known length")
}

/// Counts what would be written.
struct Weight(usize);

impl Flavor for Weight {
    type Output = usize;

    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        self.0 += data.len();
        Ok(())
    }

    fn try_push(&mut self, _data: u8) -> postcard::Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn finalize(self) -> postcard::Result<usize> {
        Ok(self.0)
    }
}

/// Appends to memory that is reused; postcard's own flavour allocates anew.
struct Head(Vec<u8>);

impl Flavor for Head {
    type Output = Vec<u8>;

    #[inline]
    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        // Most numbers are small, and copies of few bytes cost more than the bytes.
        match *data {
            [one] => self.0.push(one),
            [one, two] => self.0.extend([one, two]),
            _ => self.0.extend_from_slice(data),
        }
        Ok(())
    }

    fn try_push(&mut self, data: u8) -> postcard::Result<()> {
        self.0.push(data);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}
