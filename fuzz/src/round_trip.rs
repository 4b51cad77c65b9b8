//! Target `round_trip`: any message, sound or spoiled, encodes to a frame that decodes to the same
//! message, for any earlier content of the frame and any alignment of the bytes on the way
//! (protocol, "Messages").
//!
//! The input makes up messages one after the other. All of them go through the same two frames, so
//! that the memory of one meets the next, and cross as plain bytes at an offset of their own, as
//! out of the buffer of a socket. Not here: bytes that were never encoded (target `decode`).

use adapm_core::Value;
use adapm_core::transport::Frame;
use adapm_core::wire::{self, Message, shape};
use adapm_core::{ChannelId, Layout};
use adapm_verify::arb::{self, Choices, Space};

/// Maximum number of messages in one input.
const MESSAGES_MAX: usize = 16;

/// Sends the messages that `bytes` choose to and fro. Returns true if one had a value.
pub fn round_trip(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    let layouts =
        [Layout::dense(&[(40, 1), (9, 3)]), Layout::sparse(&[(1_000, 3), (u64::MAX - 1_000, 1)])];
    let layouts = layouts.map(|layout| layout.expect("the layout is legal"));
    let (mut there, mut here) = (Frame::default(), Frame::default());
    let mut has_value = false;
    for _ in 0..MESSAGES_MAX {
        if choices.is_exhausted() {
            break;
        }
        let layout = &layouts[choices.below(2) as usize];
        let channels = 1 + choices.below(3) as usize;
        let channel = ChannelId(choices.below(channels as u64) as u16);
        let space = Space { layout, nodes: 1 + choices.below(5) as usize, channel, channels };
        has_value |= match choices.below(3) {
            0 => cross::<f32>(&space, &mut choices, &mut there, &mut here),
            1 => cross::<f64>(&space, &mut choices, &mut there, &mut here),
            _ => cross::<i64>(&space, &mut choices, &mut there, &mut here),
        };
    }
    has_value
}

/// Makes a message up and sends it. Returns true if it had a value.
fn cross<V: Value>(
    space: &Space<'_>,
    choices: &mut Choices<'_>,
    there: &mut Frame,
    here: &mut Frame,
) -> bool {
    let mut message = space.message::<V>(choices);
    if choices.flag() {
        arb::spoil(&mut message, choices);
    }
    let check = |message: &Message| {
        let Space { layout, nodes, channel, channels } = *space;
        shape::check::<V>(message, layout, nodes, channel, channels)
    };
    let verdict = check(&message);
    litter(there, choices);
    wire::encode(message.clone(), there);
    carry(there, here, choices.below(16) as usize);
    let again = wire::decode(here).expect("what was encoded is decoded");
    assert_eq!(again, message, "a message survives its way");
    assert_eq!(check(&again), verdict, "a message fits its receiver as it fits its sender");
    assert!(here.is_empty(), "the content of the frame has moved into the message");
    if let (Some(len), true) = (again.values.len_as::<V>(), verdict.is_ok()) {
        assert_eq!(again.values.values::<V>().len(), len, "the block can be read as what it holds");
    }
    // The receiver gives the memory of the values back, as drivers do.
    here.values = again.values;
    !here.values.is_empty()
}

/// Leaves content in a frame that must not show in the next message.
fn litter(frame: &mut Frame, choices: &mut Choices<'_>) {
    match choices.below(4) {
        0 => frame.clear(),
        1 => frame.head.resize(choices.below(256) as usize, 0xa5),
        2 => {
            frame.values.resize(choices.below(256) as usize);
            frame.values.bytes_mut().fill(0xa5);
        }
        _ => {}
    }
}

/// Copies `from` over `to` through a buffer in which it begins at `offset`.
fn carry(from: &Frame, to: &mut Frame, offset: usize) {
    let mut buffer = vec![0x5a; offset];
    buffer.extend_from_slice(&from.head);
    buffer.extend_from_slice(from.values.bytes());
    let (head, values) = buffer[offset..].split_at(from.head.len());
    to.head.clear();
    to.head.extend_from_slice(head);
    to.values.resize(values.len());
    to.values.bytes_mut().copy_from_slice(values);
}
