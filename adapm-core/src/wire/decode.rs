//! A frame to a message, whatever bytes it holds: no panic, and memory in proportion to the bytes received.
//!
//! The bound: a list is given room for at most one entry per byte that is left (postcard's hint) and at most 1 MiB ahead
//! of what has been read, so a decoded message takes at most a small multiple of its frame. Not here: whether the message
//! makes sense ([`crate::wire::shape`]).

use alloc::boxed::Box;
use core::mem;

use crate::error::DecodeError;
use crate::transport::Frame;
use crate::wire::message::{Body, Message};
use crate::wire::{FRAME_BYTES_MAX, PROTOCOL_VERSION};

/// The message in `frame`. The value block is moved out of it, not copied; the head's memory stays.
///
/// # Errors
/// If the frame is of another version, above [`FRAME_BYTES_MAX`], cut short, or longer than its message. The frame is then
/// unchanged.
pub fn decode(frame: &mut Frame) -> Result<Message, DecodeError> {
    let (&version, control) = frame.head.split_first().ok_or(DecodeError::Head)?;
    if version != PROTOCOL_VERSION {
        return Err(DecodeError::Version { given: version });
    }
    if frame.len() > FRAME_BYTES_MAX {
        return Err(DecodeError::TooLarge { bytes: frame.len() });
    }
    let (body, rest) = postcard::take_from_bytes::<Body>(control).map_err(|_| DecodeError::Head)?;
    if !rest.is_empty() {
        return Err(DecodeError::Trailing);
    }
    frame.head.clear();
    Ok(Message { body: Box::new(body), values: mem::take(&mut frame.values) })
}
