//! Packets against any split of the stream, flipped bits, false claims, and pipes that block or end
//! at any byte.

use std::io::{self, IoSlice, Write};
use std::sync::Arc;

use adapm_core::link::{self, Seq};
use adapm_core::transport::Frame;
use proptest::prelude::*;

use super::*;
use crate::testing::Pieces;

const LIMIT: usize = 4 << 20;

/// A sink that takes bytes in pieces, like [`Pieces`].
struct Sink {
    bytes: Vec<u8>,
    cuts: Vec<usize>,
    turn: usize,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let cut = self.cuts[self.turn % self.cuts.len()];
        self.turn += 1;
        let taken: Vec<u8> =
            slices.iter().flat_map(|slice| slice.iter().copied()).take(cut).collect();
        self.bytes.extend_from_slice(&taken);
        if taken.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn frame(head: usize, values: usize, seed: u8) -> Frame {
    let mut frame =
        Frame { head: (0..head).map(|at| at as u8 ^ seed).collect(), ..Frame::default() };
    frame.values.resize(values);
    frame
        .values
        .bytes_mut()
        .iter_mut()
        .enumerate()
        .for_each(|(at, byte)| *byte = (at / 3) as u8 ^ seed);
    frame
}

fn packet(number: u64, head: usize, values: usize) -> Packet {
    let kind = match number % 4 {
        0 => Kind::Greeting(Greeting::Open),
        1 => Kind::Link(link::Kind::Bye),
        2 => Kind::Link(link::Kind::Part),
        _ => Kind::Link(link::Kind::Data),
    };
    let wants_ack = number % 8 == 6;
    let frame = frame(head, values, number as u8);
    Packet { kind, seq: Seq(number), ack: Seq(number << 40), wants_ack, frame }
}

fn draft(packet: &Packet) -> Draft {
    let Packet { seq, ack, wants_ack, .. } = *packet;
    match packet.kind {
        Kind::Link(kind) => {
            let content = link::Content::whole(Arc::new(packet.frame.clone()));
            Draft::link(link::Header { kind, seq, ack, wants_ack }, Some(content))
        }
        kind => Draft::new(kind, seq, ack, packet.frame.clone()),
    }
}

fn outgoing(packet: &Packet) -> Outgoing {
    draft(packet).check()
}

/// Seals every third packet, by a stand-in.
fn mixed(packet: &Packet) -> Outgoing {
    if !packet.seq.0.is_multiple_of(3) {
        return outgoing(packet);
    }
    draft(packet).seal(|_, head, values| {
        head.iter_mut().chain(values).for_each(|byte| *byte ^= 0x55);
        [[1; TAG_BYTES], [2; TAG_BYTES]]
    })
}

/// Returns a packet as a reader yields it.
fn incoming(packet: &Outgoing) -> Incoming {
    let [header, head, values] = packet.parts();
    let mut frame = Frame { head: head.to_vec(), ..Frame::default() };
    frame.values.push_bytes(values);
    Incoming::of_parts(header, frame, LIMIT).expect("a sound packet")
}

fn wire(packets: &[Packet]) -> Vec<u8> {
    packets.iter().flat_map(|packet| outgoing(packet).parts().concat()).collect()
}

/// Reads until the fault at the end; the source may block at most `patience` times.
fn read_all(
    reader: &mut PacketReader,
    source: &mut Pieces<'_>,
    patience: usize,
) -> (Vec<Incoming>, Fault) {
    let (mut spares, mut packets) = (Spares::default(), Vec::new());
    for _ in 0..patience {
        match reader.read(source, &mut spares) {
            Ok(Some(packet)) => {
                spares.keep(packet.frame.clone());
                packets.push(packet);
            }
            Ok(None) => {}
            Err(fault) => return (packets, fault),
        }
    }
    panic!("the reader neither reads on nor ends");
}

/// Reads like [`read_all`], and checks that all packets are as they were sent.
fn read_checked(reader: &mut PacketReader, source: &mut Pieces<'_>) -> (Vec<Packet>, Fault) {
    let (packets, fault) = read_all(reader, source, 200);
    match packets.into_iter().map(Incoming::check).collect() {
        Ok(packets) => (packets, fault),
        Err(fault) => (Vec::new(), fault),
    }
}

fn whole(bytes: &[u8]) -> Pieces<'_> {
    Pieces::ending(bytes, vec![usize::MAX])
}

fn sizes() -> impl Strategy<Value = (usize, usize)> {
    prop_oneof![
        4 => (0_usize..200, 0_usize..600),
        1 => (0_usize..80_000, 0_usize..100),
        1 => (0_usize..100, 0_usize..300_000),
        1 => (Just(3), Just(3 << 20)),
    ]
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    let cut = prop_oneof![2 => Just(0_usize), 3 => 1_usize..40, 3 => 1_usize..5_000, 3 => 1_usize..300_000];
    // At least one piece is not empty, else nothing ever arrives.
    (prop::collection::vec(cut, 0..12), 100_usize..200_000).prop_map(|(mut cuts, last)| {
        cuts.push(last);
        cuts
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_of_the_stream_gives_the_same_packets(
        sizes in prop::collection::vec(sizes(), 1..8),
        cuts in cuts(),
        trusts in any::<bool>(),
    ) {
        let packets: Vec<Packet> = sizes.iter().enumerate().map(|(at, (head, values))| packet(at as u64, *head, *values)).collect();
        let packets: Vec<Outgoing> = packets.iter().map(mixed).collect();
        let bytes: Vec<u8> = packets.iter().flat_map(|packet| packet.parts().concat()).collect();
        let mut reader = PacketReader::new(LIMIT);
        reader.trust_short(trusts);
        let mut source = Pieces::ending(&bytes, cuts);
        let (read, fault) = read_all(&mut reader, &mut source, 2_000_000);
        prop_assert!(read == packets.iter().map(incoming).collect::<Vec<_>>());
        prop_assert_eq!(fault, Fault::Ended);
        prop_assert_eq!(reader.bytes(), bytes.len() as u64);
    }

    #[test]
    fn any_split_of_writing_gives_the_same_bytes(
        sizes in prop::collection::vec(sizes(), 1..60),
        cuts in cuts(),
    ) {
        let packets: Vec<Packet> = sizes.iter().enumerate().map(|(at, (head, values))| packet(at as u64, *head, *values % 9_000)).collect();
        let mut sink = Sink { bytes: Vec::new(), cuts, turn: 0 };
        let mut writer = PacketWriter::default();
        let mut turns = 0;
        for packet in &packets {
            writer.push(mixed(packet));
            writer.write(&mut sink)?;
        }
        while !writer.write(&mut sink)? {
            turns += 1;
            prop_assert!(turns < 2_000_000, "the writer does not end");
        }
        prop_assert_eq!((writer.packets(), writer.bytes()), (0, 0));
        prop_assert!(sink.bytes == packets.iter().flat_map(|packet| mixed(packet).parts().concat()).collect::<Vec<_>>());
    }

    #[test]
    fn a_flipped_bit_is_an_error(head in 0_usize..60, values in 0_usize..90, at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let packets = [packet(2, head, values), packet(3, 1, 1)];
        let mut bytes = outgoing(&packets[0]).parts().concat();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        bytes.extend(wire(&packets[1..]));
        let (read, fault) = read_checked(&mut PacketReader::new(LIMIT), &mut whole(&bytes));
        prop_assert!(read.is_empty(), "{read:?} of a corrupt packet, flipped at {at}");
        prop_assert!(fault != Fault::Ended);
    }

    #[test]
    fn a_flipped_bit_of_a_header_is_an_error_before_anything_is_waited_for(at in 0..CLEAR_BYTES, bit in 0_u8..8) {
        let mut bytes = outgoing(&packet(2, 3 << 10, 2 << 20)).parts()[0][..CLEAR_BYTES].to_vec();
        bytes[at] ^= 1 << bit;
        let mut source = Pieces::blocking(&bytes, vec![usize::MAX]);
        let read = PacketReader::new(LIMIT).read(&mut source, &mut Spares::default());
        let expected = match at {
            0 | 1 => Fault::Magic,
            3 => Fault::Version { theirs: bytes[3] },
            _ => Fault::Checksum,
        };
        prop_assert_eq!(read, Err(expected));
    }

    #[test]
    fn garbage_is_an_error_without_growth(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut reader = PacketReader::new(1 << 10);
        let (read, _) = read_checked(&mut reader, &mut whole(&bytes));
        prop_assert!(read.is_empty());
    }
}

#[test]
fn a_claim_above_the_limit_is_refused_before_it_costs_anything() {
    let mut bytes = outgoing(&packet(2, 4, 4)).parts().concat();
    bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    finish((&mut bytes[..CLEAR_BYTES]).try_into().expect("a header"));
    let mut spares = Spares::default();
    spares.keep(frame(10, 0, 0));
    let fault = PacketReader::new(LIMIT).read(&mut whole(&bytes), &mut spares);
    assert_eq!(fault, Err(Fault::Oversize { bytes: u64::from(u32::MAX) + 4, limit: LIMIT }));
    assert!(spares.take().head.capacity() > 0, "no memory was taken");
}

#[test]
fn a_claim_within_the_limit_allocates_what_arrives_and_a_step_more() {
    let sent = packet(2, 10, LIMIT - 10);
    let bytes = &wire(&[sent])[..HEADER_BYTES + 10 + 100_000];
    let mut reader = PacketReader::new(LIMIT);
    let mut source = Pieces::blocking(bytes, vec![50_000]);
    while !source.is_used_up() {
        assert_eq!(reader.read(&mut source, &mut Spares::default()), Ok(None));
    }
    assert!(reader.is_within());
    let text = format!("{reader:?}");
    let held: usize = text
        .split("Block(")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .and_then(|len| len.parse().ok())
        .expect("a block");
    assert!(
        (100_000..=(1 << 20) + 100_000).contains(&held),
        "{held} bytes held for 100,000 that came"
    );
}

#[test]
fn an_end_within_a_packet_is_told_from_one_between_two() {
    let bytes = wire(&[packet(2, 5, 5)]);
    for len in 0..=bytes.len() {
        let (read, fault) = read_all(&mut PacketReader::new(LIMIT), &mut whole(&bytes[..len]), 100);
        let expected =
            if len == 0 || len == bytes.len() { Fault::Ended } else { Fault::EndedWithin };
        assert_eq!(
            (read.len(), fault),
            (usize::from(len == bytes.len()), expected),
            "cut at {len}"
        );
    }
}

#[test]
fn another_version_is_named() {
    let mut bytes = wire(&[packet(0, 5, 0)]);
    bytes[3] = 9;
    let (_, fault) = read_all(&mut PacketReader::new(LIMIT), &mut whole(&bytes), 100);
    assert_eq!(fault, Fault::Version { theirs: 9 });
}

#[test]
fn parts_of_a_message_are_checked_like_a_stream() {
    let sent = packet(2, 5, 9);
    let packet = outgoing(&sent);
    let [header, head, values] = packet.parts();
    let of_parts = |header: &[u8], frame: Frame| Incoming::of_parts(header, frame, LIMIT);
    assert_eq!(of_parts(header, sent.frame.clone()).and_then(Incoming::check).as_ref(), Ok(&sent));
    assert_eq!((head, values), (&sent.frame.head[..], sent.frame.values.bytes()));
    assert_eq!(of_parts(&header[1..], sent.frame.clone()), Err(Fault::Magic));
    assert_eq!(of_parts(&header[..HEADER_BYTES - 1], sent.frame.clone()), Err(Fault::Magic));
    assert_eq!(of_parts(header, frame(5, 8, 2)), Err(Fault::EndedWithin));
    assert_eq!(of_parts(header, frame(5, 9, 3)).and_then(Incoming::check), Err(Fault::Checksum));
}

#[test]
fn a_sealed_packet_is_not_believed_for_a_checksum() {
    let sealed = mixed(&packet(3, 5, 9));
    assert_eq!(sealed.parts()[0].len(), SEALED_HEADER_BYTES);
    assert_eq!(incoming(&sealed).check(), Err(Fault::Unopened));
}

#[test]
fn small_packets_come_many_in_a_call_and_large_values_are_not_staged() {
    let small: Vec<Packet> = (0..100).map(|number| packet(number, 20, 30)).collect();
    let bytes = wire(&small);
    let mut reader = PacketReader::new(LIMIT);
    assert_eq!(read_all(&mut reader, &mut whole(&bytes), 200).0.len(), 100);
    assert_eq!(reader.calls(), 2, "one for all packets, one for the end");
    let bytes = wire(&[packet(2, 20, 1 << 20), packet(3, 20, 40)]);
    let mut reader = PacketReader::new(LIMIT);
    assert_eq!(read_all(&mut reader, &mut whole(&bytes), 200).0.len(), 2);
    assert!(reader.calls() <= 4, "{} calls for a large packet and a small one", reader.calls());
}

#[test]
fn spares_are_bounded() {
    let mut spares = Spares::default();
    for _ in 0..100 {
        spares.keep(frame(1, 6 << 20, 0));
    }
    let kept = (0..100).filter(|_| !spares.take().values.is_empty()).count();
    assert_eq!(kept, 5, "32 MiB in all");
    spares.keep(Frame::default());
    assert_eq!(spares.take().head.capacity(), 0);
}

#[test]
fn news_counts_more_than_a_short_call_before_it() {
    let packets: Vec<Packet> = (0..3).map(|number| packet(number, 20, 30)).collect();
    let (first, last) = (wire(&packets[..2]), wire(&packets[2..]));
    let (mut reader, mut spares) = (PacketReader::new(LIMIT), Spares::default());
    reader.trust_short(true);
    let mut source = Pieces::blocking(&first, vec![usize::MAX]);
    assert_eq!(reader.read(&mut source, &mut spares), Ok(Some(incoming(&outgoing(&packets[0])))));
    // The source announces the last packet while the second one waits to be taken.
    reader.hear_news();
    source = Pieces::blocking(&last, vec![usize::MAX]);
    for expected in [Some(&packets[1]), Some(&packets[2]), None] {
        let expected = expected.map(|packet| incoming(&outgoing(packet)));
        assert_eq!(reader.read(&mut source, &mut spares), Ok(expected));
    }
}
