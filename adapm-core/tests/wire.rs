//! Frames: every encoded message comes back, and arbitrary input bytes do no harm.

use core::mem::discriminant;

use adapm_core::error::DecodeError;
use adapm_core::transport::Frame;
use adapm_core::wire::message::{Body, Keys, Message, SyncRequest};
use adapm_core::wire::{FRAME_BYTES_MAX, PROTOCOL_VERSION, decode, encode, shape};
use adapm_core::{Block, ChannelId, Counter, Key, Layout};
use adapm_verify::arb::{Choices, Space, damage, spoil};
use proptest::prelude::*;

/// Returns a layout with keys over all of `u64`, so that key lists meet their largest gaps.
fn layout() -> Layout {
    Layout::sparse(&[(1_000, 3), (u64::MAX - 1_000, 1)]).expect("valid")
}

fn space(layout: &Layout) -> Space<'_> {
    Space { layout, nodes: 5, channel: ChannelId(1), channels: 2 }
}

fn request(deltas: Vec<Key>) -> Message {
    Message::bare(Body::SyncRequest(SyncRequest { deltas: Keys(deltas), ..SyncRequest::default() }))
}

fn there_and_back(message: &Message, frame: &mut Frame) -> Result<Message, DecodeError> {
    encode(message.clone(), frame);
    decode(frame)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_message_comes_back(seed: u64, spoiled: bool) {
        let layout = layout();
        let mut choices = Choices::from_seed(seed);
        let mut message = space(&layout).message::<f64>(&mut choices);
        prop_assert_eq!(shape::check::<f64>(&message, &layout, 5, ChannelId(1), 2), Ok(()));
        if spoiled {
            spoil(&mut message, &mut choices);
        }
        // Memory of an earlier frame must not show through.
        let mut frame = Frame { head: vec![9; 100], ..Frame::default() };
        frame.values.push(&[7.0_f64; 3]);
        prop_assert_eq!(there_and_back(&message, &mut frame), Ok(message));
        prop_assert!(frame.is_empty());
    }

    #[test]
    fn damaged_frames_give_an_error_or_a_message(seed: u64) {
        let layout = layout();
        let mut choices = Choices::from_seed(seed);
        let mut frame = Frame::default();
        encode(space(&layout).message::<f32>(&mut choices), &mut frame);
        damage(&mut frame, &mut choices);
        let before = frame.clone();
        match decode(&mut frame) {
            Err(_) => prop_assert_eq!(frame, before),
            Ok(message) => {
                let _ = shape::check::<f32>(&message, &layout, 5, ChannelId(1), 2);
                prop_assert_eq!(there_and_back(&message, &mut frame), Ok(message));
            }
        }
    }

    #[test]
    fn any_bytes_give_an_error_or_a_message(mut head: Vec<u8>, versioned: bool) {
        if versioned {
            head.insert(0, PROTOCOL_VERSION);
        }
        let mut frame = Frame { head, ..Frame::default() };
        if let Ok(message) = decode(&mut frame) {
            prop_assert_eq!(there_and_back(&message, &mut frame), Ok(message));
        }
    }

    #[test]
    fn the_generator_reads_any_bytes(bytes: Vec<u8>) {
        let layout = layout();
        let message = space(&layout).message::<i64>(&mut Choices::from_bytes(&bytes));
        prop_assert_eq!(shape::check::<i64>(&message, &layout, 5, ChannelId(1), 2), Ok(()));
    }
}

#[test]
fn the_generator_makes_every_kind_and_spoils_most() {
    let layout = layout();
    let mut kinds = Vec::new();
    let mut refused = 0;
    for seed in 0..500 {
        let mut choices = Choices::from_seed(seed);
        let mut message = space(&layout).message::<f32>(&mut choices);
        if !kinds.contains(&discriminant(&*message.body)) {
            kinds.push(discriminant(&*message.body));
        }
        spoil(&mut message, &mut choices);
        refused += usize::from(shape::check::<f32>(&message, &layout, 5, ChannelId(1), 2).is_err());
    }
    assert_eq!(kinds.len(), 11);
    assert!((250..500).contains(&refused), "{refused}");
}

#[test]
fn encoding_moves_the_values() {
    let mut message = Message::bare(Body::News);
    message.values.push(&[1.0_f32; 64]);
    let place = message.values.bytes().as_ptr();
    let mut frame = Frame::default();
    encode(message, &mut frame);
    assert_eq!(frame.values.bytes().as_ptr(), place);
    let message = decode(&mut frame).expect("a frame just encoded");
    assert_eq!(message.values.bytes().as_ptr(), place);
}

#[test]
fn neighbouring_keys_cost_a_byte_each() {
    let mut frame = Frame::default();
    encode(request((0..100).map(|i| Key(1 << 40 | i)).collect()), &mut frame);
    let mut empty = Frame::default();
    encode(request(Vec::new()), &mut empty);
    assert_eq!(frame.len() - empty.len(), 6 + 99);
}

#[test]
fn another_version_is_refused_before_anything_is_read() {
    let version = PROTOCOL_VERSION + 1;
    let mut frame = Frame { head: vec![version, 255, 255], ..Frame::default() };
    assert_eq!(decode(&mut frame), Err(DecodeError::Version { given: version }));
    assert_eq!(decode(&mut Frame::default()), Err(DecodeError::Head));
}

#[test]
fn every_cut_and_every_addition_is_refused() {
    let mut body = SyncRequest { deltas: Keys(vec![Key(1), Key(300)]), ..SyncRequest::default() };
    body.intents.push(Key(7), Counter(1 << 30));
    let mut whole = Frame::default();
    encode(Message { body: Box::new(Body::SyncRequest(body)), values: Block::new() }, &mut whole);
    for len in 1..whole.head.len() {
        let mut frame = Frame { head: whole.head[..len].to_vec(), ..Frame::default() };
        assert_eq!(decode(&mut frame), Err(DecodeError::Head), "cut to {len}");
    }
    whole.head.push(0);
    assert_eq!(decode(&mut whole), Err(DecodeError::Trailing));
}

#[test]
fn claimed_lengths_are_not_believed() {
    // Every list in turn claims 2^40 and 2^63 entries: `empty` lists before it, nothing after it.
    for claim in [
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x20][..],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1],
    ] {
        for (kind, lists) in [(0, 7), (1, 9), (2, 3), (5, 6), (6, 4), (7, 2), (8, 3)] {
            for empty in 0..lists {
                let mut head = vec![PROTOCOL_VERSION, kind];
                head.extend(core::iter::repeat_n(0, empty));
                head.extend_from_slice(claim);
                head.extend_from_slice(&[1; 20]);
                assert_eq!(decode(&mut Frame { head, ..Frame::default() }), Err(DecodeError::Head));
            }
        }
    }
}

#[test]
fn keys_above_u64_are_refused() {
    let mut frame = Frame::default();
    encode(request(vec![Key(u64::MAX)]), &mut frame);
    // Two keys instead of one, the second one past the largest key.
    assert_eq!(frame.head[2], 1);
    frame.head[2] = 2;
    let end = frame.head.len() - 7;
    assert_eq!(frame.head[end..], [0; 7], "four empty lists, two of them pairs, and a flag");
    frame.head.insert(end, 0);
    assert_eq!(decode(&mut frame), Err(DecodeError::Head));
}

#[test]
fn frames_above_the_bound_are_refused() {
    let mut frame = Frame::default();
    encode(Message::bare(Body::News), &mut frame);
    frame.values.resize(FRAME_BYTES_MAX - frame.head.len());
    assert!(decode(&mut frame.clone()).is_ok());
    frame.values.resize(frame.values.len() + 1);
    assert_eq!(decode(&mut frame), Err(DecodeError::TooLarge { bytes: FRAME_BYTES_MAX + 1 }));
}
