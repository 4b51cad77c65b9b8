//! A line with arbitrary traffic, well formed or not: it stays bounded, passes on all valid frames,
//! and fails once.
//!
//! Not here: noise between two sound ends (`noise.rs`).

use std::time::Duration;

use adapm_core::Instant;
use adapm_core::transport::{CloseReason, Frame};
use crc::{CRC_32_ISCSI, Crc};
use serial_node::line::{End, FRAME_BYTES_MAX, Line, LineError, PACKET_BYTES};
use serial_node::packet::{Packet, Reader, written};

/// A generator of its own, so that a seed always means the same.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn bytes(&mut self, len: u64) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

/// Packets of one stranger.
const WORDS: u64 = 60;

/// Maximum bytes written by one poll: the window, its framing, and a packet or two.
const WRITTEN_MAX: usize = 2 * FRAME_BYTES_MAX + FRAME_BYTES_MAX / 8 + 32 * 40;

/// Returns a packet of a stranger to an end that has agreed on `pipe` and expects the frame `next`.
fn word(pipe: u32, next: u64, random: &mut Random) -> Vec<u8> {
    let pipe = if random.below(8) == 0 { random.below(4) as u32 } else { pipe };
    // Terms are mostly right, as others lead nowhere.
    let terms = if random.below(60) == 0 { 8 } else { 7 };
    let small = [0, 0, 1, 2, 1 << 40][random.below(5) as usize];
    let expects = if random.below(20) == 0 { small } else { 0 };
    match random.below(24) {
        0 | 1 => written(&Packet::Hello { pipe, expects, terms }),
        2 | 3 => written(&Packet::Welcome { pipe, expects, terms }),
        4 => written(&Packet::Call),
        5 => random.bytes(40),
        6 => signed(random),
        7 => written(&Packet::Session {
            pipe,
            kind: 1,
            seq: next,
            ack: 0,
            wants_ack: random.below(2) == 0,
            head: &[random.below(4) as u8],
            values: &[],
        }),
        8 => {
            // No part of a frame: it would begin the next one.
            let (kind, seq) = ([0, 1, 2, 3, 5, 6][random.below(6) as usize], next + small);
            let (wants_ack, head) = (false, &seq.to_le_bytes()[..]);
            written(&Packet::Session { pipe, kind, seq, ack: small, wants_ack, head, values: &[] })
        }
        _ => {
            let len = if random.below(20) == 0 { PACKET_BYTES as u64 } else { random.below(40) };
            let (values, seq) = (random.bytes(len), next);
            let head = &seq.to_le_bytes();
            let wants_ack = random.below(8) == 0;
            written(&Packet::Session {
                pipe,
                kind: 0,
                seq,
                ack: 0,
                wants_ack,
                head,
                values: &values,
            })
        }
    }
}

/// Returns noise with a right checksum.
fn signed(random: &mut Random) -> Vec<u8> {
    let len = random.below(12);
    let mut bytes = random.bytes(len);
    if let Some(first) = bytes.first_mut() {
        *first %= 5;
    }
    bytes.extend_from_slice(&Crc::<u32>::new(&CRC_32_ISCSI).checksum(&bytes).to_le_bytes());
    let mut line = vec![0; cobs::max_encoding_length(bytes.len()) + 1];
    cobs::encode(&bytes, &mut line);
    line
}

/// Checks that the end writes sound packets, of a bounded length, and updates the pipe.
fn heard(line: &mut Line, now: Instant, pipe: &mut u32) {
    let mut bytes = Vec::new();
    line.poll_bytes(now, &mut bytes);
    assert!(bytes.len() <= WRITTEN_MAX, "{} bytes at once", bytes.len());
    let mut reader = Reader::new(2 * FRAME_BYTES_MAX);
    for byte in bytes {
        reader.feed(byte, |packet| match packet.expect("what an end writes is sound") {
            Packet::Hello { pipe: new, .. } | Packet::Welcome { pipe: new, .. } => *pipe = new,
            _ => {}
        });
    }
}

/// The progress of strangers.
#[derive(Default, Debug)]
struct Reached {
    pipes: u64,
    damaged: u64,
    frames: u64,
    terms: u64,
    restarted: u64,
    misbehaved: u64,
    left: u64,
}

/// Lets the stranger of `seed` send to an end.
fn listen(end: End, seed: u64, reached: &mut Reached) {
    let mut random = Random(seed);
    let mut line = Line::new(end, 7, Duration::from_secs(3_600));
    let (mut now, mut pipe, mut came) = (Instant::ZERO, 0, 0);
    let mut failed: Option<LineError> = None;
    for _ in 0..WORDS {
        now = now.plus_nanos(random.below(300_000_000));
        heard(&mut line, now, &mut pipe);
        match random.below(8) {
            0 => drop(line.send(&mut Frame { head: random.bytes(20), ..Frame::default() })),
            1 if random.below(8) == 0 => line.close(CloseReason::Finished),
            _ => {}
        }
        line.handle_bytes(now, &word(pipe, came, &mut random));
        while let Some(frame) = line.poll_frame() {
            assert_eq!(failed, None, "seed {seed}: a frame behind the failure");
            assert_eq!(
                frame.head,
                u64::to_le_bytes(came),
                "seed {seed}: frames come once and in order"
            );
            came += 1;
        }
        while let Some(event) = line.poll_event() {
            reached.left += u64::from(matches!(event, adapm_core::link::Event::Left(_)));
        }
        assert!(
            failed.is_none() || line.error() == failed,
            "seed {seed}: {failed:?} became {:?}",
            line.error()
        );
        failed = line.error();
        let mut frame = Frame::default();
        assert!(
            failed.is_none() || line.send(&mut frame).is_err(),
            "seed {seed}: sends on a failed line"
        );
        heard(&mut line, now, &mut pipe);
        assert!(
            line.deadline().is_none_or(|at| at > now),
            "seed {seed}: a deadline that has passed is none"
        );
    }
    reached.pipes += line.stats().pipes;
    reached.damaged += line.stats().damaged;
    reached.frames += came;
    match failed {
        Some(LineError::Terms { .. }) => reached.terms += 1,
        Some(LineError::Restarted) => reached.restarted += 1,
        Some(LineError::Misbehaved(_)) => reached.misbehaved += 1,
        _ => {}
    }
}

#[test]
fn whatever_is_said_an_end_stays_bounded_and_fails_once() {
    let mut reached = Reached::default();
    for seed in 0..1_500 {
        listen(End::Dialing, seed, &mut reached);
        listen(End::Answering, seed, &mut reached);
    }
    println!("{reached:?}");
    let Reached { pipes, damaged, frames, terms, restarted, misbehaved, left } = reached;
    let least = [pipes, damaged, frames, terms, restarted, misbehaved, left].into_iter().min();
    assert!(least > Some(100), "strangers get nowhere");
}
