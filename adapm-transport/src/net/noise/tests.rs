//! Known answers of the pattern, frozen packets, and packets altered on the way.

use adapm_core::link::{self, Seq};
use adapm_core::transport::Frame;
use proptest::prelude::*;
use snow::Builder;

use super::handshake::PATTERN;
use super::primitives::Primitives;
use super::*;
use crate::net::packet::{Draft, Fault, Incoming, Kind, Outgoing, Packet, SEALED_HEADER_BYTES};
use crate::testing::token;

const LIMIT: usize = 1 << 20;

fn channels() -> (Channel, Channel) {
    let (forth, back) = ([1; 32], [2; 32]);
    (Channel::sealed(&forth, &back), Channel::sealed(&back, &forth))
}

fn draft(number: u64, head: usize, values: usize) -> Draft {
    let mut frame = Frame { head: (0..head).map(|at| at as u8).collect(), ..Frame::default() };
    frame.values.resize(values);
    frame.values.bytes_mut().iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8 ^ 0xff);
    Draft::new(Kind::Link(link::Kind::Data), Seq(number), Seq(7), frame)
}

/// Returns the packet that arrives with this header, head and values.
fn arrived(parts: [&[u8]; 3]) -> Result<Incoming, Fault> {
    let [header, head, values] = parts;
    let mut frame = Frame { head: head.to_vec(), ..Frame::default() };
    frame.values.push_bytes(values);
    Incoming::of_parts(header, frame, LIMIT)
}

fn untouched(packet: &Outgoing) -> Incoming {
    arrived(packet.parts()).expect("a sound packet")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn key(hex: &str) -> [u8; 32] {
    bytes(hex).try_into().expect("32 bytes")
}

/// The test vector of the pattern from cacophony, the reference implementation in Haskell.
#[test]
fn the_pattern_gives_the_known_answers() {
    let psk = key("54686973206973206d7920417573747269616e20706572737065637469766521");
    let prologue = bytes("4a6f686e2047616c74");
    let side = |ephemeral: &str| {
        let primitives = Box::new(Primitives(key(ephemeral)));
        let builder = Builder::with_resolver(PATTERN.parse().expect("a pattern"), primitives);
        builder.prologue(&prologue).and_then(|builder| builder.psk(0, &psk)).expect("both fit")
    };
    let dialer = side("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a");
    let listener = side("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b");
    let mut dialer = dialer.build_initiator().expect("whole");
    let mut listener = listener.build_responder().expect("whole");
    let (mut buffer, mut heard) = ([0; 200], [0; 200]);

    let len = dialer.write_message(b"Ludwig von Mises", &mut buffer).expect("it fits");
    assert_eq!(
        hex(&buffer[..len]),
        "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79447c37a89fc17813788d30df2d59501d6066f5f8aecc3406bb\
         d9829f2d24a531b1"
    );
    let len = listener.read_message(&buffer[..len], &mut heard).expect("it is sound");
    assert_eq!(&heard[..len], b"Ludwig von Mises");
    let len = listener.write_message(b"Murray Rothbard", &mut buffer).expect("it fits");
    assert_eq!(
        hex(&buffer[..len]),
        "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088432f29d79368ef9de4e1ae7a362fb05bf0ad668e026bf57145\
         54497b3a720461"
    );
    let len = dialer.read_message(&buffer[..len], &mut heard).expect("it is sound");
    assert_eq!(&heard[..len], b"Murray Rothbard");
    let hash = "9f3b1f9afd7767767b5b9d1069844a6154fdbdcc36dfb3e31c0fffc5c973d530";
    assert_eq!(
        (hex(dialer.get_handshake_hash()).as_str(), hex(listener.get_handshake_hash()).as_str()),
        (hash, hash)
    );

    // The messages after the handshake, by the primitives that seal packets here.
    let (forth, back) = dialer.dangerously_get_raw_split();
    let said = [
        ("462e20412e20486179656b", "7c01e898a6201f36aecee532e29cd0b7f8ffa29d3366ad0dce39a6"),
        ("4361726c204d656e676572", "a9ff535aace3db6a1da1a7fb00fe2de2622bb373abad9fb42c00e0"),
        (
            "4a65616e2d426170746973746520536179",
            "6cfc49a3e65472edc2d0152abe5ce950170a8a47c959f30bd48b5f0aacf29adbfd",
        ),
        (
            "457567656e2042f6686d20766f6e2042617765726b",
            "9bc86e6d974ed21ba04604a94aa68de21677eb409ead070c0cd569b069ee19ba142aa4c1a9",
        ),
    ];
    for (number, (plain, expected)) in said.into_iter().enumerate() {
        // The dialing side speaks first, and both in turn.
        let key = primitives::key(if number % 2 == 0 { &forth } else { &back });
        let mut sealed = bytes(plain);
        let tag = primitives::seal(&key, number as u64 / 2, &[], &mut sealed);
        sealed.extend(tag);
        assert_eq!(hex(&sealed), expected);
    }
}

/// A change of the sealed content or of the sealing changes the version of the protocol.
#[test]
fn packets_are_frozen() {
    let (mut here, mut there) = channels();
    let packets: Vec<Outgoing> =
        [(3, 0), (0, 4), (0, 0)].map(|(head, values)| here.protect(draft(9, head, values))).into();
    let frozen = [
        "614440040300000000000000090000000000000007000000000000008696cd445c0abc90613ba17cdaaa9d8e6e7f4bac00000000000000000000000000000000bf349a",
        "614440040000000004000000090000000000000007000000000000001179fe521b00f34c9cc5cad13707f20a116c49606f291a9389553b8b670cdae96464934f421094df",
        "61444004000000000000000009000000000000000700000000000000e5a7f18f6e3adf87931c3ac24680686c0dc7d6f700000000000000000000000000000000",
    ];
    for (packet, frozen) in packets.iter().zip(frozen) {
        assert_eq!(hex(&packet.parts().concat()), frozen);
        assert_eq!(packet.parts()[0].len(), SEALED_HEADER_BYTES);
        there.believe(untouched(packet)).expect("it is sound");
    }
    let (initiator, first) = Initiator::start(&token(1), [3; 32]);
    let (answer, there) = respond(&token(1), &first, [4; 32]).expect("it knows the token");
    let here = initiator.finish(&answer).expect("it knows the token");
    assert_eq!(
        hex(&first),
        "5dfedd3b6bd47f6fa28ee15d969d5bb0ea53774d488bdaf9df1c6e0124b3ef227c669d02d75dd99c40569f3fbb9a7d54"
    );
    assert_eq!(
        hex(&answer),
        "ac01b2209e86354fb853237b5de0f4fab13c7fcbf433a61c019369617fecf10be5a1b511baebb151ba00a1d4066df288"
    );
    assert_eq!((here.hash, &here.link), (there.hash, &there.link));
    let mark = here.link.mark(Side::Dialer, &here.hash);
    assert_eq!(hex(&mark), "87843bd050b141564526e4ef8d08b6caa0aa18b8eb0f78c00ab5a890987f083b");
    assert!(
        there.link.knows(&mark, Side::Dialer, &there.hash)
            && !there.link.knows(&mark, Side::Listener, &there.hash)
    );
}

#[test]
fn packets_go_through_in_both_directions_and_over_many_keys() {
    let (mut here, mut there) = channels();
    for number in 0..40_000 {
        let (head, values) = (number % 5, number % 3 * 4);
        let sent = draft(number as u64, head, values);
        let plain = untouched(&sent.clone().check()).check().expect("it is sound");
        assert_eq!(there.believe(untouched(&here.protect(sent.clone()))), Ok(plain.clone()));
        assert_eq!(here.believe(untouched(&there.protect(sent))), Ok(plain));
    }
}

#[test]
fn a_key_opens_nothing_of_what_was_sealed_before_it_was_made() {
    let (mut here, mut there) = channels();
    let first = here.protect(draft(0, 5, 4));
    let first_parts = first.parts();
    there.believe(untouched(&first)).expect("it is sound");
    for number in 1..20_000 {
        there.believe(untouched(&here.protect(draft(number, 1, 0)))).expect("it is sound");
    }
    // The present key, and the old number.
    let stolen = there.stolen_key();
    let tag: [u8; 16] = first_parts[0][32..48].try_into().expect("a tag");
    assert!(!primitives::open(stolen, 0, &first_parts[0][..32], tag, &mut first_parts[1].to_vec()));
}

#[test]
fn what_was_dropped_repeated_or_moved_does_not_open_and_nothing_does_behind_it() {
    let orders: [&[usize]; 6] =
        [&[1, 2, 3], &[0, 0, 1], &[0, 2, 1], &[1, 0, 2], &[0, 1, 1], &[3, 3, 3]];
    for order in orders {
        let (mut here, mut there) = channels();
        let packets: Vec<Outgoing> =
            (0..4).map(|number| here.protect(draft(number, 4, 4))).collect();
        let believed = order
            .iter()
            .map(|&at| there.believe(untouched(&packets[at])).map(|packet| packet.seq.0));
        let believed: Vec<_> = believed.collect();
        let sound = order.iter().enumerate().take_while(|(turn, at)| turn == *at).count();
        for (turn, believed) in believed.into_iter().enumerate() {
            let expected = if turn < sound { Ok(turn as u64) } else { Err(Fault::Unopened) };
            assert_eq!(believed, expected, "{order:?}");
        }
        assert_eq!(there.believe(untouched(&here.protect(draft(4, 4, 4)))), Err(Fault::Unopened));
    }
}

#[test]
fn parts_of_two_packets_do_not_make_one() {
    for exchanged in 0..4 {
        let (mut here, mut there) = channels();
        let [one, other] = [8, 8].map(|seq| here.protect(draft(seq, 4, 4)));
        let ([header, head, values], [tags, ..]) = (one.parts(), other.parts());
        let mixed = match exchanged {
            0 => [tags, head, values].map(<[u8]>::to_vec),
            1 => [header, other.parts()[1], values].map(<[u8]>::to_vec),
            2 => [header, head, other.parts()[2]].map(<[u8]>::to_vec),
            // The values with their tag.
            _ => [[&header[..48], &tags[48..]].concat(), head.to_vec(), other.parts()[2].to_vec()],
        };
        let packet = arrived(mixed.each_ref().map(Vec::as_slice))
            .expect("lengths and checksum of the header are right");
        assert_eq!(there.believe(packet), Err(Fault::Unopened), "{exchanged}");
    }
}

/// Two connections with the same keys, which must never exist: even then a head does not go with
/// the values of another packet.
#[test]
fn values_belong_to_their_head_and_to_no_other() {
    let (mut here, mut there) = channels();
    let (mut again, _) = channels();
    let [one, other] = [here.protect(draft(0, 8, 4)), again.protect(draft(0, 7, 4))];
    assert_eq!(
        there.believe(head_of_one_and_values_of_the_other(&one, &other)),
        Err(Fault::Unopened)
    );

    // The same with test channels, one of which does not bind values to heads and accepts the mix.
    for binds_values in [true, false] {
        let [one, other] =
            [draft(0, 8, 4), draft(0, 7, 4)].map(|draft| seal_first(draft, binds_values));
        let mixed = head_of_one_and_values_of_the_other(&one, &other);
        assert_eq!(open_first(mixed, binds_values).is_ok(), !binds_values);
    }
    // It equals the product's channel otherwise.
    let (mut here, _) = channels();
    assert_eq!(here.protect(draft(0, 8, 4)).parts(), seal_first(draft(0, 8, 4), true).parts());
}

fn head_of_one_and_values_of_the_other(one: &Outgoing, other: &Outgoing) -> Incoming {
    let header = [&one.parts()[0][..48], &other.parts()[0][48..]].concat();
    arrived([&header, one.parts()[1], other.parts()[2]]).expect("the header is sound")
}

/// Seals the first packet of a channel; its values are associated with the tag of their head, or
/// with nothing.
fn seal_first(draft: Draft, binds_values: bool) -> Outgoing {
    let key = primitives::key(&[1; 32]);
    draft.seal(|clear, head, values| {
        let first = primitives::seal(&key, 0, clear, head);
        [first, primitives::seal(&key, 1, if binds_values { &first } else { &[] }, values)]
    })
}

/// Opens a packet made by [`seal_first`].
fn open_first(packet: Incoming, binds_values: bool) -> Result<Packet, Fault> {
    let key = primitives::key(&[1; 32]);
    packet.open(|clear, [first, second], head, values| {
        let bound: &[u8] = if binds_values { &first } else { &[] };
        primitives::open(&key, 0, clear, first, head)
            && primitives::open(&key, 1, bound, second, values)
    })
}

#[test]
fn a_packet_that_is_not_sealed_is_not_believed_on_a_sealed_channel_nor_one_that_is_on_a_plain_one()
{
    let (mut here, mut there) = channels();
    assert_eq!(there.believe(untouched(&draft(0, 4, 4).check())), Err(Fault::Unopened));
    assert_eq!(
        Channel::default().believe(untouched(&here.protect(draft(0, 4, 4)))),
        Err(Fault::Unopened)
    );
    assert_eq!(
        channels().0.believe(untouched(&here.protect(draft(0, 4, 4)))),
        Err(Fault::Unopened),
        "sent back"
    );
}

#[test]
fn recordings_are_known_until_there_were_4096_others() {
    let first =
        |number: u32| -> Vec<u8> { (0..48).map(|at| number.to_le_bytes()[at % 4]).collect() };
    let mut recordings = Recordings::default();
    for number in 0..5_000 {
        assert!(!recordings.has(&first(number)));
        recordings.keep(&first(number));
        recordings.keep(&first(number));
        assert!(recordings.has(&first(number)));
        assert_eq!(recordings.has(&first(0)), number < 4_096);
        assert_eq!(number >= 1_000 && recordings.has(&first(number - 1_000)), number >= 1_000);
    }
    assert!(!recordings.has(&[1; 31]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_byte_of_a_packet_is_noticed(
        head in 0_usize..60,
        values in 0_usize..90,
        at in any::<prop::sample::Index>(),
        change in 1_u8..,
    ) {
        let (mut here, mut there) = channels();
        let packet = here.protect(draft(3, head, values));
        let [header, head, values] = packet.parts();
        let mut bytes = packet.parts().concat();
        bytes[at.index(header.len() + head.len() + values.len())] ^= change;
        // An attacker that changes the header fixes its checksum.
        let (clear, rest) = bytes.split_first_chunk_mut().expect("a header");
        crate::net::packet::finish(clear);
        let (proof, rest) = rest.split_at(header.len() - clear.len());
        let (head, values) = rest.split_at(head.len());
        let header = [clear.as_slice(), proof].concat();
        let read = arrived([&header, head, values]);
        // A change of the checksum alone would not matter.
        let is_same = [&header, head, values].concat() == packet.parts().concat();
        prop_assert_eq!(read.and_then(|packet| there.believe(packet)).is_ok(), is_same);
    }

    #[test]
    fn a_changed_byte_of_a_handshake_ends_it(at in 0_usize..96, change in 1_u8..) {
        let (initiator, mut first) = Initiator::start(&token(1), [3; 32]);
        if at < 48 {
            first[at] ^= change;
            prop_assert!(respond(&token(1), &first, [4; 32]).is_none());
        } else {
            let (mut answer, _) = respond(&token(1), &first, [4; 32]).expect("it knows the token");
            answer[at - 48] ^= change;
            prop_assert!(initiator.finish(&answer).is_none());
        }
    }

    #[test]
    fn whoever_has_another_token_or_says_anything_else_is_refused(first in prop::collection::vec(any::<u8>(), 0..100)) {
        prop_assert!(respond(&token(1), &first, [4; 32]).is_none());
        let (initiator, first) = Initiator::start(&token(2), [3; 32]);
        prop_assert!(respond(&token(1), &first, [4; 32]).is_none());
        let (answer, _) = respond(&token(2), &first, [4; 32]).expect("it knows the token");
        prop_assert!(initiator.finish(&answer[..47]).is_none());
    }
}
