//! Target `decode`: any bytes through the wire decoder give an error or a message; a message
//! encodes to a frame that decodes to the same message, and measuring it against a layout ends
//! (protocol, "What must hold", invariant 11).
//!
//! Bytes need not survive re-encoding, as postcard also reads integers of excess length; bytes
//! encoded by this code do. Not here: the engine's handling of the message.

use adapm_core::transport::Frame;
use adapm_core::wire::{self, Message, shape};
use adapm_core::{ChannelId, Layout};

/// An input with this bit in its first byte brings its own version byte.
const RAW: u8 = 1;

/// Decodes `[flags, values_len, head.., values..]`. Returns true if the result is a message.
pub fn decode(bytes: &[u8]) -> bool {
    let Some(mut frame) = frame(bytes) else { return false };
    let (head, values) = (frame.head.clone(), frame.values.clone());
    let message = match wire::decode(&mut frame) {
        Ok(message) => message,
        Err(error) => {
            assert_eq!(
                (&frame.head, &frame.values),
                (&head, &values),
                "a frame is unchanged on {error}"
            );
            return false;
        }
    };
    assert_eq!(message.values, values, "the value block is handed through");
    measure(&message);
    let mut again = encoded(&message);
    let head_again = again.head.clone();
    assert!(head_again.len() <= head.len(), "nothing writes a message shorter than its encoder");
    let same = wire::decode(&mut again).expect("what was encoded is decoded");
    assert_eq!(same, message, "encoding and decoding give the same message");
    assert_eq!(encoded(&same).head, head_again, "what was encoded comes back byte for byte");
    true
}

/// Returns the frame that an input stands for.
fn frame(bytes: &[u8]) -> Option<Frame> {
    let (&[flags, values_len], rest) = bytes.split_first_chunk::<2>()?;
    let (head, values) = rest.split_at(rest.len().saturating_sub(usize::from(values_len)));
    let mut frame = Frame::default();
    if flags & RAW == 0 {
        frame.head.push(wire::PROTOCOL_VERSION);
    }
    frame.head.extend_from_slice(head);
    frame.values.resize(values.len());
    frame.values.bytes_mut().copy_from_slice(values);
    Some(frame)
}

fn encoded(message: &Message) -> Frame {
    let mut frame = Frame::default();
    wire::encode(message.clone(), &mut frame);
    frame
}

/// Measures the message against layouts that fit most, some and none of its keys.
fn measure(message: &Message) {
    let layouts =
        [Layout::dense(&[(1_000, 2)]), Layout::sparse(&[(u64::MAX, 1)]), Layout::dense(&[(1, 1)])];
    for layout in layouts {
        let layout = layout.expect("the layout is legal");
        for (nodes, channels) in [(3, 1), (1, 4)] {
            // An error is as good as none: only termination matters.
            let _ = shape::check::<f32>(message, &layout, nodes, ChannelId(0), channels);
            let _ = shape::check::<i64>(message, &layout, nodes, ChannelId(0), channels);
        }
    }
}
