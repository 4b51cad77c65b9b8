//! Target `packets`: for any bytes of a pipe, cut anywhere, the packet reader yields the same
//! packets and ends for the same reason, none of them above the limit; sealed packets are accepted
//! only as they were sealed, in their order.
//!
//! The input writes a stream of sound packets, plain and sealed, damaged ones and noise, and cuts
//! it into the pieces of the source, some of them empty. Not here: the content of the packets
//! (targets `handshake`, `decode`).

use adapm_core::link::{self, Seq};
use adapm_core::transport::Frame;
use adapm_transport::net::packet::{
    CLEAR_BYTES, Draft, Fault, Greeting, Incoming, Kind, Packet, PacketReader, Spares,
};
use adapm_transport::testing::{Pieces, Speaker};
use adapm_verify::arb::Choices;

use crate::handshake::shaken_hands;

/// Maximum number of packets in one input.
const PACKETS_MAX: usize = 12;

/// Calls after which a reader that neither reads on nor ends counts as hanging.
const CALLS_MAX: usize = 1_000_000;

/// Reads the stream that `bytes` choose. Returns true if it yields a whole packet.
pub fn packets(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    let limit = [100, 1 << 10, 1 << 20][choices.below(3) as usize];
    let trusts = choices.flag();
    let cuts: Vec<usize> = (0..choices.below(5)).map(|_| cut(&mut choices)).collect();
    let [mut here, mut there] = shaken_hands();
    let (mut stream, mut sealed) = (Vec::new(), Vec::new());
    for _ in 0..PACKETS_MAX {
        if choices.is_exhausted() {
            break;
        }
        sealed.extend(write(&mut stream, limit, &mut here, &mut choices));
    }
    let expected = read(&stream, vec![usize::MAX], limit, false);
    // At least one piece is not empty, else nothing ever arrives.
    let cuts = cuts.into_iter().chain([1 + bytes.len() % 4_096]).collect();
    assert_eq!(read(&stream, cuts, limit, trusts), expected, "another cut, other packets");
    let is_one = !expected.0.is_empty();
    let believed = expected.0.into_iter().filter_map(|packet| there.believe(packet).ok());
    assert!(believed.zip(sealed).all(|(packet, sent)| packet == sent), "something else was sealed");
    is_one
}

/// Chooses the length of a piece: often small, sometimes 0.
fn cut(choices: &mut Choices<'_>) -> usize {
    match choices.below(4) {
        0 => 0,
        1 => 1 + choices.below(40) as usize,
        2 => choices.below(5_000) as usize,
        _ => choices.below(200_000) as usize,
    }
}

/// Appends a packet, sound or not, or noise. Returns the sealed content, if any.
fn write(
    stream: &mut Vec<u8>,
    limit: usize,
    speaker: &mut Speaker,
    choices: &mut Choices<'_>,
) -> Option<Packet> {
    let at = stream.len();
    let choice = choices.below(8);
    if choice == 7 {
        stream.extend((0..choices.below(64)).map(|_| choices.below(256) as u8));
        return None;
    }
    let large = [0, 0, 0, 20_000][choices.below(4) as usize];
    let (head, values) = (choices.below(256) as usize, large + choices.below(256) as usize);
    let frame = frame(head, values, choices.below(256) as u8);
    let (kind, seq, ack) = (kind(choices), Seq(choices.number()), Seq(choices.number()));
    let draft = Draft::new(kind, seq, ack, frame.clone());
    let is_sealed = choices.flag();
    if is_sealed {
        stream.extend(speaker.protect(draft));
    } else {
        let packet = draft.check();
        of_parts(packet.parts()[0], frame.clone(), limit, choices);
        stream.extend(packet.parts().concat());
    }
    match choice {
        5 => {
            let place = at + choices.below((stream.len() - at) as u64) as usize;
            stream[place] ^= 1 << choices.below(8);
        }
        6 => stream.truncate(at + choices.below((stream.len() - at) as u64) as usize),
        _ => {}
    }
    is_sealed.then_some(Packet { kind, seq, ack, wants_ack: false, frame })
}

/// Checks the same packet as delivered by a pipe that keeps messages apart.
fn of_parts(header: &[u8], frame: Frame, limit: usize, choices: &mut Choices<'_>) {
    let fits = frame.len() <= limit;
    let read =
        |header: &[u8]| Incoming::of_parts(header, frame.clone(), limit).and_then(Incoming::check);
    assert_eq!(
        read(header).is_ok(),
        fits,
        "a sound packet within the limit is taken, and no other"
    );
    let mut header = header.to_vec();
    match choices.below(4) {
        0 => header.truncate(choices.below(header.len() as u64) as usize),
        1 => header.push(0),
        2 => header[choices.below(CLEAR_BYTES as u64) as usize] ^= 1 << choices.below(8),
        _ => *header.last_mut().expect("a checksum") ^= 1 << choices.below(8),
    }
    assert!(read(&header).is_err(), "a changed header is noticed");
}

fn kind(choices: &mut Choices<'_>) -> Kind {
    [
        Kind::Link(link::Kind::Data),
        Kind::Link(link::Kind::Bye),
        Kind::Link(link::Kind::Ack),
        Kind::Link(link::Kind::Heartbeat),
        Kind::Greeting(Greeting::Open),
        Kind::Greeting(Greeting::Opened),
        Kind::Greeting(Greeting::Hello),
        Kind::Greeting(Greeting::Welcome),
        Kind::Greeting(Greeting::Refuse),
    ][choices.below(9) as usize]
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

/// Returns all packets of the stream, and why there are no more.
fn read(stream: &[u8], cuts: Vec<usize>, limit: usize, trusts: bool) -> (Vec<Incoming>, Fault) {
    let mut source = Pieces::ending(stream, cuts);
    let mut reader = PacketReader::new(limit);
    reader.trust_short(trusts);
    let (mut spares, mut packets) = (Spares::default(), Vec::new());
    for _ in 0..CALLS_MAX {
        match reader.read(&mut source, &mut spares) {
            Ok(Some(packet)) => {
                if let Ok(sound) = packet.clone().check() {
                    assert!(sound.frame.len() <= limit, "a packet above the limit");
                    spares.keep(sound.frame);
                }
                packets.push(packet);
            }
            Ok(None) => {}
            Err(fault) => {
                if let (Fault::Oversize { bytes, limit: told }, true) = (fault, reader.is_within())
                {
                    assert!(bytes > told as u64, "a packet that fits is not refused");
                }
                assert!(!fault.to_string().contains('\n'), "an error is one line");
                return (packets, fault);
            }
        }
    }
    panic!("the reader neither reads on nor ends");
}
