//! Two ends of a line in virtual time: whatever the line does to the bytes, frames arrive once,
//! whole and in order.

use std::time::Duration;

use adapm_core::Instant;
use adapm_core::link::{Header, Kind, Seq};
use adapm_core::transport::{CloseReason, Frame};
use serial_node::line::{End, FRAME_BYTES_MAX, Line, LineError};
use serial_node::packet::{Packet, Reader, written};

/// A generator of its own, so that a seed always means the same.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Spoils one of so many bytes.
fn spoilt(bytes: &[u8], one_of: u64, random: &mut Random) -> Vec<u8> {
    let mut arrived = Vec::new();
    for byte in bytes {
        match random.below(one_of) {
            0 => arrived.push(byte ^ (1 << random.below(8))),
            1 => {}
            2 => arrived.extend([*byte, 0, random.below(256) as u8]),
            3 => arrived.extend((0..40).map(|_| random.below(256) as u8)),
            _ => arrived.push(*byte),
        }
    }
    arrived
}

fn frame(number: u64, random: &mut Random) -> Frame {
    let mut frame = Frame { head: number.to_le_bytes().to_vec(), ..Frame::default() };
    frame.values.resize(8 * random.below(20) as usize);
    frame.values.bytes_mut().fill(number as u8);
    frame
}

/// Sends 100 frames each way over a bad line, which is sound once all are sent; both ends then say
/// goodbye.
fn exchanged(seed: u64) -> ([Line; 2], Instant) {
    let mut random = Random(seed);
    let mut lines =
        [End::Dialing, End::Answering].map(|end| Line::new(end, 7, Duration::from_secs(3_600)));
    let (mut sent, mut came) = ([0_u64; 2], [0_u64; 2]);
    let mut now = Instant::ZERO;
    while came != [100, 100] {
        now = now.plus_nanos(5_000_000);
        assert!(
            now < Instant::from_micros(3_600_000_000),
            "seed {seed}: sent {sent:?}, came {came:?}"
        );
        let is_bad = sent != [100, 100];
        for this in 0..2 {
            if sent[this] < 100 && random.below(3) == 0 {
                let taken = lines[this].send(&mut frame(sent[this], &mut Random(sent[this])));
                sent[this] += u64::from(taken.expect("the line is of use"));
            }
            let mut bytes = Vec::new();
            lines[this].poll_bytes(now, &mut bytes);
            let bytes = if is_bad { spoilt(&bytes, 1_500, &mut random) } else { bytes };
            let other = 1 - this;
            // In two parts, as no line keeps packets together.
            let (first, second) = bytes.split_at(random.below(bytes.len() as u64 + 1) as usize);
            lines[other].handle_bytes(now, first);
            lines[other].handle_bytes(now, second);
            while let Some(next) = lines[other].poll_frame() {
                assert_eq!(next, frame(came[other], &mut Random(came[other])), "seed {seed}");
                came[other] += 1;
            }
            while lines[other].poll_event().is_some() {}
            assert_eq!(lines[other].error(), None, "seed {seed}");
        }
    }
    (lines, now)
}

#[test]
fn frames_arrive_once_and_in_order_over_a_bad_line() {
    let (mut damaged, mut pipes) = (0, 0);
    for seed in 0..100 {
        for line in exchanged(seed).0 {
            damaged += line.stats().damaged;
            pipes += line.stats().pipes;
        }
    }
    println!("{damaged} damaged packets, {pipes} pipes in 100 runs");
    assert!(damaged > 300 && pipes > 300, "{damaged} damaged packets, {pipes} pipes: no bad line");
}

#[test]
fn a_packet_is_found_behind_garbage_and_no_damaged_one_is() {
    let header = Header { kind: Kind::Data, seq: Seq(300), ack: Seq(7), wants_ack: true };
    let packet = Packet::session(5, header, &[0, 1, 2, 0], &[0; 300]);
    let bytes = written(&packet);
    let found = |bytes: &[u8]| {
        let (mut whole, mut damaged) = (0, 0);
        let mut reader = Reader::new(1_000);
        for byte in bytes {
            reader.feed(*byte, |found| match found {
                Some(found) => {
                    assert_eq!(found, packet);
                    whole += 1;
                }
                None => damaged += 1,
            });
        }
        (whole, damaged)
    };
    assert_eq!(found(&bytes), (1, 0));
    assert_eq!(found(&[&b"boot loader 1.0\r\n"[..], &bytes].concat()), (1, 1));
    assert_eq!(found(&[&[9; 5_000][..], &bytes, &bytes].concat()), (2, 1));
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut hit = bytes.clone();
            hit[at] ^= 1 << bit;
            // Except for the zero before it, which a sound line does not need.
            assert!(found(&hit).0 == 0 || at == 0, "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn frames_above_the_bound_are_refused() {
    let mut line = Line::new(End::Dialing, 7, Duration::from_secs(1));
    let mut frame = Frame { head: vec![0; FRAME_BYTES_MAX + 1], ..Frame::default() };
    assert_eq!(line.send(&mut frame), Err(LineError::FrameLen { bytes: FRAME_BYTES_MAX + 1 }));
    frame.head.pop();
    assert_eq!(line.send(&mut frame), Ok(true));
}

#[test]
fn an_end_that_was_restarted_is_told() {
    let ([mut dialing, _], mut now) = exchanged(0);
    let mut fresh = Line::new(End::Answering, 7, Duration::from_secs(3_600));
    let until = now.plus_nanos(10_000_000_000);
    while dialing.error().is_none() {
        now = now.plus_nanos(50_000_000);
        let mut bytes = Vec::new();
        fresh.poll_bytes(now, &mut bytes);
        dialing.handle_bytes(now, &bytes);
        bytes.clear();
        dialing.poll_bytes(now, &mut bytes);
        fresh.handle_bytes(now, &bytes);
        assert!(now < until, "nobody notices");
    }
    assert_eq!(dialing.error(), Some(LineError::Restarted));
    assert_eq!(fresh.error(), Some(LineError::Restarted));
}

#[test]
fn a_goodbye_reaches_the_other_end() {
    let (mut lines, mut now) = exchanged(1);
    lines.iter_mut().for_each(|line| line.close(CloseReason::Finished));
    let until = now.plus_nanos(10_000_000_000);
    let mut drained = [false; 2];
    while drained != [true; 2] {
        now = now.plus_nanos(5_000_000);
        for this in 0..2 {
            let mut bytes = Vec::new();
            lines[this].poll_bytes(now, &mut bytes);
            lines[1 - this].handle_bytes(now, &bytes);
            while let Some(event) = lines[this].poll_event() {
                drained[this] |= event == adapm_core::link::Event::Drained;
            }
        }
        assert!(now < until, "drained {drained:?}");
    }
}
